/**
 * A document as a script sees it: a mutable tree over the document's text, read as it is needed, and
 * written back so that what was not changed keeps its bytes.
 *
 * It does not know how documents are stored, who may change what in `@metadata`, nor the syntax of scripts.
 * The text is trusted to be valid JSON (it was checked when it was stored).
 *
 * Invariants:
 * - an object read from a text lists its properties in the text's order, deleted ones keep their place;
 * - a property that still has its value is written as the slice of text that it was read from;
 * - `spans` has three offsets for each property that the text has: key start, value start, value end; the
 *   root's `@metadata` has -1, as it comes from another text.
 */

import { EngineError } from "../errors.ts";
import {
  ABSENT,
  getOwn,
  isReference,
  kinds,
  LAZY,
  type Reference,
  type Run,
  ScriptArray,
  ScriptObject,
  type Slot,
  type Source,
  type Value,
  wasSet,
} from "./script-values.ts";
import { dateText, doubleText, isDoubleSpelling, numberText, stringText } from "./value-text.ts";

/** Objects and arrays inside each other in one property that a script touches, or that it makes. */
const treeDepthMax = 500;
/** Texts that are added up before they become one part of many. */
const jointsMax = 64;

export const metadataKey = "@metadata";

/**
 * Property names that objects at one place of many documents had last: the next document most likely has
 * the same, and then needs no new strings. One tree of hints serves one script.
 */
export class ShapeHint {
  keys: string[] | null = null;
  /** None of the keys has a backslash: each stands in a text as it is. */
  arePlain = true;
  readonly children: (ShapeHint | undefined)[] = [];
  element: ShapeHint | undefined = undefined;
  /** A script asked for the property at this place: the next document's is read at once. */
  wanted = false;
  /** Of the root's: objects were written below it, which needed to know where their properties stand. */
  writes = false;

  child(position: number): ShapeHint {
    const known = this.children[position];
    if (known !== undefined) return known;
    const made = new ShapeHint();
    // Positions come in order but for untouched ones, and an object has few: the list stays dense enough.
    this.children[position] = made;
    return made;
  }
}

/** A text, or what makes it when it is needed. */
export type LazyText = string | null | (() => string);

function textOf(text: LazyText): string | null {
  return typeof text === "function" ? text() : text;
}

const powersOfTen = Array.from({ length: 17 }, (_, i) => 10 ** i);

/** Reads one JSON text. `at` is its cursor. Hot: bench/script.bench.ts. */
class TextSource implements Source {
  readonly text: string;
  private at = 0;
  private readonly hint: ShapeHint;
  private readonly metadata: LazyText;
  /** Set for a document's root. */
  document: ScriptDocument | null = null;

  constructor(text: string, hint: ShapeHint, metadata: LazyText) {
    this.text = text;
    this.hint = hint;
    this.metadata = metadata;
  }

  /** The object that the text is, its properties unread. */
  root(): ScriptObject {
    this.at = 0;
    this.skipSpace();
    try {
      return this.object(this.hint, 0, []);
    } catch (error) {
      // What is nested too deeply matters only when this script touches it in this document.
      if (!(error instanceof EngineError) || error.code !== "too-large") throw error;
      this.at = 0;
      this.skipSpace();
      return this.object(new ShapeHint(), 0, []);
    }
  }

  /** The value that the text is. */
  whole(): Value {
    this.at = 0;
    this.skipSpace();
    return this.value(this.hint, 1);
  }

  materialize(owner: ScriptObject, position: number): Value {
    const start = (owner.spans as number[])[position * 3 + 1] as number;
    if (start < 0) return valueOfText(textOf(this.metadata) ?? "null");
    this.at = start;
    const hint = this.hint.child(position);
    hint.wanted = true;
    return this.value(hint, 1);
  }

  private skipSpace(): number {
    const text = this.text;
    let code = text.charCodeAt(this.at);
    while (code <= 32) {
      this.at += 1;
      code = text.charCodeAt(this.at);
    }
    return code;
  }

  private value(hint: ShapeHint, depth: number): Value {
    switch (this.text.charCodeAt(this.at)) {
      case 34:
        return this.string();
      case 123:
        return this.object(hint, depth, null);
      case 91:
        return this.array(hint, depth);
      case 116:
        this.at += 4;
        return true;
      case 102:
        this.at += 5;
        return false;
      case 110:
        this.at += 4;
        return null;
      default:
        return this.number();
    }
  }

  private number(): number {
    const text = this.text;
    const start = this.at;
    let at = start;
    let whole = 0;
    let code = text.charCodeAt(at);
    while (code >= 48 && code <= 57) {
      whole = whole * 10 + code - 48;
      at += 1;
      code = text.charCodeAt(at);
    }
    if (at > start && at - start < 16) {
      if (code === 46) return this.fraction(whole, start, at);
      if (code !== 101 && code !== 69) {
        this.at = at;
        return whole;
      }
    }
    return this.anyNumber(start);
  }

  /**
   * Goes on behind the point of a number. With at most 15 digits in all, both the digits and the power of ten
   * are exact doubles, so that one division rounds as reading the text does.
   */
  private fraction(whole: number, start: number, point: number): number {
    const text = this.text;
    let at = point + 1;
    let digits = whole;
    let code = text.charCodeAt(at);
    while (code >= 48 && code <= 57) {
      digits = digits * 10 + code - 48;
      at += 1;
      code = text.charCodeAt(at);
    }
    if (code === 101 || code === 69 || at - start > 16) return this.anyNumber(start);
    this.at = at;
    return digits / (powersOfTen[at - point - 1] as number);
  }

  private anyNumber(start: number): number {
    const text = this.text;
    let at = start;
    let code = text.charCodeAt(at);
    while ((code >= 43 && code <= 57 && code !== 44) || code === 101 || code === 69) {
      at += 1;
      code = text.charCodeAt(at);
    }
    if (at === start) throw new EngineError("json-invalid", `not JSON at offset ${at}`);
    this.at = at;
    return Number(text.slice(start, at));
  }

  /** Reads a string; the cursor is on its opening quote. */
  private string(): string {
    const start = this.at;
    if (!this.skipString()) return this.text.slice(start + 1, this.at - 1);
    return JSON.parse(this.text.slice(start, this.at)) as string;
  }

  /** Moves behind a string. @returns true when it has a backslash */
  private skipString(): boolean {
    const text = this.text;
    let at = this.at + 1;
    let escaped = false;
    for (;;) {
      const code = text.charCodeAt(at);
      if (code === 34) break;
      if (code === 92) {
        escaped = true;
        at += 1;
      }
      if (at >= text.length) throw new EngineError("json-truncated", "a string does not end");
      at += 1;
    }
    this.at = at + 1;
    return escaped;
  }

  /** Moves behind a value of any kind, without recursion. */
  private skipValue(): void {
    const text = this.text;
    let depth = 0;
    for (;;) {
      const code = text.charCodeAt(this.at);
      if (this.at >= text.length) throw new EngineError("json-truncated", "a value does not end");
      if (code === 34) this.skipString();
      else if (code === 123 || code === 91) {
        depth += 1;
        this.at += 1;
      } else if (code === 125 || code === 93) {
        if (depth === 0) return;
        depth -= 1;
        this.at += 1;
      } else if (code === 44 && depth === 0) return;
      else this.at += 1;
      if (depth === 0 && (code === 34 || code === 125 || code === 93)) return;
    }
  }

  private array(hint: ShapeHint, depth: number): ScriptArray {
    if (depth > treeDepthMax) throw nestedTooDeeply();
    const array = new ScriptArray([]);
    array.source = this;
    array.start = this.at;
    this.at += 1;
    if (hint.element === undefined) hint.element = new ShapeHint();
    if (this.skipSpace() === 93) this.at += 1;
    else {
      for (;;) {
        const start = this.at;
        const value = this.value(hint.element, depth + 1);
        if (typeof value === "number" && this.at - start > 15) this.keepExact(array, start);
        array.items.push(value);
        const code = this.skipSpace();
        this.at += 1;
        if (code !== 44) break;
        this.skipSpace();
      }
    }
    array.end = this.at;
    return array;
  }

  private keepExact(array: ScriptArray, start: number): void {
    if (isDoubleSpelling(this.text, start, this.at)) return;
    array.exact ??= new Map();
    array.exact.set(array.items.length, this.text.slice(start, this.at));
  }

  /** Reads the object at the cursor. `rootSpans` is given for the root: its values stay unread. */
  private object(hint: ShapeHint, depth: number, rootSpans: number[] | null): ScriptObject {
    if (depth > treeDepthMax) throw nestedTooDeeply();
    const start = this.at;
    const spans = rootSpans ?? (this.hint.writes ? [] : null);
    const expected = hint.keys;
    let own: string[] | null = expected === null ? [] : null;
    const values: Slot[] = expected === null ? [] : new Array(expected.length);
    let count = 0;
    this.at += 1;
    if (this.skipSpace() === 125) this.at += 1;
    else {
      for (;;) {
        const keyStart = this.at;
        own = this.key(hint, expected, own, count);
        this.skipSpace();
        this.at += 1;
        this.skipSpace();
        const valueStart = this.at;
        const child = hint.child(count);
        if (rootSpans === null || child.wanted) values[count] = this.value(child, depth + 1);
        else {
          this.skipValue();
          values[count] = LAZY;
        }
        if (spans !== null) spans.push(keyStart, valueStart, this.valueEnd());
        count += 1;
        const code = this.skipSpace();
        this.at += 1;
        if (code !== 44) break;
        this.skipSpace();
      }
    }
    values.length = count;
    const object = new ScriptObject(this.settleKeys(hint, own, count), true, values);
    object.source = this;
    object.spans = spans;
    object.start = start;
    object.end = this.at;
    return object;
  }

  /**
   * Finds the spans of an object that was read at once: only one that is written needs them. Those of the next
   * documents note them as they are read.
   */
  spansOf(object: ScriptObject): number[] {
    const spans: number[] = [];
    this.hint.writes = true;
    this.at = object.start + 1;
    while (this.skipSpace() !== 125) {
      const keyStart = this.at;
      this.skipString();
      this.skipSpace();
      this.at += 1;
      this.skipSpace();
      const valueStart = this.at;
      this.skipValue();
      spans.push(keyStart, valueStart, this.valueEnd());
      if (this.skipSpace() !== 44) break;
      this.at += 1;
    }
    return spans;
  }

  /** Where the value before the cursor ends: white space before the comma is not part of it. */
  private valueEnd(): number {
    let end = this.at;
    while (this.text.charCodeAt(end - 1) <= 32) end -= 1;
    return end;
  }

  /** Reads the key at the cursor: as the expected one, or into a list of this object's own. */
  private key(
    hint: ShapeHint,
    expected: string[] | null,
    own: string[] | null,
    count: number,
  ): string[] | null {
    if (own === null && expected !== null && hint.arePlain) {
      const key = expected[count];
      if (key !== undefined && this.text.startsWith(key, this.at + 1)) {
        const end = this.at + 1 + key.length;
        if (this.text.charCodeAt(end) === 34) {
          this.at = end + 1;
          return null;
        }
      }
    }
    const list = own ?? (expected as string[]).slice(0, count);
    list.push(this.string());
    return list;
  }

  private settleKeys(hint: ShapeHint, own: string[] | null, count: number): string[] {
    if (own === null) {
      const expected = hint.keys as string[];
      if (expected.length === count) return expected;
      hint.keys = expected.slice(0, count);
    } else {
      hint.keys = own;
      hint.arePlain = !own.some((key) => key.includes("\\"));
    }
    return hint.keys;
  }
}

function nestedTooDeeply(): EngineError {
  return new EngineError("too-large", `A script's value is nested deeper than ${treeDepthMax}.`);
}

/** Metadata that is derived from the record: scripts see it, and what they write there is not kept. */
export const derivedMetadata: ReadonlySet<string> = new Set([
  "@id",
  "@change-vector",
  "@last-modified",
  "@flags",
  "@etag",
  "@index-score",
]);

const derivedButId: ReadonlySet<string> = new Set(
  [...derivedMetadata].filter((key) => key !== "@id"),
);

/** One document of a run: the one that is patched, or one that the script has loaded. */
export class ScriptDocument {
  readonly root: ScriptObject;
  /** The id in its original case; null for a document that is being made. */
  readonly id: string | null;
  private readonly text: string;
  private readonly composed: LazyText;
  /** The run that changed it: printing is on its account. */
  run: Run | null = null;
  /** The body as it was printed when the run had this much work left: whatever a script does uses some up. */
  private printed: string | null = null;
  private printedAt = 0;

  private constructor(root: ScriptObject, text: string, id: string | null, metadata: LazyText) {
    this.root = root;
    this.text = text;
    this.composed = metadata;
    this.id = id;
  }

  /**
   * A document over its stored body (an object's JSON text without `@metadata`) and the text of its
   * `@metadata`, composed, with the derived keys that scripts may read. Cost: one pass over the body.
   */
  static fromText(
    body: string | Uint8Array,
    metadata: LazyText,
    id: string | null,
    hint: ShapeHint = new ShapeHint(),
  ): ScriptDocument {
    const text = typeof body === "string" ? body : utf8Text(body);
    const source = new TextSource(text, hint, metadata);
    const root = source.root();
    const document = new ScriptDocument(root, text, id, metadata);
    source.document = document;
    if (metadata !== null) addMetadata(root);
    return document;
  }

  /** The document that an object is the root of, or null. */
  static of(value: Value): ScriptDocument | null {
    if (!isReference(value) || value.kind !== kinds.object) return null;
    const source = value.source;
    if (!(source instanceof TextSource) || source.document === null) return null;
    return source.document.root === value ? source.document : null;
  }

  /** The text of `@metadata` with the derived keys, as it was read; null when there was none. */
  get composedMetadata(): string | null {
    return textOf(this.composed);
  }

  /** UTF-16 units of its text as it was read. */
  get length(): number {
    return this.text.length;
  }

  /** `@metadata` as the script left it; undefined when it is not there. */
  metadata(): Value {
    return getOwn(this.root, metadataKey);
  }

  /** True when the body or `@metadata` reads otherwise than before. Cost: prints what was touched. */
  changed(): boolean {
    return this.bodyText() !== this.text || this.metadataChanged();
  }

  /** True when `@metadata` without its derived keys reads otherwise than before, or was replaced. */
  metadataChanged(): boolean {
    const position = this.root.keys.indexOf(metadataKey);
    if (position < 0) return false;
    const slot = this.root.values[position] as Slot;
    if (slot === LAZY) return false;
    if (slot === ABSENT || !isReference(slot as Value)) return true;
    const reference = slot as Reference;
    if (reference.kind !== kinds.object || reference.source === null) return true;
    if (!changedDeep(reference)) return false;
    const original = valueOfText(reference.source.text);
    if (!isReference(original) || original.kind !== kinds.object) return true;
    return metadataText(null, original) !== metadataText(this.run, reference);
  }

  /** The body's new text, without `@metadata`; the old text itself when nothing was touched. */
  bodyText(): string {
    if (!this.root.written && !changedDeep(this.root)) return this.text;
    const { run } = this;
    if (this.printed !== null && this.printedAt === run?.workLeft) return this.printed;
    const printer = new Printer(run);
    printer.root(this.root);
    const { text } = printer;
    if (run !== null) {
      this.printed = text;
      this.printedAt = run.workLeft;
    }
    return text;
  }

  /** The text of `@metadata` without derived keys; null when it is not an object any more. */
  metadataText(): string | null {
    const metadata = this.metadata();
    if (!isReference(metadata) || metadata.kind !== kinds.object) return null;
    const printer = new Printer(this.run);
    printer.members(metadata, derivedMetadata);
    return printer.text;
  }
}

function utf8Text(bytes: Uint8Array): string {
  return Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength).toString("utf8");
}

/** Appends the unread `@metadata` to a root that was just read. */
function addMetadata(root: ScriptObject): void {
  const withMetadata = metadataHints.get(root.keys) ?? [...root.keys, metadataKey];
  metadataHints.set(root.keys, withMetadata);
  root.keys = withMetadata;
  root.values.push(LAZY);
  (root.spans as number[]).push(-1, -1, -1);
}

/** For a list of body keys, the same with `@metadata`: one array for all documents of a shape. */
const metadataHints = new WeakMap<string[], string[]>();

/** True when something in a tree that was read from a text was written. Marks the way to it as written. */
function changedDeep(node: Reference): boolean {
  if (node.kind === kinds.object) {
    if (node.written) return true;
    for (const slot of node.values) {
      if (typeof slot !== "object" || slot === null || !changedDeep(slot)) continue;
      node.written = true;
      return true;
    }
    return false;
  }
  if (node.kind !== kinds.array) return false;
  if (node.written) return true;
  for (const slot of node.items) {
    if (typeof slot !== "object" || slot === null || !changedDeep(slot)) continue;
    node.written = true;
    return true;
  }
  return false;
}

/** True when a tree that was read from a text, or something in it, was written. */
export function isChanged(node: ScriptObject): boolean {
  return changedDeep(node);
}

/**
 * Values that a script made, as stored JSON text. `keepIds`: whole documents among them have their `@id`, as
 * in the results of queries.
 * @throws EngineError as `Printer`
 */
export function valueText(run: Run | null, value: Value, keepIds = false): string {
  const printer = new Printer(run, keepIds ? derivedButId : derivedMetadata);
  printer.value(value, "");
  return printer.text;
}

/** An object as a document's body: without `@metadata`. */
export function documentText(run: Run | null, object: ScriptObject): string {
  const printer = new Printer(run);
  printer.root(object);
  return printer.text;
}

/** An object as the text of `@metadata`: without derived keys. */
export function metadataText(run: Run | null, object: ScriptObject): string {
  const printer = new Printer(run);
  printer.members(object, derivedMetadata);
  return printer.text;
}

/** A script value of JSON text that is known to be valid. */
export function valueOfText(text: string): Value {
  return new TextSource(text, new ShapeHint(), null).whole();
}

/**
 * Writes values as stored text. What it makes anew is on the run's account, so that a small script cannot
 * print one object a million times.
 */
class Printer {
  private parts: string[] | null = null;
  /** What was written behind the parts, of `joints` texts. */
  private tail = "";
  private joints = 0;
  private readonly run: Run | null;
  private readonly open: Reference[] = [];
  /** Keys of documents' `@metadata` that are left out. */
  private readonly derived: ReadonlySet<string>;

  constructor(run: Run | null, derived: ReadonlySet<string> = derivedMetadata) {
    this.run = run;
    this.derived = derived;
  }

  /** What was written. */
  get text(): string {
    if (this.parts === null) return this.tail;
    this.parts.push(this.tail);
    this.tail = "";
    return this.parts.join("");
  }

  /** Few texts are added up; many are joined, as a string of many joints would hold the old texts in memory. */
  private write(text: string): void {
    this.tail += text;
    this.joints += 1;
    if (this.joints < jointsMax) return;
    this.parts ??= [];
    this.parts.push(this.tail);
    this.tail = "";
    this.joints = 0;
  }

  private pay(bytes: number): void {
    if (this.run !== null) this.run.grow(bytes);
  }

  value(value: Value, name: string): void {
    this.pay(16);
    if (typeof value === "string") {
      this.pay(value.length);
      this.write(stringText(value));
    } else if (typeof value === "number") this.write(numberText(value));
    else if (typeof value === "boolean") this.write(value ? "true" : "false");
    else if (value === null || value === undefined) this.write("null");
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
        this.write(`"${text}"`);
        return;
      }
      case kinds.function:
        this.write("null");
        return;
      case kinds.pattern:
        this.write(`{"lastIndex":${value.lastIndex}}`);
        return;
      case kinds.map:
      case kinds.set:
        this.write("{}");
    }
  }

  /** Enters a container; false when it is being written already: what it holds of itself is null. */
  private enter(node: Reference): boolean {
    if (this.open.includes(node)) {
      this.write("null");
      return false;
    }
    if (this.open.length >= treeDepthMax) throw nestedTooDeeply();
    // The search above is in proportion to the depth: it is paid for.
    this.pay(this.open.length * 16);
    this.open.push(node);
    return true;
  }

  private array(array: ScriptArray, name: string): void {
    if (!this.enter(array)) return;
    this.write("[");
    const { items, exact } = array;
    let first = true;
    for (let i = 0; i < items.length; i += 1) {
      const item = items[i];
      if (item === ABSENT) {
        this.pay(1);
        continue;
      }
      if (!first) this.write(",");
      first = false;
      const spelling = exact?.get(i);
      if (spelling !== undefined && item === Number(spelling)) this.write(spelling);
      else this.item(array, item as Value, name);
    }
    this.write("]");
    this.open.pop();
  }

  /** An element: one that is as it was read is copied. */
  private item(array: ScriptArray, item: Value, name: string): void {
    if (!isReference(item) || !isTree(item) || item.source === null) this.value(item, name);
    else if (item.source === array.source && !changedDeep(item)) this.copy(item);
    else this.value(item, name);
  }

  private copy(node: ScriptObject | ScriptArray): void {
    this.pay(16);
    this.write((node.source as Source).text.slice(node.start, node.end));
  }

  /**
   * A document without its `@metadata`. It does not count as being written: where it holds itself there is a copy,
   * in which it is null, as RavenDB 7.2.7 writes it.
   */
  root(object: ScriptObject): void {
    this.list(object, metadataOnly);
  }

  /** An object, without some properties. */
  members(object: ScriptObject, omit: ReadonlySet<string>): void {
    if (!this.enter(object)) return;
    this.list(object, omit);
    this.open.pop();
  }

  private list(object: ScriptObject, omit: ReadonlySet<string>): void {
    const { keys, values } = object;
    const spans = spansOf(object);
    const read = spans.length / 3;
    this.write("{");
    if (object.boxed !== undefined && object.className === "String") {
      this.write(`"length":${String(object.boxed).length}`);
    }
    let first = true;
    // A stretch of properties that are as they were is copied at once.
    let from = -1;
    let to = -1;
    for (let i = 0; i < keys.length; i += 1) {
      const slot = values[i] as Slot;
      const key = keys[i] as string;
      const isRead = i < read;
      if (slot === ABSENT || (omit.size > 0 && omit.has(key))) continue;
      if (!isRead && slot === undefined && object.source !== null) continue;
      if (isRead && this.keeps(object, spans, i, slot)) {
        const keyStart = spans[i * 3] as number;
        if (from >= 0 && keyStart === to + 1) {
          to = spans[i * 3 + 2] as number;
          continue;
        }
        first = this.flush(object, from, to, first);
        from = keyStart;
        to = spans[i * 3 + 2] as number;
        continue;
      }
      first = this.flush(object, from, to, first);
      from = -1;
      if (!first) this.write(",");
      first = false;
      this.member(object, spans, i, isRead);
    }
    this.flush(object, from, to, first);
    this.write("}");
  }

  /** Copies a stretch of an object's text. @returns whether nothing has been written yet */
  private flush(object: ScriptObject, from: number, to: number, first: boolean): boolean {
    if (from < 0) return first;
    if (!first) this.write(",");
    this.write((object.source as Source).text.slice(from, to));
    return false;
  }

  /** True when a property that the text has still has its value, so that its slice can be copied. */
  private keeps(object: ScriptObject, spans: number[], position: number, slot: Slot): boolean {
    const start = spans[position * 3 + 1] as number;
    if (start < 0) return false;
    if (slot === LAZY) return true;
    const value = slot as Value;
    if (isReference(value)) {
      if (!isTree(value) || value.source !== object.source || value.start !== start) return false;
      return !changedDeep(value);
    }
    if (!wasSet(object, position)) return true;
    const text = (object.source as Source).text;
    return sameAsText(value, text, start, spans[position * 3 + 2] as number);
  }

  private member(object: ScriptObject, spans: number[], position: number, read: boolean): void {
    const key = object.keys[position] as string;
    const slot = object.values[position] as Slot;
    // Only the root's unread `@metadata` is lazy here: it is not in this text.
    const value = slot === LAZY ? getOwn(object, key) : (slot as Value);
    this.pay(key.length + 16);
    this.write(`${stringText(key)}:`);
    if (key === metadataKey && isReference(value) && value.kind === kinds.object) {
      this.members(value, this.derived);
      return;
    }
    if (typeof value !== "number" || !read || !Number.isFinite(value)) {
      this.value(value, key);
      return;
    }
    const start = spans[position * 3 + 1] as number;
    const text = (object.source as Source).text;
    const wasDouble =
      isNumberStart(text.charCodeAt(start)) &&
      isDoubleSpelling(text, start, spans[position * 3 + 2] as number);
    this.write(wasDouble ? doubleText(value) : numberText(value));
  }
}

const none: ReadonlySet<string> = new Set();
const metadataOnly: ReadonlySet<string> = new Set([metadataKey]);
const noSpans: number[] = [];

/** Where the properties of an object are in its text; none when it was made by a script. */
function spansOf(object: ScriptObject): number[] {
  if (object.spans !== null) return object.spans;
  return object.source instanceof TextSource ? object.source.spansOf(object) : noSpans;
}

function isTree(value: Reference): value is ScriptObject | ScriptArray {
  return value.kind === kinds.object || value.kind === kinds.array;
}

function isNumberStart(code: number): boolean {
  return code === 45 || (code >= 48 && code <= 57);
}

/** True when a primitive equals the one that is spelled in a text. */
function sameAsText(value: Value, text: string, start: number, end: number): boolean {
  const code = text.charCodeAt(start);
  switch (typeof value) {
    case "string": {
      if (code !== 34 || value.length > end - start - 2) return false;
      const spelling = text.slice(start, end);
      if (spelling.includes("\\")) return JSON.parse(spelling) === value;
      return value.length === end - start - 2 && spelling.startsWith(value, 1);
    }
    case "number":
      return isNumberStart(code) && numberOf(text, start, end) === value && !Object.is(value, -0);
    case "boolean":
      return code === (value ? 116 : 102);
    default:
      return value === null && code === 110;
  }
}

/** The value of the number that is spelled in a text; short whole ones without a string for it. */
function numberOf(text: string, start: number, end: number): number {
  if (end - start > 15) return Number(text.slice(start, end));
  let value = 0;
  for (let at = start; at < end; at += 1) {
    const code = text.charCodeAt(at);
    if (code < 48 || code > 57) return Number(text.slice(start, end));
    value = value * 10 + code - 48;
  }
  return value;
}

function invalidDate(name: string, time: number): EngineError {
  return new EngineError(
    "invalid-operation",
    `Invalid 'JsDate' on property '${name}'. Date value : '${time}'. Note that JavaScripts 'Date' ` +
      "measures time as the number of milliseconds that have passed since the Unix epoch.",
  );
}
