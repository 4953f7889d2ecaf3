/**
 * The heartbeats of all folders held by this process, in a separate thread: neither a busy event loop nor a
 * thread pool whose threads all wait for the disk delays them.
 *
 * Each beat reads the lock file, verifies that it is unchanged, and increments its counter. `provenAt` is then set to
 * the start of the beat: for `leaseMs` from there no other process can hold the folder, because others wait for at
 * least twice as long after the last heartbeat that they saw.
 *
 * Invariants:
 * - When the lease has expired, nothing is written: the owner must acquire the next generation first.
 */
import { Worker } from "node:worker_threads";
import { assert } from "../../assert.ts";
import { releasedState } from "./lock-record.ts";

/** The state of one folder, shared with the thread. */
export interface Beat {
  readonly id: number;
  /** Nanoseconds of `process.hrtime`: the last time at which the folder was certainly ours. */
  readonly provenAt: BigInt64Array;
  /** See `beatStates`. */
  readonly state: Int32Array;
  readonly leaseMs: number;
  readonly intervalMs: number;
}

interface BeatListener {
  /** The lock file of this generation is missing, or belongs to another process. */
  lost(generation: number): void;
  /** The lease has expired: this process was suspended, or could not write for that long. */
  lapsed(): void;
}

interface Following {
  readonly beat: Beat;
  readonly listener: BeatListener;
  path: string;
  generation: number;
  line: string;
}

/** Sent by the main thread. `path` null: stop the heartbeats. */
interface BeatOrder {
  readonly beat: Beat;
  readonly path: string | null;
  readonly generation: number;
  /** The first line of the lock file. */
  readonly line: string;
}

interface BeatNews {
  readonly id: number;
  readonly generation: number;
  readonly kind: "lost" | "lapsed";
}

/** Exclusion of the thread from the lock file: free, a beat is in progress, or beats have ended for good. */
const beatStates = { free: 0, beating: 1, ended: 2 } as const;
const statePollMs = 1;

const following = new Map<number, Following>();
let worker: Worker | null = null;
let nextId = 1;

/** `silenceMs`: time without heartbeats after which others may acquire the lock. */
export function newBeat(silenceMs: number): Beat {
  return {
    id: nextId++,
    provenAt: new BigInt64Array(new SharedArrayBuffer(8)),
    state: new Int32Array(new SharedArrayBuffer(4)),
    // Less than half, see above.
    leaseMs: Math.floor(silenceMs * 0.4),
    intervalMs: Math.max(10, Math.floor(silenceMs / 10)),
  };
}

/** Returns whether the lease is in force. Hot: before each write to the log. */
export function isLeased(beat: Beat): boolean {
  const passed = process.hrtime.bigint() - Atomics.load(beat.provenAt, 0);
  return passed < BigInt(beat.leaseMs) * 1_000_000n;
}

/** Records that the folder was certainly ours at `at`, a time of `process.hrtime`. */
export function proven(beat: Beat, at: bigint): void {
  Atomics.store(beat.provenAt, 0, at);
}

/** Starts the heartbeats in the lock file `path` of that generation, or moves them to it. */
export function startBeats(
  beat: Beat,
  path: string,
  generation: number,
  line: string,
  listener: BeatListener,
): void {
  following.set(beat.id, { beat, listener, path, generation, line });
  if (worker === null) startWorker();
  else sendOrder({ beat, path, generation, line });
}

/** Ends the heartbeats. When it resolves, none is in progress. */
export async function stopBeats(beat: Beat): Promise<void> {
  following.delete(beat.id);
  sendOrder({ beat, path: null, generation: 0, line: "" });
  // A thread that died in the middle of a beat never ends it.
  for (let waitedMs = 0; waitedMs < beat.leaseMs; waitedMs += statePollMs) {
    const state = Atomics.compareExchange(beat.state, 0, beatStates.free, beatStates.ended);
    if (state !== beatStates.beating) return;
    await new Promise<void>((resolve) => setTimeout(resolve, statePollMs));
  }
}

function sendOrder(order: BeatOrder): void {
  worker?.postMessage(order);
}

function startWorker(): void {
  const code = `(${beatThread.toString()})(require("node:worker_threads"), require("node:fs"))`;
  const made = new Worker(code, {
    eval: true,
    name: "folder heartbeats",
    execArgv: [],
    workerData: { releasedState, beatStates },
    resourceLimits: { maxOldGenerationSizeMb: 16, maxYoungGenerationSizeMb: 4 },
  });
  worker = made;
  made.on("message", ({ id, generation, kind }: BeatNews) => {
    const followed = following.get(id);
    if (followed === undefined) return;
    if (kind === "lost") followed.listener.lost(generation);
    else followed.listener.lapsed();
  });
  // Without the thread, leases expire and are renewed from the main thread on demand, until there is another thread.
  const ended = (): void => {
    if (worker !== made) return;
    worker = null;
    setTimeout(() => {
      if (worker === null && following.size > 0) startWorker();
    }, 100).unref();
  };
  made.on("error", ended);
  made.on("exit", ended);
  for (const { beat, path, generation, line } of following.values()) {
    sendOrder({ beat, path, generation, line });
  }
  // Last: adding a listener would keep the process alive again.
  made.unref();
}

/** The thread's code. It is passed as source text: it may use nothing but its arguments. */
function beatThread(
  threads: typeof import("node:worker_threads"),
  fs: typeof import("node:fs"),
): void {
  const { parentPort, workerData } = threads;
  const data = workerData as { releasedState: string; beatStates: Record<string, number> };
  const released = data.releasedState;
  const { free = 0, beating = 1 } = data.beatStates;
  const orders = new Map<number, BeatOrder & { timer: NodeJS.Timeout }>();
  const bytes = Buffer.alloc(64 * 1024);
  let count = 0;

  const writeBeat = (order: BeatOrder): boolean => {
    const file = fs.openSync(order.path as string, "r+");
    try {
      const length = fs.readSync(file, bytes, 0, bytes.length, 0);
      const text = bytes.toString("utf8", 0, length);
      if (!text.startsWith(`${order.line}\n`) || text.includes(`\n${released}`)) return false;
      const at = Buffer.byteLength(order.line) + 1;
      count++;
      try {
        fs.writeSync(file, String(count).padStart(released.length, "0"), at);
      } catch {
        // No space, on file systems that need some for overwriting: the file's modification time is a heartbeat too.
        const now = Date.now() / 1000;
        fs.futimesSync(file, now, now);
      }
      return true;
    } finally {
      fs.closeSync(file);
    }
  };

  const beatOnce = (order: BeatOrder): void => {
    const { beat, generation } = order;
    const now = process.hrtime.bigint();
    const before = Atomics.load(beat.provenAt, 0);
    if (now - before >= BigInt(beat.leaseMs) * 1_000_000n) {
      parentPort?.postMessage({ id: beat.id, generation, kind: "lapsed" });
      return;
    }
    if (Atomics.compareExchange(beat.state, 0, free, beating) !== free) return;
    try {
      if (writeBeat(order)) {
        // Unless the main thread has renewed it in the meantime.
        Atomics.compareExchange(beat.provenAt, 0, before, now);
        return;
      }
    } catch (error) {
      const { code } = error as NodeJS.ErrnoException;
      // Other errors may be transient; if not, the lease expires.
      if (code !== "ENOENT" && code !== "ESTALE") return;
    } finally {
      Atomics.store(beat.state, 0, free);
    }
    parentPort?.postMessage({ id: beat.id, generation, kind: "lost" });
  };

  parentPort?.on("message", (order: BeatOrder) => {
    const { beat, path } = order;
    clearInterval(orders.get(beat.id)?.timer);
    orders.delete(beat.id);
    if (path === null) return;
    const timer = setInterval(() => beatOnce(order), beat.intervalMs);
    orders.set(beat.id, { ...order, timer });
  });
}

assert(releasedState.length === 16, "a heartbeat is written over the state of the lock file");
