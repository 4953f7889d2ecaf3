import fc from "fast-check";
import { describe, expect, test } from "vitest";
import {
  allCollections,
  type DocumentReader,
  DocumentTable,
  type DocumentTableOptions,
  type DocumentView,
} from "../../../engine/keyspaces/document-table.ts";
import type { SnapshotSection } from "../../../engine/log/log.ts";

/** So small that a few dozen documents cross every boundary. */
const tiny: DocumentTableOptions = {
  rowsPerChunk: 4,
  numbersPerChunk: 8,
  slabChunkBytes: 1024,
  hashPageSlots: 16,
  listChunkEntries: 4,
  orderLeafEntries: 4,
  stagedPerChunk: 4,
};

interface Row {
  readonly etag: number;
  readonly position: number;
  readonly length: number;
  readonly collection: number;
  readonly flags: number;
}
type State = ReadonlyMap<string, Row>;
interface Staged {
  readonly id: string;
  row: Row;
}

/** The slow twin: maps from lower-cased ids, copied whole for each view. */
class Model {
  committed: Map<string, Row> = new Map();
  staged: Staged[] = [];

  newest(): State {
    const newest = new Map(this.committed);
    for (const { id, row } of this.staged) apply(newest, id, row);
    return newest;
  }
}

function apply(state: Map<string, Row>, id: string, row: Row): void {
  if (row.length === 0) state.delete(id);
  else state.set(id, row);
}

const none: Row = { etag: 0, position: 0, length: 0, collection: 0, flags: 0 };
const collections = [0, 1, 2, 5];

function byBytes(left: string, right: string): number {
  return Buffer.compare(Buffer.from(left), Buffer.from(right));
}

function drain(
  cursor: { fill(batch: Uint32Array, limit: number): number },
  limit: number,
): number[] {
  const batch = new Uint32Array(limit);
  const all: number[] = [];
  for (;;) {
    const count = cursor.fill(batch, limit);
    all.push(...batch.subarray(0, count));
    if (count < limit) return all;
  }
}

function rowOf(reader: DocumentReader, docNum: number): Row {
  return {
    etag: reader.etagOf(docNum),
    position: reader.positionOf(docNum),
    length: reader.lengthOf(docNum),
    collection: reader.collectionOf(docNum),
    flags: reader.flagsOf(docNum),
  };
}

/** Compares all that can be read with what the model's state says. */
function check(reader: DocumentReader, state: State, ids: readonly string[], limit: number): void {
  expect(reader.documentCount).toBe(state.size);
  const lower = [...new Set(ids.map((id) => id.toLowerCase()))];
  for (const id of ids) {
    const row = state.get(id.toLowerCase());
    const docNum = reader.find(id);
    expect(docNum >= 0).toBe(row !== undefined);
    if (docNum < 0) continue;
    expect(reader.lowerIdOf(docNum)).toBe(id.toLowerCase());
    expect(rowOf(reader, docNum)).toEqual(row);
  }
  const idsOf = (docNums: number[]) => docNums.map((docNum) => reader.lowerIdOf(docNum));
  const rows = [...state].sort((left, right) => left[1].etag - right[1].etag);
  for (const collection of [allCollections, ...collections]) {
    const inside = rows.filter(
      ([, row]) => collection === allCollections || row.collection === collection,
    );
    if (collection !== allCollections)
      expect(reader.countOfCollection(collection)).toBe(inside.length);
    for (const from of [0, rows[rows.length >> 1]?.[1].etag ?? 1, Number.POSITIVE_INFINITY]) {
      const up = inside.filter(([, row]) => row.etag >= from).map(([id]) => id);
      const down = inside
        .filter(([, row]) => row.etag <= from)
        .map(([id]) => id)
        .reverse();
      expect(idsOf(drain(reader.byEtag(collection, from), limit))).toEqual(up);
      expect(idsOf(drain(reader.byEtag(collection, from, true), limit))).toEqual(down);
    }
  }
  const sorted = [...state.keys()].sort(byBytes);
  for (const prefix of ["", "u", "users/", "USERS/1", "å", "😀", "z"]) {
    const inside = sorted.filter((id) => id.startsWith(prefix.toLowerCase()));
    expect(idsOf(drain(reader.byId(prefix), limit))).toEqual(inside);
    for (const after of [lower[0] ?? "", "USERS/1", "zzz"]) {
      const behind = inside.filter((id) => byBytes(id, after.toLowerCase()) > 0);
      expect(idsOf(drain(reader.byId(prefix, after), limit))).toEqual(behind);
    }
  }
}

const id = fc.oneof(
  { weight: 6, arbitrary: fc.nat(60).map((number) => `users/${number}`) },
  { weight: 2, arbitrary: fc.nat(9).map((number) => `Users/${number}`) },
  {
    weight: 3,
    arbitrary: fc.constantFrom(
      "ÅSA",
      "åsa",
      "İ",
      "i̇",
      "😀",
      "😀/1",
      "\uffff",
      "\ue000",
      "K",
      "k",
      "",
      "U",
      "ΑΣ",
    ),
  },
  {
    weight: 1,
    arbitrary: fc
      .string({ unit: "binary", maxLength: 5 })
      .filter((text) => !/\p{Surrogate}/u.test(text)),
  },
);
const write = fc.record({
  id,
  asBytes: fc.boolean(),
  isDeletion: fc.integer({ min: 0, max: 3 }).map((roll) => roll === 0),
  collection: fc.constantFrom(...collections),
  flags: fc.constantFrom(0, 1, 0xffff),
  etagStep: fc.constantFrom(1, 1, 1, 2, 2 ** 33),
});
const few = fc.integer({ min: 0, max: 6 });
type Operation =
  | {
      kind: "stage" | "apply";
      writes: {
        id: string;
        asBytes: boolean;
        isDeletion: boolean;
        collection: number;
        flags: number;
        etagStep: number;
      }[];
    }
  | { kind: "commit" | "discard"; count: number }
  | { kind: "relocate"; pick: number; position: number }
  | { kind: "view" | "restore" | "look" }
  | { kind: "release"; pick: number }
  | { kind: "settle"; turns: number };
const operation = fc.oneof<fc.WeightedArbitrary<Operation>[]>(
  {
    weight: 8,
    arbitrary: fc.record({ kind: fc.constant("stage"), writes: fc.array(write, { maxLength: 8 }) }),
  },
  {
    weight: 3,
    arbitrary: fc.record({ kind: fc.constant("apply"), writes: fc.array(write, { maxLength: 8 }) }),
  },
  {
    weight: 8,
    arbitrary: fc.record({ kind: fc.constant("commit"), count: fc.integer({ min: 0, max: 20 }) }),
  },
  { weight: 2, arbitrary: fc.record({ kind: fc.constant("discard"), count: few }) },
  {
    weight: 3,
    arbitrary: fc.record({ kind: fc.constant("relocate"), pick: fc.nat(), position: fc.nat() }),
  },
  { weight: 3, arbitrary: fc.record({ kind: fc.constant("view") }) },
  { weight: 2, arbitrary: fc.record({ kind: fc.constant("release"), pick: fc.nat() }) },
  { weight: 2, arbitrary: fc.record({ kind: fc.constant("settle"), turns: few }) },
  { weight: 1, arbitrary: fc.record({ kind: fc.constant("restore") }) },
  { weight: 1, arbitrary: fc.record({ kind: fc.constant("look") }) },
);

/** Runs operations against a table and its twin. */
class Pair {
  now = 0;
  readonly options: DocumentTableOptions = { ...tiny, monotonicMs: () => this.now++ };
  table = new DocumentTable(this.options);
  readonly model = new Model();
  readonly ids = new Set<string>();
  views: { view: DocumentView; state: State; sections?: SnapshotSection[] }[] = [];
  etag = 0;
  position = 0;

  #intern(id: string, asBytes: boolean): number {
    this.ids.add(id);
    if (!asBytes) return this.table.intern(id);
    const bytes = Buffer.from(`(${id})`);
    return this.table.internBytes(bytes, 1, bytes.length - 1);
  }

  run(next: Operation): void {
    switch (next.kind) {
      case "stage":
      case "apply":
        this.write(next.kind, next.writes);
        return;
      case "commit":
        this.commit(Math.min(next.count, this.model.staged.length));
        return;
      case "discard": {
        const count = Math.min(next.count, this.model.staged.length);
        this.table.discardStaged(count);
        this.model.staged.length -= count;
        return;
      }
      case "relocate":
        this.relocate(next.pick, next.position);
        return;
      case "view":
        this.views.push({ view: this.table.view(), state: new Map(this.model.committed) });
        return;
      case "release": {
        const [held] = this.views.splice(next.pick % Math.max(1, this.views.length), 1);
        held?.view.release();
        return;
      }
      case "settle":
        this.table.settleOrder(next.turns);
        return;
      case "restore":
        this.restore();
        return;
      case "look":
        check(this.table, this.model.committed, [...this.ids], 3);
    }
  }

  write(
    kind: "stage" | "apply",
    writes: Extract<Operation, { kind: "stage" | "apply" }>["writes"],
  ): void {
    if (kind === "apply" && this.model.staged.length > 0) return; // replay is over before writing begins
    for (const { id, asBytes, isDeletion, collection, flags, etagStep } of writes) {
      const docNum = this.#intern(id, asBytes);
      this.etag += etagStep;
      this.position += 24;
      const row = isDeletion
        ? { ...none, etag: this.etag, position: this.position }
        : { etag: this.etag, position: this.position, length: 24, collection, flags };
      const lower = id.toLowerCase();
      if (kind === "stage") {
        this.table.stage(docNum, row.etag, row.position, row.length, row.collection, row.flags);
        this.model.staged.push({ id: lower, row });
      } else {
        expect(
          this.table.applyCommitted(
            docNum,
            row.etag,
            row.position,
            row.length,
            row.collection,
            row.flags,
          ),
        ).toBe(true);
        apply(this.model.committed, lower, row);
      }
    }
  }

  commit(count: number): void {
    const told: unknown[] = [];
    this.table.commitStaged(count, (docNum, etag, position, length, collection) => {
      told.push([this.table.lowerIdOf(docNum), etag, position, length, collection]);
    });
    const expected: unknown[] = [];
    for (const { id, row } of this.model.staged.splice(0, count)) {
      const before = this.model.committed.get(id) ?? none;
      expected.push([id, before.etag, before.position, before.length, before.collection]);
      apply(this.model.committed, id, row);
    }
    expect(told).toEqual(expected);
  }

  relocate(pick: number, position: number): void {
    const places: Staged[] = [...this.model.committed].map(([id, row]) => ({ id, row }));
    places.push(...this.model.staged);
    const place = places[pick % Math.max(1, places.length)];
    if (place === undefined) return;
    const docNum = this.table.lookup(place.id);
    expect(this.table.relocate(docNum, place.row.etag + 0.5, position)).toBe(false);
    expect(this.table.relocate(docNum, place.row.etag, position)).toBe(true);
    const row = { ...place.row, position };
    if (this.model.staged.includes(place)) place.row = row;
    else this.model.committed.set(place.id, row);
  }

  /** Takes the sections of a view now; they are restored, and compared, when more was written. */
  restore(): void {
    const view = this.table.view();
    const sections = this.table.sections(view);
    this.views.push({ view, state: new Map(this.model.committed), sections });
  }

  finish(): void {
    this.table.checkInvariants();
    const ids = [...this.ids];
    expect(this.table.stagedCount).toBe(this.model.staged.length);
    const newest = this.model.newest();
    for (const id of ids) {
      const docNum = this.table.lookup(id);
      const row = newest.get(id.toLowerCase()) ?? none;
      expect(this.table.newestEtag(docNum)).toBe(row.etag);
      expect(this.table.newestPosition(docNum)).toBe(row.position);
      expect(this.table.newestLength(docNum)).toBe(row.length);
      expect(this.table.newestCollection(docNum)).toBe(row.collection);
      expect(this.table.newestFlags(docNum)).toBe(row.flags);
    }
    check(this.table, this.model.committed, ids, 7);
    for (const { view, state, sections } of this.views) {
      check(view, state, ids, 2);
      if (sections === undefined) continue;
      const restored = new DocumentTable(this.options);
      restored.restore(sections);
      restored.checkInvariants();
      check(restored, state, ids, 5);
    }
    for (const { view } of this.views) view.release();
    this.table.checkInvariants();
  }
}

describe("against a slow twin", () => {
  test("keeps rows, orders, views and snapshots through any sequence of writes", () => {
    fc.assert(
      fc.property(
        fc.array(operation, { minLength: 1, maxLength: 60, size: "max" }),
        (operations) => {
          const pair = new Pair();
          for (const next of operations) pair.run(next);
          pair.finish();
        },
      ),
      { numRuns: 150 },
    );
  });

  test("keeps its invariants after every single step", () => {
    fc.assert(
      fc.property(
        fc.array(operation, { minLength: 1, maxLength: 25, size: "max" }),
        (operations) => {
          const pair = new Pair();
          for (const next of operations) {
            pair.run(next);
            pair.table.checkInvariants();
          }
          pair.finish();
        },
      ),
      { numRuns: 60 },
    );
  });
});
