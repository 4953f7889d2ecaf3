/**
 * The clients of the `query` bench, in a separate process: persistent HTTP/1.1 connections, each with one query in
 * flight. Started with fork(); replies to each `QueryLoad` of its parent with a `RawResult`.
 */
import { seeded } from "../harness.ts";
import { type RawResult, runRaw } from "./raw-client.ts";

export interface QueryLoad {
  readonly url: string;
  /** Name in `measuredQueries`. */
  readonly query: string;
  /** Number of documents in the database. */
  readonly documents: number;
  readonly requests: number;
  readonly inFlight: number;
  readonly seed: number;
}

const cityCount = 1000;
const ageMin = 18;
const ageCount = 60;
const fields = ["Name", "Age", "City", "Score", "Active", "Notes"];

interface MeasuredQuery {
  readonly text: string;
  readonly parameters: (random: () => number, documents: number) => object;
}

const cityOf = (random: () => number) => `City ${random() % cityCount}`;
const ageOf = (random: () => number) => ageMin + (random() % ageCount);
const byCity = (random: () => number) => ({ a: cityOf(random) });
const none = () => ({});

/** Measured queries by printed name. */
export const measuredQueries: Readonly<Record<string, MeasuredQuery>> = {
  "City = $a limit 10": { text: "from Users where City = $a limit 10", parameters: byCity },
  "Age = $a limit 10": {
    text: "from Users where Age = $a limit 10",
    parameters: (random) => ({ a: ageOf(random) }),
  },
  "Name = $a": {
    text: "from Users where Name = $a",
    parameters: (random, documents) => ({ a: nameOf(random() % documents) }),
  },
  "id() = $a": {
    text: "from Users where id() = $a",
    parameters: (random, documents) => ({ a: `users/${random() % documents}` }),
  },
  "Age between and City, order by Score limit 10": {
    text: "from Users where Age between $a and $b and City = $c order by Score as double limit 10",
    parameters: (random) => {
      const from = ageOf(random);
      return { a: from, b: from + 20, c: cityOf(random) };
    },
  },
  "order by Score limit 10, of all": {
    text: "from Users order by Score as double limit 10",
    parameters: none,
  },
  "Age >= $a order by Score limit 10": {
    text: "from Users where Age >= $a order by Score as double limit 10",
    parameters: (random) => ({ a: ageOf(random) }),
  },
  "City = $a, two fields": {
    text: "from Users where City = $a select Name, Age limit 10",
    parameters: byCity,
  },
  "City = $a, a script": {
    text: "from Users as u where u.City = $a select { Name: u.Name, Next: u.Age + 1 } limit 10",
    parameters: byCity,
  },
  "City = $a limit 10, constant": {
    text: "from Users where City = $a limit 10",
    parameters: () => ({ a: "City 7" }),
  },
};

function nameOf(n: number): string {
  return `User number ${n}`;
}

/** Returns the text of document `n`: about 150 bytes. */
export function userText(n: number): string {
  const values = [
    nameOf(n),
    ageMin + (n % ageCount),
    `City ${Math.imul(n, 31) % cityCount}`,
    ((Math.imul(n, 7919) >>> 0) % 1_000_003) / 10,
    n % 3 === 0,
    "some more text of this user",
  ];
  const members = values.map((value, at) => `"${fields[at]}":${JSON.stringify(value)}`);
  return `{${members.join(",")},"@metadata":{"@collection":"Users"}}`;
}

process.on("message", (load: QueryLoad) => {
  run(load).then(
    (result) => process.send?.(result),
    (error: unknown) => {
      console.error(error);
      process.exit(1);
    },
  );
});
process.once("disconnect", () => process.exit(0));

async function run(load: QueryLoad): Promise<RawResult> {
  const query = measuredQueries[load.query];
  if (query === undefined) throw new Error(`unknown query ${load.query}`);
  const random = seeded(load.seed);
  return await runRaw(load, () => {
    const QueryParameters = query.parameters(random, load.documents);
    const body = JSON.stringify({ Query: query.text, QueryParameters });
    return { method: "POST", path: "/databases/bench/queries", body };
  });
}
