/** Random changes of a database, used to fill it in tests of exports, imports and backups. */
import fc from "fast-check";
import { expect } from "vitest";
import type { OpenDatabase } from "../../engine/api/database/open-database.ts";
import { EngineError } from "../../engine/base/errors.ts";
import { compareExchangeKey } from "../../engine/state/keyspaces/compare-exchange.ts";
import type { Transaction } from "../../engine/state/store/transaction.ts";
import { deleteAttachment, putAttachment } from "../../engine/writes/attachments.ts";
import { putCompareExchange } from "../../engine/writes/compare-exchange.ts";
import { deleteCounter, incrementCounter } from "../../engine/writes/counters.ts";
import { deleteDocument, seedIdentity } from "../../engine/writes/documents.ts";
import { appendToSeries, deleteFromSeries } from "../../engine/writes/time-series.ts";
import { describeDatabase } from "./database-picture.ts";

const id = fc.constantFrom<string>("a", "b", "Users/1", "é");
const name = fc.constantFrom<string>("n", "Other", "ü|x");
const body = fc.constantFrom<string>(
  "{}",
  '{"x":1.50}',
  '{"a":{"b":[1,"}]\\"\\\\"]},"@metadata":{"@collection":"Users"}}',
  `{"long":"${"é".repeat(900)}","@metadata":{"@collection":"Users","mine":[1,{"k":null}]}}`,
);
/** One change of a database; some fail, for example if the document is missing. */
export const step = fc.oneof(
  fc.record({ kind: fc.constant("put" as const), id, body }),
  fc.record({ kind: fc.constant("delete" as const), id }),
  fc.record({
    kind: fc.constant("attach" as const),
    id,
    name,
    content: fc.constantFrom<string>("", "one", '{"@raven-blob-size":5}', "x".repeat(3000)),
  }),
  fc.record({
    kind: fc.constant("count" as const),
    id,
    name,
    by: fc.bigInt(-(2n ** 62n), 2n ** 61n),
  }),
  fc.record({ kind: fc.constant("uncount" as const), id, name }),
  fc.record({
    kind: fc.constant("append" as const),
    id,
    name,
    times: fc.uniqueArray(fc.nat(100_000), { minLength: 1, maxLength: 20 }),
    tag: fc.constantFrom<(string | null)[]>(null, "t", "watch"),
  }),
  fc.record({ kind: fc.constant("identity" as const), name, value: fc.nat(99) }),
  fc.record({ kind: fc.constant("exchange" as const), name, value: fc.jsonValue() }),
  fc.record({ kind: fc.constant("unexchange" as const), name }),
  fc.record({ kind: fc.constant("unattach" as const), id, name }),
  fc.record({
    kind: fc.constant("unappend" as const),
    id,
    name,
    from: fc.nat(60_000),
    to: fc.integer({ min: 40_000, max: 100_000 }),
  }),
);
export type Step = typeof step extends fc.Arbitrary<infer Value> ? Value : never;

export async function play(database: OpenDatabase, one: Step): Promise<void> {
  switch (one.kind) {
    case "put":
      await database.put(one.id, one.body).catch(expectEngineError);
      return;
    case "attach": {
      const content = await database.blobs.store([Buffer.from(one.content)]);
      const { hash, size } = content;
      await database
        .write((transaction) =>
          putAttachment(transaction, one.id, { name: one.name, contentType: "x/y", hash, size }),
        )
        .catch(expectEngineError);
      content.release();
      return;
    }
    default:
      await database
        .write((transaction) => {
          if (one.kind === "delete") deleteDocument(transaction, one.id);
          else if (one.kind === "count") incrementCounter(transaction, one.id, one.name, one.by);
          else if (one.kind === "uncount") deleteCounter(transaction, one.id, one.name);
          else if (one.kind === "identity") seedIdentity(transaction, one.name, one.value, false);
          else if (one.kind === "exchange") {
            const text = JSON.stringify({ Object: one.value });
            putCompareExchange(transaction, one.name, 0, text);
          } else if (one.kind === "unexchange") deleteExchange(transaction, one.name);
          else if (one.kind === "unattach") deleteAttachment(transaction, one.id, one.name);
          else if (one.kind === "unappend") {
            deleteFromSeries(transaction, one.id, one.name, one.from, one.to);
          } else {
            const entries = one.times.map((time) => ({
              time,
              values: [time, -time],
              tag: one.tag,
            }));
            appendToSeries(transaction, one.id, one.name, entries);
          }
        })
        .catch(expectEngineError);
  }
}

function deleteExchange(transaction: Transaction, name: string): void {
  const { compareExchange } = transaction.keyspaces;
  transaction.putEntry(compareExchange, compareExchangeKey(name), undefined);
}

export function expectEngineError(error: unknown): void {
  expect(error).toBeInstanceOf(EngineError);
}

/** The contents of a dump, except its statistics. */
export async function dumpedContents(database: OpenDatabase): Promise<string> {
  const { values: _counted, ...contents } = JSON.parse(await describeDatabase(database)) as Record<
    string,
    unknown
  >;
  return JSON.stringify(contents);
}
