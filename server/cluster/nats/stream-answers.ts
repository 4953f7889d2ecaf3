/**
 * What the answers of JetStream say. Pure. An answer is a JSON object; one with `error` says no.
 *
 * Invariants:
 * - An append counts as stored only by an answer that names this very stream and the sequence that was expected.
 * - Only the answer that the last sequence is another one is a refusal. Everything else that says no may come from a
 *   server that has passed the append on before: unknown.
 */
import type { AppendOutcome } from "../../../engine/engine.ts";

/** Numbers of errors (`err_code`), as nats-server 2.15.1 has them. */
export const streamErrors = {
  wrongLastSequence: 10071,
  /** The same, said while an append with another expectation is under way. */
  wrongLastSequenceInFlight: 10164,
  noMessage: 10037,
  streamMissing: 10059,
  /** A stream of this name is there, with other settings. */
  streamNameInUse: 10058,
  clusterNotAvailable: 10008,
  consumerMissing: 10014,
} as const;

/** What JetStream's interface says no with. */
export interface ApiError {
  /** Like a status of HTTP. */
  readonly status: number;
  readonly code: number;
  readonly description: string;
}

export type ApiAnswer =
  | { readonly kind: "done"; readonly body: Readonly<Record<string, unknown>> }
  | { readonly kind: "refused"; readonly error: ApiError };

/** @throws SyntaxError, TypeError when it is not an answer of JetStream */
export function readAnswer(bytes: Buffer): ApiAnswer {
  const body = JSON.parse(bytes.toString()) as unknown;
  if (!isObject(body)) throw new TypeError("the answer is not an object");
  const { error } = body;
  if (error === undefined) return { kind: "done", body };
  if (!isObject(error)) throw new TypeError("the error of the answer is not an object");
  return {
    kind: "refused",
    error: {
      status: numberOf(error["code"]),
      code: numberOf(error["err_code"]),
      description: String(error["description"] ?? ""),
    },
  };
}

export interface JudgedAppend {
  readonly outcome: AppendOutcome;
  /** For the operator, when it is not one that happens every day. */
  readonly complaint?: string;
}

const unknown: AppendOutcome = { kind: "unknown" };

export function judgeAppend(bytes: Buffer, stream: string, expectedLast: number): JudgedAppend {
  let answer: ApiAnswer;
  try {
    answer = readAnswer(bytes);
  } catch (error) {
    return { outcome: unknown, complaint: `is not understood: ${(error as Error).message}` };
  }
  if (answer.kind === "refused") {
    const { code, description } = answer.error;
    if (
      code === streamErrors.wrongLastSequence ||
      code === streamErrors.wrongLastSequenceInFlight
    ) {
      return { outcome: { kind: "refused" } };
    }
    return { outcome: unknown, complaint: `says ${code} ${description}` };
  }
  const { stream: name, seq, duplicate } = answer.body;
  if (name !== stream || seq !== expectedLast + 1 || duplicate === true) {
    const told = `says sequence ${seq} of ${name} where ${expectedLast + 1} was asked for`;
    return { outcome: unknown, complaint: told };
  }
  return { outcome: { kind: "stored", sequence: seq } };
}

/** Where a message of a consumer is, from the subject that would acknowledge it. */
export interface DeliveredAt {
  readonly sequence: number;
  /** Counts what the consumer has sent, from 1. */
  readonly deliveredCount: number;
}

/**
 *     $JS.ACK.<stream>.<consumer>.<tries>.<sequence>.<delivered>.<time>.<pending>
 *     $JS.ACK.<domain>.<account>.<stream>.<consumer>.<tries>.<sequence>.<delivered>.<time>.<pending>[.<random>]
 *
 * null: it is neither.
 */
export function deliveredAt(reply: string): DeliveredAt | null {
  const tokens = reply.split(".");
  if (tokens[0] !== "$JS" || tokens[1] !== "ACK") return null;
  if (tokens.length !== 9 && tokens.length < 11) return null;
  const at = tokens.length === 9 ? 5 : 7;
  const sequence = Number(tokens[at]);
  const deliveredCount = Number(tokens[at + 1]);
  const isWhole = Number.isSafeInteger(sequence) && Number.isSafeInteger(deliveredCount);
  return isWhole && sequence > 0 && deliveredCount > 0 ? { sequence, deliveredCount } : null;
}

export function isObject(value: unknown): value is Readonly<Record<string, unknown>> {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}

/** A whole number of an answer. @throws TypeError */
export function countOf(value: unknown, name: string): number {
  if (typeof value === "number" && Number.isSafeInteger(value) && value >= 0) return value;
  throw new TypeError(`${name} is not a whole number`);
}

function numberOf(value: unknown): number {
  return typeof value === "number" ? value : 0;
}
