/**
 * Time slicing of long work. Each turn of the event loop runs one slice, however much work is in progress, so that
 * incoming requests wait for one slice, not for one of each task.
 *
 * Invariants:
 * - Waiters get their turns first come, first served.
 */
import { sliceMs } from "./limits.ts";
import type { Work } from "./work-budget.ts";

const waiting: (() => void)[] = [];
let isScheduled = false;
/** Start of sliced work in the present turn; undefined: there was none yet. */
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

/** Resolves in a later turn of the event loop, in which no other waiting work resumes. */
export function nextTurn(): Promise<void> {
  return new Promise((resolve) => {
    waiting.push(resolve);
    schedule();
  });
}

/**
 * For work that checks from time to time whether its slice is used up. Undefined while it is not; else await the
 * promise before going on. Cost: one reading of the clock.
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
