/**
 * One client subscribed to changes over a web socket: executes its commands, batches messages into frames, and sends
 * them under the client's back-pressure. Independent of databases.
 *
 * A frame is a JSON array of messages; an empty one is a heartbeat.
 *
 * Invariants:
 * - Messages are sent in order of arrival, except those held back by throttling (`Pace`).
 * - At most `sendAheadBytesMax` and one frame are buffered in the socket, and at most `waitingBytesMax` here. A slower
 *   reader is disconnected, because missed changes must not go unnoticed.
 */
import type { MessageSocket } from "../http/message-socket.ts";
import { RequestError, tooDeep } from "../http/request-error.ts";
import { confirmation, greeting } from "./change-message.ts";
import { ChangeScheduler } from "./change-scheduler.ts";
import { ChangeWatches, WatchCommandError } from "./change-watches.ts";

/** Maximum length of the messages in one frame, in characters, unless a single message is longer. */
const frameLengthMax = 64 * 1024;
/** Number of buffered bytes in the socket up to which another frame is added. */
const sendAheadBytesMax = 64 * 1024;
const heartbeatMs = 4_500;
/** Time for which a throttled connection collects document changes, in milliseconds. */
const throttleMs = 1_000;

export interface Pace {
  /** Maximum length of unread messages, in characters. */
  readonly waitingBytesMax: number;
  /** Document changes are collected for `throttleMs`, and only the newest per document is sent. */
  readonly isThrottled: boolean;
}

/** Maximum length of unread messages per client, in characters; the connections of a database share the strings. */
export const waitingBytesMax = 16 * 1024 * 1024;

/** Connections with frames to send, each queued once, so their number bounds the queue. */
const flushes = new ChangeScheduler<() => void>((flush) => flush(), Number.MAX_SAFE_INTEGER);

/** Close codes of RFC 6455. */
const policyViolation = 1008;
const internalError = 1011;
const tryAgainLater = 1013;

export class ChangesConnection {
  readonly id: number;
  readonly watches = new ChangeWatches();
  readonly openedMs = performance.now();
  /** Called when commands have changed the watches. */
  onWatches: () => void = () => undefined;
  /** Called once, when the connection stops receiving changes. */
  onEnd: () => void = () => undefined;
  /** Called for internal errors, which close only this connection. */
  onMistake: (error: unknown) => void = () => undefined;
  readonly #socket: MessageSocket;
  readonly #pace: Pace;
  #waiting: string[] = [];
  /** Position in `#waiting` of the first message that is not sent. */
  #next = 0;
  #waitingLength = 0;
  #isFlushDue = false;
  /** Messages in `#waiting` that need not be queued twice. */
  readonly #once = new Set<string>();
  /** Lower-cased id -> newest message; used only when throttled. */
  readonly #held = new Map<string, string>();
  #isEnding = false;
  readonly #heartbeat: NodeJS.Timeout;

  constructor(id: number, socket: MessageSocket, pace: Pace) {
    this.id = id;
    this.#socket = socket;
    this.#pace = pace;
    this.#heartbeat = setInterval(() => {
      if (this.waitingCount === 0 && socket.bufferedAmount === 0) this.#write("[]");
    }, heartbeatMs).unref();
    socket.on("message", (data) => this.#handle(String(data)));
    socket.once("close", () => {
      if (!this.#isEnding) this.#end();
    });
    this.send(greeting);
  }

  /** Number of messages not sent yet. */
  get waitingCount(): number {
    return this.#waiting.length - this.#next + this.#held.size;
  }

  /** Queues `message`, the JSON text of an object. */
  send(message: string): void {
    if (this.#isEnding) return;
    this.#waiting.push(message);
    this.#grow(message.length);
    this.#flushSoon();
  }

  /** As `send`; a no-op when an equal message is already queued. */
  sendOnce(message: string): void {
    if (this.#isEnding || this.#once.has(message)) return;
    this.#once.add(message);
    this.send(message);
  }

  /** As `send`, for a document change; `lowerId` is the lower-cased id. */
  sendOfDocument(lowerId: string, message: string): void {
    if (!this.#pace.isThrottled) {
      this.send(message);
      return;
    }
    if (this.#isEnding) return;
    if (this.#held.size === 0) setTimeout(() => this.#sendHeld(), throttleMs).unref();
    const replaced = this.#held.get(lowerId)?.length ?? 0;
    this.#held.set(lowerId, message);
    this.#grow(message.length - replaced);
  }

  /** Closes the connection because of `error`: it may have missed a change. */
  fail(error: unknown): void {
    const isCallers = error instanceof RequestError;
    if (!isCallers) this.onMistake(error);
    this.close(
      isCallers ? policyViolation : internalError,
      isCallers ? error.message : "An unexpected error.",
    );
  }

  /** Closes the connection; queued messages are dropped. At most 123 bytes of `reason` are sent. */
  close(code: number, reason: string): void {
    if (this.#isEnding) return;
    this.#end();
    this.#socket.close(code, cutToBytes(reason, 123));
  }

  /** Sends the changes held back by throttling. */
  #sendHeld(): void {
    const messages = [...this.#held.values()];
    this.#held.clear();
    for (const message of messages) this.#waitingLength -= message.length;
    for (const message of messages) this.send(message);
  }

  #grow(length: number): void {
    this.#waitingLength += length;
    const { waitingBytesMax: most } = this.#pace;
    if (this.#waitingLength <= most) return;
    const size = Math.ceil(most / 1024);
    this.close(tryAgainLater, `Changes were not read: more than ${size} KB are pending.`);
  }

  #end(): void {
    this.#isEnding = true;
    clearInterval(this.#heartbeat);
    this.#waiting = [];
    this.#next = 0;
    this.#waitingLength = 0;
    this.#once.clear();
    this.#held.clear();
    this.onEnd();
  }

  /** Messages queued in one event-loop tick are sent in one frame. */
  #flushSoon(): void {
    if (this.#isFlushDue || this.#isEnding) return;
    this.#isFlushDue = true;
    setImmediate(() => flushes.add(this.#flush));
  }

  readonly #flush = (): void => {
    this.#isFlushDue = false;
    const first = this.#next;
    let sent = first;
    while (sent < this.#waiting.length && this.#socket.bufferedAmount <= sendAheadBytesMax) {
      const start = sent;
      let length = 0;
      for (; sent < this.#waiting.length && (length < frameLengthMax || sent === start); sent++) {
        length += (this.#waiting[sent] as string).length; // sent < length
      }
      this.#waitingLength -= length;
      this.#write(frameOf(this.#waiting.slice(start, sent)));
    }
    if (sent === first) return;
    if (this.#once.size > 0) {
      for (let i = first; i < sent; i++) this.#once.delete(this.#waiting[i] as string); // i < sent
    }
    this.#next = sent;
    if (2 * sent < this.#waiting.length) return;
    this.#waiting = this.#waiting.slice(sent);
    this.#next = 0;
  };

  #write(frame: string | Buffer): void {
    this.#socket.send(frame, (error) => {
      if (error !== undefined && error !== null) return; // the socket's close event handles the rest
      if (this.#next < this.#waiting.length) this.#flushSoon();
    });
  }

  /** Handles a frame from the client: one command. */
  #handle(text: string): void {
    if (this.#isEnding) return;
    try {
      const { id, command, param, params } = parseCommand(text);
      this.watches.apply(command, param, params);
      this.onWatches();
      if (id !== undefined) this.send(confirmation(id));
    } catch (error) {
      // This runs in an event listener: an exception would end the process.
      if (error instanceof WatchCommandError) this.close(policyViolation, error.message);
      else this.fail(tooDeep(error) ?? error);
    }
  }
}

/** The last frame: connections with the same watches send the same frames one after another. */
let lastMessages: readonly string[] = [];
let lastFrame = Buffer.from("[]");

function frameOf(messages: readonly string[]): Buffer {
  const isLast =
    messages.length === lastMessages.length &&
    messages.every((text, i) => text === lastMessages[i]);
  if (!isLast) {
    lastMessages = messages;
    lastFrame = Buffer.from(`[${messages.join(",")}]`);
  }
  return lastFrame;
}

interface Command {
  /** Undefined if the command needs no acknowledgment. */
  readonly id: number | undefined;
  readonly command: string;
  readonly param: unknown;
  readonly params: unknown;
}

/** `{"CommandId":n,"Command":"watch-…","Param":…,"Params":[…]}` @throws WatchCommandError */
function parseCommand(text: string): Command {
  let value: unknown;
  try {
    value = JSON.parse(text);
  } catch {
    value = undefined;
  }
  if (value === null || typeof value !== "object" || Array.isArray(value)) {
    throw new WatchCommandError("A command is a JSON object.");
  }
  const { CommandId, Command, Param, Params } = value as Record<string, unknown>;
  if (typeof Command !== "string") throw new WatchCommandError("A command needs a Command.");
  if (CommandId !== undefined && !Number.isSafeInteger(CommandId)) {
    throw new WatchCommandError("A CommandId is a whole number.");
  }
  return { id: CommandId as number | undefined, command: Command, param: Param, params: Params };
}

/** At most `count` bytes of UTF-8, without splitting a character. */
function cutToBytes(text: string, count: number): string {
  let cut = text;
  while (Buffer.byteLength(cut) > count) cut = cut.slice(0, -1);
  return cut.replace(/[\ud800-\udbff]$/, "");
}
