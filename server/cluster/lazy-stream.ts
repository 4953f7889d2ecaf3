/**
 * A stream that is opened on first use, with retries. Databases can therefore be opened before enough NATS servers are
 * available to serve streams.
 *
 * Invariants:
 * - Until the stream is open, an append has an unknown outcome, a read fails, and following is interrupted, each after at
 *   least `silenceMs`.
 */
import { setTimeout as pause } from "node:timers/promises";
import type {
  AppendOutcome,
  ReplicatedStream,
  StreamBounds,
  StreamListener,
} from "../../engine/engine.ts";

const silenceMs = 250;

export class LazyStream implements ReplicatedStream {
  readonly #open: () => Promise<ReplicatedStream>;
  #stream: ReplicatedStream | null = null;
  #opening: Promise<ReplicatedStream> | null = null;

  /** If `open` fails, a later use calls it again. */
  constructor(open: () => Promise<ReplicatedStream>) {
    this.#open = open;
  }

  append(message: Buffer, expectedLast: number): Promise<AppendOutcome> {
    if (this.#stream !== null) return this.#stream.append(message, expectedLast);
    return this.#opened().then(
      (stream) => stream.append(message, expectedLast),
      () => ({ kind: "unknown" }),
    );
  }

  async read(sequence: number): Promise<Buffer | null> {
    return await (await this.#opened()).read(sequence);
  }

  follow(from: number, listener: StreamListener): { stop(): void } {
    if (this.#stream !== null) return this.#stream.follow(from, listener);
    let isStopped = false;
    let subscription: { stop(): void } | null = null;
    this.#opened().then(
      (stream) => {
        if (!isStopped) subscription = stream.follow(from, listener);
      },
      (error: unknown) => {
        if (!isStopped) listener.interrupted((error as Error).message);
      },
    );
    return {
      stop: () => {
        isStopped = true;
        subscription?.stop();
      },
    };
  }

  async bounds(): Promise<StreamBounds> {
    return await (await this.#opened()).bounds();
  }

  async purgeBelow(sequence: number): Promise<void> {
    await (await this.#opened()).purgeBelow(sequence);
  }

  #opened(): Promise<ReplicatedStream> {
    if (this.#stream !== null) return Promise.resolve(this.#stream);
    this.#opening ??= this.#open()
      .then((stream) => {
        this.#stream = stream;
        return stream;
      })
      .catch(async (error: unknown) => {
        await pause(silenceMs);
        throw error;
      })
      .finally(() => {
        this.#opening = null;
      });
    return this.#opening;
  }
}
