/**
 * Parses the JSON body of a batch into commands. Documents remain spans of the body, so that they are parsed once,
 * where they are stored, and their numbers keep their spelling.
 *
 *   body    := { "Commands": [ command, … ] (, "TransactionMode": string)? (, other)* }
 *   command := { "Type": string, "Id"?: string, "ChangeVector"?: string, "Document"?: object, … } in any order
 *
 * Knows nothing of what commands do: see batch-commands.ts.
 *
 * Invariants:
 * - All of the body is checked to be JSON, unused members included; a document is checked when it is stored.
 */
import { EngineError } from "../base/errors.ts";
import { batchCommandsMax } from "../base/limits.ts";
import { turnIsOver } from "../base/turns.ts";
import {
  byteArrayClose,
  byteArrayOpen,
  byteComma,
  byteObjectClose,
  byteObjectOpen,
  byteQuote,
  skipSpace,
} from "../json/bytes.ts";
import { scanObject, type ValueEnds } from "../json/object-scan.ts";
import {
  eachRawMember,
  isNullText,
  misplaced,
  parsedText,
  rawKey,
  rawString,
  rawValueEnd,
  truncated,
  unexpected,
} from "../json/raw-scan.ts";
import { longValueBytes, parsedInSlices } from "../json/sliced-value.ts";

const noBytes = Buffer.alloc(0);

/** Span of a value in the text of the batch. */
export interface TextSpan {
  readonly from: number;
  /** Exclusive. */
  readonly to: number;
}

/** A member of a command, and the span of its value. */
interface CommandMember extends TextSpan {
  readonly key: string;
  /** Undefined for `Document`, which is only a span, and for a long value that is not parsed yet. */
  value: unknown;
}

/** One command; its members are those of its JSON object, the last one of a repeated key. */
export class BatchCommand {
  /** The text that contains the command; empty after `letGo`. */
  bytes: Buffer;
  readonly type: string;
  readonly #members: CommandMember[] = [];
  /** Members with long values that are not parsed yet; null: none. */
  #rest: CommandMember[] | null = null;
  readonly startAt: number;
  /** Exclusive. */
  readonly endAt: number;

  /** `ends`: see `eachRawMember`. @throws EngineError json-…, invalid-operation without a `Type` */
  constructor(bytes: Buffer, at: number, end: number, ends?: ValueEnds) {
    this.bytes = bytes;
    this.startAt = at;
    this.endAt = eachRawMember(
      bytes,
      at,
      end,
      (key, from, to) => this.#keep({ key, from, to, value: undefined }),
      ends,
    );
    const type = this.text("Type");
    if (type === null) {
      throw new EngineError("invalid-operation", "Command must have a valid 'Type' property");
    }
    this.type = type;
    const document = this.#member("Document");
    // The document of a PUT is checked when it is stored.
    if (document === undefined || type === "PUT") return;
    if (document.to - document.from < longValueBytes) {
      parsedText(bytes, document.from, document.to);
      return;
    }
    this.#rest ??= [];
    this.#rest.push(document);
  }

  #keep(member: CommandMember): void {
    const { bytes } = this;
    const { key, from, to } = member;
    const earlier = this.#members.findIndex((one) => one.key === key);
    if (earlier < 0) this.#members.push(member);
    else {
      // A repeated document is never stored, so it is checked here.
      const { from, to } = this.#members[earlier] as CommandMember;
      if (key === "Document") parsedText(bytes, from, to);
      this.#members[earlier] = member;
    }
    if (key === "Document") return;
    const isString = bytes[from] === byteQuote;
    if (!isString && to - from >= longValueBytes) {
      this.#rest ??= [];
      this.#rest.push(member);
      return;
    }
    member.value = isString ? rawString(bytes, from, to) : parsedText(bytes, from, to);
  }

  #member(key: string): CommandMember | undefined {
    for (const member of this.#members) if (member.key === key) return member;
    return undefined;
  }

  /** Have all values been parsed? */
  get isWhole(): boolean {
    return this.#rest === null;
  }

  /**
   * Parses the long values, in slices. Until then only the command's type and string members may be read.
   * @throws EngineError json-…
   */
  async parseRest(): Promise<void> {
    for (const member of this.#rest ?? []) {
      const value = await parsedInSlices(this.bytes, member.from, member.to);
      if (member.key !== "Document") member.value = value;
    }
    this.#rest = null;
  }

  /** A string member; null when it is absent or null. @throws EngineError invalid-operation for other values */
  text(key: string): string | null {
    const member = this.#member(key);
    const value = member?.value ?? null;
    if (value === null || typeof value === "string") return value;
    if (this.bytes.length === 0) throw unexpected("String", Buffer.from(JSON.stringify(value)), 0);
    throw unexpected("String", this.bytes, member?.from ?? 0);
  }

  /** Keeps no reference to the text: its document was parsed, and no other long value is needed any more. */
  letGo(): void {
    this.bytes = noBytes;
  }

  /** Is the member `true`? */
  isSet(key: string): boolean {
    return this.#member(key)?.value === true;
  }

  /** A member's value, its numbers as doubles; undefined when it is absent. Not for `Document`. */
  value(key: string): unknown {
    return this.#member(key)?.value;
  }

  /** The span of a member's value; undefined when it is absent or null. */
  span(key: string): TextSpan | undefined {
    const member = this.#member(key);
    if (member === undefined || isNullText(this.bytes, member.from, member.to)) return undefined;
    return member;
  }
}

export interface Batch {
  readonly commands: readonly BatchCommand[];
  /** "ClusterWide", or whatever else was sent; undefined if absent. */
  readonly transactionMode: string | undefined;
  /** The most commands that it may have. A document that is deleted by its prefix counts as one. */
  readonly commandsMax: number;
}

/**
 * Parses in slices, yielding to the event loop. `bytes` must not change until it has resolved.
 * @param commandsMax more are refused: a transaction becomes visible in one turn.
 * @throws EngineError json-truncated, json-invalid, invalid-operation, too-large
 */
export async function parseBatch(bytes: Buffer, commandsMax = batchCommandsMax): Promise<Batch> {
  const end = bytes.length;
  const hasMark = end >= 3 && bytes[0] === 0xef && bytes[1] === 0xbb && bytes[2] === 0xbf;
  const start = skipSpace(bytes, hasMark ? 3 : 0, end);
  expectByte(bytes, start, end, byteObjectOpen, "StartObject");
  const firstAt = skipSpace(bytes, start + 1, end);
  if (bytes[firstAt] === byteObjectClose) throw unexpected("String", bytes, firstAt);
  const { key, valueFrom } = rawKey(bytes, firstAt, end);
  if (key !== "Commands") {
    throw new EngineError(
      "invalid-operation",
      `The first property of a batch must be 'Commands', but it is '${key}'.`,
    );
  }
  expectByte(bytes, valueFrom, end, byteArrayOpen, "StartArray");
  const commands: BatchCommand[] = [];
  let at = skipSpace(bytes, valueFrom + 1, end);
  if (bytes[at] === byteArrayClose && at < end) at++;
  else at = await parseCommands(bytes, at, end, commands, commandsMax);
  const { transactionMode, endAt } = parseRest(bytes, at, end);
  const behind = skipSpace(bytes, endAt, end);
  if (behind < end) throw misplaced(bytes, behind);
  return { commands, transactionMode, commandsMax };
}

/** @returns the position after the array's closing bracket. */
async function parseCommands(
  bytes: Buffer,
  first: number,
  end: number,
  commands: BatchCommand[],
  commandsMax: number,
): Promise<number> {
  let at = first;
  for (;;) {
    if (commands.length >= commandsMax) throw tooMany(commandsMax);
    if (commands.length % commandsPerLook === commandsPerLook - 1) await turnIsOver();
    expectByte(bytes, at, end, byteObjectOpen, "StartObject");
    const found = commandAt(bytes, at, end);
    const command = found instanceof BatchCommand ? found : await found;
    if (!command.isWhole) await command.parseRest();
    commands.push(command);
    at = skipSpace(bytes, command.endAt, end);
    if (at >= end) throw truncated();
    if (bytes[at] === byteArrayClose) return at + 1;
    if (bytes[at] !== byteComma) throw misplaced(bytes, at);
    at = skipSpace(bytes, at + 1, end);
  }
}

/** The command at `at`; a long one is scanned in slices. */
function commandAt(bytes: Buffer, at: number, end: number): BatchCommand | Promise<BatchCommand> {
  const soon = Math.min(end, at + longCommandBytes);
  try {
    return new BatchCommand(bytes, at, soon);
  } catch (error) {
    const isLong = soon < end && error instanceof EngineError && error.code === "json-truncated";
    if (!isLong) throw error;
  }
  return scanObject(bytes, at, end).then(({ endAt, ends }) => {
    if (endAt < 0) throw truncated();
    return new BatchCommand(bytes, at, endAt, ends);
  });
}

/** Bytes of a command that are scanned in one go. */
const longCommandBytes = 256 * 1024;
/** Commands between two readings of the clock. */
const commandsPerLook = 64;

function tooMany(commandsMax: number): EngineError {
  return new EngineError(
    "too-large",
    `A batch is one transaction, and has at most ${commandsMax} commands (setting Http.MaxBatchCommands). ` +
      "Send several batches, or use bulk insert.",
  );
}

/** Parses what follows the commands, up to the body's closing brace. */
function parseRest(
  bytes: Buffer,
  from: number,
  end: number,
): { transactionMode: string | undefined; endAt: number } {
  let transactionMode: string | undefined;
  let at = skipSpace(bytes, from, end);
  while (at < end && bytes[at] === byteComma) {
    const { key, valueFrom } = rawKey(bytes, skipSpace(bytes, at + 1, end), end);
    const to = rawValueEnd(bytes, valueFrom, end);
    if (to < 0) throw truncated();
    const value = parsedText(bytes, valueFrom, to);
    if (key === "TransactionMode" && typeof value === "string") transactionMode = value;
    at = skipSpace(bytes, to, end);
  }
  if (at >= end) throw truncated();
  if (bytes[at] !== byteObjectClose) throw misplaced(bytes, at);
  return { transactionMode, endAt: at + 1 };
}

function expectByte(bytes: Uint8Array, at: number, end: number, byte: number, token: string): void {
  if (at >= end) throw truncated();
  if (bytes[at] !== byte) throw unexpected(token, bytes, at);
}
