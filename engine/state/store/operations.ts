/**
 * Operations: work that outlives the request that started it, such as patching by query. Each has an id, reports its
 * progress, can be cancelled, and its outcome can be queried.
 *
 *   values["operations/next"]   the first id that no run may have assigned yet
 *   values["operations/<id>"]   the state of one operation
 *   values["operation-marks/<id>"]   progress of an operation with a `request`: written by its work together with its
 *                               changes, and removed when it has ended
 *
 * Independent of the work of operations, and of their representation in replies.
 *
 * Invariants:
 * - Ids are unique over all restarts: they are reserved on disk in blocks, before they are used.
 * - A record on disk has the status "running" from before the work begins until after it has ended. If it still has
 *   this status when the database is opened, the operation was interrupted: its durable changes remain, and it is
 *   reported as interrupted. An operation with a `request` can resume from there, also if the database was closed in
 *   the middle of it.
 * - At most `finishedOperationsMax` ended operations are retained.
 */
import { InvariantError } from "../../base/assert.ts";
import type { Report } from "../../base/environment.ts";
import { EngineError, type ErrorCode } from "../../base/errors.ts";
import { finishedOperationsMax } from "../../base/limits.ts";
import type { EntryKeyspace } from "../keyspaces/entry-keyspace.ts";
import { notifyAll } from "./changes.ts";
import type { OperationControl } from "./operation-control.ts";
import type { Transaction } from "./transaction.ts";

/** Progress or result of an operation: JSON for clients. */
export type OperationFigures = Readonly<Record<string, unknown>>;

/** Counts of a bulk operation, by kind. */
interface BulkCounts {
  readonly total: number;
  readonly documents?: number;
  readonly attachments?: number;
  readonly counters?: number;
  readonly timeSeries?: number;
}

/**
 * Returns the result of a bulk operation, in the shape of RavenDB's replies. `details`: a row per item, when requested.
 */
export function bulkResult(
  counts: BulkCounts,
  details: readonly unknown[] = [],
  query: string | null = null,
): OperationFigures {
  return {
    Total: counts.total,
    Message: `Processed ${counts.total.toLocaleString("en-US")} items.`,
    Details: details,
    Query: query,
    DocumentsProcessed: counts.documents ?? 0,
    AttachmentsProcessed: counts.attachments ?? 0,
    CountersProcessed: counts.counters ?? 0,
    TimeSeriesProcessed: counts.timeSeries ?? 0,
  };
}

/** Why an operation failed. `code` undefined: an unexpected error. */
export interface OperationFailure {
  readonly code: ErrorCode | undefined;
  readonly message: string;
}

export type OperationState =
  | { readonly status: "running"; readonly progress: OperationFigures | null }
  | { readonly status: "completed"; readonly result: OperationFigures }
  | { readonly status: "failed"; readonly failure: OperationFailure }
  | { readonly status: "cancelled" };

/** The public state of an operation. */
export interface OperationInfo {
  readonly id: number;
  /** An identifier for programs, such as `UpdateByQuery`. */
  readonly kind: string;
  /** Description of the operation and its target, for users. */
  readonly description: string;
  /** The query that it executes, and its parameters. */
  readonly query?: string;
  /** Microseconds since 1970. */
  readonly startedAt: number;
  /** Null while it runs. */
  readonly endedAt: number | null;
  readonly state: OperationState;
  /** Name of the client that started it; undefined if unknown, or if the server started it. */
  readonly startedBy?: string;
  /** Whether it is paused; only for an operation with a control. */
  readonly isPaused?: boolean;
  /** Items a second; null: as fast as it can. */
  readonly rateMax?: number | null;
  /** Progress at its end, for an operation with a control. */
  readonly reached?: OperationFigures | null;
  /** Data needed to resume it after an interruption; set while it runs or is interrupted. */
  readonly request?: unknown;
  /** Constant facts specific to this kind of operation. */
  readonly facts?: OperationFigures;
}

/** Properties of an operation when it is started. */
interface OperationDetails {
  /** One returned by `nextId`; undefined: the next. */
  readonly id?: number | undefined;
  readonly query?: string;
  readonly startedBy?: string | undefined;
  /** By which it is paused and limited; undefined: it can only be stopped. */
  readonly control?: OperationControl;
  /** As JSON; see `OperationInfo`. */
  readonly request?: unknown;
  readonly facts?: OperationFigures;
}

/**
 * The work. It reports its progress through `progress`, stops soon after `signal` is aborted, and makes its writes
 * durable itself. @returns its result. @throws the reason of its failure, or any error once it is aborted
 */
export type OperationWork = (
  progress: (figures: OperationFigures) => void,
  signal: AbortSignal,
) => Promise<OperationFigures>;

type OperationListener = (info: OperationInfo) => void;

/** The interface of a database for its operations. */
interface OperationHost {
  readonly values: EntryKeyspace<unknown>;
  nowMicros(): number;
  write(change: (transaction: Transaction) => void): Promise<unknown>;
  readonly report: Report;
}

/** A started operation. */
export interface StartedOperation {
  readonly id: number;
  /** Resolves, never rejects, when it has ended and that is durable. */
  readonly ended: Promise<OperationEnd>;
}

export interface OperationEnd {
  readonly info: OperationInfo;
  /** The error of the work; undefined if it succeeded. */
  readonly error: unknown;
}

interface Slot {
  info: OperationInfo;
  readonly abort: AbortController;
  readonly control: OperationControl | null;
  ended: Promise<OperationEnd>;
}

const prefix = "operations/";
const nextKey = `${prefix}next`;

/** Returns the key of an operation's mark. */
export function markKey(id: number): string {
  return `operation-marks/${id}`;
}
const idsPerBlock = 64;

export class Operations {
  readonly #host: OperationHost;
  readonly #slots = new Map<number, Slot>();
  /** Ids of ended operations, oldest first. */
  readonly #finished: number[] = [];
  readonly #listeners = new Set<OperationListener>();
  #nextId = 1;
  /** Ids below it are reserved on disk. */
  #idsEnd = 1;
  #reserving: Promise<unknown> = Promise.resolve();
  #isStopped = false;

  constructor(host: OperationHost) {
    this.#host = host;
    this.recallAll();
  }

  /**
   * Reads the recorded operations, and assigns ids above all assigned ones. Must be called at the start, and when this
   * node begins to lead; no operation may be running.
   */
  recallAll(): void {
    const { values } = this.#host;
    this.#slots.clear();
    this.#finished.length = 0;
    const next = values.get(nextKey);
    this.#nextId = typeof next === "number" ? next : 1;
    this.#idsEnd = this.#nextId;
    for (const [key, value] of values.withPrefix(prefix)) {
      if (key !== nextKey) this.#recall(value as OperationInfo);
    }
  }

  /** Whether any operation is running. */
  get isRunning(): boolean {
    return [...this.#slots.values()].some(({ info }) => info.state.status === "running");
  }

  /** Returns a new id, for an operation that will be started with it. */
  async nextId(): Promise<number> {
    for (;;) {
      while (this.#nextId >= this.#idsEnd) {
        this.#reserving = this.#reserving.catch(() => undefined).then(() => this.#reserve());
        await this.#reserving;
      }
      const id = this.#nextId++;
      if (!this.#slots.has(id)) return id; // else the id was used without being reserved
    }
  }

  /**
   * Starts an operation; resolves when its record is durable, so that a client that received the id can query it after
   * a crash too.
   */
  async start(
    kind: string,
    description: string,
    work: OperationWork,
    details: OperationDetails = {},
  ): Promise<StartedOperation> {
    const id = details.id ?? (await this.nextId());
    this.#assertRunning();
    const slot = this.#open(id, kind, description, details);
    await this.#record(slot.info);
    return { id, ended: this.#run(slot, work) };
  }

  /**
   * Resumes an interrupted operation, under its id; resolves as `start`.
   * @throws EngineError operation-missing, invalid-operation when it was not interrupted
   */
  async resumeInterrupted(
    id: number,
    control: OperationControl,
    work: OperationWork,
  ): Promise<StartedOperation> {
    this.#assertRunning();
    const { info } = this.#slot(id);
    if (!isInterrupted(info)) {
      throw new EngineError(
        "invalid-operation",
        `Operation ${id} cannot be resumed: it was not interrupted by the end of the server.`,
      );
    }
    const at = this.#finished.indexOf(id);
    if (at >= 0) this.#finished.splice(at, 1);
    const running: OperationInfo = {
      ...info,
      endedAt: null,
      isPaused: false,
      rateMax: control.rate,
      state: { status: "running", progress: info.reached ?? null },
    };
    const slot: Slot = {
      info: running,
      abort: new AbortController(),
      control,
      ended: neverStarted(running),
    };
    this.#slots.set(id, slot);
    this.#notify(running);
    await this.#record(running);
    return { id, ended: this.#run(slot, work) };
  }

  /**
   * Starts an operation immediately under an id chosen before. An ended operation with that id is forgotten.
   * @throws EngineError invalid-operation while one with that id runs
   */
  startWithId(
    id: number,
    kind: string,
    description: string,
    work: OperationWork,
    details: OperationDetails = {},
  ): StartedOperation {
    this.#assertRunning();
    if (this.#slots.get(id)?.info.state.status === "running") {
      throw new EngineError("invalid-operation", `Operation ${id} is running already.`);
    }
    const slot = this.#open(id, kind, description, details);
    const recorded = this.#record(slot.info);
    recorded.catch(() => undefined); // the work's own writes fail too, and report why
    return { id, ended: this.#run(slot, work) };
  }

  /** Returns the state of an operation; undefined when it never existed, or ended long ago. */
  get(id: number): OperationInfo | undefined {
    return this.#slots.get(id)?.info;
  }

  /** Returns all known operations, in id order. */
  list(): OperationInfo[] {
    return [...this.#slots.values()].map(({ info }) => info).sort((a, b) => a.id - b.id);
  }

  /** Cancels a running operation; does nothing to an ended one. @throws EngineError operation-missing */
  kill(id: number): void {
    this.#slot(id).abort.abort();
  }

  /** Has a running operation stand still. @throws EngineError operation-missing, invalid-operation */
  pause(id: number): void {
    this.#steer(id, "paused", (control) => control.pause());
  }

  /** Lets a paused operation go on. @throws EngineError operation-missing, invalid-operation */
  resume(id: number): void {
    this.#steer(id, "resumed", (control) => control.resume());
  }

  /**
   * Limits a running operation to so many items a second; null: no more.
   * @throws EngineError operation-missing, invalid-operation
   */
  limit(id: number, rate: number | null): void {
    this.#steer(id, "limited", (control) => control.limit(rate));
  }

  /** Replaces the facts of an ended operation. Resolves when that is durable; when it rejects they are as before. */
  async setFacts(id: number, facts: OperationFigures): Promise<void> {
    const slot = this.#slot(id);
    const before = slot.info;
    slot.info = { ...before, facts };
    try {
      await this.#record(slot.info);
    } catch (error) {
      slot.info = before;
      throw error;
    }
    this.#notify(slot.info);
  }

  #slot(id: number): Slot {
    const slot = this.#slots.get(id);
    if (slot === undefined) {
      throw new EngineError("operation-missing", `Operation ${id} was not registered`);
    }
    return slot;
  }

  #steer(id: number, what: string, change: (control: OperationControl) => void): void {
    const slot = this.#slot(id);
    const { control, info } = slot;
    if (info.state.status !== "running") {
      throw new EngineError(
        "invalid-operation",
        `Operation ${id} cannot be ${what}: it has ended.`,
      );
    }
    if (control === null) {
      throw new EngineError(
        "invalid-operation",
        `Operation ${id} (${info.kind}) cannot be ${what}: only patches and deletions by query, their dry runs and their undoing can. It can be stopped.`,
      );
    }
    change(control);
    slot.info = { ...info, isPaused: control.isPaused, rateMax: control.rate };
    this.#notify(slot.info);
  }

  /** Calls `listener` for every change of every operation. @returns a function that removes it. */
  listen(listener: OperationListener): () => void {
    this.#listeners.add(listener);
    return () => this.#listeners.delete(listener);
  }

  /** Cancels the running operations, and waits until they have ended. No further ones can be started. Never rejects. */
  async stop(): Promise<void> {
    this.#isStopped = true;
    const running = [...this.#slots.values()].filter(({ info }) => info.state.status === "running");
    for (const { abort } of running) abort.abort();
    await Promise.all(running.map(({ ended }) => ended));
    if (this.#idsEnd > this.#nextId) await this.#releaseIds().catch(() => undefined);
  }

  /** Returns the rest of the reserved block, so that the next run can assign it. */
  async #releaseIds(): Promise<void> {
    const next = this.#nextId;
    this.#idsEnd = next;
    await this.#host.write((transaction) => {
      transaction.putEntry(transaction.keyspaces.values, nextKey, next);
    });
  }

  #assertRunning(): void {
    if (!this.#isStopped) return;
    throw new EngineError(
      "database-stopped",
      "The database is closing: no operation can be started.",
    );
  }

  #open(id: number, kind: string, description: string, details: OperationDetails = {}): Slot {
    const { query, startedBy, control = null, request, facts } = details;
    const info: OperationInfo = {
      id,
      kind,
      description,
      startedAt: this.#host.nowMicros(),
      endedAt: null,
      state: { status: "running", progress: null },
      ...(query === undefined ? {} : { query }),
      ...(startedBy === undefined ? {} : { startedBy }),
      ...(control === null ? {} : { isPaused: false, rateMax: control.rate }),
      ...(request === undefined ? {} : { request }),
      ...(facts === undefined ? {} : { facts }),
    };
    const slot: Slot = { info, abort: new AbortController(), control, ended: neverStarted(info) };
    const at = this.#finished.indexOf(id);
    if (at >= 0) this.#finished.splice(at, 1);
    this.#slots.set(id, slot);
    this.#notify(info);
    return slot;
  }

  #run(slot: Slot, work: OperationWork): Promise<OperationEnd> {
    slot.ended = this.#work(slot, work);
    return slot.ended;
  }

  async #work(slot: Slot, work: OperationWork): Promise<OperationEnd> {
    const { signal } = slot.abort;
    let state: OperationState;
    let thrown: unknown;
    try {
      const result = await work(
        (progress) => this.#change(slot, { status: "running", progress }),
        signal,
      );
      state = { status: "completed", result };
    } catch (error) {
      thrown = error;
      const { info } = slot;
      if (this.#isStopped && info.request !== undefined) state = interrupted(info);
      else if (signal.aborted) state = { status: "cancelled" };
      else state = { status: "failed", failure: failureOf(error) };
      // The caller may not wait for the result. Other failures are caused by the sender or receiver of its bytes.
      if (error instanceof InvariantError || error instanceof TypeError) {
        this.#host.report(`Operation ${slot.info.id} (${slot.info.kind}) failed`, error);
      }
    }
    this.#change(slot, state);
    await this.#finish(slot.info).catch(() => undefined); // after a crash it is then reported as interrupted
    return { info: slot.info, error: thrown };
  }

  #change(slot: Slot, state: OperationState): void {
    const { info } = slot;
    if (info.state.status !== "running") return;
    if (state.status === "running") slot.info = { ...info, state };
    else {
      const { isPaused, request, ...kept } = info;
      const endedAt = this.#host.nowMicros();
      const ended: OperationInfo = { ...kept, endedAt, state };
      // An interrupted operation resumes with its request.
      const known = isInterrupted({ ...ended, request }) ? { ...ended, request } : ended;
      slot.info = slot.control === null ? known : { ...known, reached: info.state.progress };
    }
    this.#notify(slot.info);
  }

  #notify(info: OperationInfo): void {
    notifyAll(this.#listeners, info, (listener, error) => {
      this.#listeners.delete(listener);
      this.#host.report("A listener to operations failed and was removed", error);
    });
  }

  async #record(info: OperationInfo): Promise<void> {
    await this.#host.write((transaction) => {
      transaction.putEntry(transaction.keyspaces.values, prefix + info.id, info);
    });
  }

  /** Records the end, and forgets the oldest ended operations when there are too many. */
  async #finish(info: OperationInfo): Promise<void> {
    this.#finished.push(info.id);
    const forgotten: number[] = [];
    while (this.#finished.length > finishedOperationsMax) {
      forgotten.push(this.#finished.shift() as number); // its length was just checked
    }
    for (const id of forgotten) this.#slots.delete(id);
    await this.#host.write((transaction) => {
      const { values } = transaction.keyspaces;
      transaction.putEntry(values, prefix + info.id, info);
      if (info.request === undefined) dropMark(transaction, info.id);
      for (const id of forgotten) {
        transaction.putEntry(values, prefix + id, undefined);
        dropMark(transaction, id);
      }
    });
  }

  /** Reserves the next block of ids on disk. */
  async #reserve(): Promise<void> {
    if (this.#nextId < this.#idsEnd) return;
    const end = this.#nextId + idsPerBlock;
    await this.#host.write((transaction) => {
      transaction.putEntry(transaction.keyspaces.values, nextKey, end);
    });
    this.#idsEnd = end;
  }

  /** Restores an operation of an earlier run of the process. */
  #recall(info: OperationInfo): void {
    let recalled = info;
    if (info.state.status === "running") {
      const reached = this.#host.values.get(markKey(info.id)) as OperationFigures | undefined;
      const state = interrupted(info);
      recalled = { ...info, endedAt: info.startedAt, state, reached: reached ?? null };
    }
    const abort = new AbortController();
    const ended = neverStarted(recalled);
    this.#slots.set(info.id, { info: recalled, abort, control: null, ended });
    this.#finished.push(info.id);
  }
}

function dropMark(transaction: Transaction, id: number): void {
  const { values } = transaction.keyspaces;
  if (transaction.entry(values, markKey(id)) === undefined) return;
  transaction.putEntry(values, markKey(id), undefined);
}

function interrupted({ id, description }: OperationInfo): OperationState {
  const failure: OperationFailure = {
    code: "operation-cancelled",
    message: `Operation ${id} (${description}) was interrupted when the server ended. Its changes up to then remain.`,
  };
  return { status: "failed", failure };
}

/** Returns whether an operation was interrupted and can be resumed. */
export function isInterrupted({ state, request }: OperationInfo): boolean {
  return (
    request !== undefined &&
    state.status === "failed" &&
    state.failure.code === "operation-cancelled"
  );
}

function neverStarted(info: OperationInfo): Promise<OperationEnd> {
  return Promise.resolve({ info, error: undefined });
}

function failureOf(error: unknown): OperationFailure {
  if (error instanceof EngineError) return { code: error.code, message: error.message };
  return { code: undefined, message: "An unexpected error." };
}
