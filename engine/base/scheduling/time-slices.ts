/**
 * Time slicing of long work. One scheduler (slice-scheduler.ts) serves all work except queries, which have a separate one.
 */
import { SliceScheduler } from "./slice-scheduler.ts";
import type { Work } from "./work-budget.ts";

const scheduler = new SliceScheduler();

/** Resolves in a later tick of the event loop, in which no other waiting work resumes. */
export function nextSlice(): Promise<void> {
  return scheduler.next();
}

/**
 * For work that checks regularly whether its time slice is used up. Returns undefined while it is not; otherwise a
 * promise to await before continuing. Cost: one reading of the clock.
 */
export function pauseIfDue(): Promise<void> | undefined {
  // Work that begins while other work waits is queued after it.
  const isBehind = scheduler.isFresh && scheduler.hasWaiters;
  return scheduler.isOver() || isBehind ? scheduler.next() : undefined;
}

/** Runs work to its end; it may pause wherever it yields, and does so when its time slice is used up. */
export async function runInSlices<Result>(work: Work<Result>): Promise<Result> {
  for (;;) {
    const step = work.next();
    if (step.done === true) return step.value;
    const over = pauseIfDue();
    if (over !== undefined) await over;
  }
}
