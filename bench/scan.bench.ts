/**
 * Queries in process, over a million documents of about 155 bytes: a filter without an index, building an automatic
 * index, and conditions, ranges, sort orders, facets and suggestions on it. The filter is compared with SQLite's scan
 * with json_extract over the same texts. The bench `query` measures queries over HTTP.
 */

import type { JsonText } from "../engine/base/json/json-text.ts";
import { runSteps } from "../engine/base/scheduling/steps.ts";
import type {
  IndexHost,
  NumberCursor,
  RowCursor,
  StoredRow,
} from "../engine/indexing/index-host.ts";
import { IndexSet } from "../engine/indexing/index-set.ts";
import { automaticIndexName } from "../engine/queries/analysis/auto-index-name.ts";
import { QueryCompiler } from "../engine/queries/analysis/query.ts";
import { executeQuery } from "../engine/queries/execution/execute.ts";
import type { QueryHost } from "../engine/queries/execution/query-run.ts";
import type { QueryOutcome } from "../engine/queries/execution/results.ts";
import type { RowSource, ScriptProvider } from "../engine/queries/execution/row-source.ts";
import {
  DocumentFields,
  documentRecordLength,
  encodeDocumentRecord,
} from "../engine/state/documents/document-encoding.ts";
import { DocumentParser } from "../engine/state/documents/document-parser.ts";
import { bodyTextOf } from "../engine/state/documents/document-record.ts";
import { ShapeTable } from "../engine/state/documents/shapes.ts";
import { type BenchSize, documentText, peer, ratio } from "./harness.ts";

const noMetadata = Buffer.from("{}");

/** Records packed into one buffer; implements only what these queries need. */
class PackedDatabase implements RowSource, IndexHost {
  readonly isFollowing = false;
  readonly shapes = new ShapeTable();
  readonly indexes = new IndexSet(this, automaticIndexName);
  readonly #compiler = new QueryCompiler(() => 0);
  readonly #starts: Uint32Array;
  readonly #bytes: Buffer;
  readonly #count: number;

  constructor(count: number) {
    this.#count = count;
    this.#bytes = Buffer.alloc(count * 320);
    this.#starts = new Uint32Array(count);
    const parser = new DocumentParser(this.shapes);
    const fields = new DocumentFields();
    let at = 0;
    for (let n = 0; n < count; n++) {
      const text = Buffer.from(documentText(n));
      const parsed = parser.parse(text, 0, text.length);
      fields.etag = n + 1;
      fields.setId(`users/${n}`);
      fields.setChangeVector("");
      fields.setMetadata(text, 0, 0);
      fields.setBody(parsed);
      this.#starts[n] = at;
      at += documentRecordLength(fields);
      encodeDocumentRecord(this.#bytes, this.#starts[n] as number, fields);
    }
  }

  textOf(n: number): string {
    return bodyTextOf(this.#bytes, this.#starts[n] as number);
  }

  async query(text: string): Promise<QueryOutcome> {
    const host: QueryHost = { source: this, indexes: this.indexes, scripts: noScripts };
    const query = this.#compiler.compile(text, "read", null);
    const request = {
      waitForNonStale: true,
      waitTimeoutMs: 600_000,
      isMetadataOnly: false,
      keepsDuplicates: false,
    };
    return await runSteps(executeQuery(query, host, request, { add: () => null }));
  }

  countOf(): number {
    return this.#count;
  }
  resultEtagOf(): number {
    return this.#count;
  }
  findDocument(id: string): number {
    return Number(id.slice("users/".length));
  }
  isIn(): boolean {
    return true;
  }
  lowerIdOf(docNum: number): string {
    return `users/${docNum}`;
  }
  exists(): boolean {
    return true;
  }

  compareIds(left: number, right: number): number {
    return left - right;
  }
  read(docNum: number, row: StoredRow): boolean {
    row.docNum = docNum;
    row.etag = docNum + 1;
    row.bytes = this.#bytes;
    row.start = this.#starts[docNum] as number;
    return true;
  }
  readListed(docNums: Uint32Array, at: number, row: StoredRow): boolean {
    return this.read(docNums[at] as number, row);
  }
  pending(): null {
    return null;
  }
  rows(): RowCursor {
    return this.rowsSince(null, 0);
  }
  rowsByPrefix(): RowCursor {
    return this.rowsSince(null, 0);
  }
  shapeOf(shapeId: number) {
    return this.shapes.get(shapeId);
  }
  metadataOf(): Buffer {
    return noMetadata;
  }
  addDocument({ docNum }: StoredRow, _extra: Buffer, text: JsonText): void {
    text.addText(this.textOf(docNum));
  }
  changeVectorOf(): string {
    return "";
  }
  counterOf(): null {
    return null;
  }
  rawCounterOf(): null {
    return null;
  }
  seriesOf(): null {
    return null;
  }
  compareExchangeOf(): null {
    return null;
  }
  monotonicMs(): number {
    return performance.now();
  }
  nowMicros(): number {
    return 0;
  }
  yieldSlice(): Promise<void> {
    return new Promise((resolve) => setImmediate(resolve));
  }
  etagsOf() {
    return { document: this.#count, deletion: 0 };
  }
  newReader() {
    return this;
  }
  rowsSince(_collection: string | null, etag: number): RowCursor {
    const bytes = this.#bytes;
    const starts = this.#starts;
    const row: StoredRow = { docNum: 0, etag: 0, bytes, start: 0 };
    let at = etag;
    return {
      row,
      pending: null,
      next() {
        if (at >= starts.length) return false;
        row.docNum = at;
        row.start = starts[at++] as number;
        row.etag = at;
        return true;
      },
    };
  }
  deletionsSince() {
    return { docNum: 0, lowerId: "", etag: 0, next: () => false };
  }
  deletionsPurgedThrough = 0;
  counterOwnersSince() {
    return [];
  }
  countSince(_collection: string | null, etag: number): number {
    return this.#count - etag;
  }
  idOf(docNum: number): string {
    return `users/${docNum}`;
  }
  setTimer(ms: number, run: () => void) {
    const timer = setTimeout(run, ms);
    timer.unref();
    return { cancel: () => clearTimeout(timer) };
  }
  numbersSince() {
    return { docNum: 0, etag: 0, next: () => false };
  }
  rowsOf(): never {
    throw new Error("no document is mapped twice");
  }
  setting(): undefined {
    return undefined;
  }
  readonly counterEtag = 0;
  itemChangesOf(): number {
    return 0;
  }
  followCounters(): number {
    return 0;
  }
  counterChangesSince(): NumberCursor {
    return { docNum: 0, etag: 0, next: () => false };
  }
  readonly compareExchangeChanges = 0;
  compareExchangeVersionOf(): number {
    return 0;
  }
  indexChanged(): void {}
  indexDropped(): void {}
  indexReplaced(): void {}
  indexEvent(): void {}
}

const noScripts: ScriptProvider = {
  forQuery() {
    throw new Error("no scripts");
  },
  textTest: (pattern) => (text) => text.includes(pattern),
};

interface Sqlite {
  new (
    path: string,
  ): {
    exec(sql: string): void;
    prepare(sql: string): { run(...values: unknown[]): void; get(): Record<string, number> };
    close(): void;
  };
}

/** Runs the bench. @returns the printed lines */
export async function run(size: BenchSize): Promise<string[]> {
  const count = size === "smoke" ? 2_000 : 1_000_000;
  const rounds = size === "smoke" ? 1 : 5;
  const lines: string[] = [];
  const database = new PackedDatabase(count);
  const note = (line: string) => {
    lines.push(line);
    console.log(line);
  };
  const sqliteMs = scanWithSqlite(database, count, rounds);
  for (const filter of ["Age > 70", "City = 'Oslo'", "Age > 30 and Total < 500"]) {
    const { ms, outcome } = await best(rounds, () =>
      database.query(`from Users filter ${filter} limit 0`),
    );
    const rate = `${(count / ms / 1000).toFixed(1)} M documents/s`;
    const peerRatio = filter === "Age > 70" ? `, SQLite ${ratio(sqliteMs, ms)}` : "";
    note(
      `filter ${filter}: ${outcome.totalResults} found, ${ms.toFixed(1)} ms, ${rate}${peerRatio}`,
    );
  }
  for (const field of ["Age", "City", "Email", "Name"]) {
    for (const index of database.indexes.all()) database.indexes.drop(index.name);
    const { ms } = await best(1, () => database.query(`from Users where ${field} = 'x'`));
    note(
      `build index by ${field}: ${ms.toFixed(0)} ms, ${(count / ms / 1000).toFixed(2)} M documents/s`,
    );
  }
  await database.query("from Users where Age = 1 and City = 'x' and Email = 'x' and Total > 1");
  const half = `user${Math.floor(count / 2)}@example.com`;
  for (const text of [
    `from Users where Email = '${half}'`,
    "from Users where City = 'Oslo' limit 10",
    "from Users where Age > 70 limit 10",
    "from Users where City = 'Oslo' and Age between 20 and 30 limit 10",
    "from Users where startsWith(Email, 'user99') limit 10",
    "from Users where Total > 10.5 and Total < 20.0 limit 10",
    "from Users order by Total as double desc limit 10",
    "from Users order by Email limit 10",
    "from Users where City = 'Oslo' order by Age as long, Email limit 10",
    `from index '${database.indexes.all()[0]?.name}' select facet(City)`,
    `from index '${database.indexes.all()[0]?.name}' select facet(City, sum(Total), avg(Age))`,
    `from index '${database.indexes.all()[0]?.name}' select facet(Total < 100, Total >= 100 and Total < 500, Total >= 500)`,
    "from Users select suggest(Email, 'usr4711@example.com')",
  ]) {
    const first = await best(1, () => database.query(text));
    const { ms, outcome } = await best(rounds, () => database.query(text));
    note(
      `${text}: ${outcome.totalResults} found, ${ms.toFixed(2)} ms (first ${first.ms.toFixed(1)} ms)`,
    );
  }
  database.indexes.close();
  return lines;
}

async function best(
  rounds: number,
  work: () => Promise<QueryOutcome>,
): Promise<{ ms: number; outcome: QueryOutcome }> {
  let ms = Number.POSITIVE_INFINITY;
  let outcome = null;
  for (let round = 0; round < rounds; round++) {
    const start = performance.now();
    outcome = await work();
    ms = Math.min(ms, performance.now() - start);
  }
  if (outcome === null) throw new Error("at least one round");
  return { ms, outcome };
}

/** Returns the time of SQLite's scan, in milliseconds; NaN if it is not installed. */
function scanWithSqlite(database: PackedDatabase, count: number, rounds: number): number {
  const Sqlite = peer<Sqlite>("better-sqlite3");
  if (Sqlite === null) return Number.NaN;
  const sqlite = new Sqlite(":memory:");
  sqlite.exec("create table users (id integer primary key, body text); begin");
  const insert = sqlite.prepare("insert into users values (?, ?)");
  for (let n = 0; n < count; n++) insert.run(n, database.textOf(n));
  sqlite.exec("commit");
  const scan = sqlite.prepare(
    "select count(*) n from users where json_extract(body, '$.Age') > 70",
  );
  let ms = Number.POSITIVE_INFINITY;
  for (let round = 0; round < rounds; round++) {
    const start = performance.now();
    scan.get();
    ms = Math.min(ms, performance.now() - start);
  }
  sqlite.close();
  return ms;
}
