/**
 * Parses the JSON body of a batch into commands. Documents remain spans of the body, so that they are parsed once,
 * where they are stored, and their numbers keep their spelling.
 *
 *   body    := { "Commands": [ command, … ] (, "TransactionMode": string)? (, other)* }
 *   command := { "Type": string, "Id"?: string, "ChangeVector"?: string, "Document"?: object, … } in any order
 *
 * The semantics of commands are in batch-commands.ts.
 *
 * Invariants:
 * - All of the body is checked to be JSON, unused members included; a document is checked when it is stored.
 */
import { EngineError } from "../base/errors.ts";
import {
  byteArrayClose,
  byteArrayOpen,
  byteComma,
  byteObjectClose,
  byteObjectOpen,
  byteQuote,
  skipSpace,
} from "../base/json/bytes.ts";
import { scanObject, type ValueEnds } from "../base/json/object-scan.ts";
import {
  isNullText,
  MemberScan,
  misplaced,
  parsedText,
  rawString,
  rawValueEnd,
  truncated,
  unexpected,
} from "../base/json/raw-scan.ts";
import { longValueBytes, parsedInSlices } from "../base/json/sliced-value.ts";
import { batchCommandsMax } from "../base/limits.ts";
import { pauseIfDue } from "../base/scheduling/time-slices.ts";

const noBytes = Buffer.alloc(0);

/** Span of a value in the text of the batch. */
interface TextSpan {
  readonly from: number;
  /** Exclusive. */
  readonly to: number;
}

/** The places of a member's parts in the list of a command's members. */
const keyPart = 0;
const fromPart = 1;
const toPart = 2;
/** Undefined for a long value that is not parsed yet. */
const valuePart = 3;
const memberParts = 4;
const noMember = -1;

const members = new MemberScan();

/**
 * One command; its members are the members of its JSON object (of a repeated key, the last). Thousands of them exist at
 * the same time, and most have only an `Id` and a `Type`, both strings, and a `Document`.
 */
export class BatchCommand {
  /** The text that contains the command; empty after `letGo`. */
  bytes: Buffer;
  readonly type: string;
  /** Undefined: it is absent, or no string, and then among the other members. */
  #id: string | undefined;
  #type: string | undefined;
  /** -1: it is absent. */
  #documentFrom = -1;
  #documentTo = -1;
  /** The other members. */
  #members: unknown[] | null = null;
  /** Long values that are not parsed yet, with the places of their members, which may have others by now; null: none. */
  #rest: (TextSpan & { readonly member: number })[] | null = null;
  readonly startAt: number;
  /** Exclusive. */
  readonly endAt: number;

  private constructor(bytes: Buffer, at: number, scan: MemberScan) {
    this.bytes = bytes;
    this.startAt = at;
    while (scan.next()) this.#keep(scan.key, scan.from, scan.to);
    this.endAt = scan.endAt;
    this.type = scan.endAt < 0 ? "" : (this.text("Type") ?? "");
    if (scan.endAt < 0 || this.type === "PUT") return; // the document of a PUT is checked when it is stored
    const from = this.#documentFrom;
    const to = this.#documentTo;
    if (from < 0) return;
    if (to - from < longValueBytes) parsedText(bytes, from, to);
    else this.#addRest(noMember, from, to);
  }

  /**
   * Returns the command at `at`; null when `end` truncates it. `ends`: see `MemberScan`.
   * @throws EngineError json-invalid, invalid-operation without a `Type`
   */
  static at(bytes: Buffer, at: number, end: number, ends?: ValueEnds): BatchCommand | null {
    let command: BatchCommand;
    try {
      command = new BatchCommand(bytes, at, members.begin(bytes, at, end, ends));
    } finally {
      members.letGo();
    }
    if (command.endAt < 0) return null;
    if (command.text("Type") === null) {
      throw new EngineError("invalid-operation", "Command must have a valid 'Type' property");
    }
    return command;
  }

  #addRest(member: number, from: number, to: number): void {
    this.#rest ??= [];
    this.#rest.push({ member, from, to });
  }

  #keep(key: string, from: number, to: number): void {
    const { bytes } = this;
    if (key === "Document") {
      // A repeated document is never stored, so it is checked here.
      if (this.#documentFrom >= 0) parsedText(bytes, this.#documentFrom, this.#documentTo);
      this.#documentFrom = from;
      this.#documentTo = to;
      return;
    }
    const string = bytes[from] === byteQuote ? rawString(bytes, from, to) : undefined;
    if (key === "Id") this.#id = string;
    if (key === "Type") this.#type = string;
    if (string !== undefined && (key === "Id" || key === "Type")) return;
    // An empty list that is grown by four parts has room for twenty.
    this.#members ??= [key, from, to, undefined];
    const list = this.#members;
    let member = this.#find(key);
    if (member < 0) {
      member = list.length;
      list.push(key, from, to, undefined);
    }
    list[member + fromPart] = from;
    list[member + toPart] = to;
    list[member + valuePart] = undefined;
    if (string !== undefined) list[member + valuePart] = string;
    else if (to - from >= longValueBytes) this.#addRest(member, from, to);
    else list[member + valuePart] = parsedText(bytes, from, to);
  }

  /** Returns the value of an `Id` or a `Type` that is a string. */
  #stringOf(key: string): string | undefined {
    if (key === "Id") return this.#id;
    return key === "Type" ? this.#type : undefined;
  }

  /** Returns the index of a member; -1 if it is missing. */
  #find(key: string): number {
    const list = this.#members;
    if (list === null) return noMember;
    for (let member = 0; member < list.length; member += memberParts) {
      if (list[member + keyPart] === key) return member;
    }
    return noMember;
  }

  /** Whether all values have been parsed. */
  get isWhole(): boolean {
    return this.#rest === null;
  }

  /**
   * Parses the long values, in slices. Until then only the command's type and string members may be read.
   * @throws EngineError json-…
   */
  async parseRest(): Promise<void> {
    const list = this.#members ?? [];
    for (const { member, from, to } of this.#rest ?? []) {
      const value = await parsedInSlices(this.bytes, from, to);
      if (member !== noMember && list[member + fromPart] === from) list[member + valuePart] = value;
    }
    this.#rest = null;
  }

  /** Returns a string member; null when it is absent or null. @throws EngineError invalid-operation for other values */
  text(key: string): string | null {
    const string = this.#stringOf(key);
    if (string !== undefined) return string;
    const list = this.#members;
    const member = this.#find(key);
    const value = list === null || member < 0 ? null : (list[member + valuePart] ?? null);
    if (list === null || value === null || typeof value === "string") return value as string | null;
    if (this.bytes.length === 0) throw unexpected("String", Buffer.from(JSON.stringify(value)), 0);
    throw unexpected("String", this.bytes, list[member + fromPart] as number);
  }

  /** Drops the reference to the text: its document was parsed, and no other long value is needed. */
  letGo(): void {
    this.bytes = noBytes;
  }

  /** Returns whether the member is `true`. */
  isSet(key: string): boolean {
    const value = this.value(key) ?? (this.#find(key) < 0 ? false : null);
    if (typeof value === "boolean") return value;
    throw new EngineError("invalid-operation", `'${key}' of a command must be a boolean.`);
  }

  /** Returns a member's value, its numbers as doubles; undefined when it is absent. Not for `Document`. */
  value(key: string): unknown {
    const member = this.#find(key);
    return this.#stringOf(key) ?? (member < 0 ? undefined : this.#members?.[member + valuePart]);
  }

  /** Returns the span of a member's value; undefined when it is absent or null. Not for `Id` and `Type`. */
  span(key: string): TextSpan | undefined {
    let from = this.#documentFrom;
    let to = this.#documentTo;
    if (key !== "Document") {
      const member = this.#find(key);
      if (this.#members === null || member < 0) return undefined;
      from = this.#members[member + fromPart] as number;
      to = this.#members[member + toPart] as number;
    }
    return from < 0 || isNullText(this.bytes, from, to) ? undefined : { from, to };
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
 * @param commandsMax maximum number of commands: a transaction becomes visible in one tick of the event loop.
 * @throws EngineError json-truncated, json-invalid, invalid-operation, too-large
 */
export async function parseBatch(bytes: Buffer, commandsMax = batchCommandsMax): Promise<Batch> {
  const end = bytes.length;
  const hasMark = end >= 3 && bytes[0] === 0xef && bytes[1] === 0xbb && bytes[2] === 0xbf;
  const start = skipSpace(bytes, hasMark ? 3 : 0, end);
  expectByte(bytes, start, end, byteObjectOpen, "StartObject");
  const firstAt = skipSpace(bytes, start + 1, end);
  if (bytes[firstAt] === byteObjectClose) throw unexpected("String", bytes, firstAt);
  const scan = new MemberScan();
  if (!scan.nextKey(bytes, firstAt, end)) throw truncated();
  const { key, from: valueFrom } = scan;
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
    if (commands.length % commandsPerLook === commandsPerLook - 1) await pauseIfDue();
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

/** Returns the command at `at`; a long one is scanned in slices. */
function commandAt(bytes: Buffer, at: number, end: number): BatchCommand | Promise<BatchCommand> {
  const soon = Math.min(end, at + longCommandBytes);
  const command = BatchCommand.at(bytes, at, soon);
  if (command !== null) return command;
  if (soon === end) throw truncated();
  return scanObject(bytes, at, end).then(({ endAt, ends }) => {
    const whole = endAt < 0 ? null : BatchCommand.at(bytes, at, endAt, ends);
    if (whole === null) throw truncated();
    return whole;
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

/** Parses the rest of the body after the commands, up to its closing brace. */
function parseRest(
  bytes: Buffer,
  from: number,
  end: number,
): { transactionMode: string | undefined; endAt: number } {
  const scan = new MemberScan();
  let transactionMode: string | undefined;
  let at = skipSpace(bytes, from, end);
  while (at < end && bytes[at] === byteComma) {
    const isThere = scan.nextKey(bytes, skipSpace(bytes, at + 1, end), end);
    const to = isThere ? rawValueEnd(bytes, scan.from, end) : -1;
    if (to < 0) throw truncated();
    const value = parsedText(bytes, scan.from, to);
    if (scan.key === "TransactionMode" && typeof value === "string") transactionMode = value;
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
