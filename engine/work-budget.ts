/**
 * Work that must not hold the event loop: it runs in slices, gives the loop back between them, and is counted. Over the
 * limit of its request it ends with an error that says which limit that is.
 *
 * Work is a generator that yields wherever it may pause. Whoever runs it decides whether it does: `WorkBudget.run`. One
 * slice is run in each turn of the event loop, whoever wants one: a hundred requests at once hold it no longer than
 * one does. Who waits for a slice gets it in the order of coming.
 *
 * Knows nothing of what the work is. A unit is about what it costs to look at one term or entry: some ten nanoseconds.
 *
 * Invariants:
 * - What a budget holds of the process's memory is given back by `close`, whatever happened.
 */
import { EngineError } from "./errors.ts";
import {
  queryBytesMax,
  queryClausesMax,
  queryRequestBytesMax,
  queryTextLengthMax,
  queryWorkMax,
  sliceMs,
} from "./limits.ts";
import { processMemory } from "./memory-budget.ts";

/** Work in steps: it may pause at each `yield`. */
export type Work<Result> = Generator<undefined, Result, undefined>;

/** Units of work between two looks at the clock. */
const lookUnits = 1024;

/** Turns of the event loop, of which sliced work gets one slice each. */
export class WorkTurns {
  readonly #nowMs: () => number;
  readonly #waiters: (() => void)[] = [];
  /** When the first work of this turn began; below 0: there was none yet. */
  #startMs = -1;
  #isScheduled = false;

  constructor(nowMs: () => number = () => performance.now()) {
    this.#nowMs = nowMs;
  }

  /** Has this turn of the event loop had its slice of work? The first who asks begins it. */
  isOver(): boolean {
    const nowMs = this.#nowMs();
    if (this.#startMs >= 0) return nowMs - this.#startMs >= sliceMs;
    this.#startMs = nowMs;
    this.#schedule();
    return false;
  }

  /** Resolves in a later turn, which has a whole slice left. */
  next(): Promise<void> {
    return new Promise((resolve) => {
      this.#waiters.push(resolve);
      this.#schedule();
    });
  }

  #schedule(): void {
    if (this.#isScheduled) return;
    this.#isScheduled = true;
    setImmediate(() => this.#turn());
  }

  #turn(): void {
    this.#isScheduled = false;
    this.#startMs = -1;
    const first = this.#waiters.shift();
    if (first === undefined) return;
    this.#startMs = this.#nowMs();
    this.#schedule();
    first();
  }
}

/** The turns of this process: every engine in it shares them. */
export const processTurns = new WorkTurns();

/** What one request may ask for. */
export interface WorkLimits {
  /** Units of work. */
  readonly unitsMax: number;
  /** Bytes that it holds for its work. */
  readonly bytesMax: number;
  /** Conditions of a query's text. */
  readonly clausesMax: number;
  /** UTF-16 units of a query's text. */
  readonly textLengthMax: number;
  /** Bytes of a request that asks a query. */
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

/** Whoever runs the process may set them, before there is work. */
export function setWorkLimits(limits: WorkLimits): void {
  workLimits = limits;
}

export class WorkBudget {
  readonly #turns: WorkTurns;
  readonly #signal: AbortSignal | undefined;
  readonly #unitsMax: number;
  #units = 0;
  #unitsAtLook = lookUnits;
  #heldBytes = 0;

  /** `signal`: aborted when nobody wants the result any more. */
  constructor(signal?: AbortSignal, unitsMax = workLimits.unitsMax, turns = processTurns) {
    this.#signal = signal;
    this.#unitsMax = unitsMax;
    this.#turns = turns;
  }

  /** Units of work so far. */
  get units(): number {
    return this.#units;
  }

  /** Bytes of the process's memory that it holds. */
  get heldBytes(): number {
    return this.#heldBytes;
  }

  /** @throws EngineError work-limit */
  spend(units: number): void {
    this.#units += units;
    if (this.#units > this.#unitsMax) throw tooMuchWork(this.#unitsMax);
  }

  /** As `spend`: how scripts name it. */
  burn(units: number): void {
    this.spend(units);
  }

  /** Counts work that is not limited: what is delivered for it is. */
  tick(units: number): void {
    this.#unitsAtLook -= units;
  }

  /** Is it time to give the event loop back? Cheap: the clock is looked at after enough work only. */
  get isDue(): boolean {
    if (this.#units < this.#unitsAtLook) return false;
    this.#unitsAtLook = this.#units + lookUnits;
    return this.#turns.isOver();
  }

  /** Waits for a turn. @throws EngineError operation-cancelled */
  async pause(): Promise<void> {
    await this.#turns.next();
    this.refuseCancelled();
  }

  /** @throws EngineError operation-cancelled */
  refuseCancelled(): void {
    if (this.#signal?.aborted !== true) return;
    throw new EngineError("operation-cancelled", "The client of a query has gone.");
  }

  /** Runs work to its end. `onPause` is called each time before the event loop is given back. */
  async run<Result>(work: Work<Result>, onPause?: () => void): Promise<Result> {
    for (;;) {
      const step = work.next();
      if (step.done === true) return step.value;
      onPause?.();
      await this.pause();
    }
  }

  /** Takes memory of the process for as long as the work lasts. @throws EngineError work-limit, memory-full */
  hold(bytes: number): void {
    if (this.#heldBytes + bytes > workLimits.bytesMax) throw tooMuchMemory(workLimits.bytesMax);
    if (!processMemory.tryTake("queries", bytes)) throw memoryFull();
    this.#heldBytes += bytes;
  }

  /** Gives back what it held before. */
  release(bytes: number): void {
    this.#heldBytes -= bytes;
    processMemory.give("queries", bytes);
  }

  /** Gives back all it holds. */
  close(): void {
    this.release(this.#heldBytes);
  }
}

/** For work that is bounded elsewhere: it pauses, but is not limited. */
export class FreeBudget extends WorkBudget {
  override spend(units: number): void {
    this.tick(units);
  }

  override hold(): void {}

  override release(): void {}
}

/** Runs work to its end without a pause: for tests, and for what is known to be small. */
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
    `The query needs more than ${millions} million steps of work, the limit of one query. Ask for less at once (fewer ` +
      "conditions, shorter lists, regular expressions and wildcards on smaller fields), or raise the setting " +
      "Query.MaxWorkInMillions.",
  );
}

function tooMuchMemory(bytesMax: number): EngineError {
  const megabytes = Math.floor(bytesMax / 1024 / 1024);
  return new EngineError(
    "work-limit",
    `The query needs more than ${megabytes} MB of memory for its work, the limit of one query. Ask for less at once, or ` +
      "raise the setting Query.MaxMemoryInMb.",
  );
}

function memoryFull(): EngineError {
  return new EngineError(
    "memory-full",
    "The server's memory for work is in use by other requests. Try again later, ask for less at once, or give the server " +
      "more memory.",
  );
}
