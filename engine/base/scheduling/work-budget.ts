/**
 * Work that must not block the event loop: it runs in slices, yields between them, and is counted. When it exceeds a
 * limit of its request it fails with an error that names the limit.
 *
 * Work is a generator that yields wherever it may pause. Its caller decides whether it pauses: `WorkBudget.steps`. Each
 * tick of the event loop runs one slice in total: a hundred concurrent requests block it no longer than one does.
 * Waiters get their slices first come, first served.
 *
 * Independent of the type of work. A unit is about the cost of visiting one term or entry: some ten nanoseconds.
 *
 * Invariants:
 * - `close` returns all memory that a budget holds to the process's budget, whatever happened.
 */
import { EngineError } from "../errors.ts";
import {
  queryBytesMax,
  queryClausesMax,
  queryRequestBytesMax,
  queryTextLengthMax,
  queryWorkMax,
} from "../limits.ts";
import { countDropped } from "../memory/gc-hints.ts";
import { processMemory } from "../memory/memory-budget.ts";
import { SliceScheduler } from "./slice-scheduler.ts";
import type { Steps } from "./steps.ts";

/** Work in steps: it may pause at each `yield`. */
export type Work<Result> = Generator<undefined, Result, undefined>;

/** Bytes that a budget has held at least when their memory is collected soon after its end. */
const droppedBytesMin = 32 * 1024 * 1024;
/** Units of work between two readings of the clock. */
const lookUnits = 1024;

/** The scheduler of this process, shared by all engines in it. */
const processScheduler = new SliceScheduler();

/** The limits of one request. */
export interface WorkLimits {
  /** Units of work. */
  readonly unitsMax: number;
  /** Bytes held for its work. */
  readonly bytesMax: number;
  /** Conditions of a query's text. */
  readonly clausesMax: number;
  /** UTF-16 units of a query's text. */
  readonly textLengthMax: number;
  /** Bytes of a query request. */
  readonly requestBytesMax: number;
}

/** The limits of this process. */
export let workLimits: WorkLimits = {
  unitsMax: queryWorkMax,
  bytesMax: queryBytesMax,
  clausesMax: queryClausesMax,
  textLengthMax: queryTextLengthMax,
  requestBytesMax: queryRequestBytesMax,
};

/** May be set by the process's owner, before there is work. */
export function setWorkLimits(limits: WorkLimits): void {
  workLimits = limits;
}

/** Reports whether a result is no longer wanted; for example an AbortSignal. */
export type Abortable = Pick<AbortSignal, "aborted">;

export class WorkBudget {
  readonly #scheduler: SliceScheduler;
  readonly #signal: Abortable | undefined;
  readonly #unitsMax: number;
  #units = 0;
  #unitsAtLook = lookUnits;
  #heldBytes = 0;
  #mostBytes = 0;

  /** `signal`: aborted when the result is no longer wanted. */
  constructor(signal?: Abortable, unitsMax = workLimits.unitsMax, scheduler = processScheduler) {
    this.#signal = signal;
    this.#unitsMax = unitsMax;
    this.#scheduler = scheduler;
  }

  /** Units of work so far. */
  get units(): number {
    return this.#units;
  }

  /** Bytes held of the process's memory budget. */
  get heldBytes(): number {
    return this.#heldBytes;
  }

  /** @throws EngineError work-limit */
  spend(units: number): void {
    this.#units += units;
    if (this.#units > this.#unitsMax) throw tooMuchWork(this.#unitsMax);
  }

  /** As `spend`: its name in scripts. */
  burn(units: number): void {
    this.spend(units);
  }

  /** Counts work that has no limit of its own, because its output is limited. */
  tick(units: number): void {
    this.#unitsAtLook -= units;
  }

  /** Returns whether to yield to the event loop. Cheap: the clock is read only after enough work. */
  get isDue(): boolean {
    if (this.#units < this.#unitsAtLook) return false;
    this.#unitsAtLook = this.#units + lookUnits;
    return this.#scheduler.isOver();
  }

  /** Waits for a time slice. @throws EngineError operation-cancelled */
  async pause(): Promise<void> {
    await this.#scheduler.next();
    this.refuseCancelled();
  }

  /** @throws EngineError operation-cancelled */
  refuseCancelled(): void {
    if (this.#signal?.aborted !== true) return;
    throw new EngineError("operation-cancelled", "The client of a query has gone.");
  }

  /** Returns work as steps, which wait for a time slice wherever the work pauses. */
  *steps<Result>(work: Work<Result>): Steps<Result> {
    for (;;) {
      const step = work.next();
      if (step.done === true) return step.value;
      yield this.pause();
    }
  }

  /** Reserves memory of the process's budget until `release` or `close`. @throws EngineError work-limit, memory-full */
  hold(bytes: number): void {
    if (this.#heldBytes + bytes > workLimits.bytesMax) throw tooMuchMemory(workLimits.bytesMax);
    if (!processMemory.tryReserve("queries", bytes)) throw memoryFull();
    this.#heldBytes += bytes;
    if (this.#heldBytes > this.#mostBytes) this.#mostBytes = this.#heldBytes;
  }

  /** Returns memory that it holds. */
  release(bytes: number): void {
    this.#heldBytes -= bytes;
    processMemory.release("queries", bytes);
  }

  /** Returns all memory that it holds. */
  close(): void {
    if (this.#heldBytes > 0) this.release(this.#heldBytes);
    if (this.#mostBytes >= droppedBytesMin) countDropped(this.#mostBytes);
    this.#mostBytes = 0;
  }
}

/** For work that is bounded elsewhere: it pauses, but has no limits. */
export class FreeBudget extends WorkBudget {
  override spend(units: number): void {
    this.tick(units);
  }

  override hold(): void {}

  override release(): void {}
}

/** Runs work to its end without a pause: for tests, and for work known to be small. */
export function finish<Result>(work: Work<Result>): Result {
  for (;;) {
    const step = work.next();
    if (step.done === true) return step.value;
  }
}

function tooMuchWork(unitsMax: number): EngineError {
  const millions = unitsMax / 1e6;
  return new EngineError(
    "work-limit",
    `The query needs more than ${millions} million steps of work, the limit of one query. Request less in one query (fewer ` +
      "conditions, shorter lists, regular expressions and wildcards on smaller fields), or raise the setting " +
      "Query.MaxWorkInMillions.",
  );
}

function tooMuchMemory(bytesMax: number): EngineError {
  const megabytes = Math.floor(bytesMax / 1024 / 1024);
  return new EngineError(
    "work-limit",
    `The query needs more than ${megabytes} MB of memory for its work, the limit of one query. Request less in one query, or ` +
      "raise the setting Query.MaxMemoryInMb.",
  );
}

function memoryFull(): EngineError {
  return new EngineError(
    "memory-full",
    "The server's memory for work is in use by other requests. Try again later, request less in one query, or give the server " +
      "more memory.",
  );
}
