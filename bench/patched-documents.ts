/** Documents for measuring patches, the patches, and their SQLite equivalents. */
import { join } from "node:path";
import { peer } from "./harness.ts";

type SqliteConstructor = new (path: string) => Sqlite;
export interface Sqlite {
  pragma(text: string): unknown;
  exec(text: string): void;
  prepare(text: string): { run(...values: unknown[]): unknown };
  transaction(work: (from: number) => void): (from: number) => void;
  close(): void;
}

/** Documents per transaction, in both. */
export const batchSize = 1000;

const set = (path: string, value: string) => `json_set(body, '$.${path}', ${value})`;
const field = (path: string) => `json_extract(body, '$.${path}')`;

/** Each patch as a query, and as a statement on the table created by `filledSqlite`. */
export const patches = {
  all: {
    query: "from Users update { this.Age += 1 }",
    sql: `update d set body = ${set("Age", `${field("Age")} + 1`)}`,
  },
  product: {
    query: "from Users update { this.Total = this.Price * this.Quantity + this.Total }",
    sql: `update d set body = ${set("Total", `${field("Price")} * ${field("Quantity")} + ${field("Total")}`)}`,
  },
  some: {
    query: "from Users where City = 'City 1' update { this.Age += 1 }",
    sql: `update d set body = ${set("Age", `${field("Age")} + 1`)} where ${field("City")} = 'City 1'`,
  },
} as const;

/** Returns the text of a document, about 155 bytes. */
export function textOf(n: number): string {
  return (
    `{"Name":"User number ${n}","Age":${18 + (n % 60)},"City":"City ${n % 5}","Price":${(n % 90) + 0.5},` +
    `"Quantity":${1 + (n % 12)},"Total":0.5,"Active":${n % 3 === 0},"Notes":"some more text that is here"}`
  );
}

/** Creates a SQLite database with the same documents; null if the package is not installed. */
export function filledSqlite(folder: string, count: number, name = "peer"): Sqlite | null {
  const Sqlite = peer<SqliteConstructor>("better-sqlite3");
  if (Sqlite === null) return null;
  const sqlite = new Sqlite(join(folder, `${name}.sqlite`));
  sqlite.pragma("journal_mode = WAL");
  sqlite.pragma("synchronous = FULL");
  sqlite.exec("create table d (id text primary key, body text)");
  const insert = sqlite.prepare("insert into d values (?, ?)");
  const batch = sqlite.transaction((from: number) => {
    for (let n = from; n < from + batchSize && n < count; n++) insert.run(`users/${n}`, textOf(n));
  });
  for (let from = 0; from < count; from += batchSize) batch(from);
  return sqlite;
}
