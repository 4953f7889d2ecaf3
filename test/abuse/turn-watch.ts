/**
 * Loaded into the server's process before the server (`node --import`), and into its worker threads: measures the longest
 * turn of their event loops in processor time, which other processes on the machine do not affect, and reports it over
 * the process's channel on request.
 *
 * A timer samples the thread's processor time; the time between two samples is one turn, or several short ones.
 * Where the kernel does not report it (other than Linux), the result is 0.
 */
import { closeSync, openSync, readSync } from "node:fs";
import { BroadcastChannel, isMainThread } from "node:worker_threads";

const lookMs = 4;
const workerReportMs = 100;

export interface TurnReport {
  /** Milliseconds of processor time of the longest turn of the main thread since the last question. */
  readonly turnMs: number;
  /** The same of the worker threads. */
  readonly workerTurnMs: number;
  /** Milliseconds of processor time of all threads since the start of the process. */
  readonly processorMs: number;
}

function openClock(): number {
  try {
    return openSync("/proc/thread-self/schedstat", "r");
  } catch {
    return -1;
  }
}

/** Nanoseconds that the thread ran. */
function threadNanoseconds(file: number, bytes: Buffer): number {
  const length = readSync(file, bytes, 0, bytes.length, 0);
  return Number(bytes.toString("latin1", 0, length).split(" ")[0]);
}

/** Starts to measure this thread. @returns the longest turn since the last call, in milliseconds */
function watchTurns(clock: number): () => number {
  const bytes = Buffer.alloc(128);
  let seen = threadNanoseconds(clock, bytes);
  let longest = 0;
  setInterval(() => {
    const now = threadNanoseconds(clock, bytes);
    longest = Math.max(longest, now - seen);
    seen = now;
  }, lookMs).unref();
  process.on("exit", () => closeSync(clock));
  return () => {
    const ms = longest / 1e6;
    longest = 0;
    return ms;
  };
}

const clock = openClock();
const turns = new BroadcastChannel("turns");
turns.unref();
if (clock >= 0 && !isMainThread) {
  const longestMs = watchTurns(clock);
  setInterval(() => turns.postMessage(longestMs()), workerReportMs).unref();
} else if (clock >= 0 && process.send !== undefined) {
  const longestMs = watchTurns(clock);
  let workerTurnMs = 0;
  turns.onmessage = (event) => {
    workerTurnMs = Math.max(workerTurnMs, (event as { readonly data: number }).data);
  };
  process.on("message", () => {
    const { user, system } = process.cpuUsage();
    const processorMs = (user + system) / 1000;
    const report: TurnReport = { turnMs: longestMs(), workerTurnMs, processorMs };
    workerTurnMs = 0;
    process.send?.(report);
  });
  process.channel?.unref();
}
