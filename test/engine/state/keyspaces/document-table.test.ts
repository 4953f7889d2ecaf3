import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { lowerCased } from "../../../../engine/base/case-folding.ts";
import {
  allCollections,
  type DocumentReader,
  DocumentTable,
  type DocumentTableOptions,
  type DocumentView,
  type NumberHold,
} from "../../../../engine/state/keyspaces/document-table.ts";
import type { WholeSection } from "../../../../engine/storage/log/log.ts";

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

/** The simple model: maps from lower-cased ids, copied for each view. */
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

/** Compares all readable data with the state of the model. */
function check(reader: DocumentReader, state: State, ids: readonly string[], limit: number): void {
  expect(reader.documentCount).toBe(state.size);
  const lower = [...new Set(ids.map((id) => lowerCased(id)))];
  for (const id of ids) {
    const row = state.get(lowerCased(id));
    const docNum = reader.find(id);
    expect(docNum >= 0).toBe(row !== undefined);
    if (docNum < 0) continue;
    expect(reader.lowerIdOf(docNum)).toBe(lowerCased(id));
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
    const inside = sorted.filter((id) => id.startsWith(lowerCased(prefix)));
    expect(idsOf(drain(reader.byId(prefix), limit))).toEqual(inside);
    for (const after of [lower[0] ?? "", "USERS/1", "zzz"]) {
      const behind = inside.filter((id) => byBytes(id, lowerCased(after)) > 0);
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
  | { kind: "view" | "restore" | "look" | "hold" }
  | { kind: "reclaim"; steps: number }
  | { kind: "need" | "unhold"; pick: number }
  | { kind: "refuse"; ids: string[] }
  | { kind: "release" | "purge" | "churn" | "rewrite"; pick: number }
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
  { weight: 1, arbitrary: fc.record({ kind: fc.constant("purge"), pick: fc.nat() }) },
  { weight: 1, arbitrary: fc.record({ kind: fc.constant("churn"), pick: fc.nat() }) },
  { weight: 3, arbitrary: fc.record({ kind: fc.constant("rewrite"), pick: fc.nat() }) },
  {
    weight: 6,
    arbitrary: fc.record({
      kind: fc.constant("reclaim"),
      steps: fc.constantFrom(1, 5, 100, 1000),
    }),
  },
  { weight: 2, arbitrary: fc.record({ kind: fc.constant("need"), pick: fc.nat() }) },
  { weight: 1, arbitrary: fc.record({ kind: fc.constant("hold") }) },
  { weight: 1, arbitrary: fc.record({ kind: fc.constant("unhold"), pick: fc.nat() }) },
  {
    weight: 2,
    arbitrary: fc.record({ kind: fc.constant("refuse"), ids: fc.array(id, { maxLength: 8 }) }),
  },
);

/** Runs operations against a table and its model. */
class Pair {
  now = 0;
  readonly options: DocumentTableOptions = { ...tiny, monotonicMs: () => this.now++ };
  table = new DocumentTable(this.options);
  readonly model = new Model();
  readonly ids = new Set<string>();
  views: { view: DocumentView; state: State; sections?: WholeSection[] }[] = [];
  /** The ids known at the start of a hold. */
  holds: { hold: NumberHold; numbers: Map<string, number> }[] = [];
  /** Lower-cased ids that components other than the table refer to. */
  readonly needed = new Set<string>();
  etag = 0;
  position = 0;

  constructor() {
    this.table.isNeeded = (docNum) => this.needed.has(this.table.lowerIdOf(docNum));
  }

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
      case "purge":
      case "churn":
        this.change(next.kind, next.pick);
        return;
      case "rewrite":
        this.rewrite(next.pick);
        return;
      case "settle":
        this.table.settleOrder(next.turns);
        return;
      case "restore":
        this.restore();
        return;
      case "reclaim":
        for (const id of this.ids) this.table.markUnused(this.table.lookup(id));
        this.table.reclaim(next.steps);
        this.table.reclaim(next.steps);
        this.checkHolds();
        return;
      case "need": {
        const picked = [...this.ids][next.pick % Math.max(1, this.ids.size)];
        if (picked === undefined) return;
        const id = lowerCased(picked);
        if (!this.needed.delete(id)) this.needed.add(id);
        return;
      }
      case "hold": {
        const hold = this.table.hold();
        const numbers = new Map([...this.ids].map((id) => [id, this.table.lookup(id)]));
        this.holds.push({ hold, numbers });
        return;
      }
      case "unhold": {
        const [held] = this.holds.splice(next.pick % Math.max(1, this.holds.length), 1);
        held?.hold.release();
        return;
      }
      case "refuse":
        this.table.beginInterning();
        for (const id of next.ids) this.#intern(id, false);
        this.table.endInterning(false);
        this.checkHolds();
        return;
      case "look":
        check(this.table, this.model.committed, [...this.ids], 3);
        this.checkEtags();
    }
  }

  /** A number that was known at the start of a hold still belongs to its id. */
  checkHolds(): void {
    for (const { numbers } of this.holds) {
      for (const [id, docNum] of numbers) {
        if (docNum >= 0) expect(this.table.lowerIdOf(docNum)).toBe(lowerCased(id));
      }
    }
  }

  write(
    kind: "stage" | "apply",
    writes: Extract<Operation, { kind: "stage" | "apply" }>["writes"],
  ): void {
    if (kind === "apply" && this.model.staged.length > 0) return; // Replay ends before the first write.
    for (const { id, asBytes, isDeletion, collection, flags, etagStep } of writes) {
      const docNum = this.#intern(id, asBytes);
      this.etag += etagStep;
      this.position += 24;
      const row = isDeletion
        ? { ...none, etag: this.etag, position: this.position }
        : { etag: this.etag, position: this.position, length: 24, collection, flags };
      const lower = lowerCased(id);
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

  /**
   * Deletes all documents but a few, or rewrites two of them repeatedly, so that lists are swept.
   */
  change(kind: "purge" | "churn", pick: number): void {
    const ids = [...this.ids];
    const turns = kind === "purge" ? ids.length : 120;
    for (let tick = 0; tick < turns; tick++) {
      const id = ids[kind === "purge" ? tick : (pick + (tick & 1)) % Math.max(1, ids.length)];
      if (id === undefined || (kind === "purge" && (tick + pick) % 16 === 0)) continue;
      const isDeletion = kind === "purge";
      this.write("stage", [
        { id, asBytes: false, isDeletion, collection: 1, flags: 0, etagStep: 1 },
      ]);
      this.commit(this.model.staged.length);
    }
  }

  /**
   * Rewrites all documents in their collections, one or two of them twice, and commits in two
   * parts; `pick` chooses the boundary between the parts, and which documents are deleted, new, or
   * moved to another collection in between.
   */
  rewrite(pick: number): void {
    const rows = [...this.model.newest()];
    for (const [turn, [id, { collection }]] of [...rows, ...rows.slice(0, 2)].entries()) {
      const other = (turn + pick) % 11;
      const isDeletion = other === 0;
      const target = other === 1 ? 5 : other === 2 ? 0 : collection;
      const names = other === 3 ? [id, `users/new${pick % 97}-${turn}`] : [id];
      for (const name of names) {
        const write = { id: name, asBytes: false, isDeletion, collection: target, flags: turn };
        this.write("stage", [{ ...write, etagStep: 1 }]);
      }
    }
    this.commit(pick % (this.model.staged.length + 1));
    const view = this.table.view();
    this.views.push({ view, state: new Map(this.model.committed) });
    this.commit(this.model.staged.length);
    if (pick % 2 === 0) this.views.pop()?.view.release();
  }

  /**
   * Every current document and every document of each view is found by its etag; no other etag
   * finds a document.
   */
  checkEtags(): void {
    for (const state of [this.model.committed, ...this.views.map((held) => held.state)]) {
      for (const [id, { etag }] of state) {
        expect(this.table.numberAtEtag(etag)).toBe(this.table.lookup(id));
      }
    }
    for (const { row } of this.model.staged) expect(this.table.numberAtEtag(row.etag)).toBe(-1);
    expect(this.table.numberAtEtag(0)).toBe(-1);
    expect(this.table.numberAtEtag(this.etag + 1)).toBe(-1);
  }

  commit(count: number): void {
    const reported: unknown[] = [];
    this.table.commitStaged(count, (docNum, etag, position, length, collection) => {
      reported.push([this.table.lowerIdOf(docNum), etag, position, length, collection]);
    });
    const expected: unknown[] = [];
    for (const { id, row } of this.model.staged.splice(0, count)) {
      const before = this.model.committed.get(id) ?? none;
      expected.push([id, before.etag, before.position, before.length, before.collection]);
      apply(this.model.committed, id, row);
    }
    expect(reported).toEqual(expected);
  }

  relocate(pick: number, position: number): void {
    const places: Staged[] = [...this.model.committed].map(([id, row]) => ({ id, row }));
    places.push(...this.model.staged);
    const place = places[pick % Math.max(1, places.length)];
    if (place === undefined) return;
    const docNum = this.table.lookup(place.id);
    expect(this.table.relocate(docNum, place.row.etag + 0.5, position)).toBe(false);
    expect(this.table.relocate(docNum, place.row.etag, position)).toBe(true);
    expect(this.table.hasPosition(docNum, position)).toBe(true);
    expect(this.table.hasPosition(docNum, -1)).toBe(false);
    const row = { ...place.row, position };
    if (this.model.staged.includes(place)) place.row = row;
    else this.model.committed.set(place.id, row);
  }

  /** Reads the sections of a view now; they are restored and compared after further writes. */
  restore(): void {
    const view = this.table.view();
    const sections = this.table.sections(view);
    this.views.push({ view, state: new Map(this.model.committed), sections });
  }

  finish(): void {
    this.table.checkInvariants();
    const ids = [...this.ids];
    expect(this.table.stagedCount).toBe(this.model.staged.length);
    this.checkEtags();
    const newest = this.model.newest();
    for (const id of ids) {
      const docNum = this.table.lookup(id);
      if (docNum < 0) {
        expect(newest.has(lowerCased(id))).toBe(false);
        continue;
      }
      const row = newest.get(lowerCased(id)) ?? none;
      expect(this.table.newestEtag(docNum)).toBe(row.etag);
      expect(this.table.newestPosition(docNum)).toBe(row.position);
      expect(this.table.newestLength(docNum)).toBe(row.length);
      expect(this.table.newestCollection(docNum)).toBe(row.collection);
      expect(this.table.newestFlags(docNum)).toBe(row.flags);
    }
    check(this.table, this.model.committed, ids, 7);
    for (const { view, state, sections } of this.views) {
      check(view, state, ids, 2);
      // A snapshot may be written immediately or after further writes.
      const restored = new DocumentTable(this.options);
      restored.restore(sections ?? this.table.sections(view));
      restored.checkInvariants();
      check(restored, state, ids, 5);
    }
    for (const { view } of this.views) view.release();
    this.table.checkInvariants();
    this.forget();
  }

  /** Without readers, all ids without a document are dropped, except ids in the order. */
  forget(): void {
    this.checkHolds();
    for (const { hold } of this.holds) hold.release();
    this.needed.clear();
    this.table.discardStaged(this.table.stagedCount);
    for (let turn = 0; turn < 3; turn++) {
      for (const id of this.ids) this.table.markUnused(this.table.lookup(id));
      while (!this.table.settleOrder(1000));
      this.table.reclaim(10_000);
      this.table.reclaim(10_000);
    }
    this.table.checkInvariants();
    const { size } = this.model.committed;
    expect(this.table.idCount).toBeLessThanOrEqual(size + size / 4 + 4);
    check(this.table, this.model.committed, [...this.ids], 7);
    // Dropped ids are like new ones.
    for (const id of this.ids) this.table.intern(id);
    this.table.checkInvariants();
  }
}

describe("compared with a simple model", () => {
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
            pair.checkEtags();
          }
          pair.finish();
        },
      ),
      { numRuns: 60 },
    );
  });
});

function filled(count: number): DocumentTable {
  const table = new DocumentTable(tiny);
  for (let at = 0; at < count; at++) {
    table.applyCommitted(table.intern(`users/${at}`), at + 1, at * 24, 24, at % 3, 0);
  }
  return table;
}

describe("ids", () => {
  test("identify the same document in any letter case, and keep one number while they are known", () => {
    const table = new DocumentTable(tiny);
    const docNum = table.intern("Users/1-A");
    expect(table.intern("USERS/1-a")).toBe(docNum);
    expect(table.find("users/1-A")).toBe(-1);
    expect(table.lookup("users/1-A")).toBe(docNum);
    table.applyCommitted(docNum, 1, 0, 24, 0, 0);
    table.applyCommitted(docNum, 2, 24, 0, 0, 0);
    expect(table.find("users/1-a")).toBe(-1);
    expect(table.intern("users/1-a")).toBe(docNum);
    expect(table.docCount).toBe(1);
  });

  test("are also found by their bytes", () => {
    const table = filled(3);
    const bytes = Buffer.from("..Users/2..ÅSA");
    expect(table.lookupBytes(bytes, 2, 9)).toBe(2);
    expect(table.lookupBytes(bytes, 2, 8)).toBe(-1);
    const docNum = table.internBytes(bytes, 11, bytes.length);
    expect(table.lookup("åsa")).toBe(docNum);
  });

  test("release their numbers and memory when deleted, beside ids that stay", () => {
    const table = new DocumentTable();
    let etag = 0;
    const write = (id: string) =>
      table.applyCommitted(table.intern(id), ++etag, etag * 8, 24, 1, 0);
    for (let at = 0; at < 20_000; at++) write(`users/${at}`);
    let before = 0;
    for (let round = 0; round < 20; round++) {
      const ids = Array.from({ length: 10_000 }, (_, at) => `temporary/${round}/${at * 7}`);
      for (const id of ids) write(id);
      for (const id of ids) {
        const docNum = table.find(id);
        table.applyCommitted(docNum, ++etag, 0, 0, 0, 0);
        table.markUnused(docNum);
      }
      while (table.pendingNumberCount > 6_000) table.reclaim(1000);
      table.checkInvariants();
      if (round === 1) before = table.memoryBytes();
    }
    expect(table.idCount).toBeLessThanOrEqual(26_100);
    expect(table.docCount).toBeLessThan(38_000);
    expect(table.memoryBytes()).toBeLessThan(1.25 * before);
  });

  test("of a burst are released completely", () => {
    const table = new DocumentTable();
    for (let at = 0; at < 200_000; at++) table.intern(`burst/${at}`);
    for (let at = 0; at < 200_000; at++) table.markUnused(at);
    while (table.pendingNumberCount > 0) table.reclaim(1000);
    table.checkInvariants();
    expect(table.docCount).toBe(0);
    expect(table.memoryBytes()).toBeLessThan(800_000);
  });

  test("that are invalid are rejected on writes and not found on reads", () => {
    const table = new DocumentTable(tiny);
    for (const id of ["a".repeat(513), "users/\ud83d"]) {
      expect(() => table.intern(id)).toThrow(expect.objectContaining({ code: "invalid-argument" }));
      expect(table.lookup(id)).toBe(-1);
      expect(table.find(id)).toBe(-1);
    }
    expect(table.docCount).toBe(0);
  });

  test("are found with any hash seed", () => {
    const table = new DocumentTable({ ...tiny, hashSeed: 0xdeadbeef });
    for (let at = 0; at < 200; at++) table.intern(`users/${at}`);
    for (let at = 0; at < 200; at++) expect(table.lookup(`users/${at}`)).toBe(at);
    const view = table.view();
    const restored = new DocumentTable(tiny);
    restored.restore(table.sections(view));
    for (let at = 0; at < 200; at++) expect(restored.lookup(`users/${at}`)).toBe(at);
  });
});

describe("replay", () => {
  test("skips a row older than the document's, and moves a row with the same etag", () => {
    const table = filled(1);
    expect(table.applyCommitted(0, 5, 100, 48, 2, 7)).toBe(true);
    expect(table.applyCommitted(0, 4, 72, 24, 0, 0)).toBe(false);
    expect(rowOf(table, 0)).toEqual({
      etag: 5,
      position: 100,
      length: 48,
      collection: 2,
      flags: 7,
    });
    expect(table.applyCommitted(0, 5, 200, 48, 2, 7)).toBe(true);
    expect(table.positionOf(0)).toBe(200);
    expect(drain(table.byEtag(2, 0), 4)).toEqual([0]);
    expect(table.relocate(0, 4, 1)).toBe(false);
    table.checkInvariants();
  });

  test("reports the replaced row of each row", () => {
    const table = filled(1);
    const reported: number[][] = [];
    table.applyCommitted(0, 5, 100, 48, 2, 7, (...row) => reported.push(row));
    table.applyCommitted(0, 6, 148, 0, 0, 0, (...row) => reported.push(row));
    expect(reported).toEqual([
      [0, 1, 0, 24, 0],
      [0, 5, 100, 48, 2],
    ]);
  });

  test("after a snapshot restores the same state", () => {
    const table = filled(40);
    const view = table.view();
    const sections = table.sections(view);
    const write = (target: DocumentTable) => {
      for (let at = 0; at < 60; at += 2) {
        target.applyCommitted(
          target.intern(`users/${at}`),
          100 + at,
          at,
          at % 8 === 0 ? 0 : 24,
          1,
          0,
        );
      }
    };
    write(table);
    const restored = new DocumentTable(tiny);
    restored.restore(sections);
    write(restored);
    restored.checkInvariants();
    for (const collection of [allCollections, 0, 1, 2]) {
      expect(drain(restored.byEtag(collection, 0), 7)).toEqual(
        drain(table.byEtag(collection, 0), 7),
      );
    }
    expect(drain(restored.byId(""), 7)).toEqual(drain(table.byId(""), 7));
  });
});

describe("a view", () => {
  test("cannot be read after its release", () => {
    const table = filled(10);
    const view = table.view();
    const cursor = view.byEtag(allCollections, 0);
    view.release();
    view.release();
    expect(() => cursor.fill(new Uint32Array(4), 4)).toThrow("after its release");
    expect(view.etagOf(1)).toBe(0);
  });

  test("of a collection without documents is empty", () => {
    const table = filled(10);
    expect(drain(table.byEtag(9, 0), 4)).toEqual([]);
    expect(table.countOfCollection(9)).toBe(0);
  });
});

describe("the order by id", () => {
  test("is established in slices of the budget", () => {
    let now = 0;
    const table = new DocumentTable({ ...tiny, monotonicMs: () => now++ });
    for (let at = 0; at < 100; at++)
      table.applyCommitted(table.intern(`users/${at}`), at + 1, 0, 24, 0, 0);
    let turns = 1;
    while (!table.settleOrder(2)) turns++;
    expect(turns).toBeGreaterThan(10);
    expect(table.settleOrder(0)).toBe(true);
    expect(drain(table.byId("users/9"), 4).map((docNum) => table.lowerIdOf(docNum))).toEqual([
      "users/9",
      ...Array.from({ length: 10 }, (_, at) => `users/9${at}`),
    ]);
  });
});

describe("a damaged snapshot", () => {
  const table = filled(60);
  const view = table.view();
  const sections = table
    .sections(view)
    .map(({ name, parts }) => ({ name, bytes: Buffer.concat(parts) }));
  const restore = (given: readonly { name: string; bytes: Buffer }[]) => {
    const restored = new DocumentTable(tiny);
    restored.restore(given.map(({ name, bytes }) => ({ name, parts: [bytes] })));
    return restored;
  };
  const damaged = expect.objectContaining({ code: "database-damaged" });

  test("is rejected if a section is missing, cut or too long", () => {
    restore(sections).checkInvariants();
    for (const [at, section] of sections.entries()) {
      expect(() => restore(sections.toSpliced(at, 1)), section.name).toThrow(damaged);
      for (const length of [0, 1, section.bytes.length >> 1, section.bytes.length - 1]) {
        const cut = sections.with(at, { ...section, bytes: section.bytes.subarray(0, length) });
        expect(() => restore(cut), `${section.name} ${length}`).toThrow(damaged);
      }
      const long = { ...section, bytes: Buffer.concat([section.bytes, Buffer.alloc(1)]) };
      expect(() => restore(sections.with(at, long)), section.name).toThrow(damaged);
    }
  });

  test("is rejected if its version differs", () => {
    const head = Buffer.from(sections[0]!.bytes);
    head.writeUInt32LE(99, 0);
    expect(() => restore(sections.with(0, { ...sections[0]!, bytes: head }))).toThrow(damaged);
  });

  test("fails only with this error if a byte is wrong", () => {
    fc.assert(
      fc.property(
        fc.nat(sections.length - 1),
        fc.nat(),
        fc.integer({ min: 1, max: 255 }),
        (at, place, flip) => {
          const section = sections[at]!;
          const bytes = Buffer.from(section.bytes);
          const byte = place % bytes.length;
          bytes[byte] = bytes[byte]! ^ flip;
          try {
            restore(sections.with(at, { ...section, bytes }));
          } catch (error) {
            expect(error).toEqual(damaged);
          }
        },
      ),
      { numRuns: 500 },
    );
  });
});

test("counts the memory of its arrays", () => {
  const table = new DocumentTable();
  const before = table.memoryBytes();
  for (let at = 0; at < 100_000; at++)
    table.applyCommitted(table.intern(`u${at}`), at + 1, 0, 24, 0, 0);
  const perDocument = (table.memoryBytes() - before) / 100_000;
  expect(perDocument).toBeGreaterThan(50);
  expect(perDocument).toBeLessThan(115);
});
