/**
 * One stream of JetStream as the port of the replication protocol (engine/replication/replicated-stream.ts). JetStream is
 * asked in its own messages, which are JSON over requests: its library for Node would send appends and make consumers
 * again by itself, which only the protocol may decide.
 *
 * Invariants:
 * - One append is one message with two expectations, the stream's last sequence and its name; it is never sent again here.
 * - A message is read from the leader of the stream, never from another replica.
 * - An answer that says nothing takes at least `silenceMs`, so a caller that tries again at once does not spin.
 */
import { setTimeout as pause } from "node:timers/promises";
import { assert } from "../../../engine/base/assert.ts";
import { EngineError } from "../../../engine/base/errors.ts";
import type {
  AppendOutcome,
  ReplicatedStream,
  StreamBounds,
  StreamListener,
} from "../../../engine/engine.ts";
import { type NatsLink, streamUnavailable } from "./nats-link.ts";
import {
  type ApiAnswer,
  countOf,
  isObject,
  judgeAppend,
  readAnswer,
  streamErrors,
} from "./stream-answers.ts";
import { StreamFollower } from "./stream-follower.ts";
import {
  differences,
  type StreamId,
  streamNameOf,
  streamSettings,
  streamSubjectOf,
} from "./stream-settings.ts";

/** Bytes of the largest message; what `max_payload` of nats-server must allow, less room for headers. */
export const messageBytesMax = 8 * 1024 * 1024 - 4096;

const appendMs = 1000;
const readMs = 2000;
/** Settings, purges: they may wait for an election. */
const manageMs = 5000;
/** All tries to make a stream. */
const createMs = 20_000;
const silenceMs = 50;

type Report = (message: string, cause?: unknown) => void;

export class JetStreamStream implements ReplicatedStream {
  readonly name: string;
  readonly #subject: string;
  readonly #link: NatsLink;
  readonly #report: Report;

  private constructor(link: NatsLink, id: StreamId, report: Report) {
    this.name = streamNameOf(id);
    this.#subject = streamSubjectOf(id);
    this.#link = link;
    this.#report = report;
  }

  /** Makes the stream, if it is not there. @throws EngineError stream-unavailable */
  static async create(
    link: NatsLink,
    id: StreamId,
    replicas: number,
    report: Report,
  ): Promise<JetStreamStream> {
    const wanted = streamSettings(id, replicas);
    const name = streamNameOf(id);
    const untilMs = performance.now() + createMs;
    for (;;) {
      try {
        const answer = await ask(link, `STREAM.CREATE.${name}`, wanted, manageMs);
        if (answer.kind === "done") break;
        const { code, description } = answer.error;
        // It is there with other settings, about which `open` says more.
        if (code === streamErrors.streamNameInUse) break;
        throw streamUnavailable(name, `it cannot be made: ${code} ${description}`);
      } catch (error) {
        if (performance.now() + manageMs / 10 > untilMs) throw unavailable(name, error);
      }
      await pause(manageMs / 10);
    }
    const opened = await JetStreamStream.open(link, id, replicas, report);
    if (opened !== null) return opened;
    throw streamUnavailable(name, "it was made and is gone");
  }

  /** null: the cluster says that there is none. @throws EngineError stream-unavailable, also for other settings */
  static async open(
    link: NatsLink,
    id: StreamId,
    replicas: number,
    report: Report,
  ): Promise<JetStreamStream | null> {
    const stream = new JetStreamStream(link, id, report);
    const info = await stream.#info();
    if (info === null) return null;
    const wrong = differences(info["config"], streamSettings(id, replicas));
    if (wrong.length === 0) return stream;
    throw new EngineError(
      "stream-unavailable",
      `The stream ${stream.name} has other settings than a replicated log needs: ${wrong.join("; ")}. ` +
        "Give it these settings with the tools of NATS; it is not used as it is",
    );
  }

  /** Removes the stream with all that it holds. @returns was it there? @throws EngineError stream-unavailable */
  static async remove(link: NatsLink, id: StreamId): Promise<boolean> {
    const name = streamNameOf(id);
    try {
      const answer = await ask(link, `STREAM.DELETE.${name}`, {}, manageMs);
      if (answer.kind === "done") return true;
      if (answer.error.code === streamErrors.streamMissing) return false;
      throw streamUnavailable(name, `it cannot be removed: ${answer.error.description}`);
    } catch (error) {
      throw unavailable(name, error);
    }
  }

  async append(message: Buffer, expectedLast: number): Promise<AppendOutcome> {
    assert(message.length <= messageBytesMax, "a message of the stream fits into one of NATS");
    const begunMs = performance.now();
    const headers = {
      "Nats-Expected-Last-Sequence": String(expectedLast),
      "Nats-Expected-Stream": this.name,
    };
    let outcome: AppendOutcome = { kind: "unknown" };
    try {
      const options = { timeoutMs: appendMs, headers };
      const reply = await this.#link.request(this.#subject, message, options);
      const judged = judgeAppend(reply, this.name, expectedLast);
      outcome = judged.outcome;
      if (judged.complaint !== undefined) {
        this.#report(`The answer to an append to the stream ${this.name} ${judged.complaint}`);
      }
    } catch {
      // No answer, for whatever reason.
    }
    const leftMs = begunMs + silenceMs - performance.now();
    if (outcome.kind === "unknown" && leftMs > 0) await pause(leftMs);
    return outcome;
  }

  async read(sequence: number): Promise<Buffer | null> {
    const answer = await this.#ask(`STREAM.MSG.GET.${this.name}`, { seq: sequence }, readMs);
    if (answer.kind === "refused") {
      if (answer.error.code === streamErrors.noMessage) return null;
      throw streamUnavailable(this.name, `${answer.error.code} ${answer.error.description}`);
    }
    const { message } = answer.body;
    if (!isObject(message) || message["seq"] !== sequence) {
      throw streamUnavailable(this.name, `the answer does not have message ${sequence}`);
    }
    const { data } = message;
    return typeof data === "string" ? Buffer.from(data, "base64") : Buffer.alloc(0);
  }

  follow(from: number, listener: StreamListener): { stop(): void } {
    return new StreamFollower(this.#link, this.name, from, listener);
  }

  async bounds(): Promise<StreamBounds> {
    const info = await this.#info();
    if (info === null) throw streamUnavailable(this.name, "it is not there");
    const { state } = info;
    if (!isObject(state)) throw streamUnavailable(this.name, "the answer has no state");
    try {
      const last = countOf(state["last_seq"], "last_seq");
      const first = countOf(state["first_seq"], "first_seq");
      const bytes = countOf(state["bytes"], "bytes");
      return { first: state["messages"] === 0 ? last + 1 : first, last, bytes };
    } catch (error) {
      throw streamUnavailable(this.name, error);
    }
  }

  async purgeBelow(sequence: number): Promise<void> {
    // Of 0 JetStream purges everything, and beyond the end it moves the last sequence.
    if (sequence <= 1) return;
    const { last } = await this.bounds();
    if (sequence > last + 1) {
      throw streamUnavailable(this.name, `it ends at ${last}, below ${sequence}`);
    }
    const answer = await this.#ask(`STREAM.PURGE.${this.name}`, { seq: sequence }, manageMs);
    if (answer.kind === "done") return;
    throw streamUnavailable(this.name, `${answer.error.code} ${answer.error.description}`);
  }

  /** null: there is no such stream. */
  async #info(): Promise<Readonly<Record<string, unknown>> | null> {
    const answer = await this.#ask(`STREAM.INFO.${this.name}`, {}, manageMs);
    if (answer.kind === "done") return answer.body;
    if (answer.error.code === streamErrors.streamMissing) return null;
    throw streamUnavailable(this.name, `${answer.error.code} ${answer.error.description}`);
  }

  /** @throws EngineError stream-unavailable */
  async #ask(subject: string, body: object, timeoutMs: number): Promise<ApiAnswer> {
    const begunMs = performance.now();
    try {
      return await ask(this.#link, subject, body, timeoutMs);
    } catch (error) {
      const leftMs = begunMs + silenceMs - performance.now();
      if (leftMs > 0) await pause(leftMs);
      throw streamUnavailable(this.name, error);
    }
  }
}

/** One request to JetStream itself. @throws NoReply, or what `readAnswer` throws */
export async function ask(
  link: NatsLink,
  subject: string,
  body: object,
  timeoutMs: number,
): Promise<ApiAnswer> {
  return readAnswer(await link.request(`$JS.API.${subject}`, JSON.stringify(body), { timeoutMs }));
}

function unavailable(name: string, error: unknown): EngineError {
  return error instanceof EngineError ? error : streamUnavailable(name, error);
}
