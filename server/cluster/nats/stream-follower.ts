/**
 * Messages of a stream in order, by a consumer of JetStream that lives as long as this object: it is pulled from, keeps
 * nothing on disk, and is never made again; whoever wants more follows again. What the stream has lost, the listener
 * sees by the sequences; what is lost between the consumer and here ends it.
 *
 * Invariants:
 * - What has come and is not passed on, and what was asked for, is at most `pullsMax` pulls together, 16 MiB while messages
 *   have at most 4: a listener that is slow makes nothing grow.
 * - `interrupted` is called once, or never when `stop` was called first; `message` is not called after either.
 */
import { randomBytes } from "node:crypto";
import { setTimeout as pause, setImmediate as turn } from "node:timers/promises";
import type { Msg } from "@nats-io/transport-node";
import type { StreamListener } from "../../../engine/engine.ts";
import { bytesOf, type NatsLink } from "./nats-link.ts";
import { deliveredAt, readAnswer } from "./stream-answers.ts";

/** Bytes of one pull, and after one that a message was too large for. */
const pullBytes = 4 * 1024 * 1024 + 64 * 1024;
const pullBytesMax = 8 * 1024 * 1024 + 64 * 1024;
const pullMessages = 4096;
/** Pulls that are under way or not passed on yet. */
const pullsMax = 4;
/** Of these, under way: one is answered while others wait at the server. */
const pullsUnderWayMax = 3;
/** How long a pull waits for messages, and how often the server says meanwhile that it is there. */
const pullMs = 30_000;
const heartbeatMs = 1000;
const silenceMs = 2500;
/** The server forgets a consumer that nobody has pulled from for so long. */
const forgetMs = 30_000;
const createMs = 5000;
const retryMs = 20;
/** A caller that follows again at once does not spin. */
const interruptMs = 100;
const nanoseconds = 1_000_000;

/** A pull that is under way; the oldest is answered first. */
interface Pull {
  readonly bytes: number;
  bytesLeft: number;
  messagesLeft: number;
}

interface Arrival {
  readonly sequence: number;
  readonly bytes: Buffer;
}

export class StreamFollower {
  readonly #link: NatsLink;
  readonly #stream: string;
  readonly #listener: StreamListener;
  readonly #begunMs = performance.now();
  readonly #consumer = `follow_${randomBytes(8).toString("hex")}`;
  readonly #inbox: string;
  readonly #unwatch: () => void;
  #subscription: { stop(): void } | undefined;
  #silence: NodeJS.Timeout | undefined;
  #isOver = false;
  #isStopped = false;
  #queue: Arrival[] = [];
  #queuedBytes = 0;
  #isDelivering = false;
  #underWay: Pull[] = [];
  #pullBytes = pullBytes;
  #deliveredCount = 0;
  #heardMs = 0;

  constructor(link: NatsLink, stream: string, from: number, listener: StreamListener) {
    this.#link = link;
    this.#stream = stream;
    this.#listener = listener;
    this.#inbox = link.inbox();
    this.#unwatch = link.watch({ lost: (reason) => this.#interrupt(reason) });
    void this.#begin(from);
  }

  stop(): void {
    this.#isStopped = true;
    if (!this.#isOver) this.#end();
  }

  async #begin(from: number): Promise<void> {
    const config = {
      name: this.#consumer,
      deliver_policy: "by_start_sequence",
      opt_start_seq: Math.max(1, from),
      ack_policy: "none",
      replay_policy: "instant",
      max_waiting: pullsMax,
      inactive_threshold: forgetMs * nanoseconds,
      num_replicas: 1,
      mem_storage: true,
    };
    const request = JSON.stringify({ stream_name: this.#stream, action: "create", config });
    const subject = `$JS.API.CONSUMER.CREATE.${this.#stream}.${this.#consumer}`;
    try {
      const answer = readAnswer(
        await this.#link.request(subject, request, { timeoutMs: createMs }),
      );
      if (answer.kind === "refused") throw new Error(answer.error.description);
    } catch (error) {
      this.#interrupt(`it cannot be followed: ${(error as Error).message}`);
      return;
    }
    if (this.#isOver) {
      this.#forget();
      return;
    }
    this.#subscription = this.#link.subscribe(this.#inbox, (message) => this.#receive(message));
    this.#heardMs = performance.now();
    this.#silence = setInterval(() => this.#checkSilence(), silenceMs / 5).unref();
    this.#pull();
  }

  /** Asks for more, if there is room for what may come. */
  #pull(): void {
    const isBegun = this.#underWay.every(({ messagesLeft }) => messagesLeft < pullMessages);
    if (this.#isOver || !isBegun || this.#underWay.length >= pullsUnderWayMax) return;
    const expected = this.#underWay.reduce((sum, { bytesLeft }) => sum + bytesLeft, 0);
    const held = this.#queuedBytes + expected + this.#pullBytes;
    if (held > pullsMax * this.#pullBytes) return;
    if (this.#underWay.length === 0) this.#heardMs = performance.now();
    const bytes = this.#pullBytes;
    this.#underWay.push({ bytes, bytesLeft: bytes, messagesLeft: pullMessages });
    const request = {
      batch: pullMessages,
      max_bytes: this.#pullBytes,
      expires: pullMs * nanoseconds,
      idle_heartbeat: heartbeatMs * nanoseconds,
    };
    const subject = `$JS.API.CONSUMER.MSG.NEXT.${this.#stream}.${this.#consumer}`;
    this.#link.publish(subject, JSON.stringify(request), this.#inbox);
  }

  #receive(message: Msg): void {
    if (this.#isOver) return;
    this.#heardMs = performance.now();
    const status = message.headers?.code ?? 0;
    if (status !== 0) {
      this.#receiveStatus(status, message.headers?.description ?? "");
      return;
    }
    const at = message.reply === undefined ? null : deliveredAt(message.reply);
    if (at === null) {
      this.#interrupt(`a message came with the reply subject '${message.reply ?? ""}'`);
      return;
    }
    if (at.deliveredCount !== this.#deliveredCount + 1) {
      this.#interrupt(`messages were lost on their way before ${at.sequence}`);
      return;
    }
    this.#deliveredCount = at.deliveredCount;
    const bytes = bytesOf(message);
    this.#queue.push({ sequence: at.sequence, bytes });
    this.#queuedBytes += bytes.length;
    this.#countArrival(bytes.length);
    this.#pull();
    void this.#deliver();
  }

  /** It belongs to the oldest pull: they are answered one after the other. */
  #countArrival(bytes: number): void {
    const [pull] = this.#underWay;
    if (pull === undefined) return;
    pull.bytesLeft = Math.max(0, pull.bytesLeft - bytes);
    pull.messagesLeft--;
    if (pull.messagesLeft === 0) this.#underWay.shift();
  }

  #receiveStatus(status: number, description: string): void {
    const told = description.toLowerCase();
    if (status === 100) return;
    const isNew = performance.now() - this.#begunMs < createMs;
    if (status === 503 && isNew && this.#deliveredCount === 0) {
      // The server that this is connected to has not heard of the consumer yet, which is at another.
      this.#underWay.shift();
      void pause(retryMs).then(() => this.#pull());
      return;
    }
    // The next message does not fit into what is left of the pull.
    const isFull = status === 409 && told.startsWith("message size exceeds");
    const [pull] = this.#underWay;
    const isTooSmall = isFull && pull?.messagesLeft === pullMessages;
    if (isTooSmall && pull.bytes < pullBytesMax) this.#pullBytes = pullBytesMax;
    else if (isTooSmall || !(isFull || status === 408 || told === "batch completed")) {
      this.#interrupt(`its consumer ended: ${status} ${description}`);
      return;
    }
    this.#underWay.shift();
    this.#pull();
  }

  /** One message a turn, at the pace of the listener. */
  async #deliver(): Promise<void> {
    if (this.#isDelivering) return;
    this.#isDelivering = true;
    while (this.#queue.length > 0) {
      const batch = this.#queue;
      this.#queue = [];
      for (const { sequence, bytes } of batch) {
        await turn();
        if (this.#isOver) return;
        this.#listener.message(sequence, bytes);
        const room = this.#listener.room?.();
        if (room !== undefined) await room;
        if (this.#isOver) return;
        this.#queuedBytes -= bytes.length;
        this.#pull();
      }
    }
    this.#isDelivering = false;
  }

  #checkSilence(): void {
    const silentMs = performance.now() - this.#heardMs;
    if (this.#underWay.length === 0 || silentMs < silenceMs) return;
    this.#interrupt(`its consumer has been silent for ${Math.round(silentMs)} ms`);
  }

  #interrupt(reason: string): void {
    if (this.#isOver) return;
    this.#end();
    const leftMs = this.#begunMs + interruptMs - performance.now();
    void pause(Math.max(0, leftMs)).then(() => {
      if (!this.#isStopped) this.#listener.interrupted(reason);
    });
  }

  #end(): void {
    this.#isOver = true;
    this.#unwatch();
    clearInterval(this.#silence);
    this.#queue = [];
    if (this.#subscription === undefined) return; // the consumer is not made, or being made
    this.#subscription.stop();
    this.#forget();
  }

  /** The server would forget the consumer by itself, later. */
  #forget(): void {
    const subject = `$JS.API.CONSUMER.DELETE.${this.#stream}.${this.#consumer}`;
    this.#link.request(subject, "", { timeoutMs: createMs }).catch(() => undefined);
  }
}
