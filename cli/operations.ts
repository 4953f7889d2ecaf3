/** Waits for operations of the server and shows their progress. */
import { setTimeout as wait } from "node:timers/promises";
import { inDatabase } from "./client.ts";
import type { CommandContext } from "./command.ts";
import { Failure } from "./failure.ts";
import { countText, durationText, sizeText } from "./output.ts";
import { ProgressLine, rateText } from "./progress.ts";

interface OperationState {
  readonly Status: "InProgress" | "Completed" | "Faulted" | "Canceled";
  readonly Progress: Readonly<Record<string, unknown>> | null;
  readonly Result: Readonly<Record<string, unknown>> | null;
  /** Counts of a completed patch or deletion by query. */
  readonly Reached?: { readonly Total: number; readonly Changed: number };
}

const pollMs = 100;
const pollMsMax = 1000;

/**
 * Waits for an operation to complete; `database` is undefined for an operation of the server. Ctrl-C stops waiting,
 * but does not cancel the operation.
 * @throws Failure failed, interrupted, missing
 */
export async function waitForOperation(
  context: CommandContext,
  database: string | undefined,
  id: number,
): Promise<OperationState> {
  const progress = new ProgressLine(context);
  let pauseMs = pollMs;
  try {
    for (;;) {
      const state = await operationState(context, database, id);
      if (state.Status === "Completed") return state;
      if (state.Status !== "InProgress") throw failureOf(id, state);
      progress.show(() => progressText(state.Progress, progress.elapsedMs));
      if (context.interrupted.aborted) throw detached(database, id);
      await wait(pauseMs, undefined, { signal: context.interrupted }).catch(() => undefined);
      pauseMs = Math.min(pollMsMax, pauseMs * 1.5);
    }
  } finally {
    progress.end();
  }
}

export async function operationState(
  { client }: CommandContext,
  database: string | undefined,
  id: number,
): Promise<OperationState> {
  const path = "operations/state";
  const where = database === undefined ? `/${path}` : inDatabase(database, path);
  const answer = await client().send(where, { query: { id }, accepts: [404] });
  if (answer.status !== 404) return JSON.parse(answer.text) as OperationState;
  throw new Failure(
    "missing",
    `Operation ${id} does not exist; 'jackdaw operation list' lists all operations`,
  );
}

function detached(database: string | undefined, id: number): Failure {
  const where = database === undefined ? "" : ` -d ${database}`;
  return new Failure(
    "interrupted",
    `Operation ${id} continues on the server: use 'jackdaw operation wait ${id}${where}' or 'jackdaw operation kill ${id}${where}'`,
  );
}

function failureOf(id: number, { Status, Result }: OperationState): Failure {
  if (Status === "Canceled") return new Failure("failed", `Operation ${id} was canceled`);
  const why = String(Result?.["Message"] ?? "unknown reason").split("\n")[0];
  return new Failure("failed", `Operation ${id} failed: ${why}`);
}

/** Returns the progress of an operation on one line, with rate and remaining time if the total is known. */
function progressText(progress: OperationState["Progress"], elapsedMs: number): string {
  const bytes = Number(progress?.["ProcessedBytes"] ?? Number.NaN);
  if (!Number.isNaN(bytes)) {
    return rateText(bytes, Number(progress?.["TotalBytes"]), elapsedMs, sizeText);
  }
  const processed = Number(progress?.["Processed"] ?? Number.NaN);
  const total = Number(progress?.["Total"] ?? Number.NaN);
  if (Number.isNaN(processed)) {
    const message = progress?.["Message"];
    return `${typeof message === "string" ? message : "running"}, ${durationText(elapsedMs)}`;
  }
  return rateText(processed, total > 0 ? total : undefined, elapsedMs, countText);
}
