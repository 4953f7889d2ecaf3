/**
 * Serializes script values to the stored text of documents, as UTF-8 bytes; stretches that a script did not change are
 * copied.
 *
 * Independent of document storage, and of the rules for changes by scripts.
 *
 * Hot: bench/script.bench.ts, bench/patch.bench.ts.
 *
 * Invariants:
 * - an unchanged property is written as the part of the text that it was parsed from;
 * - newly written text is charged to the run's account, so that a small script cannot print one object a million times;
 *   so are copies beyond the length of the document;
 * - there is a single printer, and its output is valid until the next print: printing calls nothing back.
 */

import { EngineError } from "../../base/errors.ts";
import { copyBytes } from "../../base/json/bytes.ts";
import { writeString } from "../../base/json/escape.ts";
import { numberBytesMax, writeDouble, writeWhole } from "../../base/json/number-bytes.ts";
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
} from "../language/script-values.ts";
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

/** Metadata derived from the record: visible to scripts, whose changes to it are discarded. */
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
/** A larger output buffer is released before the next print. */
const outputBytesKept = 4 * 1024 * 1024;
/** Bytes written between two charges to the run's account. */
const unpaidBytesMax = 4096;
/** Longer strings are scanned by a native pattern before they are written. */
const shortStringMax = 64;
/** Work of writing a non-integer number. */
const doubleUnits = 8;
/** Characters of a long string written at a time. */
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

/** A value that can be part of a text. */
type Tree = ScriptObject | ScriptArray;

export class ValuePrinter {
  /** The output: `bytes[0, length)`. */
  bytes: Buffer = Buffer.allocUnsafeSlow(outputBytesMin);
  length = 0;
  private view = viewOf(this.bytes);
  /** Number of prints: an output is still valid while it is unchanged. */
  printCount = 0;
  isAscii = true;
  /** Whether the text is in the stored spelling, so that it need not be parsed again before it is stored. */
  isStored = true;
  /** Whether some value definitely differs from the one it replaced. */
  isOther = false;
  /** Top-level properties of a document, or -1 when not counted. */
  fieldCount = -1;
  /** Whether they are the same as the document's before. */
  hasSameFields = false;
  /** The key of each: alternately start and end, without the colon. */
  keySpans = new Int32Array(128);
  /** The start of the value of each. */
  valueStarts = new Uint32Array(64);
  private run: Run | null = null;
  private unpaidBytes = 0;
  /** Bytes that may still be copied without charge: the length of the document. */
  private freeBytes = 0;
  private readonly open: Reference[] = [];
  /** Everything before this offset of the text being patched has been written or skipped. */
  private copied = 0;
  /** Keys of documents' `@metadata` that are omitted. */
  private derived: ReadonlySet<string> = derivedMetadata;

  /** The output as a string. */
  get text(): string {
    return this.isAscii
      ? this.bytes.latin1Slice(0, this.length)
      : this.bytes.utf8Slice(0, this.length);
  }

  /**
   * Prints a document without its `@metadata`. The document itself does not count as open: a reference to itself prints
   * as a copy, in which the reference is null, as in RavenDB 7.2.7.
   * @throws EngineError script-failed, too-large, invalid-operation
   */
  printBody(run: Run | null, object: ScriptObject): void {
    const { source } = object;
    if ((object.traits?.symbols?.size ?? 0) > 0) throw symbolKey();
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

  /** Prints an object without some of its properties. @throws as `printBody` */
  printMembers(run: Run | null, object: ScriptObject, omit: ReadonlySet<string>): void {
    this.begin(run, derivedMetadata);
    this.members(object, omit);
    this.pay(0, true);
  }

  /** Prints any value; `derived` are the keys omitted from the metadata of documents in it. @throws as `printBody` */
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

  /** Reserves space for `count` more bytes. */
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
        // Keeps the halves of a surrogate pair together.
        if ((text.charCodeAt(to - 1) & 0xfc00) === 0xd800) to += 1;
        const piece = text.slice(from, to);
        this.need(6 * piece.length + 2);
        // Written without quotes: the next write overwrites them.
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
      case kinds.symbol:
        throw new EngineError("invalid-operation", "Unknown type: Symbol");
      case kinds.map:
      case kinds.set:
        this.ascii("{}");
    }
  }

  /** Enters a container; false when it is already open: a reference to itself prints as null. */
  private enter(node: Tree, depth: number): boolean {
    if (this.isOpen(node)) {
      this.ascii("null");
      return false;
    }
    const { open } = this;
    if (open.length >= treeDepthMax) throw nestedTooDeeply();
    // The search above costs in proportion to the depth, so it is charged.
    this.pay(open.length * 16);
    open.push(node);
    // A value nested deeper than before may contain a value that is now too deep.
    if (node.source !== null && depth !== open.length) this.isStored = false;
    return true;
  }

  /** Returns whether it is being written. */
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

  /** An element: copied when unchanged. */
  private item(array: ScriptArray, item: Value, name: string): void {
    if (!isReference(item) || !isTree(item) || item.source === null) this.value(item, name);
    else if (item.source === array.source && !changedDeep(item)) {
      this.pay(16);
      this.copy(item.source as TextSource, item.start, item.end);
    } else this.value(item, name);
  }

  /** An object without some of its properties. */
  private members(object: ScriptObject, omit: ReadonlySet<string>): void {
    const { source, shape } = object;
    if ((object.traits?.symbols?.size ?? 0) > 0) throw symbolKey();
    if (!this.enter(object, shape === null ? 0 : shape.hint.depth)) return;
    // As a value, a document includes its `@metadata`, which is stored separately.
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

  /** Copies the rest of a text before `to`. */
  private copyUpTo(source: TextSource, to: number): void {
    if (to > this.copied) this.copy(source, this.copied, to);
    this.copied = to;
  }

  /** Writes the changes in a tree at its original position in stored text. */
  private patch(node: Tree, source: TextSource): void {
    // Then a script has placed an ancestor inside its own tree.
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

  /** @returns false when its elements must be rewritten: numbers in it lose their spelling */
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
   * Writes the changes in an object parsed from stored text, up to its last change.
   * @param isBody it is a document: `@metadata` is omitted, and the positions of its fields are recorded.
   * @returns false for a document with a deleted property: nothing was written.
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
      // Only a document's `@metadata` is not in the text.
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

  /** Writes the properties that a script added to an object, after its `count` others. */
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

  /** Returns whether a property of the text is unchanged, so that its part of the text can be copied. */
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

  /** Writes the new value of a property: a number that replaces a double stays a double. */
  private replace(source: TextSource, value: Value, key: string, start: number, end: number): void {
    if (typeof value !== "number" || !Number.isFinite(value)) {
      this.value(value, key);
      return;
    }
    // A zero may have been spelled differently.
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

  /** Prints an object with deleted or omitted properties, or an object that a script created. */
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
    // A run of unchanged properties is copied in one call.
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

  /** Copies a stretch of an object's text. @returns whether the object is still empty */
  private flush(source: TextSource | null, from: number, to: number, isFirst: boolean): boolean {
    if (from < 0 || source === null) return isFirst;
    if (!isFirst) this.byte(comma);
    this.copy(source, from, to);
    return false;
  }

  /** `start` and `end` delimit the value in the text; -1 if the text does not contain it. */
  private member(object: ScriptObject, key: string, slot: Slot, start: number, end: number): void {
    // Only the unread `@metadata` is lazy here: it is not part of this text.
    const value = slot === LAZY ? getOwn(object, key) : (slot as Value);
    this.key(key);
    if (key === metadataKey && isReference(value) && value.kind === kinds.object) {
      this.members(value, this.derived);
    } else if (start < 0) this.value(value, key);
    else this.replace(object.source as TextSource, value, key, start, end);
  }
}

/** As `copyBytes`, eight bytes at a time, as doubles: UTF-8 never forms a NaN, whose bits could be altered. */
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

/** The single printer. */
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

/** Returns whether any node in a tree parsed from a text was changed. Marks the path to it as written. */
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

/** Returns whether a primitive equals the one spelled in a text. */
function sameAsText(value: Value, source: TextSource, start: number, end: number): boolean {
  const { bytes } = source;
  const code = bytes[start] as number;
  switch (typeof value) {
    case "string": {
      // A UTF-16 unit has at most three bytes in UTF-8, or more if escaped.
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

/** As RavenDB 7.2.7 refuses a property whose key is a symbol. */
function symbolKey(): EngineError {
  return new EngineError("invalid-argument", "Expected string but got Symbol");
}
