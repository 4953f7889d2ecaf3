/** An HTTP thread as the engine thread manages it: a worker thread, or this thread itself. */
import type { AddressInfo } from "node:net";
import type { SecureContextOptions } from "node:tls";
import { Worker } from "node:worker_threads";
import type { FrontLimits } from "../http-threads/front-host.ts";
import { type FrontCounts, HttpFront, type ListenTarget } from "../http-threads/http-front.ts";
import type { ThreadData, ThreadOrder, ThreadReport } from "../http-threads/thread-orders.ts";
import { CommandWriter, eventReader } from "../link/records.ts";
import { allocateLink, ThreadLink } from "../link/thread-link.ts";
import { type RequestHost, ThreadRequests } from "./thread-requests.ts";

/** Where a thread listens. `fd`: the descriptor of the socket, for other threads; -1: it cannot be shared. */
interface Listening {
  readonly port: number;
  readonly fd: number;
}

export interface HttpThread {
  readonly requests: ThreadRequests;
  readonly counts: FrontCounts;
  /** The share of time that it was not idle, between 0 and 1. */
  readonly busyShare: number;
  /** @throws (rejects) Node's listen errors */
  listen(target: ListenTarget, secure: SecureContextOptions | undefined): Promise<Listening>;
  setCertificate(secure: SecureContextOptions): void;
  /**
   * Accepts no more connections, finishes requests, and resolves; what is open after `timeoutMs` is closed.
   * `closesSocket`: not where other threads listen on the same one.
   */
  close(timeoutMs: number, closesSocket: boolean): Promise<void>;
  /** Ends it. */
  terminate(): Promise<void>;
  /** From now on it does not keep the process alive. */
  unref(): void;
}

/** HTTP on this thread: calls instead of records. */
export class OwnThread implements HttpThread {
  readonly requests: ThreadRequests;
  readonly busyShare = 0;
  readonly #front: HttpFront;

  constructor(limits: FrontLimits, host: RequestHost) {
    let requests: ThreadRequests | undefined;
    this.#front = new HttpFront(limits, (commands) => {
      requests = new ThreadRequests(host, commands, false);
      return requests;
    });
    this.requests = requests as unknown as ThreadRequests; // the constructor has called the function
  }

  get counts(): FrontCounts {
    return this.#front.counts;
  }

  async listen(target: ListenTarget, secure: SecureContextOptions | undefined): Promise<Listening> {
    const server = await this.#front.listen(target, secure);
    return { port: (server.address() as AddressInfo).port, fd: -1 };
  }

  setCertificate(secure: SecureContextOptions): void {
    this.#front.setCertificate(secure);
  }

  close(timeoutMs: number, closesSocket: boolean): Promise<void> {
    return this.#front.close(timeoutMs, closesSocket);
  }

  async terminate(): Promise<void> {
    this.requests.end();
  }

  unref(): void {
    this.#front.unref();
  }
}

/** A worker thread. */
export class WorkerThread implements HttpThread {
  readonly requests: ThreadRequests;
  counts: FrontCounts = { connections: 0, http2: 0, heldBytes: 0 };
  busyShare = 0;
  readonly #worker: Worker;
  readonly #link: ThreadLink;
  readonly #onMistake: (error: Error) => void;
  /** The orders that are not answered yet, in order. */
  readonly #answers: ((report: ThreadReport) => void)[] = [];
  #isTerminated = false;

  /**
   * `script`: the path of the code of the thread. `onMistake`: an error in it that ends nothing.
   * `onDeath`: it has ended by itself.
   */
  constructor(
    script: string,
    limits: FrontLimits,
    host: RequestHost,
    onMistake: (error: Error) => void,
    onDeath: (thread: WorkerThread, error: Error) => void,
  ) {
    this.#onMistake = onMistake;
    const memory = allocateLink();
    const data: ThreadData = { memory, limits };
    const worker = new Worker(script, { name: "HTTP", workerData: data });
    this.#worker = worker;
    this.#link = new ThreadLink(worker, memory, true);
    this.requests = new ThreadRequests(host, new CommandWriter(this.#link), true);
    this.#link.receive(eventReader(this.requests));
    worker.on("message", (report: ThreadReport | null) => {
      if (report === null) this.#link.wake();
      else this.#take(report);
    });
    let reason = new Error("an HTTP thread has ended");
    worker.on("error", (error: Error) => {
      reason = error;
    });
    worker.on("exit", () => {
      this.#link.close();
      for (const answer of this.#answers.splice(0))
        answer({ kind: "not-listening", message: reason.message, code: undefined });
      this.requests.end();
      if (!this.#isTerminated) onDeath(this, reason);
    });
  }

  async listen(target: ListenTarget, secure: SecureContextOptions | undefined): Promise<Listening> {
    const report = await this.#order({ kind: "listen", target, secure });
    if (report.kind === "not-listening") {
      const { message, code } = report;
      throw Object.assign(new Error(message), { code });
    }
    return report as Listening & ThreadReport; // the only other answer
  }

  setCertificate(secure: SecureContextOptions): void {
    this.#worker.postMessage({ kind: "certificate", secure } satisfies ThreadOrder);
  }

  async close(timeoutMs: number, closesSocket: boolean): Promise<void> {
    await this.#order({ kind: "close", timeoutMs, closesSocket });
  }

  async terminate(): Promise<void> {
    this.#isTerminated = true;
    await this.#worker.terminate();
  }

  unref(): void {
    this.#worker.unref();
  }

  #order(order: ThreadOrder): Promise<ThreadReport> {
    return new Promise((resolve) => {
      this.#answers.push(resolve);
      this.#worker.postMessage(order);
    });
  }

  #take(report: ThreadReport): void {
    switch (report.kind) {
      case "counts":
        this.counts = report.counts;
        this.busyShare = report.busyShare;
        return;
      case "mistake":
        this.#onMistake(report.error);
        return;
      default:
        this.#answers.shift()?.(report);
    }
  }
}
