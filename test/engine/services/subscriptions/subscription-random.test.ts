/**
 * Subscriptions under random writes, connecting, acknowledging and disconnecting workers, and
 * crashes. A simple model records the acknowledged versions of each document.
 */
import { afterEach, expect, test } from "vitest";
import type { OpenDatabase } from "../../../../engine/api/database/open-database.ts";
import type { SubscriptionBatch } from "../../../../engine/services/subscriptions/subscription.ts";
import type { SubscriptionWorker } from "../../../../engine/services/subscriptions/subscription-worker.ts";
import {
  closeDatabases,
  openAfterCrash,
  openDatabase,
  temporaryFolder,
} from "../../../support/open-database.ts";
import { SeededRandom } from "../../../support/random.ts";
import { seedOfRun } from "../../../support/seed.ts";

afterEach(closeDatabases);

const never = new AbortController().signal;
const steps = 120;
const documents = 12;

/** One run: the database, its workers, and the model. */
class Run {
  readonly random: SeededRandom;
  readonly isShared: boolean;
  database: OpenDatabase;
  readonly workers: SubscriptionWorker[] = [];
  readonly batches = new Map<SubscriptionWorker, [string, string][]>();
  /** Id -> acknowledged change vectors. */
  readonly acknowledged = new Map<string, Set<string>>();
  version = 0;

  constructor(random: SeededRandom, isShared: boolean, database: OpenDatabase) {
    this.random = random;
    this.isShared = isShared;
    this.database = database;
  }

  async write(): Promise<void> {
    const id = `users/${this.random.below(documents)}`;
    if (this.random.chance(0.15)) await this.database.delete(id);
    else {
      await this.database.put(id, {
        version: ++this.version,
        isWanted: this.random.chance(0.7),
        "@metadata": { "@collection": "Users" },
      });
    }
  }

  async open(): Promise<void> {
    if (!this.isShared && this.workers.length > 0) return;
    if (this.workers.length === 3) return;
    this.workers.push(
      await this.database.subscriptions.connect(
        {
          name: "s",
          strategy: this.isShared ? "Concurrent" : "OpenIfFree",
          documentsPerBatchMax: 1 + this.random.below(4),
          closesWhenNoneLeft: true,
          unreadable: [],
          workerId: String(this.version),
          client: "test",
          onEnd: () => undefined,
        },
        never,
      ),
    );
  }

  async take(worker: SubscriptionWorker): Promise<boolean> {
    if (this.batches.has(worker)) return false;
    const batch = await worker.nextBatch();
    if (batch === null) return false;
    const states = statesOf(batch);
    for (const [id] of states) {
      for (const other of this.batches.values()) {
        expect(
          other.some(([held]) => held === id),
          "a document is with one worker",
        ).toBe(false);
      }
    }
    this.batches.set(worker, states);
    return true;
  }

  async acknowledge(worker: SubscriptionWorker): Promise<void> {
    const states = this.batches.get(worker);
    if (states === undefined) return;
    await worker.acknowledge();
    this.batches.delete(worker);
    for (const [id, vector] of states) {
      const known = this.acknowledged.get(id) ?? new Set();
      this.acknowledged.set(id, known.add(vector));
    }
  }

  close(worker: SubscriptionWorker): void {
    worker.close();
    this.batches.delete(worker);
    this.workers.splice(this.workers.indexOf(worker), 1);
  }

  /** No version at or before the stored position is unacknowledged. */
  async check(): Promise<void> {
    const { changeVector } = this.database.subscriptions.task({ name: "s" });
    const position = changeVector === null ? 0 : etagOf(changeVector);
    for (let i = 0; i < documents; i++) {
      const stored = await this.database.get(`users/${i}`);
      if (stored === null || stored["isWanted"] !== true) continue;
      const { "@change-vector": vector } = stored["@metadata"] as { "@change-vector": string };
      if (etagOf(vector) > position) continue;
      expect([...(this.acknowledged.get(`users/${i}`) ?? [])]).toContain(vector);
    }
  }

  /** Runs until no batch is left: then the last version of each document was acknowledged. */
  async drain(): Promise<void> {
    for (const worker of [...this.workers]) this.close(worker);
    await this.open();
    const [worker] = this.workers as [SubscriptionWorker];
    while (await this.take(worker)) await this.acknowledge(worker);
    for (let i = 0; i < documents; i++) {
      const stored = await this.database.get(`users/${i}`);
      if (stored === null || stored["isWanted"] !== true) continue;
      const { "@change-vector": vector } = stored["@metadata"] as { "@change-vector": string };
      expect([...(this.acknowledged.get(`users/${i}`) ?? [])]).toContain(vector);
    }
  }
}

function etagOf(changeVector: string): number {
  return Number(/^A:(\d+)-/.exec(changeVector)?.[1]);
}

/** Ids and change vectors of a batch. */
function statesOf(batch: SubscriptionBatch): [string, string][] {
  return batch.items.map(({ text }) => {
    const { "@metadata": metadata } = JSON.parse(text.toString()) as {
      "@metadata": { "@id": string; "@change-vector": string };
    };
    return [metadata["@id"], metadata["@change-vector"]];
  });
}

async function step(run: Run): Promise<void> {
  const { random, workers } = run;
  const worker = workers[random.below(Math.max(1, workers.length))];
  const what = random.next();
  if (what < 0.4) await run.write();
  else if (what < 0.5 || worker === undefined) await run.open();
  else if (what < 0.7) await run.take(worker);
  else if (what < 0.92) await run.acknowledge(worker);
  else run.close(worker);
}

const seed = seedOfRun();
test.each([
  [false, seed],
  [true, seed + 1],
  [false, seed + 2],
  [true, seed + 3],
])("loses no acknowledged state and omits none (shared: %s, seed %d)", async (isShared, own) => {
  const folder = temporaryFolder();
  const run = new Run(new SeededRandom(own), isShared, await openDatabase(folder));
  await run.database.subscriptions.put({ name: "s", query: "from Users where isWanted = true" }, 1);
  for (let i = 0; i < steps; i++) {
    await step(run);
    await run.check();
  }
  if (run.random.chance(0.5)) {
    run.workers.length = 0;
    run.batches.clear();
    run.database = await openAfterCrash(folder);
    await run.check();
  }
  await run.drain();
});

test.each([
  [false, seed + 4],
  [true, seed + 5],
])("omits no revision (shared: %s, seed %d)", async (isShared, own) => {
  const random = new SeededRandom(own);
  const run = new Run(random, isShared, await openDatabase());
  const { database, workers } = run;
  await database.putSettings({ Revisions: { Default: { Disabled: false } } });
  await database.subscriptions.put({ name: "s", query: "from Users (Revisions = true)" }, 1);
  const seen = new Set<number>();
  const given = new Map<SubscriptionWorker, number[]>();
  const take = async (worker: SubscriptionWorker): Promise<boolean> => {
    if (given.has(worker)) return false;
    const batch = await worker.nextBatch();
    if (batch === null) return false;
    const versions = batch.items.map(({ text }) => {
      const { Current } = JSON.parse(text.toString()) as { Current: { version: number } };
      return Current.version;
    });
    given.set(worker, versions);
    return true;
  };
  const acknowledge = async (worker: SubscriptionWorker): Promise<void> => {
    const versions = given.get(worker);
    if (versions === undefined) return;
    await worker.acknowledge();
    given.delete(worker);
    for (const version of versions) seen.add(version);
  };
  for (let i = 0; i < steps; i++) {
    const worker = workers[random.below(Math.max(1, workers.length))];
    const what = random.next();
    if (what < 0.45) {
      await database.put(`users/${random.below(documents)}`, {
        version: ++run.version,
        "@metadata": { "@collection": "Users" },
      });
    } else if (what < 0.5 || worker === undefined) await run.open();
    else if (what < 0.72) await take(worker);
    else if (what < 0.94) await acknowledge(worker);
    else run.close(worker);
  }
  for (const worker of [...workers]) run.close(worker);
  await run.open();
  const [last] = workers as [SubscriptionWorker];
  while (await take(last)) await acknowledge(last);
  expect(seen.size).toBe(run.version);
});
