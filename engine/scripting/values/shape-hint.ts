/**
 * Caches the shapes of the objects at one place of many documents: their key lists, and which properties scripts used.
 * text-source.ts parses documents with it.
 *
 * Invariants:
 * - a path of `KeyNode`s from `ShapeHint.start` on is the key list of some object;
 * - the cache of one script is bounded; objects with other keys have key lists of their own.
 */

import { LAZY, type Slot } from "../language/script-values.ts";

/** Maximum keys cached by the hints of one script. */
const keyNodesMax = 4 * 1024;
/** Maximum keys that may follow one key list. */
const otherKeysMax = 24;
/** Maximum keys of an object. */
const listKeysMax = 512;
const spansMin = 256;
/** A larger buffer for spans is released. */
const spansKept = 64 * 1024;
/** Numbers per property in the spans of an object: key start, value start, value end. */
export const spanSlots = 3;

/** Shared by the hints of one script: the offsets of properties, and the cache quota. */
class HintMemory {
  /** Key start, value start and value end of one property after another. */
  spans = new Int32Array(0);
  /** Numbers of `spans` in use. */
  length = 0;
  /** Numbers recorded and discarded so far: `ScriptObject.spanAt` counts from the first ever. */
  base = 0;
  private keyNodesLeft = keyNodesMax;

  forget(): void {
    this.base += this.length;
    this.length = 0;
    if (this.spans.length > spansKept) this.spans = new Int32Array(spansMin);
  }

  /** Reserves `count` more numbers. @returns their position */
  reserve(count: number): number {
    const at = this.length;
    if (at + count > this.spans.length) {
      const longer = new Int32Array(Math.max(spansMin, 2 * (at + count)));
      longer.set(this.spans);
      this.spans = longer;
    }
    this.length = at + count;
    return at;
  }

  /** Reserves one more key after `node`. @returns false when the quota is exhausted. */
  admits(node: KeyNode): boolean {
    if (node.count >= listKeysMax || node.others.length >= otherKeysMax) return false;
    if (this.keyNodesLeft <= 0) return false;
    this.keyNodesLeft -= 1;
    return true;
  }
}

const noText = new Uint8Array(0);
const noWords = new Int32Array(0);

function wordsOf(text: Uint8Array): Int32Array {
  if (text.length < 4) return noWords;
  const view = new DataView(text.buffer, text.byteOffset, text.length);
  const words = new Int32Array(Math.ceil(text.length / 4));
  for (let i = 0; i < words.length; i += 1) {
    words[i] = view.getInt32(Math.min(4 * i, text.length - 4), true);
  }
  return words;
}

/** A key after others, of objects at one place. */
export class KeyNode {
  readonly hint: ShapeHint;
  readonly parent: KeyNode | null;
  readonly name: string;
  /** The key with its quotes and colon, as in minified text. */
  readonly text: Uint8Array;
  /** The text as 32-bit words; the last one ends where the text ends. Empty for the shortest keys. */
  readonly words: Int32Array;
  /** Number of keys up to this one. */
  readonly count: number;
  /** The most recent next key. */
  next: KeyNode | null = null;
  readonly others: KeyNode[] = [];
  /** Whether a script has read this property: in the next document it is parsed eagerly. */
  wanted = false;
  private place: ShapeHint | null = null;
  private list: string[] | null = null;
  private slots: Slot[] | null = null;
  private longer: string[] | null = null;

  constructor(
    hint: ShapeHint,
    parent: KeyNode | null,
    name: string,
    text: Uint8Array,
    count: number,
  ) {
    this.hint = hint;
    this.parent = parent;
    this.name = name;
    this.text = text;
    this.words = wordsOf(text);
    this.count = count;
  }

  /** Returns a node for a key list that is not cached. */
  static loose(hint: ShapeHint, keys: string[]): KeyNode {
    const node = new KeyNode(hint, null, "", noText, keys.length);
    node.list = keys;
    return node;
  }

  /** The key list up to this one, shared by all objects with exactly these keys. */
  get keys(): string[] {
    if (this.list !== null) return this.list;
    const keys = new Array<string>(this.count);
    let node: KeyNode = this;
    while (node.parent !== null) {
      keys[node.count - 1] = node.name;
      node = node.parent;
    }
    this.list = keys;
    return keys;
  }

  /** Returns the key list with one more; always the same array. */
  keysAnd(name: string): string[] {
    this.longer ??= [...this.keys, name];
    return this.longer;
  }

  /** Unread slots: one for each key, plus `more`, which must be the same in every call. To be copied. */
  blank(more: number): readonly Slot[] {
    this.slots ??= new Array<Slot>(this.count + more).fill(LAZY);
    return this.slots;
  }

  /** The place of its value when that is an object or array. */
  get below(): ShapeHint {
    const { hint } = this;
    if (hint.isLoose) return hint.element;
    this.place ??= new ShapeHint(hint.memory, hint.depth + 1);
    return this.place;
  }
}

/** The cached shapes of objects at one place of many documents. One tree of hints serves one script. */
export class ShapeHint {
  readonly memory: HintMemory;
  /** Number of containers around this place. */
  readonly depth: number;
  readonly start: KeyNode = new KeyNode(this, null, "", noText, 0);
  /** The last key of the most recently parsed object. */
  last: KeyNode = this.start;
  /** Objects here were modified, so the offsets of their properties are needed. */
  isWritten = false;
  /** Nothing is cached here and below: for documents unlike any others. */
  readonly isLoose: boolean;
  private place: ShapeHint | null = null;

  constructor(memory = new HintMemory(), depth = 0, isLoose = false) {
    this.memory = memory;
    this.depth = depth;
    this.isLoose = isLoose;
  }

  static loose(): ShapeHint {
    return new ShapeHint(new HintMemory(), 0, true);
  }

  /** The place of the elements, when there is an array here. */
  get element(): ShapeHint {
    this.place ??= new ShapeHint(this.memory, this.depth + 1, this.isLoose);
    return this.place;
  }
}
