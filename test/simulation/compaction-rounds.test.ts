/**
 * Hundreds of rounds of overwrites on a small database: compaction keeps up with concurrent writes, stops when there is
 * nothing left to reclaim, and leaves neither dead records nor a growing number of small segments.
 */
import { expect, test } from "vitest";
import { OpenDatabase } from "../../engine/api/database/open-database.ts";
import { putParsed } from "../../engine/writes/documents.ts";
import { SeededRandom } from "../support/random.ts";
import { databaseFolder, logOptions, simulatedEnvironment } from "../support/simulated-database.ts";
import { SimulatedFileSystem } from "../support/simulated-file-system.ts";

const documentCount = 300;
const batchSize = 30;

class Rounds {
  readonly files = new SimulatedFileSystem();
  readonly random = new SeededRandom(99);
  readonly #environment = simulatedEnvironment(this.files);
  #database: OpenDatabase | null = null;

  get database(): OpenDatabase {
    if (this.#database === null) throw new Error("the database is not open");
    return this.#database;
  }

  async open(): Promise<void> {
    const maintenance = { scrubIntervalMs: 1e9, snapshotIntervalMs: 1e9 };
    const options = logOptions({
      segmentBytesMax: 8192,
      // Segments sealed before they are full take more space, in proportion, than large ones.
      oversizedBytesMin: 1_000_000,
      cacheBytes: 1_000_000,
      maintenance,
    });
    this.#database = await OpenDatabase.open(this.#environment, "shop", databaseFolder, options);
  }

  /** Advances the clock, with an event-loop tick for disk operations every 20 ms of it. */
  async pass(turns: number): Promise<void> {
    for (let tick = 0; tick < turns; tick++) {
      this.#environment.clock.advance(20);
      await new Promise<void>((resolve) => setImmediate(resolve));
    }
  }

  async put(numbers: readonly number[], value: number): Promise<void> {
    const written = this.database.write((transaction) => {
      for (const number of numbers) {
        const bytes = Buffer.from(`{"n":${value},"text":"${"x".repeat(50 + (number % 50))}"}`);
        const parsed = transaction.state.parser.parse(bytes, 0, bytes.length);
        putParsed(transaction, `things/${number}`, parsed);
      }
    });
    await this.pass(12);
    await written;
  }

  async putAll(value: number): Promise<void> {
    for (let from = 0; from < documentCount; from += batchSize) {
      await this.put(
        Array.from({ length: batchSize }, (_, at) => from + at),
        value,
      );
    }
  }

  /** Overwrites the keys chosen by `pick`, as many as a round over all keys. */
  async putSome(value: number, pick: () => number): Promise<void> {
    for (let count = 0; count < documentCount; count += batchSize) {
      await this.put(Array.from({ length: batchSize }, pick), value);
    }
  }

  below(limit: number): number {
    return this.random.bytes(4).readUInt32LE() % limit;
  }

  async expectRest(): Promise<void> {
    await this.pass(6000);
    const calls = this.files.calls.length;
    const { segments, segmentBytes, recordBytes, deadBytes } = this.database.logMetrics;
    expect(segmentBytes).toBeLessThan(1.7 * (recordBytes - deadBytes));
    expect(segments).toBeLessThan(40);
    await this.pass(500);
    expect(this.files.calls.slice(calls)).toEqual([]);
    this.database.checkInvariants();
  }
}

test.each(["all", "any", "mostly the same few"])("rounds that overwrite %s", async (which) => {
  const rounds = new Rounds();
  await rounds.open();
  await rounds.putAll(0);
  const hot = (): number => rounds.below(rounds.below(10) === 0 ? documentCount : 20);
  for (let round = 1; round <= 60; round++) {
    if (which === "all") await rounds.putAll(round);
    else await rounds.putSome(round, which === "any" ? () => rounds.below(documentCount) : hot);
    if (round % 20 === 0) await rounds.expectRest();
  }
  await rounds.database.abandon();
});
