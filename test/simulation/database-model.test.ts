/**
 * Random operations on a database and on its slow, obvious twin: batches of all kinds, some that throw, some in flight
 * together; views that are held; index snapshots, compaction, purges; closing, killing and losing power.
 * DATABASE_MODEL_RUNS sets how many histories there are (200); fast-check prints the seed of one that fails.
 */
import fc from "fast-check";
import { expect, test } from "vitest";
import type { DatabaseView } from "../../engine/database.ts";
import { idOf } from "../../engine/document.ts";
import { allCollections } from "../../engine/keyspaces/document-table.ts";
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

type Step =
  | { do: "write"; batches: Batch[] }
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
  | { do: "powerLoss"; batches: Batch[]; turns: number; seed: number };

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

/** A view, and the texts that it had when it was taken. */
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

  private constructor(shop: SimulatedDatabase, files: SimulatedFileSystem, cacheBytes: number) {
    this.shop = shop;
    this.files = files;
    this.#cacheBytes = cacheBytes;
  }

  static async begin(cacheBytes: number): Promise<Run> {
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
        await Promise.all(step.batches.map((one) => shop.write(one)));
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
        await shop.database.compact();
        return;
      case "purge":
        await shop.database.maintenance.cleanTombstones();
        return;
      case "turn":
        shop.clock.advance(60);
        await new Promise<void>((resolve) => setImmediate(resolve));
        return;
      case "check":
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
        for (const one of step.batches) shop.write(one).catch(() => undefined);
        for (let turn = 0; turn < step.turns; turn++) {
          await new Promise<void>((resolve) => setImmediate(resolve));
        }
        this.#views = [];
        await this.#open(this.files.powerLoss(step.seed));
        return;
    }
  }

  async end(): Promise<void> {
    await this.#releaseViews();
    await this.shop.check();
    await this.shop.database.close();
  }

  async #open(files: SimulatedFileSystem): Promise<void> {
    this.files = files;
    // What is still on its way in the killed process must not change what is known.
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

test("a database does what its twin does", { timeout: 3_600_000 }, async () => {
  await fc.assert(
    fc.asyncProperty(
      fc.array(step, { minLength: 5, maxLength: 40 }),
      fc.constantFrom(1, 4096, 1_000_000),
      async (steps, cacheBytes) => {
        const run = await Run.begin(cacheBytes);
        for (const one of steps) await run.take(one);
        await run.end();
      },
    ),
    { numRuns: runs },
  );
});
