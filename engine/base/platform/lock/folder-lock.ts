/**
 * Exclusive lock of a folder. It works between processes of one machine, in whatever namespaces and under whatever
 * users, and between machines that share a file system. Files: lock-record.ts.
 *
 * Acquiring the lock:
 *   1. Read the newest lock file. The folder is free if it has no lock file, if the lock was released, or if its owner
 *      has certainly ended: its socket has no listener, and no other machine can have the folder, or its process no
 *      longer exists. Then the lock is acquired immediately.
 *   2. Else its heartbeat is watched. If it advances, the folder is in use. If it does not for `silenceMs`, as measured
 *      here, the owner is presumed dead or suspended. Clocks of two machines are never compared.
 *   3. Create the file of the next generation, which only one process can do, and remove the older ones.
 *
 * Keeping it: the heartbeats (heartbeat.ts) renew a lease, which expires long before `silenceMs`. Writers check
 * `isLeased` before each write, and again after a sync, before it is acknowledged. When the lease has expired (the
 * process was suspended, or the machine asleep), `prove` acquires the next generation in the same way as another
 * process would: the second one loses the folder. Where several machines share the folder, `prove` also reads the file
 * each time, because the clock of a machine that was suspended as a whole stops too. A successor removes the file
 * before it reads the folder, so it finds everything that was on the device when the file was last seen.
 *
 * A folder inside a locked one has no heartbeat of its own: it relies on the lock of the outer folder.
 *
 * Invariants:
 * - A write is acknowledged only if the folder was still ours when the write was on the device.
 * - A lock left by a crash is taken over automatically.
 */
import { randomBytes } from "node:crypto";
import { link, open, readdir, realpath, rm, unlink } from "node:fs/promises";
import { relative, resolve } from "node:path";
import { performance } from "node:perf_hooks";
import type { DirectoryLock } from "../../environment.ts";
import { EngineError } from "../../errors.ts";
import { folderSilenceMs } from "../../limits.ts";
import { type Beat, isLeased, newBeat, proven, startBeats, stopBeats } from "./heartbeat.ts";
import { type HolderFacts, isLocalFolder, ownFacts, processIsGone } from "./holder-facts.ts";
import {
  encodeLock,
  encodeRecord,
  type FoundLock,
  findLock,
  generationOf,
  highestGeneration,
  isGone,
  isLockName,
  type LockRecord,
  lockPath,
  readLock,
  releasedState,
} from "./lock-record.ts";
import { askPresence, openPresence, type PresenceSocket } from "./presence.ts";

/** Overrides by tests and settings. */
export interface FolderLockOptions {
  /** Milliseconds without a heartbeat of this process after which others may acquire the lock. */
  readonly silenceMs?: number | undefined;
  readonly facts?: (() => Promise<HolderFacts>) | undefined;
  readonly isLocalFolder?: ((folder: string) => Promise<boolean>) | undefined;
}

/** The state of the present owner of a folder. */
type Judgement =
  /** `mayHaveRival`: the owner may only be suspended, and resume later. */
  | { readonly verdict: "free"; readonly mayHaveRival: boolean }
  | { readonly verdict: "taken" }
  /** `fingerprint` changes while the owner lives. */
  | { readonly verdict: "unknown"; readonly fingerprint: string; readonly silenceMs: number };

const pollsPerSilence = 50;
const triesOnFailure = 20;
const fileMode = 0o644;
/** Error codes of file systems without hard links. */
const noLinks: ReadonlySet<string | undefined> = new Set([
  "EPERM",
  "ENOTSUP",
  "EOPNOTSUPP",
  "ENOSYS",
  "EMLINK",
  "EINVAL",
]);

/** Folders locked by this process, by real path. */
const held = new Set<string>();

/**
 * Locks the folder. `under`: a lock of this process; if it locks an enclosing folder, its heartbeats are used.
 * @throws EngineError database-locked, naming the owner; the error of the file system if the folder is not writable.
 */
export async function lockFolder(
  path: string,
  under: FolderLock | null,
  options: FolderLockOptions = {},
): Promise<FolderLock> {
  const folder = await realpath(path);
  if (held.has(folder)) throw lockedError(path, await findLock(folder));
  held.add(folder);
  let presence: PresenceSocket | null = null;
  try {
    const outer = under !== null && folder.startsWith(`${under.folder}/`) ? under : null;
    const facts = await (options.facts ?? ownFacts)();
    const nonce = randomBytes(8).toString("hex");
    presence = outer === null ? await openPresence(folder, nonce) : null;
    const record: LockRecord = {
      nonce,
      ...facts,
      socket: presence?.name ?? null,
      silenceMs: options.silenceMs ?? folderSilenceMs,
      under: outer === null ? null : { folder: relative(folder, outer.folder), nonce: outer.nonce },
    };
    const isLocal = await (options.isLocalFolder ?? isLocalFolder)(folder);
    return await new Taking(path, folder, record, facts, isLocal, outer).run(presence);
  } catch (error) {
    await presence?.close();
    held.delete(folder);
    throw error;
  }
}

/** One attempt to lock a folder. */
class Taking {
  readonly #path: string;
  readonly #folder: string;
  readonly #record: LockRecord;
  readonly #facts: HolderFacts;
  readonly #isLocal: boolean;
  readonly #under: FolderLock | null;
  #watched: { readonly fingerprint: string; readonly sinceMs: number } | null = null;

  constructor(
    path: string,
    folder: string,
    record: LockRecord,
    facts: HolderFacts,
    isLocal: boolean,
    under: FolderLock | null,
  ) {
    this.#path = path;
    this.#folder = folder;
    this.#record = record;
    this.#facts = facts;
    this.#isLocal = isLocal;
    this.#under = under;
  }

  async run(presence: PresenceSocket | null): Promise<FolderLock> {
    for (;;) {
      const found = await findLock(this.#folder);
      const judgement: Judgement =
        found === null ? { verdict: "free", mayHaveRival: false } : await this.#judge(found);
      const mayHaveRival = await this.#whenFree(judgement);
      if (mayHaveRival === "taken") throw lockedError(this.#path, found);
      if (mayHaveRival === "wait") continue;
      const generation = (found?.generation ?? 0) + 1;
      const startedAt = process.hrtime.bigint();
      const epoch = this.#under?.epoch ?? 0;
      // Another process was faster: its lock is examined next.
      if (!(await makeLockFile(this.#folder, generation, this.#record))) continue;
      if ((await highestGeneration(this.#folder)) !== generation) {
        await unlink(lockPath(this.#folder, generation));
        continue;
      }
      await removeOlder(this.#folder, generation, this.#record);
      return new FolderLock({
        path: this.#path,
        folder: this.#folder,
        record: this.#record,
        generation,
        startedAt,
        leaseSuffices: this.#isLocal,
        mayHaveRival,
        predecessor: found?.record?.nonce ?? null,
        under: this.#under,
        underEpoch: epoch,
        presence,
      });
    }
  }

  /**
   * Returns whether the folder can be locked now, and whether its owner may resume. Waits for a while if that is
   * unknown.
   */
  async #whenFree(judgement: Judgement): Promise<boolean | "taken" | "wait"> {
    if (judgement.verdict === "taken") return "taken";
    if (judgement.verdict === "free") return judgement.mayHaveRival;
    const { fingerprint, silenceMs } = judgement;
    const nowMs = performance.now();
    this.#watched ??= { fingerprint, sinceMs: nowMs };
    if (this.#watched.fingerprint !== fingerprint) return "taken";
    if (nowMs - this.#watched.sinceMs >= silenceMs) return true;
    await delay(silenceMs / pollsPerSilence);
    return "wait";
  }

  async #judge(found: FoundLock): Promise<Judgement> {
    const { record, fingerprint } = found;
    if (record === null) {
      // An unreadable record does not contain the owner's `silenceMs`.
      return { verdict: "unknown", fingerprint, silenceMs: this.#record.silenceMs };
    }
    if (found.isReleased) return { verdict: "free", mayHaveRival: false };
    if (record.under === null) return await this.#judgeOwner(this.#folder, found, record);
    const outer = resolve(this.#folder, record.under.folder);
    const { nonce } = record.under;
    if (outer === this.#under?.folder) {
      // The outer folder is ours: its previous owner lost this folder with it.
      const { predecessor, mayHaveRival } = this.#under;
      const wasLast = nonce === this.#under.nonce || nonce === predecessor;
      return { verdict: "free", mayHaveRival: mayHaveRival || !wasLast };
    }
    const around = await findLock(outer).catch((error: unknown) => {
      if (isGone(error)) return null;
      throw error;
    });
    if (around?.record === null || around === null) {
      return { verdict: "unknown", fingerprint, silenceMs: record.silenceMs };
    }
    if (around.record.nonce !== nonce) return { verdict: "free", mayHaveRival: true };
    if (around.isReleased) return { verdict: "free", mayHaveRival: false };
    return await this.#judgeOwner(outer, around, around.record);
  }

  /** Examines the owner of a lock that has heartbeats. */
  async #judgeOwner(folder: string, found: FoundLock, record: LockRecord): Promise<Judgement> {
    if (record.socket !== null) {
      const presence = await askPresence(folder, record.socket, record.nonce);
      if (presence === "answers") return { verdict: "taken" };
      if (presence === "refused" && this.#isLocal) return { verdict: "free", mayHaveRival: false };
    }
    if (await processIsGone(record, this.#facts)) return { verdict: "free", mayHaveRival: false };
    const { fingerprint } = found;
    return { verdict: "unknown", fingerprint, silenceMs: record.silenceMs };
  }
}

interface LockedFolder {
  /** The caller's path, for messages. */
  readonly path: string;
  readonly folder: string;
  readonly record: LockRecord;
  readonly generation: number;
  /** Value of `process.hrtime` before the lock file was created. */
  readonly startedAt: bigint;
  readonly leaseSuffices: boolean;
  readonly mayHaveRival: boolean;
  /** The nonce of the previous owner. */
  readonly predecessor: string | null;
  readonly under: FolderLock | null;
  readonly underEpoch: number;
  readonly presence: PresenceSocket | null;
}

/** A folder that this process holds, or held. */
export class FolderLock implements DirectoryLock {
  readonly folder: string;
  readonly nonce: string;
  readonly mayHaveRival: boolean;
  readonly leaseSuffices: boolean;
  readonly predecessor: string | null;
  /** Number of times that the lease was renewed by a new generation. */
  epoch = 0;
  readonly #path: string;
  readonly #record: LockRecord;
  readonly #presence: PresenceSocket | null;
  readonly #under: FolderLock | null;
  /** Null: the heartbeat of `under` is used. */
  readonly #beat: Beat | null;
  #generation: number;
  #underEpoch: number;
  #lost: EngineError | null = null;
  #isReleased = false;
  #renewing: Promise<void> | null = null;
  readonly #listeners: ((error: EngineError) => void)[] = [];

  /** Use `lockFolder`. */
  constructor(taken: LockedFolder) {
    this.#path = taken.path;
    this.folder = taken.folder;
    this.nonce = taken.record.nonce;
    this.mayHaveRival = taken.mayHaveRival;
    this.leaseSuffices = taken.leaseSuffices;
    this.predecessor = taken.predecessor;
    this.#record = taken.record;
    this.#presence = taken.presence;
    this.#under = taken.under;
    this.#underEpoch = taken.underEpoch;
    this.#generation = taken.generation;
    this.#beat = taken.under === null ? newBeat(taken.record.silenceMs) : null;
    if (this.#beat !== null) this.#startBeats(this.#beat, taken.startedAt);
  }

  isLeased(): boolean {
    if (this.#lost !== null || this.#isReleased) return false;
    if (this.#beat !== null) return isLeased(this.#beat);
    return this.#under?.isLeased() === true && this.#under.epoch === this.#underEpoch;
  }

  async prove(): Promise<void> {
    if (this.#lost !== null) throw this.#lost;
    if (this.#isReleased) throw new EngineError("database-stopped", `${this.#path} was let go.`);
    if (this.#under !== null) await this.#under.prove();
    else if (this.isLeased() && !this.leaseSuffices) await this.#look();
    while (!this.isLeased()) {
      if (this.#lost !== null) throw this.#lost;
      this.#renewing ??= this.#renew().finally(() => {
        this.#renewing = null;
      });
      await this.#renewing;
    }
  }

  onLost(listener: (error: EngineError) => void): void {
    if (this.#lost !== null) listener(this.#lost);
    else this.#listeners.push(listener);
  }

  async release(): Promise<void> {
    if (this.#isReleased || this.#lost !== null) return;
    this.#isReleased = true;
    await this.#renewing?.catch(() => undefined);
    if (this.#beat !== null) await stopBeats(this.#beat);
    try {
      await this.#markReleased();
    } catch {
      // A successor finds that this process has ended, or is silent.
    } finally {
      await this.#presence?.close();
      held.delete(this.folder);
    }
  }

  async #markReleased(): Promise<void> {
    if ((await readLock(this.folder, this.#generation))?.record?.nonce !== this.nonce) return;
    const file = await open(lockPath(this.folder, this.#generation), "r+");
    try {
      await file.write(releasedState, Buffer.byteLength(encodeRecord(this.#record)) + 1);
    } finally {
      await file.close();
    }
  }

  #startBeats(beat: Beat, at: bigint): void {
    proven(beat, at);
    const path = lockPath(this.folder, this.#generation);
    startBeats(beat, path, this.#generation, encodeRecord(this.#record), {
      lost: (generation) => {
        if (generation !== this.#generation || this.#renewing !== null) return;
        // Verifies it, and determines the new owner.
        this.#look().catch(() => undefined);
      },
      lapsed: () => {
        this.prove().catch(() => undefined);
      },
    });
  }

  /** Verifies that the lock file is still ours. @throws EngineError folder-lost */
  async #look(): Promise<void> {
    const generation = this.#generation;
    const found = await this.#patiently(() => readLock(this.folder, generation));
    if (found?.record?.nonce === this.nonce || generation !== this.#generation) return;
    if (this.#isReleased) return;
    throw await this.#lose();
  }

  /** Acquires the next generation, unless another process has. @throws EngineError folder-lost */
  async #renew(): Promise<void> {
    const startedAt = process.hrtime.bigint();
    const underEpoch = this.#under?.epoch ?? 0;
    await this.#look();
    const next = this.#generation + 1;
    const isMade = await this.#patiently(() => makeLockFile(this.folder, next, this.#record));
    if (!isMade) throw await this.#lose();
    await this.#patiently(async () => {
      if ((await highestGeneration(this.folder)) !== next) throw await this.#lose();
      await removeOlder(this.folder, next, this.#record);
    });
    this.#generation = next;
    this.#underEpoch = underEpoch;
    this.epoch++;
    if (this.#beat !== null) this.#startBeats(this.#beat, startedAt);
  }

  /** Retries on I/O errors, which may be transient. @throws EngineError folder-lost */
  async #patiently<Result>(work: () => Promise<Result>): Promise<Result> {
    for (let tries = 1; ; tries++) {
      try {
        return await work();
      } catch (error) {
        if (this.#lost !== null) throw this.#lost;
        if (tries === triesOnFailure) throw await this.#lose(error);
      }
      await delay(this.#record.silenceMs / pollsPerSilence);
    }
  }

  async #lose(cause?: unknown): Promise<EngineError> {
    const found = await findLock(this.folder).catch(() => null);
    const { record } = found ?? { record: null };
    let why = "its lock file was removed";
    if (cause !== undefined) {
      why = `its lock file cannot be kept up (${(cause as Error).message})`;
    } else if (record !== null && record.nonce !== this.nonce) {
      why = `${nameOf(record)}, took it while this one was stopped or could not reach it`;
    }
    this.#lost ??= new EngineError(
      "folder-lost",
      `The folder ${this.#path} is no longer this process's: ${why}. Nothing more is written to it.`,
      { cause, details: { holder: record } },
    );
    if (this.#beat !== null) await stopBeats(this.#beat);
    await this.#presence?.close();
    held.delete(this.folder);
    for (const listener of this.#listeners.splice(0)) listener(this.#lost);
    return this.#lost;
  }
}

/** @returns false when another process has created that generation. */
async function makeLockFile(
  folder: string,
  generation: number,
  record: LockRecord,
): Promise<boolean> {
  const path = lockPath(folder, generation);
  const temporary = `${folder}/LOCK.${record.nonce}.tmp`;
  try {
    await rm(temporary, { force: true });
    await writeNew(temporary, record);
    try {
      await link(temporary, path);
    } catch (error) {
      if (!noLinks.has((error as NodeJS.ErrnoException).code)) throw error;
      await writeNew(path, record);
    }
    return true;
  } catch (error) {
    // Missing: the process that was faster has removed it.
    if (isGone(error)) return false;
    if ((error as NodeJS.ErrnoException).code !== "EEXIST") throw error;
    // A file server may have created it and lost the reply.
    return (await readLock(folder, generation))?.record?.nonce === record.nonce;
  } finally {
    await rm(temporary, { force: true }).catch(() => undefined);
  }
}

async function writeNew(path: string, record: LockRecord): Promise<void> {
  const file = await open(path, "wx", fileMode);
  try {
    await file.writeFile(encodeLock(record));
    // An inner lock depends on its outer one.
    if (record.under === null) await file.datasync();
  } finally {
    await file.close();
  }
}

/** Removes the files of previous owners. Older lock files must be removed: their owners may still check them. */
async function removeOlder(folder: string, generation: number, own: LockRecord): Promise<void> {
  for (const name of await readdir(folder)) {
    if (!isLockName(name) || name === own.socket) continue;
    const other = generationOf(name);
    if (other >= generation) continue;
    await unlink(`${folder}/${name}`).catch((error: unknown) => {
      if (other > 0 && !isGone(error)) throw error;
    });
  }
}

function lockedError(path: string, found: FoundLock | null): EngineError {
  const record = found?.record ?? null;
  const who = record === null ? "another process" : nameOf(record);
  return new EngineError("database-locked", `${path} is in use by ${who}.`, {
    details: { holder: record },
  });
}

function nameOf({ pid, host, startedAt }: LockRecord): string {
  return `process ${pid} on ${host}, started at ${startedAt}`;
}

function delay(ms: number): Promise<void> {
  return new Promise((done) => setTimeout(done, ms));
}
