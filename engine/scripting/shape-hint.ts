/**
 * What the objects at one place of many documents had: the lists of their keys, and which properties scripts wanted.
 * text-source.ts reads documents by it.
 *
 * Invariants:
 * - a path of `KeyNode`s from `ShapeHint.start` on is a list of keys that some object had;
 * - what one script remembers is bounded; objects with other keys than it remembers have lists of their own.
 */

import { LAZY, type Slot } from "./script-values.ts";

/** Keys that the hints of one script remember. */
const keyNodesMax = 4 * 1024;
/** Keys that may follow one list of keys. */
const otherKeysMax = 24;
/** Keys of one object. */
const listKeysMax = 512;
const spansMin = 256;
/** Room for spans above this is given back. */
const spansKept = 64 * 1024;
/** Numbers of a property in the spans of an object: key start, value start, value end. */
export const spanSlots = 3;

/** What the hints of one script share: the notes of where properties stand, and how much is remembered. */
export class HintMemory {
  /** Key start, value start and value end of one property after the other. */
  spans = new Int32Array(0);
  /** How many numbers of `spans` are taken. */
  length = 0;
  /** Numbers that were noted and forgotten: `ScriptObject.spanAt` counts from the first ever. */
  base = 0;
  private keyNodesLeft = keyNodesMax;

  forget(): void {
    this.base += this.length;
    this.length = 0;
    if (this.spans.length > spansKept) this.spans = new Int32Array(spansMin);
  }

  /** Room for `count` more numbers. @returns where they begin */
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

  /** Is there room for one more key, behind `node`? Then it is taken. */
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

/** A key behind others, of objects at one place. */
export class KeyNode {
  readonly hint: ShapeHint;
  readonly parent: KeyNode | null;
  readonly name: string;
  /** The key with its quotes and colon, as it stands in minified text. */
  readonly text: Uint8Array;
  /** The same, four bytes in each; the last one ends where the text ends. None for the shortest. */
  readonly words: Int32Array;
  /** Keys up to this one. */
  readonly count: number;
  /** The key that was next the last time. */
  next: KeyNode | null = null;
  readonly others: KeyNode[] = [];
  /** A script asked for this property: the next document's is read at once. */
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

  /** What stands for a list of keys that is not remembered. */
  static loose(hint: ShapeHint, keys: string[]): KeyNode {
    const node = new KeyNode(hint, null, "", noText, keys.length);
    node.list = keys;
    return node;
  }

  /** The list of the keys up to this one, for all objects that have just them. */
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

  /** The same with one more; always the same one. */
  keysAnd(name: string): string[] {
    this.longer ??= [...this.keys, name];
    return this.longer;
  }

  /** Unread slots: one for each key, and `more`, which is the same each time. To be copied. */
  blank(more: number): readonly Slot[] {
    this.slots ??= new Array<Slot>(this.count + more).fill(LAZY);
    return this.slots;
  }

  /** The place of its value, when that is an object or array. */
  get below(): ShapeHint {
    const { hint } = this;
    if (hint.isLoose) return hint.element;
    this.place ??= new ShapeHint(hint.memory, hint.depth + 1);
    return this.place;
  }
}

/** What objects at one place of many documents had. One tree of hints serves one script. */
export class ShapeHint {
  readonly memory: HintMemory;
  /** Containers around this place. */
  readonly depth: number;
  readonly start: KeyNode = new KeyNode(this, null, "", noText, 0);
  /** The last key of the object that was read last. */
  last: KeyNode = this.start;
  /** Objects here were written, which needs to know where their properties stand. */
  isWritten = false;
  /** Nothing is remembered here and below: for documents that no others like them follow. */
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
