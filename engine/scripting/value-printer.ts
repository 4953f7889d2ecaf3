/**
 * Writes script values as the text that documents are stored in: bytes of UTF-8, of which stretches that a script left
 * alone are copied as they are.
 *
 * It does not know how documents are stored, nor what a script may change.
 *
 * Hot: bench/script.bench.ts, bench/patch.bench.ts.
 *
 * Invariants:
 * - a property that still has its value is written as the part of the text that it was read from;
 * - what is made anew is on the run's account, so that a small script cannot print one object a million times; so is
 *   what is copied beyond the length of the document;
 * - there is one printer, and what it printed is good until it prints again: printing calls nothing back.
 */

import { EngineError } from "../errors.ts";
import { copyBytes } from "../json/bytes.ts";
import { writeString } from "../json/escape.ts";
import { numberBytesMax, writeDouble, writeWhole } from "../json/number-bytes.ts";
import {
  ABSENT,
  getOwn,
  isReference,
  kinds,
  LAZY,
  type Reference,
  type Run,
  type ScriptArray,
  type ScriptObject,
  type Slot,
  type Value,
  wasSet,
} from "./script-values.ts";
import { type KeyNode, spanSlots } from "./shape-hint.ts";
import {
  isDoubleSpelling,
  nestedTooDeeply,
  numberOf,
  TextSource,
  treeDepthMax,
  viewOf,
} from "./text-source.ts";
import { dateText, doubleText, numberText } from "./value-text.ts";

export const metadataKey = "@metadata";

/** Metadata that is derived from the record: scripts see it, and what they write there is not kept. */
export const derivedMetadata: ReadonlySet<string> = new Set([
  "@id",
  "@change-vector",
  "@last-modified",
  "@flags",
  "@etag",
  "@index-score",
]);

const none: ReadonlySet<string> = new Set();
const outputBytesMin = 16 * 1024;
/** An output above this is given back before the next print. */
const outputBytesKept = 4 * 1024 * 1024;
/** Bytes that are written between two looks at the run's account. */
const unpaidBytesMax = 4096;
/** Longer strings are looked through by the host before they are written. */
const shortStringMax = 64;
/** Work of writing a number that is not whole. */
const doubleUnits = 8;
/** Characters of a long string that are written at once. */
const stringPieceMax = 4096;
/** Below this many bytes a loop is faster than the native copy, which has a fixed cost. */
const copyLoopBytesMax = 320;
const needsCare = /["\\\p{Cc}\p{Surrogate}]/u;

const quote = 0x22;
const comma = 0x2c;
const colon = 0x3a;
const objectOpen = 0x7b;
const objectClose = 0x7d;
const arrayOpen = 0x5b;
const arrayClose = 0x5d;

/** A tree that can be part of a text. */
type Tree = ScriptObject | ScriptArray;

export class ValuePrinter {
  /** What was printed: `bytes[0, length)`. */
  bytes: Buffer = Buffer.allocUnsafeSlow(outputBytesMin);
  length = 0;
  private view = viewOf(this.bytes);
  /** Counts prints: what was printed is still there while it is the same. */
  printCount = 0;
  isAscii = true;
  /** The text is spelled as documents are stored: it need not be read again before it is. */
  isStored = true;
  /** Some value surely differs from the one in whose place it was written. */
  isOther = false;
  /** Top-level properties of a document, or -1 when they were not counted. */
  fieldCount = -1;
  /** They are those that the document had. */
  hasSameFields = false;
  /** Where each begins: key and its end, without the colon, in turn. */
  keySpans = new Int32Array(128);
  /** Where the value of each begins. */
  valueStarts = new Uint32Array(64);
  private run: Run | null = null;
  private unpaidBytes = 0;
  /** Bytes that may be copied for nothing: those of the document. */
  private freeBytes = 0;
  private readonly open: Reference[] = [];
  /** Of the text that is being patched, what is before this was written or left out. */
  private copied = 0;
  /** Keys of documents' `@metadata` that are left out. */
  private derived: ReadonlySet<string> = derivedMetadata;

  /** What was printed, as a string. */
  get text(): string {
    return this.isAscii
      ? this.bytes.latin1Slice(0, this.length)
      : this.bytes.utf8Slice(0, this.length);
  }

  /**
   * Prints a document without its `@metadata`. It does not count as being written: where it holds itself there is a
   * copy, in which it is null, as RavenDB 7.2.7 writes it.
   * @throws EngineError script-failed, too-large, invalid-operation
   */
  printBody(run: Run | null, object: ScriptObject): void {
    const { source } = object;
    this.begin(run, derivedMetadata);
    if (source instanceof TextSource) this.freeBytes = source.to - source.from;
    if (!(source instanceof TextSource && source.isStored && this.spliceBody(object, source))) {
      this.begin(run, derivedMetadata);
      if (source instanceof TextSource) this.freeBytes = source.to - source.from;
      this.isStored = false;
      this.list(object, metadataOnly);
    }
    this.pay(0, true);
  }

  /** Prints an object without some properties. @throws as `printBody` */
  printMembers(run: Run | null, object: ScriptObject, omit: ReadonlySet<string>): void {
    this.begin(run, derivedMetadata);
    this.members(object, omit);
    this.pay(0, true);
  }

  /** Prints any value; `derived` are keys that the metadata of documents in it lose. @throws as `printBody` */
  printValue(run: Run | null, value: Value, derived: ReadonlySet<string>): void {
    this.begin(run, derived);
    this.value(value, "");
    this.pay(0, true);
  }

  private begin(run: Run | null, derived: ReadonlySet<string>): void {
    if (this.bytes.length > outputBytesKept) {
      this.bytes = Buffer.allocUnsafeSlow(outputBytesMin);
      this.view = viewOf(this.bytes);
    }
    this.printCount += 1;
    this.length = 0;
    this.isAscii = true;
    this.isStored = true;
    this.isOther = false;
    this.fieldCount = -1;
    this.hasSameFields = false;
    this.run = run;
    this.unpaidBytes = 0;
    this.freeBytes = 0;
    this.open.length = 0;
    this.derived = derived;
  }

  private pay(bytes: number, isLast = false): void {
    this.unpaidBytes += bytes;
    if (this.unpaidBytes < unpaidBytesMax && !isLast) return;
    if (this.run !== null) this.run.grow(this.unpaidBytes);
    this.unpaidBytes = 0;
  }

  /** Makes room for `count` more bytes. */
  private need(count: number): void {
    if (this.length + count > this.bytes.length) this.enlarge(count);
  }

  private enlarge(count: number): void {
    const larger = Buffer.allocUnsafeSlow(2 * (this.length + count));
    this.bytes.copy(larger, 0, 0, this.length);
    this.bytes = larger;
    this.view = viewOf(larger);
  }

  private byte(code: number): void {
    this.need(1);
    this.bytes[this.length++] = code;
  }

  private ascii(text: string): void {
    this.need(text.length);
    const { bytes } = this;
    let { length } = this;
    for (let i = 0; i < text.length; i += 1) bytes[length++] = text.charCodeAt(i);
    this.length = length;
  }

  private string(text: string): void {
    if (text.length > shortStringMax) {
      this.longString(text);
      return;
    }
    this.need(6 * text.length + 2);
    const { bytes, length } = this;
    let next = length + 1;
    bytes[length] = quote;
    for (let i = 0; i < text.length; i += 1) {
      const code = text.charCodeAt(i);
      if (code < 0x20 || code === quote || code === 0x5c || code >= 0x80) {
        if (code >= 0x80) this.isAscii = false;
        else if (this.isAscii) this.isAscii = isAsciiText(text);
        this.length = length + writeString(bytes, length, text);
        return;
      }
      bytes[next++] = code;
    }
    bytes[next] = quote;
    this.length = next + 1;
  }

  private longString(text: string): void {
    this.byte(quote);
    this.run?.burn(text.length >> 2);
    if (needsCare.test(text)) {
      this.run?.burn(text.length);
      for (let from = 0; from < text.length; ) {
        let to = Math.min(text.length, from + stringPieceMax);
        // Both halves of a pair are written at once.
        if ((text.charCodeAt(to - 1) & 0xfc00) === 0xd800) to += 1;
        const piece = text.slice(from, to);
        this.need(6 * piece.length + 2);
        // Without the quotes: they are overwritten.
        const at = this.length - 1;
        const kept = this.bytes[at] as number;
        this.length = at + writeString(this.bytes, at, piece) - 1;
        this.bytes[at] = kept;
        if (this.isAscii) this.isAscii = isAsciiText(piece);
        from = to;
      }
    } else {
      this.need(3 * text.length);
      const written = this.bytes.utf8Write(text, this.length);
      if (written !== text.length) this.isAscii = false;
      this.length += written;
    }
    this.byte(quote);
  }

  private number(value: number, asDouble: boolean): void {
    this.need(numberBytesMax);
    let end = -1;
    if (asDouble || !Number.isInteger(value)) {
      this.run?.burn(doubleUnits);
      end = writeDouble(this.bytes, this.length, value);
    } else if (Number.isSafeInteger(value)) end = writeWhole(this.bytes, this.length, value);
    if (end >= 0) this.length = end;
    else this.ascii(asDouble ? doubleText(value) : numberText(value));
  }

  /** Copies a stretch of a text. */
  private copy(source: TextSource, from: number, to: number): void {
    const count = to - from;
    this.need(count);
    if (count > copyLoopBytesMax) copyBytes(this.bytes, this.length, source.bytes, from, to);
    else copyWords(this.view, this.length, source.view, from, to);
    this.length += count;
    this.freeBytes -= count;
    if (this.freeBytes < 0) {
      this.pay(-this.freeBytes);
      this.freeBytes = 0;
    }
    if (!source.isAscii) this.isAscii = false;
    if (!source.isStored) this.isStored = false;
  }

  private value(value: Value, name: string): void {
    this.pay(16);
    if (typeof value === "string") {
      this.pay(value.length);
      this.string(value);
    } else if (typeof value === "number") this.number(value, false);
    else if (typeof value === "boolean") this.ascii(value ? "true" : "false");
    else if (value === null || value === undefined) this.ascii("null");
    else this.reference(value, name);
  }

  private reference(value: Reference, name: string): void {
    switch (value.kind) {
      case kinds.object:
        this.members(value, none);
        return;
      case kinds.array:
        this.array(value, name);
        return;
      case kinds.date: {
        const text = dateText(value.time);
        if (text === null) throw invalidDate(name, value.time);
        this.string(text);
        return;
      }
      case kinds.function:
        this.ascii("null");
        return;
      case kinds.pattern:
        this.ascii(`{"lastIndex":${value.lastIndex}}`);
        return;
      case kinds.map:
      case kinds.set:
        this.ascii("{}");
    }
  }

  /** Enters a container; false when it is being written already: what it holds of itself is null. */
  private enter(node: Tree, depth: number): boolean {
    if (this.isOpen(node)) {
      this.ascii("null");
      return false;
    }
    const { open } = this;
    if (open.length >= treeDepthMax) throw nestedTooDeeply();
    // The search above is in proportion to the depth: it is paid for.
    this.pay(open.length * 16);
    open.push(node);
    // What stands deeper than it did may hold something that is too deep now.
    if (node.source !== null && depth !== open.length) this.isStored = false;
    return true;
  }

  /** Is it being written? */
  private isOpen(node: Tree): boolean {
    const { open } = this;
    for (let i = 0; i < open.length; i += 1) if (open[i] === node) return true;
    return false;
  }

  private array(array: ScriptArray, name: string): void {
    if (!this.enter(array, array.depth)) return;
    this.elements(array, name);
    this.open.pop();
  }

  private elements(array: ScriptArray, name: string): void {
    this.byte(arrayOpen);
    const { items, exact } = array;
    let isFirst = true;
    for (let i = 0; i < items.length; i += 1) {
      const item = items[i];
      if (item === ABSENT) {
        this.pay(1);
        continue;
      }
      if (!isFirst) this.byte(comma);
      isFirst = false;
      const spelling = exact?.get(i);
      if (spelling !== undefined && item === Number(spelling)) this.ascii(spelling);
      else this.item(array, item as Value, name);
    }
    this.byte(arrayClose);
  }

  /** An element: one that is as it was read is copied. */
  private item(array: ScriptArray, item: Value, name: string): void {
    if (!isReference(item) || !isTree(item) || item.source === null) this.value(item, name);
    else if (item.source === array.source && !changedDeep(item)) {
      this.pay(16);
      this.copy(item.source as TextSource, item.start, item.end);
    } else this.value(item, name);
  }

  /** An object, without some properties. */
  private members(object: ScriptObject, omit: ReadonlySet<string>): void {
    const { source, shape } = object;
    if (!this.enter(object, shape === null ? 0 : shape.hint.depth)) return;
    // A document as a value has its `@metadata`, which is elsewhere.
    const isWhole = shape !== null && shape.count === object.readCount;
    if (isWhole && source instanceof TextSource && source.isStored && omit.size === 0) {
      const { copied } = this;
      this.copied = object.start;
      this.patchObject(object, source, false);
      this.copyUpTo(source, object.end);
      this.copied = copied;
    } else this.list(object, omit);
    this.open.pop();
  }

  private spliceBody(object: ScriptObject, source: TextSource): boolean {
    const count = object.keys.length;
    if (this.valueStarts.length < count) {
      this.valueStarts = new Uint32Array(2 * count);
      this.keySpans = new Int32Array(4 * count);
    }
    this.copied = object.start;
    if (!this.patchObject(object, source, true)) return false;
    this.copyUpTo(source, object.end);
    return true;
  }

  /** Copies what is left of a text before `to`. */
  private copyUpTo(source: TextSource, to: number): void {
    if (to > this.copied) this.copy(source, this.copied, to);
    this.copied = to;
  }

  /** Writes what changed in a tree that stands where it was in stored text. */
  private patch(node: Tree, source: TextSource): void {
    // So it is where a script put something that it is in below itself.
    const isInside = this.isOpen(node);
    if (isInside) this.copyUpTo(source, node.start);
    if (!this.enter(node, this.open.length + 1)) {
      this.copied = node.end;
      return;
    }
    if (node.kind === kinds.object) this.patchObject(node, source, false);
    else if (!this.patchArray(node, source)) {
      this.copyUpTo(source, node.start);
      this.elements(node, "");
      this.copied = node.end;
    }
    this.open.pop();
  }

  /** @returns false when its elements must be written anew: numbers in it lose their spelling */
  private patchArray(array: ScriptArray, source: TextSource): boolean {
    if (array.written) return false;
    const { items } = array;
    for (let i = 0; i < items.length; i += 1) if (typeof items[i] === "number") return false;
    for (let i = 0; i < items.length; i += 1) {
      const item = items[i];
      if (typeof item === "object" && item !== null && changedDeep(item)) {
        this.patch(item as Tree, source);
      }
    }
    return true;
  }

  /**
   * Writes what changed in an object that was read from stored text, up to its last change.
   * @param isBody it is a document: without `@metadata`, and where its fields begin is noted.
   * @returns false when it is a document of which a property was deleted: then nothing was written.
   */
  private patchObject(object: ScriptObject, source: TextSource, isBody: boolean): boolean {
    const { values, readCount } = object;
    const { memory } = (object.shape as KeyNode).hint;
    const base = source.spansOf(object);
    const { length, copied } = this;
    let count = 0;
    for (let i = 0; i < readCount; i += 1) {
      const slot = values[i] as Slot;
      if (slot === LAZY && !isBody) {
        count += 1;
        continue;
      }
      const at = base + i * spanSlots;
      const { spans } = memory;
      const start = spans[at + 1] as number;
      // Only `@metadata` of a document is elsewhere.
      if (start < 0) continue;
      if (slot === ABSENT) {
        this.length = length;
        this.copied = copied;
        if (isBody) return false;
        this.copyUpTo(source, object.start);
        this.list(object, none);
        this.copied = object.end;
        return true;
      }
      if (isBody) {
        const shift = this.length - this.copied;
        this.keySpans[2 * count] = (spans[at] as number) + shift;
        this.keySpans[2 * count + 1] = start - 1 + shift;
        this.valueStarts[count] = start + shift;
      }
      count += 1;
      if (slot === LAZY) continue;
      if (typeof slot === "object" && slot !== null && slot.kind <= kinds.array) {
        const tree = slot as Tree;
        if (tree.start === start && tree.source === source) {
          if (changedDeep(tree)) this.patch(tree, source);
          continue;
        }
      } else if (!wasSet(object, i)) continue;
      const end = spans[at + 2] as number;
      if (sameAsText(slot as Value, source, start, end)) continue;
      this.copyUpTo(source, start);
      this.replace(source, slot as Value, object.keys[i] as string, start, end);
      this.copied = end;
    }
    if (isBody) {
      this.fieldCount = count;
      this.hasSameFields = true;
    }
    if (object.keys.length > readCount) this.addMembers(object, source, count, isBody);
    return true;
  }

  /** Writes the properties that a script added to an object, behind its `count` others. */
  private addMembers(
    object: ScriptObject,
    source: TextSource,
    readCount: number,
    isBody: boolean,
  ): void {
    const { keys, values } = object;
    let count = readCount;
    this.copyUpTo(source, object.end - 1);
    for (let i = object.readCount; i < keys.length; i += 1) {
      const slot = values[i] as Slot;
      const key = keys[i] as string;
      if (slot === ABSENT || slot === undefined || (isBody && key === metadataKey)) continue;
      if (count > 0) this.byte(comma);
      const keyStart = this.length;
      this.key(key);
      if (isBody) {
        this.keySpans[2 * count] = keyStart;
        this.keySpans[2 * count + 1] = this.length - 1;
        this.valueStarts[count] = this.length;
      }
      count += 1;
      this.value(slot as Value, key);
    }
    if (!isBody) return;
    this.fieldCount = count;
    this.hasSameFields = count === readCount;
  }

  /** Does a property that the text has still have its value? Then its part of the text can be copied. */
  private keeps(
    object: ScriptObject,
    source: TextSource,
    position: number,
    value: Value,
    start: number,
    end: number,
  ): boolean {
    if (typeof value === "object" && value !== null) {
      if (value.kind !== kinds.object && value.kind !== kinds.array) return false;
      if (value.start !== start || value.source !== source) return false;
      return !changedDeep(value);
    }
    return !wasSet(object, position) || sameAsText(value, source, start, end);
  }

  /** Writes the new value of a property: a number where a double was goes on as one. */
  private replace(source: TextSource, value: Value, key: string, start: number, end: number): void {
    if (typeof value !== "number" || !Number.isFinite(value)) {
      this.value(value, key);
      return;
    }
    // A zero may have been one in another spelling.
    if (value !== 0) this.isOther = true;
    this.pay(16);
    const { bytes } = source;
    const wasDouble = isNumberStart(bytes[start]) && isDoubleSpelling(bytes, start, end);
    this.number(value, wasDouble);
  }

  private key(key: string): void {
    this.pay(key.length + 16);
    this.string(key);
    this.byte(colon);
  }

  /** An object of which properties were deleted or are left out, or that a script made. */
  private list(object: ScriptObject, omit: ReadonlySet<string>): void {
    const { keys, values } = object;
    const source = object.source instanceof TextSource ? object.source : null;
    const base = source === null ? 0 : source.spansOf(object);
    const memory = object.shape === null ? null : object.shape.hint.memory;
    this.byte(objectOpen);
    if (object.boxed !== undefined && object.className === "String") {
      this.ascii(`"length":${String(object.boxed).length}`);
    }
    let isFirst = true;
    // A stretch of properties that are as they were is copied at once.
    let from = -1;
    let to = -1;
    for (let i = 0; i < keys.length; i += 1) {
      const slot = values[i] as Slot;
      const key = keys[i] as string;
      const isRead = i < object.readCount && source !== null && memory !== null;
      if (slot === ABSENT || (omit.size > 0 && omit.has(key))) continue;
      if (!isRead && slot === undefined && object.source !== null) continue;
      const at = base + i * spanSlots;
      const start = isRead ? (memory.spans[at + 1] as number) : -1;
      const end = isRead ? (memory.spans[at + 2] as number) : -1;
      if (
        start >= 0 &&
        (slot === LAZY || this.keeps(object, source as TextSource, i, slot as Value, start, end))
      ) {
        const keyStart = memory?.spans[at] as number;
        if (from < 0 || keyStart !== to + 1) {
          isFirst = this.flush(source, from, to, isFirst);
          from = keyStart;
        }
        to = end;
        continue;
      }
      isFirst = this.flush(source, from, to, isFirst);
      from = -1;
      if (!isFirst) this.byte(comma);
      isFirst = false;
      this.member(object, key, slot, start, end);
    }
    this.flush(source, from, to, isFirst);
    this.byte(objectClose);
  }

  /** Copies a stretch of an object's text. @returns whether nothing has been written yet */
  private flush(source: TextSource | null, from: number, to: number, isFirst: boolean): boolean {
    if (from < 0 || source === null) return isFirst;
    if (!isFirst) this.byte(comma);
    this.copy(source, from, to);
    return false;
  }

  /** `start` and `end` are of the value that the text has; -1 when it has none. */
  private member(object: ScriptObject, key: string, slot: Slot, start: number, end: number): void {
    // Only the unread `@metadata` is lazy here: it is not in this text.
    const value = slot === LAZY ? getOwn(object, key) : (slot as Value);
    this.key(key);
    if (key === metadataKey && isReference(value) && value.kind === kinds.object) {
      this.members(value, this.derived);
    } else if (start < 0) this.value(value, key);
    else this.replace(object.source as TextSource, value, key, start, end);
  }
}

/** As `copyBytes`, eight bytes at once, as doubles: those of UTF-8 are never a NaN, which could lose bits. */
function copyWords(target: DataView, at: number, source: DataView, from: number, to: number): void {
  let next = at;
  let i = from;
  for (const last = to - 7; i < last; i += 8) {
    target.setFloat64(next, source.getFloat64(i, true), true);
    next += 8;
  }
  for (; i < to; i += 1) target.setUint8(next++, source.getUint8(i));
}

const metadataOnly: ReadonlySet<string> = new Set([metadataKey]);

/** The one printer. */
export const printer = new ValuePrinter();

function isAsciiText(text: string): boolean {
  for (let i = 0; i < text.length; i += 1) if (text.charCodeAt(i) >= 0x80) return false;
  return true;
}

function isTree(value: Reference): value is Tree {
  return value.kind === kinds.object || value.kind === kinds.array;
}

function isNumberStart(code: number | undefined): boolean {
  return code !== undefined && (code === 0x2d || (code >= 0x30 && code <= 0x39));
}

/** True when something in a tree that was read from a text was written. Marks the way to it as written. */
export function changedDeep(node: Reference): boolean {
  if (node.kind === kinds.object) {
    if (node.written) return true;
    const { values } = node;
    for (let i = 0; i < values.length; i += 1) {
      const slot = values[i];
      if (typeof slot !== "object" || slot === null || !changedDeep(slot)) continue;
      node.written = true;
      return true;
    }
    return false;
  }
  if (node.kind !== kinds.array) return false;
  if (node.written || node.changedBelow) return true;
  const { items } = node;
  for (let i = 0; i < items.length; i += 1) {
    const slot = items[i];
    if (typeof slot !== "object" || slot === null || !changedDeep(slot)) continue;
    node.changedBelow = true;
    return true;
  }
  return false;
}

/** True when a primitive equals the one that is spelled in a text. */
function sameAsText(value: Value, source: TextSource, start: number, end: number): boolean {
  const { bytes } = source;
  const code = bytes[start] as number;
  switch (typeof value) {
    case "string": {
      // A character has at most three bytes for each of its units, or is spelled by more.
      if (code !== quote || value.length > end - start - 2) return false;
      const spelling = source.slice(start, end);
      if (spelling.includes("\\")) return JSON.parse(spelling) === value;
      return value.length === spelling.length - 2 && spelling.startsWith(value, 1);
    }
    case "number":
      return isNumberStart(code) && numberOf(bytes, start, end) === value && !Object.is(value, -0);
    case "boolean":
      return code === (value ? 0x74 : 0x66);
    default:
      return value === null && code === 0x6e;
  }
}

function invalidDate(name: string, time: number): EngineError {
  return new EngineError(
    "invalid-operation",
    `Invalid 'JsDate' on property '${name}'. Date value : '${time}'. Note that JavaScripts 'Date' ` +
      "measures time as the number of milliseconds that have passed since the Unix epoch.",
  );
}
