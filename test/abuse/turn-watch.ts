/**
 * Loaded into the server's process before the server (`node --import`): measures the longest turn of its event loop in
 * processor time, which other processes on the machine do not affect, and reports it over the process's channel on
 * request.
 *
 * A timer samples the main thread's processor time; the time between two samples is one turn, or several short ones.
 * Where the kernel does not report it (other than Linux), the result is 0.
 */
import { closeSync, openSync, readSync } from "node:fs";

const lookMs = 4;

export interface TurnReport {
  /** Milliseconds of processor time of the longest turn since the last question. */
  readonly turnMs: number;
  /** Milliseconds of processor time of all threads since the start of the process. */
  readonly processorMs: number;
}

function openClock(): number {
  try {
    return openSync(`/proc/${process.pid}/task/${process.pid}/schedstat`, "r");
  } catch {
    return -1;
  }
}

/** Nanoseconds that the main thread ran. */
function threadNanoseconds(file: number, bytes: Buffer): number {
  const length = readSync(file, bytes, 0, bytes.length, 0);
  return Number(bytes.toString("latin1", 0, length).split(" ")[0]);
}

const clock = openClock();
if (clock >= 0 && process.send !== undefined) {
  const bytes = Buffer.alloc(128);
  let seen = threadNanoseconds(clock, bytes);
  let longest = 0;
  setInterval(() => {
    const now = threadNanoseconds(clock, bytes);
    longest = Math.max(longest, now - seen);
    seen = now;
  }, lookMs).unref();
  process.on("message", () => {
    const { user, system } = process.cpuUsage();
    const report: TurnReport = { turnMs: longest / 1e6, processorMs: (user + system) / 1000 };
    longest = 0;
    process.send?.(report);
  });
  process.channel?.unref();
  process.on("exit", () => closeSync(clock));
}
