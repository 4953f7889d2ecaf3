/**
 * Counter operations of requests (batches, bulk inserts and their own endpoint): parsing, with all 64 bits of the
 * numbers, and execution.
 */

import { EngineError } from "../base/errors.ts";
import { quoteString } from "../base/json/escape.ts";
import {
  decodeString,
  findMember,
  firstElement,
  nextElement,
  skipValue,
  ValueSpan,
  valueKind,
} from "../base/json/field-access.ts";
import type { OwnedBytes } from "../base/memory/borrowed-bytes.ts";
import { boundedDocumentId } from "../base/names.ts";
import type { Work } from "../base/scheduling/work-budget.ts";
import { compareStrings } from "../base/tree/compare.ts";
import { clampInt64, counterKey } from "../state/keyspaces/counters.ts";
import type { Transaction } from "../state/store/transaction.ts";
import { counterIn, deleteCounter, incrementCounter, requireDocument } from "./counters.ts";

const types = ["None", "Increment", "Delete", "Get", "Put", "GetAll"] as const;
/** The types by number, which RavenDB 7.2.7 also accepts. */
const numberedTypes = ["None", "Increment", "Delete", "Get", "GetAll", "Put"] as const;

interface CounterOperation {
  readonly type: (typeof types)[number];
  /** As requested. */
  readonly name: string | null;
  /** Undefined when none was sent. */
  readonly delta: bigint | undefined;
}

/** The operations on the counters of one document. */
export interface DocumentCounterOperations {
  readonly documentId: string;
  readonly operations: readonly CounterOperation[];
}

/** One counter of a reply: in the spelling of the request, unless all were requested. */
export interface CounterSlot {
  readonly documentId: string;
  readonly name: string;
  /** Decimal text of a 64-bit integer. */
  readonly value: string;
}

const documentsKey = quoteString("Documents");
const documentIdKey = quoteString("DocumentId");
const operationsKey = quoteString("Operations");
const typeKey = quoteString("Type");
const nameKey = quoteString("CounterName");
const deltaKey = quoteString("Delta");
/** Digits of the greatest and the least 64-bit integer. */
const int64Digits = 19;
const int64Beyond = 2n ** 64n;

/**
 * Parses the `Documents` of a request to the counters endpoint.
 * @param text checked, minified JSON of an object that begins at 0.
 * @throws EngineError invalid-format, invalid-argument for a change without a document id
 */
export function* parseCounterRequest(text: OwnedBytes): Work<DocumentCounterOperations[]> {
  return yield* eachElement(text, 0, documentsKey, function* read(at) {
    const documentId = boundedDocumentId(stringMember(text, at, documentIdKey) ?? "");
    const request = { documentId, operations: yield* operationsOf(text, at, false) };
    if (documentId === "" && changesCounters(request)) {
      throw new EngineError("invalid-argument", "Document ID can't be null");
    }
    return request;
  });
}

/** Returns the object at `at`: `{"DocumentId":…,"Operations":[…]}`. @throws EngineError json-invalid, invalid-format */
export function* parseDocumentCounters(
  text: OwnedBytes,
  at: number,
): Work<DocumentCounterOperations> {
  const documentId = stringMember(text, at, documentIdKey);
  if (documentId === null) {
    throw new EngineError("json-invalid", "Missing 'DocumentId' property on 'Counters'");
  }
  const list = new ValueSpan();
  if (!findMember(text, at, operationsKey, list) || valueKind(text, list.from) === "null") {
    throw new EngineError("json-invalid", "Missing 'Operations' property on 'Counters'");
  }
  return { documentId, operations: yield* operationsOf(text, at, true) };
}

/** `isBatch`: of a command of a batch, for which RavenDB 7.2.7 requires all members, and a null `Delta` counts 1. */
function* operationsOf(text: Buffer, at: number, isBatch: boolean): Work<CounterOperation[]> {
  return yield* eachElement(text, at, operationsKey, function* read(begin) {
    yield;
    return parseOperation(text, begin, isBatch);
  });
}

/** Returns whether the operations can change any counter. */
export function changesCounters({ operations }: DocumentCounterOperations): boolean {
  return operations.some(({ type }) => type !== "Get" && type !== "GetAll" && type !== "None");
}

/** The outcome of `applyCounters`. */
interface AppliedCounters {
  /** One for each increment and read, in order; null if the counter does not exist. */
  readonly slots: readonly (CounterSlot | null)[];
  /** The etag of the last change; 0 when nothing changed. */
  readonly etag: number;
  /** Whether the document's list of counter names changed. */
  readonly isListChanged: boolean;
}

/**
 * Executes the operations in order.
 * @throws EngineError document-missing, counter-overflow, invalid-argument
 */
export function* applyCounters(
  transaction: Transaction,
  { documentId, operations }: DocumentCounterOperations,
): Work<AppliedCounters> {
  const slots: (CounterSlot | null)[] = [];
  const { state } = transaction;
  const etagBefore = state.lastEtag;
  let isListChanged = false;
  for (const { type, name, delta } of operations) {
    yield;
    switch (type) {
      case "None":
        break;
      case "GetAll":
        for (const counter of countersOf(transaction, documentId)) slots.push(counter);
        break;
      case "Get":
        slots.push(
          name === null ? null : slotOf(documentId, name, counterIn(transaction, documentId, name)),
        );
        break;
      case "Put":
        requireDocument(transaction, documentId);
        break;
      case "Delete":
        if (deleteCounter(transaction, documentId, required(name))) isListChanged = true;
        break;
      case "Increment": {
        const wanted = required(name);
        if (counterIn(transaction, documentId, wanted) === undefined) isListChanged = true;
        const value = incrementCounter(transaction, documentId, wanted, delta ?? 1n);
        slots.push({ documentId, name: wanted, value: value.toString() });
        break;
      }
    }
  }
  return { slots, etag: state.lastEtag === etagBefore ? 0 : state.lastEtag, isListChanged };
}

/** Returns all counters of a document as the transaction sees them, in byte order of their names. */
function countersOf(transaction: Transaction, documentId: string): CounterSlot[] {
  const { counters } = transaction.keyspaces;
  return transaction
    .entriesWithPrefix(counters, counterKey(documentId, ""))
    .map(([, { name, value }]) => ({ documentId, name, value }))
    .sort(compareNames);
}

/** Returns the order in which RavenDB 7.2.7 lists a document's counters: by the bytes of their names. */
export function compareNames(left: { name: string }, right: { name: string }): number {
  return compareStrings(left.name, right.name);
}

function slotOf(
  documentId: string,
  name: string,
  counter: { readonly value: string } | undefined,
): CounterSlot | null {
  return counter === undefined ? null : { documentId, name, value: counter.value };
}

function required(name: string | null): string {
  if (name === null) {
    throw new EngineError("null-reference", "A counter operation needs a 'CounterName'.");
  }
  return name;
}

function parseOperation(text: Buffer, at: number, isBatch: boolean): CounterOperation {
  const number = new ValueSpan();
  const isNumber =
    findMember(text, at, typeKey, number) && valueKind(text, number.from) === "number";
  const sent = isNumber
    ? text.latin1Slice(number.from, number.to)
    : (stringMember(text, at, typeKey) ?? "None");
  const type = isNumber
    ? numberedTypes[Number(sent)]
    : types.find((known) => known.toLowerCase() === sent.toLowerCase());
  if (type === undefined) {
    throw new EngineError(
      isBatch ? "invalid-argument" : "invalid-format",
      `'${sent}' is not a type of counter operation`,
    );
  }
  const name = stringMember(text, at, nameKey);
  if (isBatch && !isNumber && stringMember(text, at, typeKey) === null) throw missing("Type");
  if (isBatch && name === null) throw missing("CounterName");
  const found = new ValueSpan();
  const hasDelta = findMember(text, at, deltaKey, found);
  if (!hasDelta && isBatch && type === "Increment") throw missing("Delta");
  if (!hasDelta) return { type, name, delta: undefined };
  const isNull = valueKind(text, found.from) === "null";
  const nullDelta = isBatch ? undefined : 0n;
  return { type, name, delta: isNull ? nullDelta : deltaOf(text, found.from, found.to) };
}

function missing(key: string): EngineError {
  return new EngineError("json-invalid", `Missing '${key}' property of a counter operation`);
}

/** Returns a 64-bit integer from a number, or from a string that contains one; clamped to the 64-bit range. */
function deltaOf(text: Buffer, from: number, to: number): bigint {
  const kind = valueKind(text, from);
  const digits =
    kind === "string" ? decodeString(text, from, to).trim() : text.latin1Slice(from, to);
  if (/^[-+]?\d+$/.test(digits)) return wholeDelta(digits);
  const number = kind === "number" || kind === "string" ? Number(digits) : Number.NaN;
  if (digits === "" || !Number.isFinite(number)) {
    throw new EngineError("invalid-format", `Could not convert ${digits} to a 64-bit integer`);
  }
  return clampInt64(BigInt(Math.trunc(number)));
}

/** Parsing a BigInt takes time quadratic in its digits, so digits beyond the relevant ones are not parsed. */
function wholeDelta(digits: string): bigint {
  const [, sign, rest = ""] = /^([-+]?)0*(\d*)$/.exec(digits) ?? [];
  const size = rest.length > int64Digits ? int64Beyond : BigInt(rest === "" ? "0" : rest);
  return clampInt64(sign === "-" ? -size : size);
}

function stringMember(text: Buffer, at: number, key: Buffer): string | null {
  const found = new ValueSpan();
  if (!findMember(text, at, key, found)) return null;
  return valueKind(text, found.from) === "string" ? decodeString(text, found.from, found.to) : null;
}

/** Yields the result of `read` for each element of an array member; nothing if the member is absent or null. */
function* eachElement<Result>(
  text: Buffer,
  at: number,
  key: Buffer,
  read: (at: number) => Work<Result>,
): Work<Result[]> {
  const found = new ValueSpan();
  if (!findMember(text, at, key, found) || valueKind(text, found.from) === "null") return [];
  if (valueKind(text, found.from) !== "array") {
    throw new EngineError(
      "invalid-format",
      `Could not convert ${text.utf8Slice(found.from, found.to)} to an array`,
    );
  }
  const results: Result[] = [];
  for (let i = firstElement(text, found.from); i >= 0; ) {
    if (valueKind(text, i) !== "object") {
      throw new EngineError("invalid-format", `Elements of ${key.toString()} must be objects`);
    }
    const to = skipValue(text, i);
    results.push(yield* read(i));
    i = nextElement(text, to);
  }
  return results;
}
