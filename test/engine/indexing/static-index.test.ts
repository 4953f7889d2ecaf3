import fc from "fast-check";
import { afterEach, describe, expect, it } from "vitest";
import { finish } from "../../../engine/base/scheduling/work-budget.ts";
import { parseStaticDefinition } from "../../../engine/indexing/definitions/static-definition.ts";
import type { StoredRow } from "../../../engine/indexing/index-host.ts";
import type { IndexProgram, MapResult } from "../../../engine/indexing/index-program.ts";
import { StaticIndex } from "../../../engine/indexing/static-index.ts";
import { bodyTextOf } from "../../../engine/state/documents/document-record.ts";
import { ArrayDatabase } from "../queries/execution/execute-array-host.ts";

const open: ArrayDatabase[] = [];
afterEach(() => {
  for (const database of open.splice(0)) {
    database.indexes.checkInvariants();
    database.indexes.close();
  }
});

interface Item {
  readonly N: number;
  readonly K: string;
  readonly Refs: readonly string[];
}

const empty: MapResult = {
  entries: [],
  values: [],
  references: new Set(),
  compareExchangeKeys: new Set(),
  failure: null,
};

/** Maps items to one entry per reference, with the number of the referenced item. */
function programOver(database: ArrayDatabase, isReduce: boolean): IndexProgram {
  const itemOf = (id: string): Item | null => {
    const docNum = database.findDocument(id);
    const row: StoredRow = { docNum: 0, etag: 0, bytes: Buffer.alloc(0), start: 0 };
    if (docNum < 0 || !database.read(docNum, row)) return null;
    return JSON.parse(bodyTextOf(row.bytes, row.start).toString()) as Item;
  };
  return {
    collections: ["Items"],
    referencedCollections: ["Items"],
    fieldNames: new Set(["K", "N"]),
    isReduce,
    map(row) {
      const item = JSON.parse(bodyTextOf(row.bytes, row.start).toString()) as Item;
      const outputs = item.Refs.map((id) => ({ K: item.K, N: itemOf(id)?.N ?? null }));
      const fields = outputs.map(({ K, N }) => [
        { name: "K", text: JSON.stringify(K), dynamic: null },
        { name: "N", text: JSON.stringify(N), dynamic: null },
      ]);
      return {
        ...empty,
        entries: isReduce ? [] : fields.map((one) => ({ fields: one, boosts: null })),
        values: isReduce
          ? outputs.map((one) => ({ key: JSON.stringify(one.K), text: JSON.stringify(one) }))
          : [],
        references: new Set(item.Refs),
      };
    },
    reduce(key, values) {
      const sum = values.reduce((total, text) => total + ((JSON.parse(text) as Item).N ?? 0), 0);
      return `{"K":${key},"N":${sum}}`;
    },
    fieldsOf(text) {
      return Object.entries(JSON.parse(text) as object).map(([name, value]) => ({
        name,
        text: JSON.stringify(value),
        dynamic: null,
      }));
    },
  };
}

function deployed(isReduce: boolean): { database: ArrayDatabase; index: StaticIndex } {
  const database = new ArrayDatabase();
  open.push(database);
  const definition = parseStaticDefinition({
    Name: "I",
    Maps: ["-"],
    Fields: { N: { Storage: "Yes" } },
  });
  const index = new StaticIndex(definition, programOver(database, isReduce), database);
  database.indexes.addStatic(index);
  return { database, index };
}

const ids = ["items/1", "items/2", "items/3", "items/4"];
const item = fc.record({
  N: fc.integer({ min: 0, max: 9 }),
  K: fc.constantFrom("a", "b", "c"),
  Refs: fc.array(fc.constantFrom(...ids), { maxLength: 3 }),
});
const step = fc.oneof(
  fc.record({ id: fc.constantFrom(...ids), item }),
  fc.record({ id: fc.constantFrom(...ids), item: fc.constant(null) }),
  fc.constant("settle" as const),
);

/** The entries after mapping everything from the beginning. */
function expectedOf(items: ReadonlyMap<string, Item>): string[] {
  return [...items.values()].flatMap(({ K, Refs }) =>
    Refs.map((id) => `${K}:${items.get(id)?.N ?? null}`),
  );
}

async function run(steps: readonly unknown[], isReduce: boolean) {
  const { database, index } = deployed(isReduce);
  const items = new Map<string, Item>();
  for (const one of steps as (string | { id: string; item: Item | null })[]) {
    if (typeof one === "string") await database.indexes.waitForNonStale("I", 5000);
    else if (one.item === null) {
      items.delete(one.id);
      database.remove(one.id);
    } else {
      items.set(one.id, one.item);
      database.put(
        one.id,
        JSON.stringify({ ...one.item, "@metadata": { "@collection": "Items" } }),
      );
    }
  }
  while (index.isStale) {
    database.indexes.wake();
    await database.yieldSlice();
  }
  database.indexes.checkInvariants();
  return { database, index, items };
}

describe("a deployed index and a simple model", () => {
  it("have the same entries after any writes, deletions and changes of referenced documents", async () => {
    await fc.assert(
      fc.asyncProperty(fc.array(step, { maxLength: 24 }), async (steps) => {
        const { index, items } = await run(steps, false);
        const reader = index.reader();
        const entries = [...reader.all().toList()];
        const found = entries.map((entry) => {
          const { K, N } = JSON.parse(reader.entryText(entry, null)) as {
            K: string;
            N: string | null;
          };
          expect(JSON.parse(index.stored?.textOf(entry) ?? "{}")).toEqual({
            N: N === null ? null : Number(N),
          });
          return `${K}:${N}`;
        });
        expect(found.sort()).toEqual(expectedOf(items).sort());
        for (const n of ["0", "5"]) {
          const field = reader.field("N", "lower");
          const hits = field === undefined ? undefined : finish(field.equalsLong(n)).count;
          expect(hits).toBe(expectedOf(items).filter((text) => text.endsWith(`:${n}`)).length);
        }
      }),
      { numRuns: 60 },
    );
  });

  it("reduce to the same objects", async () => {
    await fc.assert(
      fc.asyncProperty(fc.array(step, { maxLength: 24 }), async (steps) => {
        const { index, items } = await run(steps, true);
        const sums = new Map<string, number>();
        for (const { K, Refs } of items.values()) {
          for (const id of Refs) sums.set(K, (sums.get(K) ?? 0) + (items.get(id)?.N ?? 0));
        }
        const entries = [...index.reader().all().toList()];
        const found = entries.map((entry) => index.outputs?.textOf(entry) ?? "");
        expect(found.sort()).toEqual([...sums].map(([K, N]) => `{"K":"${K}","N":${N}}`).sort());
      }),
      { numRuns: 60 },
    );
  });
});

describe("a deployed index with slices that end anywhere", () => {
  it("has the entries of a model, also of documents with many, written while it indexes them", () => {
    const many = item.map((one) => ({ ...one, Refs: Array(40).fill(one.Refs).flat() as string[] }));
    const slice = fc.record({ checks: fc.integer({ min: 1, max: 4 }) });
    const put = fc.record({ id: fc.constantFrom(...ids), item: fc.oneof(item, many) });
    const remove = fc.record({ id: fc.constantFrom(...ids), item: fc.constant(null) });
    let busySlices = 0;
    fc.assert(
      fc.property(fc.array(fc.oneof(slice, put, remove), { maxLength: 40 }), (steps) => {
        const database = new ArrayDatabase();
        open.push(database);
        const definition = parseStaticDefinition({ Name: "I", Maps: ["-"] });
        const opened = new StaticIndex(definition, programOver(database, false), database);
        const { index } = opened;
        const items = new Map<string, Item>();
        const catchUp = (checks: number) => {
          let left = checks;
          void index.catchUp(() => --left < 0);
          if (index.isBusy) busySlices++;
          expect(!index.isBusy || index.isStale).toBe(true);
        };
        for (const one of steps) {
          if ("checks" in one) catchUp(one.checks);
          else if (one.item === null) {
            items.delete(one.id);
            database.remove(one.id);
          } else {
            items.set(one.id, one.item);
            const body = { ...one.item, "@metadata": { "@collection": "Items" } };
            database.put(one.id, JSON.stringify(body));
          }
        }
        for (let slices = 0; index.isStale && slices < 1_000; slices++) catchUp(1);
        expect(index.isStale).toBe(false);
        const count = expectedOf(items).length;
        expect(opened.reader().all().count).toBe(count);
        for (const n of ["0", "5"]) {
          const hits = opened.reader().field("N", "lower")?.equalsLong(n);
          const expected = expectedOf(items).filter((text) => text.endsWith(`:${n}`)).length;
          expect(hits === undefined ? 0 : finish(hits).count).toBe(expected);
        }
      }),
      { numRuns: 100 },
    );
    expect(busySlices).toBeGreaterThan(0);
  });

  it("is finished once it is not stale, because it is not called again", () => {
    for (let every = 1; every < 12; every++) {
      const database = new ArrayDatabase();
      open.push(database);
      const definition = parseStaticDefinition({ Name: "I", Maps: ["-"] });
      const { index } = new StaticIndex(definition, programOver(database, true), database);
      for (const [i, id] of ids.entries()) {
        const body = { N: i, K: `k${i}`, Refs: ids, "@metadata": { "@collection": "Items" } };
        database.put(id, JSON.stringify(body));
      }
      for (let slices = 0; index.isStale && slices < 1_000; slices++) {
        let left = every;
        void index.catchUp(() => --left < 0);
      }
      expect(index.isStale).toBe(false);
      for (const { collection, documentEtag } of index.sources) {
        expect(documentEtag, `every ${every}`).toBe(database.etagsOf(collection).document);
      }
    }
  });
});
