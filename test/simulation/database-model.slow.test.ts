/**
 * Random operations on a database and on its model: batches of all types, some that throw, some in
 * flight together; held views; snapshots, compaction, purges; closing, killing and power loss.
 * DATABASE_MODEL_RUNS sets the number of histories (200); fast-check prints the seed of a failing
 * one.
 */
import fc from "fast-check";
import { expect, test } from "vitest";
import { idOf } from "../../engine/state/documents/document-record.ts";
import { allCollections } from "../../engine/state/keyspaces/document-table.ts";
import type { DatabaseView } from "../../engine/state/store/store.ts";
import type { Batch, Operation } from "../support/model-database.ts";
import { History, SimulatedDatabase } from "../support/simulated-database.ts";
import { SimulatedFileSystem } from "../support/simulated-file-system.ts";

const runs = Number(process.env["DATABASE_MODEL_RUNS"] ?? 200);

const id = fc.constantFrom("a", "B", "b", "things/1", "Things/1", "things/2", "é", "É");
const name = fc.constantFrom("n", "N", "other");
const expected = fc.constantFrom("any", "any", "absent", "present", "wrong");
const body = fc.oneof(
  fc.constantFrom("{}", '{"a":1}', '{"a":1,"b":[true,null,{"c":"d"}]}', '{"é":"😀\\u0001"}'),
  fc.nat(700).map((count) => `{"long":"${"x".repeat(count)}"}`),
  fc.nat(9).map((field) => `{"field${field}":${field},"last":1.50}`),
);
const operation: fc.Arbitrary<Operation> = fc.oneof(
  { weight: 6, arbitrary: fc.record({ kind: fc.constant("put"), id, body, expected }) },
  { weight: 2, arbitrary: fc.record({ kind: fc.constant("delete"), id, expected }) },
  {
    weight: 3,
    arbitrary: fc.record({
      kind: fc.constant("increment"),
      id,
      name,
      by: fc.integer({ min: -9, max: 9 }),
    }),
  },
  { weight: 1, arbitrary: fc.record({ kind: fc.constant("deleteCounter"), id, name }) },
  {
    weight: 2,
    arbitrary: fc.record({
      kind: fc.constant("attach"),
      id,
      name,
      content: fc.constantFrom("", "one", "two", "x".repeat(2000)),
    }),
  },
  { weight: 1, arbitrary: fc.record({ kind: fc.constant("detach"), id, name }) },
  { weight: 1, arbitrary: fc.record({ kind: fc.constant("identity"), name }) },
  {
    weight: 1,
    arbitrary: fc.record({
      kind: fc.constant("exchange"),
      key: name,
      text: fc.constantFrom('{"Object":1}', '{"Object":{"a":2}}', null),
      expected: fc.constantFrom("any", "absent", "present", "wrong"),
    }),
  },
  {
    weight: 1,
    arbitrary: fc.record({
      kind: fc.constant("value"),
      key: name,
      value: fc.constantFrom(1, "x".repeat(300), undefined),
    }),
  },
) as fc.Arbitrary<Operation>;
const failing: fc.Arbitrary<Batch> = fc
  .array(operation, { maxLength: 3 })
  .map((operations): Batch => [...operations, { kind: "fail" }]);
const batch: fc.Arbitrary<Batch> = fc.oneof(
  { weight: 9, arbitrary: fc.array(operation, { minLength: 1, maxLength: 4 }) },
  { weight: 1, arbitrary: failing },
);

const numberedId = fc.nat(23).map((number) => `things/${number}`);
const numberedPut = fc
  .record({ at: fc.nat(23), n: fc.nat(9), count: fc.nat(120) })
  .map(({ at, n, count }) => {
    const metadata = at % 3 === 0 ? "" : `,"@metadata":{"@collection":"C${at % 3}"}`;
    const body = `{"n":${n},"text":"${"x".repeat(count)}"${metadata}}`;
    return { kind: "put" as const, id: `things/${at}`, body };
  });
/** Documents that are rewritten all together, and one by one in between. */
const rewriting: fc.Arbitrary<Operation> = fc.oneof(
  { weight: 6, arbitrary: numberedPut },
  { weight: 2, arbitrary: fc.record({ kind: fc.constant("delete"), id: numberedId }) },
  { weight: 3, arbitrary: fc.record({ kind: fc.constant("patchAll"), n: fc.nat(9) }) },
  {
    weight: 1,
    arbitrary: fc.record({
      kind: fc.constant("increment"),
      id: numberedId,
      name: fc.constant("n"),
      by: fc.constant(1),
    }),
  },
) as fc.Arbitrary<Operation>;
const rewritingBatch: fc.Arbitrary<Batch> = fc.oneof(
  { weight: 4, arbitrary: fc.array(rewriting, { minLength: 1, maxLength: 8 }) },
  {
    weight: 1,
    arbitrary: fc.array(numberedPut, { minLength: 20, maxLength: 40 }),
  },
  {
    weight: 1,
    arbitrary: fc
      .array(rewriting, { maxLength: 3 })
      .map((all): Batch => [...all, { kind: "fail" }]),
  },
);

type Step =
  | { do: "write"; batches: Batch[] }
  | { do: "compactBeside"; batches: Batch[]; turns: number }
  | { do: "full"; batches: Batch[]; room: number }
  | {
      do:
        | "view"
        | "release"
        | "snapshot"
        | "compact"
        | "purge"
        | "close"
        | "kill"
        | "check"
        | "turn";
    }
  | { do: "powerLoss"; batches: Batch[]; turns: number; seed: number; compacts?: boolean };

const step: fc.Arbitrary<Step> = fc.oneof(
  {
    weight: 12,
    arbitrary: fc.record({
      do: fc.constant("write" as const),
      batches: fc.array(batch, { minLength: 1, maxLength: 4 }),
    }),
  },
  ...(
    ["view", "release", "snapshot", "compact", "purge", "close", "kill", "check", "turn"] as const
  ).map((kind) => ({ weight: 1, arbitrary: fc.constant({ do: kind }) })),
  {
    weight: 1,
    arbitrary: fc.record({
      do: fc.constant("powerLoss" as const),
      batches: fc.array(batch, { maxLength: 3 }),
      turns: fc.nat(4),
      seed: fc.nat(1000),
    }),
  },
);

const batches = fc.array(rewritingBatch, { minLength: 1, maxLength: 4 });
const rewritingStep: fc.Arbitrary<Step> = fc.oneof(
  { weight: 8, arbitrary: fc.record({ do: fc.constant("write" as const), batches }) },
  {
    weight: 4,
    arbitrary: fc.record({ do: fc.constant("compactBeside" as const), batches, turns: fc.nat(9) }),
  },
  {
    weight: 2,
    arbitrary: fc.record({ do: fc.constant("full" as const), batches, room: fc.nat(6000) }),
  },
  ...(["view", "release", "snapshot", "compact", "purge", "close", "kill", "check"] as const).map(
    (kind) => ({ weight: 1, arbitrary: fc.constant({ do: kind }) }),
  ),
  { weight: 4, arbitrary: fc.constant({ do: "turn" as const }) },
  {
    weight: 3,
    arbitrary: fc.record({
      do: fc.constant("powerLoss" as const),
      batches,
      turns: fc.nat(12),
      seed: fc.nat(1000),
      compacts: fc.boolean(),
    }),
  },
);

/** A view, and the texts that it had when it was created. */
interface HeldView {
  readonly view: DatabaseView;
  readonly expected: string[];
}

async function textsOf(shop: SimulatedDatabase, view: DatabaseView): Promise<string[]> {
  const batch = new Uint32Array(100);
  const count = view.documents.byEtag(allCollections, 0).fill(batch, batch.length);
  const texts: string[] = [];
  for (const document of batch.subarray(0, count)) {
    const position = view.documents.positionOf(document);
    const record = await shop.database.recordAt(
      document,
      position,
      view.documents.lengthOf(document),
    );
    texts.push(`${idOf(record, 0)} ${record.toString("latin1")}`);
  }
  return texts;
}

class Run {
  shop: SimulatedDatabase;
  files: SimulatedFileSystem;
  readonly #cacheBytes: number;
  #views: HeldView[] = [];
  #wasFull = false;

  private constructor(shop: SimulatedDatabase, files: SimulatedFileSystem, cacheBytes: number) {
    this.shop = shop;
    this.files = files;
    this.#cacheBytes = cacheBytes;
  }

  static async start(cacheBytes: number): Promise<Run> {
    const files = new SimulatedFileSystem();
    return new Run(
      await SimulatedDatabase.open(files, new History(), { cacheBytes }),
      files,
      cacheBytes,
    );
  }

  async take(step: Step): Promise<void> {
    const { shop } = this;
    switch (step.do) {
      case "write":
        await this.#done(this.#write(step.batches));
        return;
      case "compactBeside": {
        const compaction = shop.database.compact();
        const written = this.#write([...step.batches, [{ kind: "patchAll", n: 7 }]]);
        for (let turn = 0; turn < step.turns; turn++) await nextSlice();
        await this.#done([compaction, ...written]);
        return;
      }
      case "full":
        await this.#fill(step.batches, step.room);
        return;
      case "view": {
        const view = shop.database.view();
        this.#views.push({ view, expected: await textsOf(shop, view) });
        return;
      }
      case "release":
        await this.#releaseViews();
        return;
      case "snapshot":
        await shop.database.writeSnapshot();
        return;
      case "compact":
        await this.#inTime(shop.database.compact());
        return;
      case "purge":
        await this.#done([shop.database.maintenance.cleanTombstones()]);
        return;
      case "turn":
        shop.clock.advance(60);
        await nextSlice();
        return;
      case "check":
        await this.#inTime(shop.database.compactionEnded());
        await shop.check();
        return;
      case "close":
        await this.#releaseViews();
        await shop.database.close();
        await this.#open(this.files);
        return;
      case "kill":
        this.#views = [];
        await this.#open(this.files.restart());
        return;
      case "powerLoss":
        if (step.compacts === true) shop.database.compact().catch(() => undefined);
        // A rejected batch is removed from the model a little later, as in `#write`.
        for (const written of this.#write(step.batches)) written.catch(() => undefined);
        for (let turn = 0; turn < step.turns; turn++) await nextSlice();
        this.#views = [];
        await this.#open(this.files.powerLoss(step.seed));
        return;
    }
  }

  /**
   * All in flight together; one after the other if some may be rejected, because the model learns
   * of that a little later.
   */
  #write(batches: readonly Batch[]): Promise<unknown>[] {
    // The current database: after a later power loss, another instance is opened.
    const { shop } = this;
    if (!this.#wasFull) return batches.map((one) => shop.write(one, false, isLong(one)));
    let before: Promise<unknown> = Promise.resolve();
    return batches.map((one) => {
      const written = before.then(() => shop.write(one, false, isLong(one)));
      before = written.catch(() => undefined);
      return written;
    });
  }

  /**
   * Advances the clock until the work is done: a compaction under traffic, and its waiters, depend
   * on it.
   */
  async #inTime<Result>(work: Promise<Result>): Promise<Result> {
    let isDone = false;
    const done = work.finally(() => {
      isDone = true;
    });
    done.catch(() => undefined);
    while (!isDone) {
      await nextSlice();
      this.shop.clock.advance(1);
    }
    return await done;
  }

  /**
   * The write that needs the next segment fails on a disk that was full, perhaps after space is free again.
   */
  async #done(work: readonly Promise<unknown>[]): Promise<void> {
    const outcomes = await this.#inTime(Promise.allSettled(work));
    const failures = outcomes.filter((outcome) => outcome.status === "rejected");
    for (const { reason } of failures) {
      if (!this.#wasFull) throw reason;
      expect(reason).toMatchObject({ code: "disk-full" });
    }
    if (failures.length > 0) await this.#untilTaken();
  }

  /** Writes and compacts with little space; rejected writes have no effect. Then space is freed. */
  async #fill(batches: readonly Batch[], room: number): Promise<void> {
    const { shop, files } = this;
    files.capacityBytes = files.usedBytes() + room;
    this.#wasFull = true;
    await this.#done([...this.#write(batches), shop.database.compact()]);
    files.capacityBytes = Number.POSITIVE_INFINITY;
  }

  /** Frees space: soon a write is accepted. */
  async #untilTaken(): Promise<void> {
    const { shop, files } = this;
    files.capacityBytes = Number.POSITIVE_INFINITY;
    for (let attempt = 0; ; attempt++) {
      shop.clock.advance(2000);
      await nextSlice();
      const written = shop.write([{ kind: "patchAll", n: 8 }]);
      if (await written.catch(() => false)) return;
      expect(attempt).toBeLessThan(10);
    }
  }

  async end(): Promise<void> {
    await this.#releaseViews();
    await this.#inTime(this.shop.database.compactionEnded());
    await this.shop.check();
    await this.shop.database.close();
  }

  async #open(files: SimulatedFileSystem): Promise<void> {
    this.files = files;
    // Writes in flight in the killed process must not change the known history.
    const history = this.shop.history.copy();
    this.shop = await SimulatedDatabase.open(files, history, { cacheBytes: this.#cacheBytes });
  }

  async #releaseViews(): Promise<void> {
    for (const { view, expected } of this.#views.splice(0)) {
      expect(await textsOf(this.shop, view)).toEqual(expected);
      view.release();
    }
  }
}

/** Whether the transaction runs in time slices. */
function isLong(batch: Batch): boolean {
  return batch.length % 3 === 0;
}

const nextSlice = () => new Promise<void>((resolve) => setImmediate(resolve));

test("a database matches its model", { timeout: 3_600_000 }, async () => {
  await fc.assert(
    fc.asyncProperty(
      fc.array(step, { minLength: 5, maxLength: 40 }),
      fc.constantFrom(1, 4096, 1_000_000),
      async (steps, cacheBytes) => {
        const run = await Run.start(cacheBytes);
        for (const one of steps) await run.take(one);
        await run.end();
      },
    ),
    { numRuns: runs },
  );
});

test("a database whose documents are rewritten all together matches its model", {
  timeout: 3_600_000,
}, async () => {
  await fc.assert(
    fc.asyncProperty(
      fc.array(rewritingStep, { minLength: 5, maxLength: 30, size: "max" }),
      fc.constantFrom(1, 4096, 1_000_000),
      async (steps, cacheBytes) => {
        const run = await Run.start(cacheBytes);
        for (const one of steps) await run.take(one);
        await run.end();
      },
    ),
    { numRuns: Math.ceil(runs / 4) },
  );
});
