/**
 * The shapes of one database: the distinct lists of top-level property names of its documents. A
 * document whose shape is known has a table of its values' offsets, in the order of the shape.
 *
 * Shapes form a tree: a path from the root spells a list of names, and a parser walks it name by name, so a document of
 * a known shape is recognized while it is read. Knows nothing of documents' values, nor of when its records are logged.
 *
 * The record of a shape, after the common header (engine/base/record.ts):
 *
 *   0 header (kind shape; word@12 = shape id; keyLength and etag 0)
 *   24        28               32 ...
 *   +---------+----------------+---------------------------------------+-------------+
 *   | fields  | names' length  | names: `"A":"B":` as in minified text | pad to 8    |
 *   | u32     | u32            |                                       |             |
 *   +---------+----------------+---------------------------------------+-------------+
 *
 * Invariants:
 * - Ids are 1, 2, 3, … without gaps, in the order in which the shapes were first seen.
 * - No two shapes have the same names; no shape has the same name twice; none is empty.
 * - A shape never changes and is never removed.
 * - Ids above `loggedCount` are in no record yet: a transaction must log them before a document that
 *   uses one.
 */
import { assert } from "../../base/assert.ts";
import { bytesEqual } from "../../base/json/bytes.ts";
import { shapeCountMax, shapeFieldCountMax, shapeMemoryBytesMax } from "../../base/limits.ts";
import {
  recordCheckAt,
  recordEtagAt,
  recordFlagsAt,
  recordHeaderBytes,
  recordKeyLengthAt,
  recordKindAt,
  recordKinds,
  recordLengthAt,
  recordWordAt,
} from "../../base/record.ts";

/** Memory overhead of a name, in bytes besides its text (measured roughly: node, string, map entry). */
const nameOverheadBytes = 256;
/** Children of a node up to which a scan is faster than a map. */
const childScanMax = 8;

const shapeFieldCountAt = recordHeaderBytes;
const shapeNamesLengthAt = recordHeaderBytes + 4;
const shapeNamesAt = recordHeaderBytes + 8;

/** A list of top-level property names. */
export interface Shape {
  readonly id: number;
  /** The names, unescaped. */
  readonly names: readonly string[];
  /** Position of each name. */
  readonly indexByName: ReadonlyMap<string, number>;
  /** The names as in a minified document, concatenated: `"A":"B":`. */
  readonly namesText: Buffer;
  /** Bytes of each name in `namesText`, with quotes, without colon. */
  readonly nameLengths: readonly number[];
}

/** A node of the tree: the names on the path to it are the beginning of some shape. */
export class ShapeNode {
  /** The last name of the path as in minified text, with its quotes. Empty for the root. */
  readonly name: Buffer;
  readonly isAscii: boolean;
  /** The shape that ends here, or 0. */
  shapeId = 0;
  /** The child used last: most often the next one too. */
  predicted: ShapeNode | null = null;
  readonly children: ShapeNode[] = [];
  /** The children by name; null while they are few. */
  #byName: Map<string, ShapeNode> | null = null;

  constructor(name: Buffer) {
    this.name = name;
    this.isAscii = name.every((byte) => byte < 0x80);
  }

  /** Returns the child whose name is `source[from, to)`, quotes included, or null; it becomes `predicted`. */
  find(source: Buffer, from: number, to: number): ShapeNode | null {
    let found: ShapeNode | null = null;
    if (this.#byName !== null) {
      found = this.#byName.get(source.latin1Slice(from, to)) ?? null;
    } else {
      const length = to - from;
      for (const child of this.children) {
        if (child.name.length === length && bytesEqual(child.name, 0, source, from, length)) {
          found = child;
          break;
        }
      }
    }
    if (found !== null) this.predicted = found;
    return found;
  }

  /** Adds a child of this name, which it must not have yet. */
  add(name: Buffer): ShapeNode {
    const child = new ShapeNode(name);
    this.children.push(child);
    if (this.#byName !== null) this.#byName.set(name.latin1Slice(0, name.length), child);
    else if (this.children.length > childScanMax) {
      this.#byName = new Map(this.children.map((one) => [one.name.latin1Slice(), one]));
    }
    this.predicted = child;
    return child;
  }
}

/** The shapes of one database. */
export class ShapeTable {
  readonly root = new ShapeNode(Buffer.alloc(0));
  /** By id; slot 0 is unused. */
  readonly #shapes: (Shape | null)[] = [null];
  #memoryBytes = 0;
  #loggedCount = 0;
  /** Shapes are not defined, only restored: another node assigns the ids. */
  isFollowing = false;

  /** Number of shapes; the newest has this id. */
  get count(): number {
    return this.#shapes.length - 1;
  }

  /** Shapes with ids up to this one are in the log. */
  get loggedCount(): number {
    return this.#loggedCount;
  }

  /** Records that the shapes up to this id are in the log (or, after a failed write, only those). */
  setLoggedCount(count: number): void {
    assert(count >= 0 && count <= this.count, "only shapes that exist are logged");
    this.#loggedCount = count;
  }

  /** Returns the shape of an id, which must have been assigned by this table. */
  get(id: number): Shape {
    const shape = this.#shapes[id] ?? null;
    assert(shape !== null, "a shape id names a shape");
    return shape;
  }

  /**
   * Returns the id of the shape with these names; adds it if it is new and there is room.
   * @param source text that contains the names, each with its quotes.
   * @param spans begin and end (exclusive) of name `i` at `spans[from + i * stride]` and the next slot.
   * @returns the id, or 0 when there are no names, too many, or no room.
   */
  define(source: Buffer, spans: Int32Array, from: number, stride: number, count: number): number {
    if (count === 0 || count > shapeFieldCountMax) return 0;
    let node = this.root;
    let depth = 0;
    for (; depth < count; depth++) {
      const at = from + depth * stride;
      const child = node.find(source, spans[at] as number, spans[at + 1] as number);
      if (child === null) break;
      node = child;
    }
    if (depth === count && node.shapeId !== 0) return node.shapeId;
    if (this.isFollowing) return 0;
    const names: Buffer[] = [];
    let cost = 0;
    for (let i = 0; i < count; i++) {
      const at = from + i * stride;
      const name = Buffer.from(source.subarray(spans[at], spans[at + 1]));
      names.push(name);
      cost += name.length + nameOverheadBytes;
    }
    if (this.count >= shapeCountMax || this.#memoryBytes + cost > shapeMemoryBytesMax) return 0;
    return this.#insert(names, cost);
  }

  /** Returns the bytes of the record of this shape. */
  recordLength(id: number): number {
    return (shapeNamesAt + this.get(id).namesText.length + 7) & ~7;
  }

  /** Writes the record of this shape except its checksum. @returns its length in bytes. */
  encodeRecord(target: Buffer, at: number, id: number): number {
    const shape = this.get(id);
    const length = this.recordLength(id);
    target.fill(0, at, at + length);
    target.writeUInt32LE(length, at + recordLengthAt);
    target.writeUInt32LE(0, at + recordCheckAt);
    target[at + recordKindAt] = recordKinds.shape;
    target[at + recordFlagsAt] = 0;
    target.writeUInt16LE(0, at + recordKeyLengthAt);
    target.writeUInt32LE(id, at + recordWordAt);
    target.writeBigUInt64LE(0n, at + recordEtagAt);
    target.writeUInt32LE(shape.names.length, at + shapeFieldCountAt);
    target.writeUInt32LE(shape.namesText.length, at + shapeNamesLengthAt);
    shape.namesText.copy(target, at + shapeNamesAt);
    return length;
  }

  /**
   * Restores a shape from its record on opening. A repeated record is skipped, for example a copy made by compaction.
   * Records must be in id order.
   */
  restore(bytes: Buffer, start: number): void {
    const id = bytes.readUInt32LE(start + recordWordAt);
    if (id <= this.count) return;
    assert(id === this.count + 1, "shapes are restored in the order of their ids");
    const count = bytes.readUInt32LE(start + shapeFieldCountAt);
    const from = start + shapeNamesAt;
    const text = bytes.subarray(from, from + bytes.readUInt32LE(start + shapeNamesLengthAt));
    const names = splitNames(text);
    assert(names.length === count, "a shape record counts its names");
    let cost = 0;
    for (const name of names) cost += name.length + nameOverheadBytes;
    this.#insert(names, cost);
    this.#loggedCount = this.count;
  }

  #insert(names: readonly Buffer[], cost: number): number {
    let node = this.root;
    for (const name of names) node = node.find(name, 0, name.length) ?? node.add(name);
    assert(node.shapeId === 0, "a shape is in the table once");
    const texts = names.map((name) => JSON.parse(name.toString("utf8")) as string);
    const shape: Shape = {
      id: this.count + 1,
      names: texts,
      indexByName: new Map(texts.map((name, index) => [name, index])),
      namesText: Buffer.from(names.map((name) => `${name.latin1Slice()}:`).join(""), "latin1"),
      nameLengths: names.map((name) => name.length),
    };
    assert(shape.indexByName.size === names.length, "a shape has no name twice");
    this.#shapes.push(shape);
    this.#memoryBytes += cost;
    node.shapeId = shape.id;
    return shape.id;
  }
}

/** Splits `"A":"B":` into its names, each with its quotes, as copies. */
function splitNames(text: Buffer): Buffer[] {
  const names: Buffer[] = [];
  let from = 0;
  while (from < text.length) {
    let to = from + 1;
    while (text[to] !== 0x22) to += text[to] === 0x5c ? 2 : 1;
    names.push(Buffer.from(text.subarray(from, to + 1)));
    from = to + 2;
  }
  return names;
}
