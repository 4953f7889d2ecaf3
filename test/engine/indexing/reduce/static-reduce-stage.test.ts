/**
 * Groups of many values are reduced in levels of pages: the results are the same as of one reduce
 * over all values.
 */
import { expect, test } from "vitest";
import { EngineError } from "../../../../engine/base/errors.ts";
import { parseStaticDefinition } from "../../../../engine/indexing/definitions/static-definition.ts";
import { IndexErrors } from "../../../../engine/indexing/index-errors.ts";
import type { IndexHost } from "../../../../engine/indexing/index-host.ts";
import type { IndexProgram, MapResult } from "../../../../engine/indexing/index-program.ts";
import { StaticReduceStage } from "../../../../engine/indexing/reduce/static-reduce-stage.ts";
import { StaticEntries } from "../../../../engine/indexing/static-entries.ts";
import { SeededRandom } from "../../../support/random.ts";

interface Value {
  readonly N: number;
  readonly Bad?: boolean;
}

const definition = parseStaticDefinition({
  Name: "I",
  Maps: ["map('Items', i => ({ K: i.K, N: i.N }))"],
  Reduce: "groupBy(x => x.K).aggregate(g => ({ K: g.key, N: 1 }))",
});

/** A sum; counts the values of each call. */
class Stage {
  readonly entries = new StaticEntries(definition, ["K", "N"], false);
  readonly stage: StaticReduceStage;
  readonly values = new Map<number, { readonly key: string; readonly value: Value }>();
  reduced = 0;

  constructor() {
    const program = {
      reduce: (key: string, values: readonly string[]) => {
        this.reduced += values.length;
        let sum = 0;
        for (const text of values) {
          const { N, Bad } = JSON.parse(text) as Value;
          if (Bad === true) throw new EngineError("script-failed", "bad");
          sum += N;
        }
        return JSON.stringify({ K: key, N: sum });
      },
      fieldsOf: (text: string) =>
        Object.entries(JSON.parse(text) as object).map(([name, value]) => ({
          name,
          text: JSON.stringify(value),
          dynamic: null,
        })),
    } as unknown as IndexProgram;
    const host = { nowMicros: () => 0 } as unknown as IndexHost;
    this.stage = new StaticReduceStage("I", program, this.entries, new IndexErrors(), host, null);
  }

  set(document: number, key: string, value: Value): void {
    this.values.set(document, { key, value });
    const values = [{ key, text: JSON.stringify(value) }];
    this.stage.set(document, { values } as unknown as MapResult);
  }

  remove(document: number): void {
    this.values.delete(document);
    this.stage.remove(document);
  }

  settle(isTimeUp: () => boolean): void {
    while (!this.stage.isSettled) this.stage.settle(isTimeUp);
  }

  compare(): void {
    const sums = new Map<string, number>();
    for (const { key, value } of this.values.values()) {
      const sum = value.Bad === true ? Number.NaN : value.N;
      sums.set(key, (sums.get(key) ?? 0) + sum);
    }
    const expected = [...sums].filter(([, sum]) => !Number.isNaN(sum)).sort();
    const { store } = this.entries;
    const found = [...store.all().toList()].map((entry) => {
      const { K, N } = JSON.parse(this.stage.textOf(entry)) as { K: string; N: number };
      return [K, N];
    });
    expect(found.sort()).toEqual(expected);
    store.checkInvariants();
  }
}

test("results match under any changes, failures, deletions and slices", () => {
  const random = new SeededRandom(8);
  const created = new Stage();
  for (let round = 0; round < 40; round++) {
    // The number of documents grows and falls through three levels.
    const size = round < 20 ? 3_000 : 120;
    for (let step = 0; step < 600; step++) {
      const document = random.below(size);
      const key = JSON.stringify(random.chance(0.8) ? "many" : `few-${random.below(20)}`);
      if (random.chance(round < 20 ? 0.1 : 0.4)) created.remove(document);
      else
        created.set(document, key, {
          N: random.below(100),
          Bad: round > 30 && random.chance(0.01),
        });
    }
    if (round === 20)
      for (let document = 120; document < 3_000; document++) created.remove(document);
    created.settle(() => random.chance(0.5));
    created.compare();
    created.stage.compact(() => random.chance(0.2));
  }
});

test("a change reduces one page per level, not the whole group", () => {
  const created = new Stage();
  for (let document = 0; document < 20_000; document++) created.set(document, "all", { N: 1 });
  created.settle(() => false);
  created.compare();
  created.reduced = 0;
  for (let document = 0; document < 100; document++) {
    created.set(document * 190, "all", { N: 2 });
    created.settle(() => false);
  }
  created.compare();
  expect(created.reduced / 100).toBeLessThan(150);
});

test("a small group that changes continually stays in one page", () => {
  const created = new Stage();
  for (let document = 0; document < 2_000; document++) created.set(document, "other", { N: 1 });
  for (let i = 0; i < 900; i++) {
    created.set(10_000, "small", { N: i });
    created.settle(() => false);
  }
  created.compare();
  created.reduced = 0;
  created.set(10_000, "small", { N: 1 });
  created.settle(() => false);
  expect(created.reduced).toBe(1);
});
