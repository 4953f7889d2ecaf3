/**
 * Interprets the replies of JetStream. Pure. A reply is a JSON object; one with `error` is a failure.
 *
 * Invariants:
 * - An append counts as stored only if the reply names this stream and the expected sequence.
 * - Only a reply with a different last sequence is a refusal. Other failures may come from a server that has already
 *   forwarded the append, so their outcome is unknown.
 */
import type { AppendOutcome } from "../../../engine/engine.ts";

/** Error numbers (`err_code`) of nats-server 2.15.1. */
export const streamErrors = {
  wrongLastSequence: 10071,
  /** As `wrongLastSequence`, while an append with another expectation is in progress. */
  wrongLastSequenceInFlight: 10164,
  noMessage: 10037,
  streamMissing: 10059,
  /** A stream of this name exists with other settings. */
  streamNameInUse: 10058,
} as const;

/** An error reply of JetStream. */
interface ApiError {
  /** Similar to an HTTP status code. */
  readonly status: number;
  readonly code: number;
  readonly description: string;
}

export type ApiAnswer =
  | { readonly kind: "done"; readonly body: Readonly<Record<string, unknown>> }
  | { readonly kind: "refused"; readonly error: ApiError };

/** @throws SyntaxError, TypeError if the bytes are not a reply of JetStream */
export function readAnswer(bytes: Buffer): ApiAnswer {
  const body = JSON.parse(bytes.toString()) as unknown;
  if (!isObject(body)) throw new TypeError("the reply is not an object");
  const { error } = body;
  if (error === undefined) return { kind: "done", body };
  if (!isObject(error)) throw new TypeError("the error of the reply is not an object");
  return {
    kind: "refused",
    error: {
      status: numberOf(error["code"]),
      code: numberOf(error["err_code"]),
      description: String(error["description"] ?? ""),
    },
  };
}

interface JudgedAppend {
  readonly outcome: AppendOutcome;
  /** A sentence for the operator, for unusual replies. */
  readonly complaint?: string;
}

const unknown: AppendOutcome = { kind: "unknown" };

export function judgeAppend(bytes: Buffer, stream: string, expectedLast: number): JudgedAppend {
  let answer: ApiAnswer;
  try {
    answer = readAnswer(bytes);
  } catch (error) {
    return { outcome: unknown, complaint: `cannot be parsed: ${(error as Error).message}` };
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
    const problem = `has sequence ${seq} of ${name} instead of ${expectedLast + 1}`;
    return { outcome: unknown, complaint: problem };
  }
  return { outcome: { kind: "stored", sequence: seq } };
}

/** Position of a delivered message, from its acknowledgment subject. */
interface DeliveredAt {
  readonly sequence: number;
  /** Number of messages that the consumer has sent, from 1. */
  readonly deliveredCount: number;
}

/**
 * Parses the subject in either format, and returns null for any other text.
 *
 *     $JS.ACK.<stream>.<consumer>.<tries>.<sequence>.<delivered>.<time>.<pending>
 *     $JS.ACK.<domain>.<account>.<stream>.<consumer>.<tries>.<sequence>.<delivered>.<time>.<pending>[.<random>]
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

/** Checks that a value of a reply is a whole number. @throws TypeError */
export function countOf(value: unknown, name: string): number {
  if (typeof value === "number" && Number.isSafeInteger(value) && value >= 0) return value;
  throw new TypeError(`${name} is not a whole number`);
}

function numberOf(value: unknown): number {
  return typeof value === "number" ? value : 0;
}
