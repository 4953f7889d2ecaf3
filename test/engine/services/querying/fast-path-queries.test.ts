/** Queries on the fast path return the same rows and outcome as on the general path. */
import { afterEach, expect, it } from "vitest";
import type { OpenDatabase } from "../../../../engine/api/database/open-database.ts";
import type { QueryOptions } from "../../../../engine/services/querying/query-host.ts";
import { closeDatabases, openDatabase, putAll } from "../../../support/open-database.ts";
import { SeededRandom } from "../../../support/random.ts";
import { seedOfRun } from "../../../support/seed.ts";

afterEach(closeDatabases);

const count = 300;
const seed = seedOfRun();

async function filled(): Promise<OpenDatabase> {
  const database = await openDatabase();
  const users: Record<string, object> = {};
  for (let n = 0; n < count; n++) {
    users[`users/${n}`] = {
      Name: n % 9 === 0 ? `NAME ${n}` : `name ${n}`,
      Age: 18 + (n % 20),
      City: `City ${n % 7}`,
      Score: ((n * 7919) % 101) / 10,
      Active: n % 3 === 0,
      Born: n % 5 === 0 ? null : `19${50 + (n % 40)}-01-0${1 + (n % 9)}T00:00:00.0000000`,
      Tags: n % 50 === 0 ? undefined : `t${n % 11}`,
      Inner: { Text: `é"\\${n % 4}` },
    };
  }
  await putAll(database, "Users", users);
  await putAll(database, "Others", { "others/1": { Name: "name 1", City: "City 1" } });
  return database;
}

interface Answer {
  readonly rows: readonly string[];
  readonly outcome: unknown;
  readonly error: string | null;
  /** Whether the query was listed as running while its rows were sent. */
  readonly isListed: boolean;
}

/** The fields of the outcome that do not differ between runs. */
async function send(
  database: OpenDatabase,
  run: (sink: { add(row: Buffer): Promise<void> | null }) => unknown,
  waits = false,
): Promise<Answer> {
  const rows: string[] = [];
  let isListed = false;
  const sink = {
    add(row: Buffer) {
      isListed ||= database.queries.running.list(0).length > 0;
      if (!waits) {
        rows.push(row.toString());
        return null;
      }
      return new Promise<void>((resolve) => {
        setImmediate(() => {
          rows.push(row.toString());
          resolve();
        });
      });
    },
  };
  try {
    const found = (await run(sink)) as Record<string, unknown>;
    const { durationMs: _, lastQueryTime, resultEtag, ...rest } = found;
    // A stale result has its own etag.
    const etag = found["isStale"] === true ? null : resultEtag;
    const outcome = { ...rest, etag, hasTime: lastQueryTime === 0 };
    return { rows, outcome, error: null, isListed };
  } catch (error) {
    return { rows, outcome: null, error: String(error), isListed };
  }
}

/** Runs a query on the fast path, where possible, and on the general path. */
async function compared(
  database: OpenDatabase,
  text: string,
  options: QueryOptions = {},
  waits = false,
): Promise<{ readonly isPlain: boolean; readonly rowCount: number }> {
  const plain = await send(database, (sink) => database.startQuery(text, options, sink), waits);
  const { queries } = database;
  const general = await send(database, async (sink) =>
    queries.execute(await queries.prepare(text, "read", options), options, sink),
  );
  const { isListed, ...answer } = plain;
  expect({ text, options, ...answer }).toEqual({
    text,
    options,
    rows: general.rows,
    outcome: general.outcome,
    error: general.error,
  });
  return { isPlain: !isListed, rowCount: plain.rows.length };
}

const conditions: readonly [string, (random: (below: number) => number) => unknown][] = [
  ["City = $a", (random) => `City ${random(9)}`],
  ["City = $a", (random) => `CITY ${random(9)}`],
  ["Name = $a", (random) => `name ${random(count + 20)}`],
  ["Age = $a", (random) => 16 + random(25)],
  ["Active = $a", (random) => random(2) === 0],
  ["Inner.Text = $a", (random) => `é"\\${random(5)}`],
  ["Born = $a", (random) => `19${50 + random(45)}-01-0${1 + random(9)}`],
  ["exact(City = $a)", (random) => `${random(2) === 0 ? "City" : "city"} ${random(9)}`],
  ["id() = $a", (random) => `${random(2) === 0 ? "users" : "USERS"}/${random(count + 20)}`],
  ["City != $a", (random) => `City ${random(9)}`],
  ["Score = $a", (random) => random(110) / 10],
  ["Age = $a", () => null],
];
const further = [
  "",
  " and Age between $b and $c",
  " and Score >= $d",
  " and Age in ($b, $c, 30)",
  " and City != 'City 1'",
  " or Age = $b",
];
const orders = [
  "",
  " order by Score as double",
  " order by Name desc",
  " order by Born, Age as long desc",
  " order by Tags",
];
const selects = ["", " select Name, Age", " select id() as I, Inner.Text as T, Missing, 'x' as C"];
const pages = ["", " limit 10", " limit 3, 7", " limit 500, 5", " limit 0"];

it("returns the same as the general path, for any query", { timeout: 120_000 }, async () => {
  const database = await filled();
  const random = new SeededRandom(seed);
  const below = (end: number) => random.below(end);
  const pick = <One>(all: readonly One[]): One => all[below(all.length)] as One;
  for (let round = 0; round < 250; round++) {
    const [condition, newValue] = pick(conditions);
    const text = `from Users where ${condition}${pick(further)}${pick(orders)}${pick(selects)}${pick(pages)}`;
    for (let n = 0; n < 4; n++) {
      const low = 18 + below(20);
      const parameters = { a: newValue(below), b: low, c: low + below(10), d: below(100) / 10 };
      const parametersText = JSON.stringify(parameters);
      const pageSize = below(4) === 0 ? below(20) : undefined;
      const start = below(4) === 0 ? below(10) : undefined;
      const options = { parametersText, pageSize, start, waitForNonStale: true };
      await compared(database, text, options, below(5) === 0);
    }
  }
});

it("runs known equality queries on the fast path", async () => {
  const database = await filled();
  for (const condition of [
    "City = 'City 1'",
    "Name = 'name 1'",
    "Age = 20",
    "Active = true",
    "id() = 'users/7'",
    "City = 'City 1' and Age between 20 and 25",
  ]) {
    const text = `from Users where ${condition} order by Score as double limit 5`;
    const isById = condition.startsWith("id()");
    const requested = isById ? `from Users where ${condition}` : text;
    // The first run analyzes the text; a run late in an event-loop tick waits for the next tick.
    await compared(database, requested, { waitForNonStale: true });
    await expect
      .poll(async () => (await compared(database, requested, { waitForNonStale: true })).isPlain, {
        timeout: 10_000,
      })
      .toBe(true);
  }
});

it("skips deleted documents immediately", async () => {
  const database = await filled();
  const text = "from Users where City = $a order by Score as double limit 4";
  const options = { parametersText: '{"a":"City 1"}', waitForNonStale: true };
  for (let n = 0; n < 3; n++) await compared(database, text, options);
  for (const n of [1, 8, 15, 22, 29]) {
    await database.delete(`users/${n}`);
    const stale = await send(database, (sink) =>
      database.startQuery(text, { parametersText: options.parametersText }, sink),
    );
    expect(stale.rows.join()).not.toContain(`"users/${n}"`);
    await compared(database, text, options);
    await compared(database, text, options);
    await compared(database, `from Users where id() = 'users/${n}'`);
  }
});

it("rejects the same queries as the general path", async () => {
  const database = await filled();
  const text = "from Users where City = $a";
  for (let n = 0; n < 3; n++) await compared(database, text, { parametersText: '{"a":"City 1"}' });
  for (const parametersText of ["{", '{"a":', '{"b":1}', '{"a":{}}', '{"a":[1]}', "[]", "{}"]) {
    await compared(database, text, { parametersText });
  }
});
