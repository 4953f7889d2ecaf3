/** Time slicing of long work: it shares the turns of one queue (turn-queue.ts), apart from queries, which have their own. */
import { TurnQueue } from "./turn-queue.ts";
import type { Work } from "./work-budget.ts";

const turns = new TurnQueue();

/** Resolves in a later turn of the event loop, in which no other waiting work resumes. */
export function nextTurn(): Promise<void> {
  return turns.next();
}

/**
 * For work that checks from time to time whether its slice is used up. Undefined while it is not; else await the
 * promise before going on. Cost: one reading of the clock.
 */
export function turnIsOver(): Promise<void> | undefined {
  // Work that begins while other work waits goes behind it.
  const isBehind = turns.isFresh && turns.hasWaiters;
  return turns.isOver() || isBehind ? turns.next() : undefined;
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
