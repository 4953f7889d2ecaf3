/**
 * One stream of JetStream, as the port of the replication protocol (engine/storage/replication/replicated-stream.ts). It uses the
 * JSON request API of JetStream directly, because the client library would retry appends and recreate consumers by
 * itself, which only the protocol may decide.
 *
 * Invariants:
 * - An append is one message with two expectations, the stream's last sequence and its name, and is never resent here.
 * - A message is read from the leader of the stream, never from another replica.
 * - An inconclusive reply takes at least `silenceMs`, so that a caller that retries immediately does not spin.
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

/** Maximum size of a message, in bytes: `max_payload` of nats-server, less space for headers. */
export const messageBytesMax = 8 * 1024 * 1024 - 4096;

const appendMs = 1000;
const readMs = 2000;
/** Timeout for settings and purges, which may wait for an election, in milliseconds. */
const manageMs = 5000;
/** Timeout for creating a stream, over all attempts, in milliseconds. */
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

  /** Creates the stream if it does not exist. @throws EngineError stream-unavailable */
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
        const answer = await requestApi(link, `STREAM.CREATE.${name}`, wanted, manageMs);
        if (answer.kind === "done") break;
        const { code, description } = answer.error;
        // The stream exists with other settings, which `open` reports in detail.
        if (code === streamErrors.streamNameInUse) break;
        throw streamUnavailable(name, `it cannot be created: ${code} ${description}`);
      } catch (error) {
        if (performance.now() + manageMs / 10 > untilMs) throw unavailable(name, error);
      }
      await pause(manageMs / 10);
    }
    const opened = await JetStreamStream.open(link, id, replicas, report);
    if (opened !== null) return opened;
    throw streamUnavailable(name, "it was created and has disappeared");
  }

  /** Resolves to null if the stream does not exist. @throws EngineError stream-unavailable, also for other settings */
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
      `The stream ${stream.name} does not have the settings of a replicated log: ${wrong.join("; ")}. ` +
        "Change the settings with the tools of NATS. The stream is not used",
    );
  }

  /** Removes the stream with its messages. @returns whether it existed @throws EngineError stream-unavailable */
  static async remove(link: NatsLink, id: StreamId): Promise<boolean> {
    const name = streamNameOf(id);
    try {
      const answer = await requestApi(link, `STREAM.DELETE.${name}`, {}, manageMs);
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
      // No reply, for any reason: the outcome is unknown.
    }
    const leftMs = begunMs + silenceMs - performance.now();
    if (outcome.kind === "unknown" && leftMs > 0) await pause(leftMs);
    return outcome;
  }

  async read(sequence: number): Promise<Buffer | null> {
    const answer = await this.#request(`STREAM.MSG.GET.${this.name}`, { seq: sequence }, readMs);
    if (answer.kind === "refused") {
      if (answer.error.code === streamErrors.noMessage) return null;
      throw streamUnavailable(this.name, `${answer.error.code} ${answer.error.description}`);
    }
    const { message } = answer.body;
    if (!isObject(message) || message["seq"] !== sequence) {
      throw streamUnavailable(this.name, `the reply does not contain message ${sequence}`);
    }
    const { data } = message;
    return typeof data === "string" ? Buffer.from(data, "base64") : Buffer.alloc(0);
  }

  follow(from: number, listener: StreamListener): { stop(): void } {
    return new StreamFollower(this.#link, this.name, from, listener);
  }

  async bounds(): Promise<StreamBounds> {
    const info = await this.#info();
    if (info === null) throw streamUnavailable(this.name, "it does not exist");
    const { state } = info;
    if (!isObject(state)) throw streamUnavailable(this.name, "the reply has no state");
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
    // For 0, JetStream purges everything; beyond the end, it moves the last sequence.
    if (sequence <= 1) return;
    const { last } = await this.bounds();
    if (sequence > last + 1) {
      throw streamUnavailable(this.name, `it ends at ${last}, below ${sequence}`);
    }
    const answer = await this.#request(`STREAM.PURGE.${this.name}`, { seq: sequence }, manageMs);
    if (answer.kind === "done") return;
    throw streamUnavailable(this.name, `${answer.error.code} ${answer.error.description}`);
  }

  /** Resolves to null if the stream does not exist. */
  async #info(): Promise<Readonly<Record<string, unknown>> | null> {
    const answer = await this.#request(`STREAM.INFO.${this.name}`, {}, manageMs);
    if (answer.kind === "done") return answer.body;
    if (answer.error.code === streamErrors.streamMissing) return null;
    throw streamUnavailable(this.name, `${answer.error.code} ${answer.error.description}`);
  }

  /** @throws EngineError stream-unavailable */
  async #request(subject: string, body: object, timeoutMs: number): Promise<ApiAnswer> {
    const begunMs = performance.now();
    try {
      return await requestApi(this.#link, subject, body, timeoutMs);
    } catch (error) {
      const leftMs = begunMs + silenceMs - performance.now();
      if (leftMs > 0) await pause(leftMs);
      throw streamUnavailable(this.name, error);
    }
  }
}

/** Sends one request to the API of JetStream. @throws NoReply, and errors of `readAnswer` */
export async function requestApi(
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
