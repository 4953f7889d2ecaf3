/**
 * Parses JSON text, as UTF-8, into script values lazily: only the properties that scripts use.
 *
 * A script runs on one document after another, most of which have the same shape. Each position in a document (the
 * root, a property, the elements of an array) therefore has a `ShapeHint`, which caches the key lists of the objects
 * seen there and which properties scripts used: those are parsed eagerly, the others are skipped and stay LAZY. An
 * expected key is recognized by comparing bytes.
 *
 * It knows nothing of documents or metadata. The text is trusted to be valid JSON.
 *
 * Hot: bench/script.bench.ts, bench/patch.bench.ts.
 *
 * Invariants:
 * - a parsed object lists its properties in the text's order; deleted ones keep their slot;
 * - objects at one place that have the same keys share one key list;
 * - the offsets of an object's properties (`spansOf`) are recorded in memory that the next document's root reuses; when
 *   needed later, they are computed again.
 */

import { EngineError } from "../../base/errors.ts";
import { whenCollecting } from "../../base/memory/gc-hints.ts";
import {
  LAZY,
  ScriptArray,
  ScriptObject,
  type Slot,
  type Source,
  type Value,
} from "../language/script-values.ts";
import { KeyNode, ShapeHint, spanSlots } from "./shape-hint.ts";

/** Maximum nesting of objects and arrays in a property that a script reads or creates. */
export const treeDepthMax = 500;
/** Maximum length of texts that are decoded to one string, of which values are slices, in bytes. */
const wholeTextBytesMax = 8 * 1024;

const powersOfTen = Array.from({ length: 17 }, (_, i) => 10 ** i);

// Declared here: V8 folds a module's own constants into the code, but loads imported ones from their cells.
const quote = 0x22;
const comma = 0x2c;
const objectOpen = 0x7b;
const objectClose = 0x7d;
const arrayOpen = 0x5b;
const arrayClose = 0x5d;
const backslash = 0x5c;
const zero = 0x30;

let viewedBytes: Buffer | null = null;
let view: DataView | null = null;

whenCollecting(() => {
  viewedBytes = null;
  view = null;
});

/** Returns a view of a whole buffer; cached for the most recent buffer. */
export function viewOf(bytes: Buffer): DataView {
  if (viewedBytes === bytes && view !== null) return view;
  viewedBytes = bytes;
  view = new DataView(bytes.buffer, bytes.byteOffset, bytes.length);
  return view;
}

/** A property whose value is not in the text: a document's `@metadata`. */
export interface Elsewhere {
  readonly name: string;
  read(): Value;
}

/** A text in the spelling of stored documents, see document-parser.ts: `bytes[from, to)`. */
export interface StoredText {
  readonly bytes: Buffer;
  readonly from: number;
  readonly to: number;
  /** Whether every byte is below 0x80. */
  readonly isAscii: boolean;
  /** Returns the end of the value of the root property `index`; -1 when unknown without scanning. */
  fieldEnd(index: number): number;
}

/** Parses one JSON text: `bytes[from, to)`. `at` is its cursor. */
export class TextSource implements Source {
  readonly bytes: Buffer;
  /** Over the same bytes. */
  readonly view: DataView;
  readonly from: number;
  readonly to: number;
  readonly isAscii: boolean;
  private readonly stored: StoredText | null;
  /** The document whose root it was parsed for: set and read by script-document.ts. */
  document: object | null = null;
  /** A last property of the root, stored outside of the text. */
  private readonly elsewhere: Elsewhere | null;
  private at: number;
  private readonly hint: ShapeHint;
  private text: string | null;

  private constructor(
    bytes: Buffer,
    from: number,
    to: number,
    stored: StoredText | null,
    text: string | null,
    hint: ShapeHint,
    elsewhere: Elsewhere | null,
  ) {
    this.bytes = bytes;
    this.view = viewOf(bytes);
    this.from = from;
    this.to = to;
    this.isAscii = stored === null ? to === text?.length : stored.isAscii;
    this.stored = stored;
    this.at = from;
    this.hint = hint;
    this.text = text;
    this.elsewhere = elsewhere;
  }

  static ofText(text: string, hint: ShapeHint, elsewhere: Elsewhere | null = null): TextSource {
    const bytes = Buffer.from(text);
    return new TextSource(bytes, 0, bytes.length, null, text, hint, elsewhere);
  }

  static ofStored(stored: StoredText, hint: ShapeHint, elsewhere: Elsewhere | null): TextSource {
    const { bytes, from, to } = stored;
    return new TextSource(bytes, from, to, stored, null, hint, elsewhere);
  }

  /** Whether parts of it may be stored unchanged. */
  get isStored(): boolean {
    return this.stored !== null;
  }

  wholeText(): string {
    this.text ??= this.isAscii
      ? this.bytes.latin1Slice(this.from, this.to)
      : this.bytes.utf8Slice(this.from, this.to);
    return this.text;
  }

  /** Returns the text of `[from, to)`. */
  slice(from: number, to: number): string {
    if (!this.isAscii) return this.bytes.utf8Slice(from, to);
    if (this.text === null) {
      if (this.to - this.from > wholeTextBytesMax) return this.bytes.latin1Slice(from, to);
      this.text = this.bytes.latin1Slice(this.from, this.to);
    }
    return this.text.slice(from - this.from, to - this.from);
  }

  /** Returns the root object of the text. Properties that the script is not known to use stay unparsed. */
  root(): ScriptObject {
    this.hint.memory.forget();
    this.at = this.from;
    this.skipSpace();
    const start = this.at;
    try {
      return this.object(this.hint, true);
    } catch (error) {
      // Excessive nesting is an error only if this script reads that part of this document.
      if (!(error instanceof EngineError) || error.code !== "too-large") throw error;
      this.at = start;
      return this.object(ShapeHint.loose(), true);
    }
  }

  /** Returns the value of the whole text. */
  whole(): Value {
    this.at = this.from;
    this.skipSpace();
    return this.value(this.hint);
  }

  /** Parses a lazy property. */
  materialize(owner: ScriptObject, position: number): Value {
    let node = owner.shape as KeyNode;
    const at = this.spansOf(owner) + position * spanSlots;
    const start = node.hint.memory.spans[at + 1] as number;
    if (start < 0) return this.elsewhere === null ? null : this.elsewhere.read();
    this.at = start;
    while (node.count > position + 1 && node.parent !== null) node = node.parent;
    node.wanted = true;
    return this.value(node.below);
  }

  /**
   * Returns the offsets of the properties of an object parsed from this text, as a position in the memory of its hint.
   * From then on, objects at this place in later documents record theirs while being parsed.
   */
  spansOf(object: ScriptObject): number {
    const { hint } = object.shape as KeyNode;
    const { memory } = hint;
    if (object.spanAt >= memory.base) return object.spanAt - memory.base;
    hint.isWritten = true;
    const at = memory.length;
    this.at = object.start + 1;
    while (this.skipSpace() !== objectClose) {
      const next = memory.reserve(spanSlots);
      const { spans } = memory;
      spans[next] = this.at;
      this.at = stringEnd(this.view, this.at, this.to);
      this.skipSpace();
      this.at += 1;
      this.skipSpace();
      spans[next + 1] = this.at;
      this.at = valueEnd(this.view, this.at, this.to);
      spans[next + 2] = this.at;
      if (this.skipSpace() !== comma) break;
      this.at += 1;
    }
    const last = memory.reserve(spanSlots);
    memory.spans.fill(-1, last, last + spanSlots);
    object.spanAt = memory.base + at;
    return at;
  }

  private skipSpace(): number {
    this.at = this.spaceEnd(this.at);
    return this.bytes[this.at] as number;
  }

  private spaceEnd(start: number): number {
    const { bytes, to } = this;
    let at = start;
    while ((bytes[at] as number) <= 32 && at < to) at += 1;
    return at;
  }

  /** Parses the value at the cursor; `hint` is the hint of its position. */
  private value(hint: ShapeHint): Value {
    switch (this.bytes[this.at]) {
      case quote:
        return this.string();
      case objectOpen:
        return this.object(hint, false);
      case arrayOpen:
        return this.array(hint);
      case 0x74:
        this.at += 4;
        return true;
      case 0x66:
        this.at += 5;
        return false;
      case 0x6e:
        this.at += 4;
        return null;
      default:
        return this.number();
    }
  }

  /**
   * Parses a number. With at most 15 digits in all, both the digits and the power of ten are exact doubles, so that one
   * division rounds correctly.
   */
  private number(): number {
    const { bytes, at: start } = this;
    const first = bytes[start] === 0x2d ? start + 1 : start;
    let at = first;
    let value = 0;
    let point = -1;
    let code = bytes[at] as number;
    for (;;) {
      if (code >= zero && code <= 0x39) value = value * 10 + code - zero;
      else if (code === 0x2e && point < 0) point = at;
      else break;
      at += 1;
      code = bytes[at] as number;
    }
    const length = at - first;
    if (length === 0 || length > 15 || code === 0x65 || code === 0x45) return this.anyNumber();
    this.at = at;
    if (point >= 0) value /= powersOfTen[at - point - 1] as number;
    return first > start ? -value : value;
  }

  private anyNumber(): number {
    const { bytes, at: start } = this;
    let at = start;
    let code = bytes[at] as number;
    while ((code >= 43 && code <= 57 && code !== comma) || code === 101 || code === 69) {
      at += 1;
      code = bytes[at] as number;
    }
    if (at === start) throw new EngineError("json-invalid", `not JSON at offset ${at}`);
    this.at = at;
    return Number(bytes.latin1Slice(start, at));
  }

  /** Parses a string; the cursor is on its opening quote. */
  private string(): string {
    const { bytes } = this;
    const start = this.at;
    const end = stringEnd(this.view, start, this.to);
    this.at = end;
    for (let at = start + 1; at < end; at += 1) {
      if (bytes[at] === backslash) return JSON.parse(this.slice(start, end)) as string;
    }
    return this.slice(start + 1, end - 1);
  }

  private array(hint: ShapeHint): ScriptArray {
    if (hint.depth > treeDepthMax) throw nestedTooDeeply();
    const items: Slot[] = [];
    const array = new ScriptArray(items);
    array.source = this;
    array.depth = hint.depth;
    array.start = this.at;
    this.at += 1;
    const { element } = hint;
    if (this.skipSpace() === arrayClose) this.at += 1;
    else {
      for (;;) {
        const start = this.at;
        const value = this.value(element);
        if (typeof value === "number" && this.at - start > 15) this.keepExact(array, start);
        items.push(value);
        const code = this.skipSpace();
        this.at += 1;
        if (code !== comma) break;
        this.skipSpace();
      }
    }
    array.end = this.at;
    return array;
  }

  private keepExact(array: ScriptArray, start: number): void {
    if (isDoubleSpelling(this.bytes, start, this.at)) return;
    array.exact ??= new Map();
    array.exact.set(array.items.length, this.bytes.latin1Slice(start, this.at));
  }

  /** Parses the object at the cursor. */
  private object(hint: ShapeHint, isRoot: boolean): ScriptObject {
    if (hint.depth > treeDepthMax) throw nestedTooDeeply();
    if (hint.isLoose) return this.looseObject(hint, this.at, isRoot);
    const { bytes, view, to } = this;
    const { memory, last } = hint;
    const start = this.at;
    const more = isRoot && this.elsewhere !== null ? 1 : 0;
    const values = last.blank(more).slice();
    const notedCount = isRoot || hint.isWritten ? last.count : 0;
    let note = notedCount === 0 ? 0 : memory.reserve((notedCount + 1) * spanSlots);
    const spanAt = memory.base + note;
    let { spans } = memory;
    let node = hint.start;
    let at = start + 1;
    if ((bytes[at] as number) <= 32) at = this.spaceEnd(at);
    if (bytes[at] === objectClose) at += 1;
    else {
      for (;;) {
        const keyStart = at;
        let next = node.next;
        if (next !== null && isKeyAt(view, at, to, next)) at += next.text.length;
        else {
          this.at = at;
          next = this.key(node);
          if (next === null) return this.looseObject(hint, start, isRoot);
          node.next = next;
          at = this.at;
        }
        if ((bytes[at] as number) <= 32) at = this.spaceEnd(at);
        const valueStart = at;
        const { count } = node;
        if (next.wanted) {
          const code = bytes[at];
          this.at = at;
          const isContainer = code === objectOpen || code === arrayOpen;
          values[count] = this.value(isContainer ? next.below : hint);
          at = this.at;
          ({ spans } = memory);
        } else {
          at = isRoot ? this.fieldEnd(at, count) : valueEnd(view, at, to);
          if (count >= last.count) values[count] = LAZY;
        }
        if (count < notedCount) {
          spans[note] = keyStart;
          spans[note + 1] = valueStart;
          spans[note + 2] = at;
          note += spanSlots;
        }
        node = next;
        if ((bytes[at] as number) <= 32) at = this.spaceEnd(at);
        const code = bytes[at];
        at += 1;
        if (code !== comma) break;
        if ((bytes[at] as number) <= 32) at = this.spaceEnd(at);
      }
    }
    this.at = at;
    if (node !== last) {
      hint.last = node;
      values.length = node.count;
      if (more > 0) values.push(LAZY);
    }
    const object = this.finish(node, values, start, isRoot);
    if (notedCount === 0 || node.count > notedCount) return object;
    object.spanAt = spanAt;
    if (more > 0) {
      spans[note] = -1;
      spans[note + 1] = -1;
      spans[note + 2] = -1;
    }
    return object;
  }

  /** Returns the end of the value at `start`, of the root's property `index`. */
  private fieldEnd(start: number, index: number): number {
    const { stored, bytes, view, to } = this;
    const code = bytes[start];
    if (stored === null || (code !== objectOpen && code !== arrayOpen)) {
      return valueEnd(view, start, to);
    }
    const end = stored.fieldEnd(index);
    return end < 0 ? valueEnd(view, start, to) : end;
  }

  /** Returns the object that begins at `start` and ends before the cursor. */
  private finish(node: KeyNode, values: Slot[], start: number, isRoot: boolean): ScriptObject {
    const { elsewhere } = this;
    const hasMore = isRoot && elsewhere !== null;
    const keys = hasMore ? node.keysAnd(elsewhere.name) : node.keys;
    const object = new ScriptObject(keys, true, values);
    object.source = this;
    object.shape = node;
    object.start = start;
    object.end = this.at;
    object.readCount = values.length;
    return object;
  }

  /** Returns the node of the key at the cursor, which advances past the colon; null when no more can be cached. */
  private key(node: KeyNode): KeyNode | null {
    const { bytes } = this;
    const start = this.at;
    for (const other of node.others) {
      if (!matches(bytes, start, other.text)) continue;
      this.at += other.text.length;
      return other;
    }
    const name = this.string();
    const end = this.at;
    this.skipSpace();
    this.at += 1;
    // The key is spelled differently, or followed by white space.
    const known = node.others.find((other) => other.name === name);
    if (known !== undefined) return known;
    if (!node.hint.memory.admits(node)) return null;
    const text = new Uint8Array(end - start + 1);
    text.set(bytes.subarray(start, end));
    text[end - start] = 0x3a;
    const made = new KeyNode(node.hint, node, name, text, node.count + 1);
    node.others.push(made);
    return made;
  }

  /** Parses the object at `start` with a key list of its own. */
  private looseObject(hint: ShapeHint, start: number, isRoot: boolean): ScriptObject {
    const keys: string[] = [];
    const values: Slot[] = [];
    const place = hint.isLoose ? hint.element : new ShapeHint(hint.memory, hint.depth + 1, true);
    this.at = start + 1;
    while (this.skipSpace() !== objectClose) {
      keys.push(this.string());
      this.skipSpace();
      this.at += 1;
      this.skipSpace();
      if (isRoot) {
        this.at = valueEnd(this.view, this.at, this.to);
        values.push(LAZY);
      } else values.push(this.value(place));
      if (this.skipSpace() !== comma) break;
      this.at += 1;
    }
    this.at += 1;
    if (isRoot && this.elsewhere !== null) values.push(LAZY);
    return this.finish(KeyNode.loose(hint, keys), values, start, isRoot);
  }
}

export function nestedTooDeeply(): EngineError {
  return new EngineError("too-large", `A script's value is nested deeper than ${treeDepthMax}.`);
}

/**
 * Returns the end of the string whose quote is at `start`. Checks four bytes at a time: subtracting 1 from a byte
 * borrows its highest bit if the byte is 0, and for no other byte below 0x80.
 * @throws EngineError json-truncated when the end is not before `to`
 */
function stringEnd(view: DataView, start: number, to: number): number {
  let at = start + 1;
  for (const last = to - 4; at <= last; at += 4) {
    const word = view.getInt32(at, true);
    const quotes = word ^ 0x22222222;
    const backslashes = word ^ 0x5c5c5c5c;
    const found = ((quotes - 0x01010101) & ~quotes) | ((backslashes - 0x01010101) & ~backslashes);
    if ((found & 0x80808080) !== 0) break;
  }
  for (; at < to; at += 1) {
    const code = view.getUint8(at);
    if (code === quote) return at + 1;
    if (code === backslash) at += 1;
  }
  throw new EngineError("json-truncated", "a string does not end");
}

/** Returns the end of the value of any kind at `start`, without recursion. @throws as `stringEnd` */
function valueEnd(view: DataView, start: number, to: number): number {
  if (view.getUint8(start) === quote) return stringEnd(view, start, to);
  let depth = 0;
  let at = start;
  while (at < to) {
    const code = view.getUint8(at);
    if (code === quote) {
      at = stringEnd(view, at, to);
      if (depth === 0) return at;
      continue;
    }
    if (code === objectOpen || code === arrayOpen) depth += 1;
    else if (code === objectClose || code === arrayClose) {
      if (depth === 0) return at;
      depth -= 1;
      if (depth === 0) return at + 1;
    } else if (depth === 0 && (code === comma || code <= 32)) return at;
    at += 1;
  }
  if (depth === 0) return at;
  throw new EngineError("json-truncated", "a value does not end");
}

/** Returns whether this key is at `at`, before `to`. Always false for the shortest keys. */
function isKeyAt(view: DataView, at: number, to: number, { text, words }: KeyNode): boolean {
  const last = words.length - 1;
  if (last < 0 || at + text.length > to) return false;
  let next = at;
  for (let i = 0; i < last; i += 1) {
    if (view.getInt32(next, true) !== words[i]) return false;
    next += 4;
  }
  return view.getInt32(at + text.length - 4, true) === words[last];
}

/** Returns whether these bytes are at `at`. */
function matches(bytes: Uint8Array, at: number, text: Uint8Array): boolean {
  for (let i = 0; i < text.length; i += 1) if (bytes[at + i] !== text[i]) return false;
  return true;
}

/** Returns the value of the number spelled in `[start, end)`, computed as in `TextSource.number`. */
export function numberOf(bytes: Buffer, start: number, end: number): number {
  const isNegative = bytes[start] === 0x2d;
  const first = isNegative ? start + 1 : start;
  if (end - first <= 15) {
    let value = 0;
    let point = end - 1;
    let at = first;
    for (; at < end; at += 1) {
      const digit = (bytes[at] as number) - zero;
      if (digit >= 0 && digit <= 9) value = value * 10 + digit;
      else if (digit === -2) point = at;
      else break;
    }
    if (at === end) {
      const size = point === end - 1 ? value : value / (powersOfTen[end - 1 - point] as number);
      return isNegative ? -size : size;
    }
  }
  return Number(bytes.latin1Slice(start, end));
}

/** Returns whether a JSON number is spelled with a point or exponent: a double in the reference server. */
export function isDoubleSpelling(bytes: Uint8Array, start: number, end: number): boolean {
  for (let at = start; at < end; at += 1) {
    const code = bytes[at];
    if (code === 0x2e || code === 0x65 || code === 0x45) return true;
  }
  return false;
}

/** Returns the script value of valid JSON text. */
export function valueOfText(text: string): Value {
  return TextSource.ofText(text, ShapeHint.loose()).whole();
}
