/**
 * The audit log: changes of certificates, databases, indexes, and settings with their callers, and refused requests. It is a
 * separate file with one JSON line per event, in order, and synced.
 *
 * Invariants:
 * - Without a folder nothing is recorded.
 * - The number of refusals is limited, that of changes is not: clients without rights cannot fill the disk.
 */
import type { AuditSettings } from "../settings/log-settings.ts";
import type { LogFile } from "./log-file.ts";
import type { LogFields } from "./log-line.ts";
import { openLogFile } from "./process-log.ts";

/** The caller of an action. */
export interface Actor {
  /** Empty without a certificate. */
  readonly thumbprint: string;
  readonly subject: string | undefined;
  readonly address: string;
}

export class AuditLog {
  readonly #file: LogFile | null;

  private constructor(file: LogFile | null) {
    this.#file = file;
  }

  /** `failed` is called when lines cannot be written. @throws StartError setting-invalid */
  static async open(
    { folder, archives }: AuditSettings,
    failed: (error: unknown) => void,
  ): Promise<AuditLog> {
    if (folder === undefined) return new AuditLog(null);
    const options = { folder, name: "audit", archives, isSynced: true, failed };
    return new AuditLog(await openLogFile("Security.AuditLog.FolderPath", options));
  }

  /** Whether events are recorded. */
  get isOn(): boolean {
    return this.#file !== null;
  }

  get droppedCount(): number {
    return this.#file?.droppedCount ?? 0;
  }

  /** `action` names the action; `fields` contain its target and result. */
  record(action: string, actor: Actor, fields: LogFields): void {
    const { thumbprint, subject, address } = actor;
    this.#file?.write({
      level: "Info",
      timeMs: Date.now(),
      message: action,
      fields: {
        thumbprint: thumbprint === "" ? null : thumbprint,
        subject: subject?.replaceAll("\n", ", ") ?? null,
        address,
        ...fields,
      },
    });
  }

  close(): Promise<void> {
    return this.#file?.close() ?? Promise.resolve();
  }
}
