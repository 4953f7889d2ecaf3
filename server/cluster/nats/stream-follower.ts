/**
 * Reads the messages of a stream in order, through a pull consumer of JetStream that lives as long as this object, stores
 * nothing on disk, and is never recreated: to continue, a caller follows again. The listener detects messages lost by the
 * stream from their sequences. Messages lost between the consumer and this object end it.
 *
 * Invariants:
 * - Received but undelivered messages and pending pulls together amount to at most `pullsMax` pulls, 16 MiB while messages
 *   have at most 4, so a slow listener does not increase memory.
 * - `interrupted` is called once, or never if `stop` was called first. `message` is not called after either.
 */
import { randomBytes } from "node:crypto";
import { setTimeout as pause, setImmediate as turn } from "node:timers/promises";
import type { Msg } from "@nats-io/transport-node";
import type { StreamListener } from "../../../engine/engine.ts";
import { bytesOf, type NatsLink } from "./nats-link.ts";
import { deliveredAt, readAnswer } from "./stream-answers.ts";

/** Bytes of one pull, and of the next one after a message that was too large for it. */
const pullBytes = 4 * 1024 * 1024 + 64 * 1024;
const pullBytesMax = 8 * 1024 * 1024 + 64 * 1024;
const pullMessages = 4096;
/** Maximum number of pulls that are in progress or not delivered yet. */
const pullsMax = 4;
/** Maximum number of pulls in progress: the server serves one while others are queued. */
const pullsUnderWayMax = 3;
/** Time that a pull waits for messages, and the interval of idle heartbeats meanwhile. */
const pullMs = 30_000;
const heartbeatMs = 1000;
const silenceMs = 2500;
/** Time without pulls after which the server removes the consumer, in milliseconds. */
const forgetMs = 30_000;
const createMs = 5000;
const retryMs = 20;
/** Delay of an interruption, in milliseconds, so that a caller that follows again immediately does not spin. */
const interruptMs = 100;
const nanoseconds = 1_000_000;

/** A pull in progress. The server serves the oldest first. */
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

  /** Sends another pull if the limits allow it. */
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
      this.#interrupt(`a message has the unexpected reply subject '${message.reply ?? ""}'`);
      return;
    }
    if (at.deliveredCount !== this.#deliveredCount + 1) {
      this.#interrupt(`messages before ${at.sequence} were lost in transit`);
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

  /** Counts bytes for the oldest pull: pulls are served in order. */
  #countArrival(bytes: number): void {
    const [pull] = this.#underWay;
    if (pull === undefined) return;
    pull.bytesLeft = Math.max(0, pull.bytesLeft - bytes);
    pull.messagesLeft--;
    if (pull.messagesLeft === 0) this.#underWay.shift();
  }

  #receiveStatus(status: number, description: string): void {
    const lower = description.toLowerCase();
    if (status === 100) return;
    const isNew = performance.now() - this.#begunMs < createMs;
    if (status === 503 && isNew && this.#deliveredCount === 0) {
      // The connected server does not know the consumer yet, which is on another server.
      this.#underWay.shift();
      void pause(retryMs).then(() => this.#pull());
      return;
    }
    // The next message does not fit into the rest of the pull.
    const isFull = status === 409 && lower.startsWith("message size exceeds");
    const [pull] = this.#underWay;
    const isTooSmall = isFull && pull?.messagesLeft === pullMessages;
    if (isTooSmall && pull.bytes < pullBytesMax) this.#pullBytes = pullBytesMax;
    else if (isTooSmall || !(isFull || status === 408 || lower === "batch completed")) {
      this.#interrupt(`its consumer ended: ${status} ${description}`);
      return;
    }
    this.#underWay.shift();
    this.#pull();
  }

  /** Delivers one message per event-loop tick, at the pace of the listener. */
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
    if (this.#subscription === undefined) return; // the consumer does not exist, or is being created
    this.#subscription.stop();
    this.#forget();
  }

  /** Removes the consumer, which the server would remove later by itself. */
  #forget(): void {
    const subject = `$JS.API.CONSUMER.DELETE.${this.#stream}.${this.#consumer}`;
    this.#link.request(subject, "", { timeoutMs: createMs }).catch(() => undefined);
  }
}
