/**
 * Time slicing of long work. One scheduler (turn-queue.ts) serves all work except queries, which have a separate one.
 */
import { TurnQueue } from "./turn-queue.ts";
import type { Work } from "./work-budget.ts";

const turns = new TurnQueue();

/** Resolves in a later tick of the event loop, in which no other waiting work resumes. */
export function nextTurn(): Promise<void> {
  return turns.next();
}

/**
 * For work that checks regularly whether its time slice is used up. Returns undefined while it is not; otherwise a
 * promise to await before continuing. Cost: one reading of the clock.
 */
export function turnIsOver(): Promise<void> | undefined {
  // Work that begins while other work waits is queued after it.
  const isBehind = turns.isFresh && turns.hasWaiters;
  return turns.isOver() || isBehind ? turns.next() : undefined;
}

/** Runs work to its end; it may pause wherever it yields, and does so when its time slice is used up. */
export async function runInTurns<Result>(work: Work<Result>): Promise<Result> {
  for (;;) {
    const step = work.next();
    if (step.done === true) return step.value;
    const over = turnIsOver();
    if (over !== undefined) await over;
  }
}
