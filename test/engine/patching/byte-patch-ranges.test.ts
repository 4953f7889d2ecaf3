/**
 * Patches of many documents in one call: each has the same result as with the script, for any
 * position and neighbors.
 */
import fc from "fast-check";
import { afterEach, expect, test } from "vitest";
import type { OpenDatabase } from "../../../engine/api/database/open-database.ts";
import { compileBytePatch } from "../../../engine/patching/byte-patch.ts";
import { patchDocument } from "../../../engine/patching/patch.ts";
import { scriptCache } from "../../../engine/scripting/script-cache.ts";
import type { Transaction } from "../../../engine/state/store/transaction.ts";
import { deleteDocument, putText } from "../../../engine/writes/documents.ts";
import { closeDatabases, openDatabase } from "../../support/open-database.ts";

afterEach(closeDatabases);

const idOf = (n: number) => `c/${n}`;

/**
 * Stores the documents in one transaction, so that they are neighbors; some get a second version,
 * some none.
 */
async function store(database: OpenDatabase, bodies: readonly string[]): Promise<void> {
  await database.write((transaction) => {
    for (const [n, body] of bodies.entries()) {
      const collection = n % 17 === 4 ? "Others" : "Cs";
      const owner = n % 5 === 1 ? ',"Owner":"x"' : "";
      const text = `${body.slice(0, -1)},"@metadata":{"@collection":"${collection}"${owner}}}`;
      putText(transaction, idOf(n), text);
    }
  });
}

/**
 * Patches all documents, in ranges of `stride`, as an operation does. @returns the number of
 * visited documents.
 */
function patchAll(
  transaction: Transaction,
  count: number,
  script: string,
  stride: number,
  etagMax: number,
): number {
  const patch = compileBytePatch(scriptCache.get(script, { kind: "patch" }), "{}");
  if (patch === null) throw new Error("not a patch by bytes");
  const { documents } = transaction.state;
  const batch = Uint32Array.from({ length: count }, (_, n) => documents.lookup(idOf(n)));
  const range = { batch, at: 0, end: 0, etagMax, count: 0 };
  while (range.at < count) {
    range.end = Math.min(count, range.at + stride);
    while (range.at < range.end) {
      patch.run(transaction, range);
      if (range.at === range.end) break;
      const document = batch[range.at++] as number;
      if (transaction.etagOf(document) > etagMax) continue;
      range.count++;
      if (!transaction.exists(document)) continue;
      patchDocument(transaction, {
        id: transaction.state.documents.lowerIdOf(document),
        patch: { script, values: "{}" },
      });
    }
  }
  return range.count;
}

async function textsOf(database: OpenDatabase, count: number): Promise<(string | null)[]> {
  return await Promise.all(Array.from({ length: count }, (_, n) => database.bodyText(idOf(n))));
}

const number = fc.oneof(
  { weight: 6, arbitrary: fc.integer({ min: 10, max: 98 }).map(String) },
  { weight: 1, arbitrary: fc.constantFrom("9", "99", "-1", "0", "-0", "1.5", "2.0", "1e3") },
  { weight: 1, arbitrary: fc.constantFrom('"text"', "null", "[1]", "9007199254740993", "1e308") },
);
const body = fc.oneof(
  { weight: 8, arbitrary: fc.tuple(number, number).map(([a, b]) => `{"A":${a},"T":"é","B":${b}}`) },
  { weight: 1, arbitrary: number.map((a) => `{"B":${a},"A":${a}}`) },
  {
    weight: 1,
    arbitrary: fc.constantFrom('{"C":0}', '{"A":1}', `{"A":12,"B":13,"C":"${"x".repeat(1500)}"}`),
  },
);
const script = fc.constantFrom(
  "this.A += 1",
  "this.A = this.A * this.B",
  "this.B = this.A; this.A = this.B - 1",
  "this.A = 17; this.B += 2",
  "this.B /= 4",
  "this.A -= this.A",
  "this.B = this.B",
);

test("produces the same text as the script for each of many documents", async () => {
  await fc.assert(
    fc.asyncProperty(
      fc.array(body, { minLength: 1, maxLength: 120, size: "max" }),
      script,
      fc.constantFrom(1, 7, 64, 1000),
      async (bodies, source, stride) => {
        const byBytes = await openDatabase();
        const byScript = await openDatabase();
        for (const database of [byBytes, byScript]) await store(database, bodies);
        const count = bodies.length;
        const etagMax = byBytes.state.committedEtag;
        const visited = await byBytes.write((transaction) =>
          patchAll(transaction, count, source, stride, etagMax),
        );
        await byScript.write((transaction) => {
          for (let n = 0; n < count; n++) {
            patchDocument(transaction, { id: idOf(n), patch: { script: source, values: "{}" } });
          }
        });
        expect(visited).toBe(count);
        expect(await textsOf(byBytes, count)).toEqual(await textsOf(byScript, count));
        await closeDatabases();
      },
    ),
    { numRuns: 60 },
  );
}, 120_000);

test("skips documents written after its start, and reads staged, undurable ones", async () => {
  const database = await openDatabase();
  const count = 50;
  await store(
    database,
    Array.from({ length: count }, (_, n) => `{"A":${10 + n},"B":1}`),
  );
  const { committedEtag } = database.state;
  const writes: Promise<unknown>[] = [];
  // Staged: every fifth is changed, every seventh is deleted.
  writes.push(
    database.write((transaction) => {
      for (let n = 0; n < count; n++) {
        if (n % 5 === 0 && n % 17 !== 4) {
          putText(transaction, idOf(n), `{"A":50,"B":2,"@metadata":{"@collection":"Cs"}}`);
        }
        if (n % 7 === 0) deleteDocument(transaction, idOf(n));
      }
    }),
  );
  let visited = 0;
  writes.push(
    database.write((transaction) => {
      visited = patchAll(transaction, count, "this.A += 1", 64, committedEtag);
    }),
  );
  const staged = database.write((transaction) => {
    patchAll(transaction, count, "this.A += 1", 64, Number.MAX_SAFE_INTEGER);
  });
  await Promise.all([...writes, staged]);
  const texts = await textsOf(database, count);
  for (const [n, text] of texts.entries()) {
    if (n % 7 === 0) expect(text).toBeNull();
    else if (n % 5 === 0 && n % 17 !== 4) expect(text).toBe('{"A":51,"B":2}');
    else expect(text).toBe(`{"A":${12 + n},"B":1}`);
  }
  // Deleted documents count as visited, documents with a newer version do not.
  const isNewer = (n: number) => n % 5 === 0 && n % 17 !== 4 && n % 7 !== 0;
  expect(visited).toBe(texts.filter((_, n) => !isNewer(n)).length);
});
