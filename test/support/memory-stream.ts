/**
 * A stream in the memory of a test, and the connections of several nodes to it, which can be cut.
 */
import { EngineError } from "../../engine/base/errors.ts";
import type {
  AppendOutcome,
  ReplicatedStream,
  StreamBounds,
  StreamListener,
} from "../../engine/storage/replication/replicated-stream.ts";

export class MemoryStream {
  /** The message of sequence 1 is the first. */
  readonly messages: (Buffer | undefined)[] = [];
  /** Messages before this one were removed. */
  first = 1;
  readonly #followers = new Set<() => void>();

  append(message: Buffer, expectedLast: number): AppendOutcome {
    if (this.messages.length !== expectedLast) return { kind: "refused" };
    this.messages.push(Buffer.from(message));
    for (const notify of this.#followers) notify();
    return { kind: "stored", sequence: this.messages.length };
  }

  purgeBelow(sequence: number): void {
    for (let one = this.first; one < sequence; one++) this.messages[one - 1] = undefined;
    this.first = Math.max(this.first, sequence);
  }

  watch(notify: () => void): () => void {
    this.#followers.add(notify);
    return () => this.#followers.delete(notify);
  }
}

const soon = () => new Promise<void>((resolve) => setImmediate(resolve));

/** The connection of one node to a stream, which a test can cut. */
export interface CutWay extends ReplicatedStream {
  /** Nothing passes. */
  isCut: boolean;
}

/** A connection to a stream in memory. */
export class StreamWay implements CutWay {
  readonly #stream: MemoryStream;
  isCut = false;
  /** Messages arrive, but no reply does. */
  isMute = false;

  constructor(stream: MemoryStream) {
    this.#stream = stream;
  }

  async append(message: Buffer, expectedLast: number): Promise<AppendOutcome> {
    const bytes = Buffer.from(message);
    await soon();
    if (this.isCut) return await this.#unknown();
    const outcome = this.#stream.append(bytes, expectedLast);
    await soon();
    return this.isMute ? await this.#unknown() : outcome;
  }

  async #unknown(): Promise<AppendOutcome> {
    await new Promise((resolve) => setTimeout(resolve, 50));
    return { kind: "unknown" };
  }

  async read(sequence: number): Promise<Buffer | null> {
    await soon();
    if (this.isCut || this.isMute) throw unavailable();
    const message = this.#stream.messages[sequence - 1];
    return message === undefined ? null : Buffer.from(message);
  }

  follow(from: number, listener: StreamListener): { stop(): void } {
    let next = from;
    let isStopped = false;
    let isRunning = false;
    const run = async () => {
      if (isRunning) return;
      isRunning = true;
      await soon();
      while (!isStopped && next <= this.#stream.messages.length) {
        if (this.isCut) {
          isStopped = true;
          unwatch();
          listener.interrupted("the way to the stream is cut");
          return;
        }
        next = Math.max(next, this.#stream.first);
        const sequence = next++;
        const message = this.#stream.messages[sequence - 1];
        if (message !== undefined) listener.message(sequence, Buffer.from(message));
        await soon();
      }
      isRunning = false;
    };
    const unwatch = this.#stream.watch(() => void run());
    void run();
    return {
      stop: () => {
        isStopped = true;
        unwatch();
      },
    };
  }

  async bounds(): Promise<StreamBounds> {
    await soon();
    if (this.isCut) throw unavailable();
    const { first, messages } = this.#stream;
    const bytes = messages.reduce((sum, message) => sum + (message?.length ?? 0), 0);
    return { first, last: messages.length, bytes };
  }

  async purgeBelow(sequence: number): Promise<void> {
    await soon();
    if (this.isCut) throw unavailable();
    this.#stream.purgeBelow(sequence);
  }
}

/** A connection to any stream. */
export class StreamCutter implements CutWay {
  readonly #stream: ReplicatedStream;
  isCut = false;

  constructor(stream: ReplicatedStream) {
    this.#stream = stream;
  }

  async append(message: Buffer, expectedLast: number): Promise<AppendOutcome> {
    const outcome = this.isCut ? null : await this.#stream.append(message, expectedLast);
    // A reply that arrives after the cut is lost, too.
    if (outcome !== null && !this.isCut) return outcome;
    await new Promise((resolve) => setTimeout(resolve, 500));
    return { kind: "unknown" };
  }

  async read(sequence: number): Promise<Buffer | null> {
    if (this.isCut) throw unavailable();
    return await this.#stream.read(sequence);
  }

  follow(from: number, listener: StreamListener): { stop(): void } {
    let isOver = false;
    const over = (reason: string) => {
      if (isOver) return;
      isOver = true;
      setImmediate(() => listener.interrupted(reason));
    };
    if (this.isCut) {
      over("the way to the stream is cut");
      return { stop: () => undefined };
    }
    const following = this.#stream.follow(from, {
      message: (sequence, bytes) => {
        if (isOver) return;
        if (this.isCut) over("the way to the stream is cut");
        else listener.message(sequence, bytes);
      },
      interrupted: over,
    });
    return {
      stop: () => {
        isOver = true;
        following.stop();
      },
    };
  }

  async bounds(): Promise<StreamBounds> {
    if (this.isCut) throw unavailable();
    return await this.#stream.bounds();
  }

  async purgeBelow(sequence: number): Promise<void> {
    if (this.isCut) throw unavailable();
    await this.#stream.purgeBelow(sequence);
  }
}

function unavailable(): EngineError {
  return new EngineError("stream-unavailable", "The way to the stream is cut.");
}
