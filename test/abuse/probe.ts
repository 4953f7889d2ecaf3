/**
 * A worker thread that observes the server from outside during an attack: sequential GETs from another database on a
 * connection of its own, and the server's resident memory.
 *
 * Waits exclude the time in which the server's main thread or this thread was runnable but not scheduled (reported by
 * the kernel); `rawWaitMs` includes it.
 *
 * Invariants:
 * - A GET without a reply within `lostMs` counts as a wait of that length, and as a failure.
 */
import { readFileSync } from "node:fs";
import { connect, type Socket } from "node:net";
import { connect as connectTls } from "node:tls";
import { type MessagePort, parentPort, workerData } from "node:worker_threads";

const pauseMs = 2;
const lostMs = 60_000;
const memorySampleMs = 20;
const pageBytes = 4096;

export interface ProbeTarget {
  readonly host: string;
  readonly port: number;
  readonly pid: number;
  readonly tls: { ca: string; cert: string; key: string } | undefined;
  /** Of the document that is asked for. */
  readonly path: string;
}

export interface ProbeReport {
  readonly count: number;
  readonly failures: number;
  readonly waitMs: number;
  readonly rawWaitMs: number;
  readonly p50Ms: number;
  readonly p99Ms: number;
  readonly bytesPeak: number;
  readonly bytesNow: number;
}

/** Resident bytes of a process; 0 when it is gone. */
function residentBytes(pid: number): number {
  try {
    return Number(readFileSync(`/proc/${pid}/statm`, "latin1").split(" ")[1]) * pageBytes;
  } catch {
    return 0;
  }
}

/** Milliseconds that a thread was ready to run and did not. */
function delayedMs(thread: string): number {
  try {
    return Number(readFileSync(`/proc/${thread}/schedstat`, "latin1").split(" ")[1]) / 1e6;
  } catch {
    return 0;
  }
}

class Prober {
  readonly #target: ProbeTarget;
  #socket: Socket | undefined;
  #waits: number[] = [];
  #rawWaitMs = 0;
  #failures = 0;
  #bytesPeak = 0;

  constructor(target: ProbeTarget) {
    this.#target = target;
    setInterval(() => this.#sample(), memorySampleMs);
  }

  async run(): Promise<void> {
    for (;;) {
      await this.#probe();
      await new Promise((resolve) => setTimeout(resolve, pauseMs));
    }
  }

  /** What was seen since the last report. */
  report(): ProbeReport {
    this.#sample();
    const sorted = [...this.#waits].sort((one, other) => one - other);
    const at = (part: number) =>
      sorted[Math.min(sorted.length - 1, Math.floor(sorted.length * part))];
    const report = {
      count: sorted.length,
      failures: this.#failures,
      waitMs: sorted.at(-1) ?? 0,
      rawWaitMs: this.#rawWaitMs,
      p50Ms: at(0.5) ?? 0,
      p99Ms: at(0.99) ?? 0,
      bytesPeak: this.#bytesPeak,
      bytesNow: residentBytes(this.#target.pid),
    };
    this.#waits = [];
    this.#rawWaitMs = 0;
    this.#failures = 0;
    this.#bytesPeak = 0;
    return report;
  }

  #sample(): void {
    this.#bytesPeak = Math.max(this.#bytesPeak, residentBytes(this.#target.pid));
  }

  async #probe(): Promise<void> {
    const { pid } = this.#target;
    const server = `${pid}/task/${pid}`;
    const serverDelayed = delayedMs(server);
    const ownDelayed = delayedMs("thread-self");
    const started = performance.now();
    const isAnswered = await this.#ask();
    const raw = performance.now() - started;
    // They may have been delayed at the same time: the longer one is what is sure.
    const others = Math.max(
      delayedMs(server) - serverDelayed,
      delayedMs("thread-self") - ownDelayed,
    );
    if (!isAnswered) this.#failures++;
    this.#waits.push(isAnswered ? Math.max(0, raw - others) : raw);
    this.#rawWaitMs = Math.max(this.#rawWaitMs, raw);
  }

  #ask(): Promise<boolean> {
    this.#socket ??= this.#connect();
    const socket = this.#socket;
    return new Promise((resolve) => {
      const end = (isAnswered: boolean) => {
        clearTimeout(timer);
        socket.off("data", onData);
        socket.off("close", onClose);
        if (!isAnswered) {
          socket.destroy();
          this.#socket = undefined;
        }
        resolve(isAnswered);
      };
      const timer = setTimeout(() => end(false), lostMs);
      // The document is small: its reply comes in one piece.
      const onData = (chunk: Buffer) => end(chunk.includes("HTTP/1.1 200"));
      const onClose = () => end(false);
      socket.on("data", onData);
      socket.on("close", onClose);
      socket.write(`GET ${this.#target.path} HTTP/1.1\r\nHost: ${this.#target.host}\r\n\r\n`);
    });
  }

  #connect(): Socket {
    const { port, host, tls } = this.#target;
    const socket = tls === undefined ? connect(port, host) : connectTls({ ...tls, port, host });
    socket.setNoDelay(true);
    socket.on("error", () => undefined);
    return socket;
  }
}

if (parentPort !== null) {
  const port: MessagePort = parentPort;
  const prober = new Prober(workerData as ProbeTarget);
  port.on("message", () => port.postMessage(prober.report()));
  void prober.run();
}
