/**
 * The audit log: who changed certificates, databases, indexes and settings, and who was refused. A file of its own, one JSON
 * line each, in the order of the events and synced.
 *
 * Invariants:
 * - Without a folder nothing is kept.
 * - Refusals are limited in number, changes are not: nobody without rights can fill the disk.
 */
import type { AuditSettings } from "../settings/log-settings.ts";
import type { LogFile } from "./log-file.ts";
import type { LogFields } from "./log-line.ts";
import { openLogFile } from "./process-log.ts";

/** Who did it. */
export interface Actor {
  /** "" without a certificate. */
  readonly thumbprint: string;
  readonly subject: string | undefined;
  readonly address: string;
}

export class AuditLog {
  readonly #file: LogFile | null;

  private constructor(file: LogFile | null) {
    this.#file = file;
  }

  /** `failed`: told when lines cannot be written. @throws StartError setting-invalid */
  static async open(
    { folder, archives }: AuditSettings,
    failed: (error: unknown) => void,
  ): Promise<AuditLog> {
    if (folder === undefined) return new AuditLog(null);
    const options = { folder, name: "audit", archives, isSynced: true, failed };
    return new AuditLog(await openLogFile("Security.AuditLog.FolderPath", options));
  }

  /** Is it kept? */
  get isOn(): boolean {
    return this.#file !== null;
  }

  get droppedCount(): number {
    return this.#file?.droppedCount ?? 0;
  }

  /** `action`: what was done, in words; `fields`: to what, and how it ended. */
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
