/**
 * Long work in slices. However much of it is under way, in one turn of the event loop one slice of it runs, so that what
 * comes from outside waits for one slice, not for one of each.
 *
 * Invariants:
 * - Who waits for a turn gets one in the order of coming.
 */
import { sliceMs } from "./limits.ts";
import type { Work } from "./work-budget.ts";

const waiting: (() => void)[] = [];
let isScheduled = false;
/** When sliced work began in the present turn; undefined: it has not. */
let turnStartMs: number | undefined;

function schedule(): void {
  if (isScheduled) return;
  isScheduled = true;
  setImmediate(() => {
    isScheduled = false;
    turnStartMs = undefined;
    const resume = waiting.shift();
    if (resume === undefined) return;
    turnStartMs = performance.now();
    schedule();
    resume();
  });
}

/** Resolves in a later turn of the event loop, in which no other waiting work goes on. */
export function nextTurn(): Promise<void> {
  return new Promise((resolve) => {
    waiting.push(resolve);
    schedule();
  });
}

/**
 * For work that looks now and then whether its turn is over. Undefined while it is not; else wait for the promise before
 * going on. Cost: one look at the clock.
 */
export function turnIsOver(): Promise<void> | undefined {
  const nowMs = performance.now();
  if (turnStartMs === undefined) {
    turnStartMs = nowMs;
    schedule();
    return waiting.length > 0 ? nextTurn() : undefined;
  }
  return nowMs - turnStartMs < sliceMs ? undefined : nextTurn();
}

/** Runs work to its end; it may pause wherever it yields, and does when its turn is over. */
export async function runInTurns<Result>(work: Work<Result>): Promise<Result> {
  for (;;) {
    const step = work.next();
    if (step.done === true) return step.value;
    const over = turnIsOver();
    if (over !== undefined) await over;
  }
}
