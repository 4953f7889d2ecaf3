/** Abuse by scripts and by indexing work. See `run-abuse.ts` for how to write a case. */
import assert from "node:assert/strict";
import { setTimeout as sleep } from "node:timers/promises";
import { type AbuseCase, assertRefused } from "./abuse-case.ts";
import type { AbuseServer, Reply } from "./abuse-server.ts";

const limit = /Patching\.(MaxTimeForScriptInMs|MaxMemoryForScriptInMb|MaxStepsForScript)/;
const one = '{"Name":"Ann","L":[1,2,3]}';
const operationMsMax = 60_000;

/** Scripts that repeat one thing for ever, by what it is. */
const endless: Readonly<Record<string, string>> = {
  "an endless loop": "while (true) {}",
  "counters without end": "for (let i = 0; ; i++) incrementCounter(this, 'c' + i, 1)",
  "the lower case of long texts without end": "for (;;) 'İ'.repeat(3e6).toLowerCase()",
  "a search in long texts without end": "const s = 'a'.repeat(1e7); for (;;) s.indexOf('ab')",
  "a search for periodic texts without end":
    "const p = 'ab'.repeat(2000); for (;;) 'ab'.repeat(5e5).indexOf(p + 'c' + p)",
  "a list that grows without end": "const a = []; for (;;) a.push(1)",
  "lists of objects without end": "const a = []; for (;;) a.push({ a: 1, b: [2] })",
  "regular expressions without end":
    "const a = []; for (;;) a.push(new RegExp('a{' + (a.length % 900) + '}'))",
  "documents without end": "for (let i = 0; ; i++) put('x/' + i, { a: i })",
  "long documents without end":
    "const s = 'x'.repeat(1e5); for (let i = 0; ; i++) put('x/' + i, { s })",
  "entries of a time series without end":
    "const t = timeseries(this, 'h'); for (let i = 0; ; i++) t.append(new Date(1e12 + i * 1000), [1], null)",
  "loads without end": "for (;;) load('users/0')",
  "output without end": "for (;;) output('x'.repeat(1000))",
  "marks in disorder without end":
    "const s = 'a' + '\\u0316\\u0300'.repeat(5000); for (;;) s.normalize()",
  "properties that are deleted without end":
    "const o = {}; for (let i = 0; i < 20000; i++) o['k' + i] = i; for (let j = 0; ; j++) delete o['k' + j]",
  "a text that doubles without end":
    "let s = 'a'; for (;;) { try { s += s; s.at(0) } catch (e) { s = 'a' } }",
  "a document that unfolds": "let a = [1]; for (let i = 0; i < 40; i++) a = [a, a]; this.a = a",
};

/** Runs a patch by query to its end. Gives its state as a reply, whose message is the operation's. */
async function patchAll(server: AbuseServer, script: string): Promise<Reply[]> {
  const body = JSON.stringify({ Query: { Query: `from Users update { ${script} }` } });
  const path = `${server.database}/queries?ignoreMaxStepsForScript=true`;
  const started = await server.ask(path, { method: "PATCH", body });
  const { OperationId } = JSON.parse(started.text) as { OperationId: number };
  for (let waitedMs = 0; waitedMs < operationMsMax; waitedMs += 20) {
    const state = await server.ask(`${server.database}/operations/state?id=${OperationId}`);
    const { Status, Result } = JSON.parse(state.text) as { Status: string; Result: unknown };
    if (Status !== "InProgress") return [{ ...state, text: JSON.stringify(Result) }];
    await sleep(20);
  }
  throw new Error("the operation does not end");
}

/** Patches whose cost is in the document that they make, not in their statements. */
const large: Readonly<Record<string, string>> = {
  "a text of 1 MB": "this.X = 'x'.repeat(1e6)",
  "a list of 100,000 missing items": "this.X = Array(1e5)",
  "2,500 loaded documents": "this.X = load(Array(2500).fill('users/1')).length",
};

const byLargeResult: readonly AbuseCase[] = Object.entries(large).map(([name, script]) => ({
  name: `a patch by query that makes ${name} for each document`,
  area: "scripts",
  who: "administrator",
  setUp: (server) => server.fill(40, () => one),
  attack: (server) => patchAll(server, script),
}));

const byQuery: readonly AbuseCase[] = Object.entries(endless).map(([name, script]) => ({
  name: `a patch by query without a limit of steps, of ${name}`,
  area: "scripts",
  who: "administrator",
  setUp: (server) => server.fill(100, () => one),
  attack: (server) => patchAll(server, script),
  check: ([reply]) => assertRefused(reply, [200], limit),
}));

/** Deploys an index and waits until it has seen all documents. Gives its errors. */
async function deploy(server: AbuseServer, definition: object): Promise<Reply[]> {
  const body = JSON.stringify({ Indexes: [{ Name: "I", ...definition }] });
  await server.ask(`${server.database}/admin/indexes`, { method: "PUT", body });
  for (let waitedMs = 0; waitedMs < operationMsMax; waitedMs += 50) {
    const stats = await server.ask(`${server.database}/indexes/stats?name=I`);
    const { Results } = JSON.parse(stats.text) as { Results: { IsStale: boolean }[] };
    if (Results[0]?.IsStale === false) break;
    await sleep(50);
  }
  const errors = await server.ask(`${server.database}/indexes/errors?name=I`);
  await server.ask(`${server.database}/indexes?name=I`, { method: "DELETE" });
  return [errors];
}

const list = JSON.stringify({ L: Array.from({ length: 60 }, (_, i) => i) });
const joins = ["a", "b", "c", "e", "f"].map((name) => `from ${name} in u.L`).join(" ");
/** Indexes whose cost is in what they make. */
const largeEntries = new Set([
  "a text of 1 MB in each entry",
  "1,000 entries of each document",
  "reduced lists of 100,000 items",
]);
const indexes: Readonly<Record<string, object>> = {
  "five cross joins": {
    Maps: [`from u in docs.Users ${joins} select new { X = a + b + c + e + f }`],
  },
  "a text of 1 MB in each entry": {
    Maps: ["map('Users', u => ({ X: 'x'.repeat(1e6), Y: Array(2e4) }))"],
    Fields: { X: { Indexing: "Search", Storage: "Yes" } },
  },
  "1,000 entries of each document": {
    Maps: ["map('Users', u => Array(1000).fill({ A: 'word '.repeat(200), B: u.L }))"],
    Fields: { A: { Indexing: "Search" } },
  },
  "reduced lists of 100,000 items": {
    Maps: ["map('Users', u => ({ K: 1, L: Array(1e4) }))"],
    Reduce:
      "groupBy(x => x.K).aggregate(g => ({ K: g.key, L: g.values.reduce((s, v) => s.concat(v.L), []).slice(0, 1e5) }))",
  },
  "a loop without end": { Maps: ["map('Users', u => { for (;;); })"] },
  "a sequence that is too long": {
    Maps: ["from u in docs.Users from i in Enumerable.Range(0, 1000000000) select new { X = i }"],
  },
  "many maps": {
    Maps: Array.from(
      { length: 100 },
      (_, i) =>
        `map('Users', u => { let n = ${i}; for (let i = 0; i < 4000; i++) n += u.L.length * i; return { n } })`,
    ),
  },
};

const byIndex: readonly AbuseCase[] = Object.entries(indexes).map(([name, definition]) => ({
  name: `an index with ${name}`,
  area: "scripts",
  who: "administrator",
  setUp: (server) => server.fill(20, () => list),
  attack: (server) => deploy(server, definition),
  check: ([reply]) => {
    if (!largeEntries.has(name)) assert.match(reply?.text ?? "", limit);
  },
}));

/** A multi_get in a multi_get, as deep as is asked for. */
function nested(depth: number, path: string): string {
  let text = '{"Requests":[]}';
  for (let i = 0; i < depth; i++) {
    text = `{"Requests":[{"Url":"${path}/multi_get?","Query":"","Method":"POST","Content":${text}}]}`;
  }
  return text;
}

const others: readonly AbuseCase[] = [
  {
    name: "a batch of patches that all take long",
    area: "scripts",
    who: "writer",
    setUp: (server) => server.fill(10, () => one),
    attack: async (server) => {
      const Script = "for (let i = 0; i < 4000; i++) this.N = i";
      const command = { Type: "PATCH", Id: "users/1", Patch: { Script } };
      const body = JSON.stringify({ Commands: Array.from({ length: 500 }, () => command) });
      return [await server.request(`${server.database}/bulk_docs`, { method: "POST", body })];
    },
    check: ([reply]) => assert.equal(reply?.status, 201),
  },
  {
    name: "multi_get in multi_get, 1,000 deep",
    area: "scripts",
    who: "reader",
    attack: async (server) => {
      const body = nested(1_000, server.database);
      return [await server.request(`${server.database}/multi_get`, { method: "POST", body })];
    },
    check: ([reply]) => assert.match(reply?.text ?? "", /cannot contain another one/),
  },
  {
    name: "an export by a script that does not end",
    area: "scripts",
    who: "reader",
    setUp: (server) => server.fill(100, () => one),
    attack: async (server) => {
      const body = JSON.stringify({ TransformScript: "for (;;) 'İ'.repeat(1000).toLowerCase()" });
      return [await server.request(`${server.database}/smuggler/export`, { method: "POST", body })];
    },
    check: ([reply]) => assert.notEqual(reply?.status, 200),
  },
  {
    name: "sample data",
    area: "scripts",
    who: "writer",
    isLong: true,
    attack: async (server) => {
      const path = `${server.database}/studio/sample-data`;
      return [await server.request(path, { method: "POST" })];
    },
    check: ([reply]) => assert.ok(reply?.status === 204 || reply?.status === 400),
  },
];

export const scriptCases: readonly AbuseCase[] = [
  ...byQuery,
  ...byLargeResult,
  ...byIndex,
  ...others,
];
