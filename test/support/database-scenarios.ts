/** All database activities as small scenarios: each is replayed with a crash or a failure at every file system call. */
import { expect } from "vitest";
import type { Scenario } from "./crash-loop.ts";
import { pictureOf } from "./database-picture.ts";
import type { Batch, Operation } from "./model-database.ts";
import { type History, SimulatedDatabase } from "./simulated-database.ts";
import type { SimulatedFileSystem } from "./simulated-file-system.ts";

type DatabaseScenario = Scenario<History>;

export function put(id: string, text: string, collection = "Things"): Operation {
  return {
    kind: "put",
    id,
    body: `{"text":${JSON.stringify(text)},"@metadata":{"@collection":"${collection}"}}`,
  };
}

/** Lets `work` run concurrently: it may be left unawaited when the system crashes. */
function beside<Result>(work: Promise<Result>): Promise<Result> {
  work.catch(() => undefined);
  return work;
}

const nextSlice = () => new Promise<void>((resolve) => setImmediate(resolve));

/** All kinds of changes in one transaction. */
const everything: Batch = [
  put("things/1", "one"),
  put("people/1", "Ann", "People"),
  { kind: "increment", id: "things/1", name: "Likes", by: 3 },
  { kind: "increment", id: "people/1", name: "visits", by: -7 },
  { kind: "attach", id: "people/1", name: "face.png", content: "a face" },
  { kind: "attach", id: "things/1", name: "manual.txt", content: "read me" },
  { kind: "put", id: "orders|", body: '{"made":"by identity"}' },
  { kind: "identity", name: "invoices" },
  { kind: "exchange", key: "Lock", text: '{"Object":1}', expected: "absent" },
  { kind: "value", key: "setting", value: { deep: [1, 2, 3] } },
];

export const databaseScenarios: Readonly<Record<string, DatabaseScenario>> = {
  async "single puts and deletions"(files, history) {
    const shop = await SimulatedDatabase.open(files, history);
    for (let round = 0; round < 3; round++) {
      await shop.write([put(`things/${round % 2}`, `text ${round}`)]);
      await shop.write([{ kind: "delete", id: "THINGS/0" }]);
    }
    await shop.database.close();
  },

  async "batches of all types, some in flight together"(files, history) {
    const shop = await SimulatedDatabase.open(files, history);
    await shop.write(everything);
    const inFlight = [
      shop.write([
        put("things/1", "changed"),
        { kind: "deleteCounter", id: "things/1", name: "LIKES" },
      ]),
      shop.write([put("things/2", "two"), { kind: "fail" }]),
      shop.write([
        { kind: "value", key: "setting", value: 1 },
        { kind: "value", key: "setting", value: 2 },
      ]),
      shop.write([{ kind: "delete", id: "people/1" }, put("people/1", "again", "People")]),
      shop.write([{ kind: "exchange", key: "lock", text: null, expected: "present" }]),
    ];
    await Promise.all(inFlight);
    await shop.write([{ kind: "increment", id: "people/1", name: "visits", by: 1 }]);
    await shop.database.close();
  },

  async "time-sliced transactions, with waiting transactions"(files, history) {
    const shop = await SimulatedDatabase.open(files, history);
    await shop.write(everything);
    const counts: Batch = Array.from({ length: 300 }, (_, index) => ({
      kind: "increment",
      id: index % 2 === 0 ? "people/1" : "things/1",
      name: `count ${index % 100}`,
      by: index,
    }));
    const inFlight = [
      shop.write([put("before", "it")]),
      shop.write([put("things/1", "in turns"), ...counts], false, true),
      shop.write([{ kind: "increment", id: "people/1", name: "count 1", by: 1_000 }]),
      shop.write([put("people/2", "refused"), { kind: "fail" }], false, true),
      shop.write(
        [{ kind: "delete", id: "things/1" }, put("people/2", "two", "People")],
        false,
        true,
      ),
    ];
    await Promise.all(inFlight);
    await shop.database.close();
  },

  async "rolling segments, with new shapes in flight"(files, history) {
    const shop = await SimulatedDatabase.open(files, history);
    const writes: Promise<boolean>[] = [];
    for (let index = 0; index < 6; index++) {
      const body = `{"key${index}":"${"x".repeat(300)}"}`;
      writes.push(shop.write([{ kind: "put", id: `things/${index % 4}`, body }]));
      if (index % 3 === 2) await nextSlice();
    }
    await Promise.all(writes);
    await shop.write([put("large", "L".repeat(6000))]);
    await shop.database.close();
  },

  async "snapshots while writing"(files, history) {
    const shop = await SimulatedDatabase.open(files, history);
    await shop.write(everything);
    for (let round = 0; round < 3; round++) {
      const before = shop.write([{ kind: "put", id: "a", body: `{"shape${round}":1}` }]);
      const snapshot = beside(shop.database.writeSnapshot());
      // The segment for this write must be created first, so the snapshot may become durable before it.
      const body = `{"later${round}":"${"x".repeat(round * 3000)}"}`;
      const after = shop.write([{ kind: "put", id: "b", body }]);
      await Promise.all([before, snapshot, after]);
      await shop.write([{ kind: "increment", id: "a", name: "rounds", by: 1 }]);
    }
    await shop.database.close();
  },

  async "compaction while writing"(files, history) {
    const shop = await SimulatedDatabase.open(files, history);
    await shop.write(everything);
    for (let round = 0; round < 3; round++) {
      for (let index = 0; index < 4; index++) {
        await shop.write([
          put(`things/${index}`, `${round}`.repeat(250)),
          { kind: "identity", name: "invoices" },
          { kind: "value", key: "round", value: round },
        ]);
      }
      await shop.write([
        { kind: "delete", id: `things/${round}` },
        { kind: "value", key: "setting", value: undefined },
      ]);
      if (round === 1) await shop.database.writeSnapshot();
      const compaction = beside(shop.database.compact());
      const meanwhile = [
        shop.write([
          { kind: "identity", name: "invoices" },
          { kind: "value", key: "round", value: -1 },
        ]),
        shop.write([{ kind: "increment", id: "people/1", name: "visits", by: 1 }]),
      ];
      await Promise.all([compaction, ...meanwhile]);
    }
    await shop.database.close();
  },

  async "values rewritten while compaction copies them"(files, history) {
    const shop = await SimulatedDatabase.open(files, history);
    await shop.write([put("a", "A")]);
    // None of these uses an etag: records of one key differ only in their value.
    const next: Operation = { kind: "identity", name: "invoices" };
    const filler = (round: number): Operation => ({
      kind: "value",
      key: "filler",
      value: `${round}`.repeat(1200),
    });
    for (let round = 0; round < 4; round++) {
      await shop.write([next]);
      for (let index = 0; index < 4; index++) await shop.write([filler(round)]);
      const compaction = beside(shop.database.compact());
      const meanwhile: Promise<boolean>[] = [];
      for (let tick = 0; tick < 4; tick++) {
        meanwhile.push(shop.write([next]));
        await nextSlice();
      }
      await Promise.all([compaction, ...meanwhile]);
    }
    await shop.database.compact();
    await shop.database.close();
  },

  async "attachments stored, replaced and reclaimed"(files, history) {
    const shop = await SimulatedDatabase.open(files, history);
    await shop.write([put("a", "A"), put("b", "B")]);
    await shop.write([{ kind: "attach", id: "a", name: "file", content: "same" }]);
    await shop.write([{ kind: "attach", id: "b", name: "file", content: "same" }]);
    await shop.write([{ kind: "attach", id: "a", name: "FILE", content: "other" }]);
    await shop.write([{ kind: "delete", id: "b" }]);
    await shop.write([{ kind: "attach", id: "a", name: "again", content: "same" }]);
    const going = shop.write([{ kind: "detach", id: "a", name: "again" }]);
    const coming = shop.write([{ kind: "attach", id: "a", name: "again", content: "same" }]);
    await Promise.all([going, coming]);
    await shop.database.close();
  },

  async "revisions kept and dropped"(files, history) {
    const shop = await SimulatedDatabase.open(files, history);
    await shop.write([put("things/0", "before there were rules")]);
    const rule = { MinimumRevisionsToKeep: 2 };
    await shop.database.putSettings({ Revisions: { Collections: { Things: rule } } });
    for (let round = 0; round < 3; round++) {
      await shop.write([
        put("things/0", `${round}`.repeat(250)),
        { kind: "attach", id: "things/0", name: "file", content: `content ${round}` },
      ]);
      const inFlight = [
        shop.write([put("things/1", `${round}`), put("things/1", `again ${round}`)]),
        shop.write([put("things/1", "refused"), { kind: "fail" }]),
        shop.write([{ kind: "increment", id: "things/0", name: `n${round}`, by: 1 }]),
      ];
      await Promise.all(inFlight);
      await shop.write([{ kind: "delete", id: "things/1" }]);
      if (round === 1) await shop.database.writeSnapshot();
      await shop.database.compact();
    }
    await shop.database.maintenance.cleanTombstones();
    await shop.database.close();
  },

  async "time series appended to, truncated and deleted with their document"(files, history) {
    const shop = await SimulatedDatabase.open(files, history);
    const append = (name: string, from: number, count: number): Operation => {
      return { kind: "append", id: "a", name, from, count, value: from + count };
    };
    await shop.write([put("a", "A"), append("Heart", 100, 40), append("steps", 0, 1)]);
    const inFlight = [140, 160, 130].map((from) => shop.write([append("HEART", from, 20)]));
    await Promise.all(inFlight);
    await shop.write([
      { kind: "deleteRange", id: "a", name: "heart", from: 110, to: 150 },
      append("heart", 90, 3),
      { kind: "deleteRange", id: "a", name: "Steps", from: 0, to: 9 },
    ]);
    const snapshot = beside(shop.database.writeSnapshot());
    await shop.write([append("heart", 50, 30), append("heart", 500, 700)]);
    await snapshot;
    const compaction = beside(shop.database.compact());
    await shop.write([{ kind: "deleteRange", id: "a", name: "heart", from: 0, to: 900 }]);
    await compaction;
    await shop.write([{ kind: "delete", id: "A" }, put("a", "again")]);
    await shop.write([append("heart", 1, 1)]);
    await shop.database.close();
  },

  async "a snapshot while compaction moves its records and others change them"(files, history) {
    const shop = await SimulatedDatabase.open(files, history);
    await shop.write(everything);
    const change = (round: number): Batch => [
      put("things/1", `${round}`.repeat(200)),
      { kind: "increment", id: "things/1", name: "likes", by: 1 },
      { kind: "value", key: "setting", value: "x".repeat(100 + round) },
      { kind: "value", key: `setting ${round % 3}`, value: round % 4 === 0 ? undefined : round },
    ];
    for (let round = 0; round < 8; round++) await shop.write(change(round));
    const compaction = beside(shop.database.compact());
    const snapshot = beside(shop.database.writeSnapshot());
    for (let round = 8; round < 11; round++) await shop.write(change(round));
    await Promise.all([compaction, snapshot]);
    await shop.write(change(11));
    await shop.database.abandon();
  },

  async "closing and opening"(files, history) {
    for (let round = 0; round < 3; round++) {
      const shop = await SimulatedDatabase.open(files, history);
      await shop.write([
        put(`things/${round}`, "x".repeat(200)),
        { kind: "increment", id: `things/${round}`, name: "n", by: 1 },
      ]);
      const last = shop.write([put("last", `${round}`)]);
      if (round === 1) await shop.database.abandon();
      else await shop.database.close();
      await last;
    }
  },

  async "purging tombstones"(files, history) {
    const shop = await SimulatedDatabase.open(files, history);
    for (let round = 0; round < 3; round++) {
      await shop.write([put("a", "A".repeat(300)), put("b", "B".repeat(300))]);
      await shop.write([{ kind: "delete", id: "a" }]);
      await shop.write([{ kind: "delete", id: "b" }]);
      await shop.database.maintenance.cleanTombstones();
      await shop.database.writeSnapshot();
      await shop.database.compact();
    }
    await shop.database.close();
  },
};

/** Opens the files after the crash, and again after another power loss; then continues to write. */
export async function checkRecovery(after: SimulatedFileSystem, history: History): Promise<void> {
  const known = history.copy();
  const first = await SimulatedDatabase.open(after, known);
  await first.check();
  const picture = pictureOf(first.database);
  const second = await SimulatedDatabase.open(after.powerLoss(1), known);
  expect(pictureOf(second.database)).toEqual(picture);
  await second.write([put("after", "recovery"), { kind: "identity", name: "invoices" }]);
  // Shapes that may have been in flight at the power loss are logged again, unless they are already.
  const bodies = [0, 1, 2].map((round) => `{"later${round}":1}`);
  await second.write(bodies.map((body, index) => ({ kind: "put", id: `shape/${index}`, body })));
  await second.database.compact();
  await second.check();
  await second.database.close();
  await first.database.abandon().catch(() => undefined);
}
