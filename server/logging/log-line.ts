/**
 * Formats one event of the log as a line: JSON with pino's field names, so that its tools can read it, or text for people.
 *
 *   {"level":40,"time":1764000000000,"pid":7,"hostname":"db1","msg":"…","event":"disk-full"}
 *   2026-11-24T16:00:00.000Z Warning: … event=disk-full
 *
 * Invariants:
 * - An event is one line, whatever its texts contain: control characters are escaped, and so are marks that change the
 *   direction of text. Only the stack of an error has more lines, in text, and those are indented.
 * - A line is bounded: long texts are cut.
 */
import { hostname } from "node:os";
import type { LogLevel } from "../settings/log-settings.ts";

type LogValue = string | number | boolean | null | undefined | readonly string[];
export type LogFields = Readonly<Record<string, LogValue>>;

export interface LogEvent {
  readonly level: Exclude<LogLevel, "Off">;
  /** Milliseconds since the Unix epoch. */
  readonly timeMs: number;
  readonly message: string;
  readonly fields?: LogFields | undefined;
  /** The error, or undefined. */
  readonly error?: unknown;
}

/** pino's numbers of levels. */
export const levelNumbers: Readonly<Record<LogLevel, number>> = {
  Trace: 10,
  Debug: 20,
  Info: 30,
  Warn: 40,
  Error: 50,
  Fatal: 60,
  Off: Number.POSITIVE_INFINITY,
};

/** Maximum lengths of a message, a field, and a stack, in characters. */
const messageLengthMax = 8 * 1024;
const fieldLengthMax = 4 * 1024;
const stackLengthMax = 16 * 1024;

const origin = { pid: process.pid, hostname: hostname() };

/** Returns the line without a line feed. */
export function jsonLine({ level, timeMs, message, fields, error }: LogEvent): string {
  const line: Record<string, unknown> = { level: levelNumbers[level], time: timeMs, ...origin };
  for (const [name, value] of Object.entries(fields ?? {})) {
    if (value !== undefined && !(name in line)) line[name] = bounded(value);
  }
  if (error !== undefined) line["err"] = errorFields(error);
  line["msg"] = cut(message, messageLengthMax);
  return JSON.stringify(line).replace(unsafe, escaped);
}

/** Returns the line without the last line feed. */
export function textLine(event: LogEvent): string {
  return `${new Date(event.timeMs).toISOString()} ${labels[event.level]}${messageText(event)}`;
}

/** Returns the message with the fields and the error: `… event=disk-full`. */
export function messageText({ message, fields, error }: LogEvent): string {
  let line = cut(message, messageLengthMax).replace(unsafe, escaped);
  for (const [name, value] of Object.entries(fields ?? {})) {
    if (value !== undefined) line += ` ${name}=${textValue(bounded(value))}`;
  }
  return error === undefined ? line : `${line}: ${indented(stackOf(error))}`;
}

const labels: Readonly<Record<LogEvent["level"], string>> = {
  Trace: "Trace: ",
  Debug: "Debug: ",
  Info: "",
  Warn: "Warning: ",
  Error: "Error: ",
  Fatal: "Fatal: ",
};

/** Control characters, line separators, and marks that change the direction of text. */
// biome-ignore lint/suspicious/noControlCharactersInRegex: these are what must not reach a terminal
const unsafe = /[\u0000-\u001f\u007f-\u009f\u2028\u2029\u200e\u200f\u202a-\u202e\u2066-\u2069]/g;

function escaped(character: string): string {
  return `\\u${character.charCodeAt(0).toString(16).padStart(4, "0")}`;
}

function bounded(value: LogValue): LogValue {
  if (typeof value === "string") return cut(value, fieldLengthMax);
  return Array.isArray(value) ? cut(value.join(", "), fieldLengthMax) : value;
}

function cut(text: string, lengthMax: number): string {
  return text.length <= lengthMax ? text : `${text.slice(0, lengthMax)}…`;
}

/** Quotes a value unless it is one word, so that it cannot be mistaken for another field. */
function textValue(value: LogValue): string {
  const text = String(value);
  const shown = /^[^\s"=\\]+$/.test(text) ? text : JSON.stringify(text);
  return shown.replace(unsafe, escaped);
}

function stackOf(error: unknown): string {
  const text = error instanceof Error ? (error.stack ?? error.message) : String(error);
  return cut(text, stackLengthMax);
}

/** Indents all lines except the first, so that none can be mistaken for an event. */
function indented(stack: string): string {
  return stack
    .split("\n")
    .map((line) => line.trim().replace(unsafe, escaped))
    .join("\n    ");
}

function errorFields(error: unknown): object {
  if (!(error instanceof Error)) return { type: typeof error, message: stackOf(error) };
  const { name, message } = error;
  const { code } = error as { code?: unknown };
  return {
    type: name,
    message: cut(message, messageLengthMax),
    ...(typeof code === "string" ? { code } : {}),
    stack: stackOf(error),
  };
}
