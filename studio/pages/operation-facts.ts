/** Operations of a database as listed by the server, and their display texts. */
import { counted } from "../base/format.ts";
import type { OperationError, OperationState } from "../base/operation.ts";

export interface PatchCounts {
  readonly Processed: number;
  readonly Total: number;
  readonly Changed: number;
  readonly Unchanged: number;
}

export interface UndoResult {
  readonly Restored?: number;
  readonly ChangedSince?: number;
  readonly WithoutRevision?: number;
  readonly LeftAlone?: readonly string[];
}

/** State of a patch, deletion or undo operation, in addition to the common state. */
export interface PatchState extends OperationState<PatchCounts, UndoResult & { Total?: number }> {
  readonly IsPaused?: boolean;
  readonly MaxOpsPerSec?: number;
  readonly Reached?: PatchCounts;
  readonly CanResume?: boolean;
  readonly CanUndo?: boolean;
  readonly UndoneBy?: number;
  readonly Undoes?: number;
}

export interface ListedOperation {
  readonly Id: number;
  readonly Description: {
    readonly Description: string;
    readonly TaskType: string;
    readonly StartTime: string;
    readonly EndTime: string | null;
    readonly DetailedDescription: { readonly Query?: string } | null;
    readonly StartedBy?: string;
  };
  readonly State: PatchState;
}

const kinds: Readonly<Record<string, string>> = {
  UpdateByQuery: "Patch",
  DeleteByQuery: "Delete",
  DryRunByQuery: "Dry run",
  UndoOperation: "Undo",
  DatabaseExport: "Export",
  DatabaseImport: "Import",
  DatabaseBackup: "Backup",
  DatabaseCompact: "Compact",
  DatabaseRevert: "Revert",
  BulkInsert: "Bulk insert",
};

/** Returns a title: `Patch Orders`, `Undo operation 7: …` */
export function titleOf({ Description: { TaskType, Description } }: ListedOperation): string {
  return operationTitle(TaskType, Description);
}

export function operationTitle(kind: string, description: string): string {
  const what = description.replace(/^((collection|dynamic)\/|Revert )/, "");
  return `${kinds[kind] ?? kind} ${what}`;
}

/** Returns the document counts, or undefined. */
export function countsOf({ State }: ListedOperation): PatchCounts | undefined {
  const counts = State.Reached ?? State.Progress;
  return counts?.Processed === undefined ? undefined : counts;
}

export function errorOf({ Result, Status }: PatchState): OperationError | null {
  return Status === "Faulted" ? (Result as OperationError) : null;
}

/** Formats a duration: `48 s`, `2 min 5 s`. */
export function tookText(ms: number): string {
  if (ms < 10_000) return `${(ms / 1000).toFixed(1)} s`;
  const seconds = Math.round(ms / 1000);
  return seconds < 60 ? `${seconds} s` : `${Math.floor(seconds / 60)} min ${seconds % 60} s`;
}

/** Returns the collection of a query text, or "" if it cannot be determined. */
export function collectionOf(text: string): string {
  return /\bfrom\s+(?!index\b)['"]?(@?[\w-]+)/i.exec(text)?.[1] ?? "";
}

/** Formats a count: `799,410 Orders` */
export function documentsText(value: number, collection: string): string {
  return collection === "" || collection.startsWith("@")
    ? counted(value, "document")
    : counted(value, `document of ${collection}`, `documents of ${collection}`);
}
