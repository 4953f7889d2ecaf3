/**
 * The engine in process against LMDB and SQLite on the same documents in the same run: get by id, durable put with
 * 64 in flight, durable bulk insert in batches of 1,000; and the bare limits beside them.
 */
import { fdatasyncSync, openSync, writeSync } from "node:fs";
import { join } from "node:path";
import { crc32 } from "node:zlib";
import { type Database, openEngine } from "../engine/engine.ts";
import { putParsed } from "../engine/writes/documents.ts";
import {
  type BenchSize,
  documentText,
  interleaved,
  peer,
  ratio,
  seeded,
  temporaryFolder,
  timeMs,
} from "./harness.ts";

interface Lmdb {
  open(options: object): LmdbStore;
}
interface LmdbStore {
  get(key: string): unknown;
  put(key: string, value: unknown): Promise<boolean>;
  transactionSync(work: () => void): void;
  flushed: Promise<boolean>;
  close(): Promise<void>;
}
type SqliteConstructor = new (path: string) => Sqlite;
interface Sqlite {
  pragma(text: string): unknown;
  exec(text: string): void;
  prepare(text: string): { run(...values: unknown[]): unknown; get(...values: unknown[]): unknown };
  transaction(work: (from: number) => void): (from: number) => void;
  close(): void;
}

const inFlight = 64;
const batchSize = 1000;
const metadata = ',"@metadata":{"@collection":"Users"}}';

export async function run(size: BenchSize): Promise<string[]> {
  const documents = size === "smoke" ? 2_000 : 1_000_000;
  const puts = size === "smoke" ? 640 : 64_000;
  const rounds = size === "smoke" ? 1 : 5;
  const lines: string[] = [];
  const print = (line: string) => {
    lines.push(line);
    console.log(line);
  };
  const folder = temporaryFolder();
  try {
    await benchBulk(folder.path, documents, rounds, print);
    await benchPutsAndGets(folder.path, documents, puts, rounds, print);
    printLimits(folder.path, print);
  } finally {
    folder.remove();
  }
  return lines;
}

function textOf(n: number): string {
  return documentText(n).slice(0, -1) + metadata;
}

async function insertAll(database: Database, count: number): Promise<void> {
  const { parser } = database.state;
  const pending: Promise<void>[] = [];
  for (let from = 0; from < count; from += batchSize) {
    pending.push(
      database.write((transaction) => {
        for (let n = from; n < from + batchSize && n < count; n++) {
          const bytes = Buffer.from(textOf(n), "latin1");
          parser.parse(bytes, 0, bytes.length);
          putParsed(transaction, `users/${n}`);
        }
      }),
    );
    // Two batches under way: one is on its way to the disk while the next is made.
    if (pending.length > 2) await pending.shift();
  }
  await Promise.all(pending);
}

async function benchBulk(
  folder: string,
  documents: number,
  rounds: number,
  print: (line: string) => void,
): Promise<void> {
  const Sqlite = peer<SqliteConstructor>("better-sqlite3");
  const count = Math.min(documents, 300_000);
  let round = 0;
  const result = await interleaved(rounds, {
    jackdaw: async () => {
      const engine = await openEngine({ folder: join(folder, `bulk-${round++}`) });
      const database = await engine.databases.create("bench", {});
      const ms = await timeMs(() => insertAll(database, count));
      await engine.close();
      return ms;
    },
    sqlite: async () => {
      if (Sqlite === null) return Number.NaN;
      const sqlite = new Sqlite(join(folder, `bulk-${round++}.sqlite`));
      sqlite.pragma("journal_mode = WAL");
      sqlite.pragma("synchronous = FULL");
      sqlite.exec("create table d (id text primary key, body text)");
      const insert = sqlite.prepare("insert into d values (?, ?)");
      const batch = sqlite.transaction((from: number) => {
        for (let n = from; n < from + batchSize; n++) insert.run(`users/${n}`, textOf(n));
      });
      const ms = await timeMs(() => {
        for (let from = 0; from < count; from += batchSize) batch(from);
      });
      sqlite.close();
      return ms;
    },
  });
  const { jackdaw = Number.NaN, sqlite = Number.NaN } = result;
  print(
    `bulk insert, ${batchSize} a batch: ${Math.round(count / jackdaw)} k/s, ${ratio(sqlite, jackdaw)} SQLite (${Math.round(count / sqlite)} k/s)`,
  );
}

async function benchPutsAndGets(
  folder: string,
  documents: number,
  puts: number,
  rounds: number,
  print: (line: string) => void,
): Promise<void> {
  const lmdb = peer<Lmdb>("lmdb");
  const engine = await openEngine({ folder: join(folder, "jackdaw") });
  const database = await engine.databases.create("bench", {});
  await insertAll(database, documents);
  const store = lmdb?.open({ path: join(folder, "lmdb"), encoding: "string", noMemInit: true });
  for (let from = 0; store !== undefined && from < documents; from += 10_000) {
    store.transactionSync(() => {
      for (let n = from; n < from + 10_000 && n < documents; n++) {
        void store.put(`users/${n}`, textOf(n));
      }
    });
  }
  await store?.flushed;
  const getCount = Math.min(documents, 300_000);
  const gets = await interleaved(rounds, {
    jackdaw: () => timeMs(() => getSync(database, documents, getCount)),
    lmdb: () =>
      timeMs(() => {
        const random = seeded(7);
        for (let i = 0; i < getCount; i++) store?.get(`users/${random() % documents}`);
      }),
  });
  const get = gets["jackdaw"] ?? Number.NaN;
  const lmdbGet = store === undefined ? Number.NaN : (gets["lmdb"] ?? Number.NaN);
  print(
    `get: ${Math.round(getCount / get)} k/s, ${ratio(lmdbGet, get)} LMDB (${Math.round(getCount / lmdbGet)} k/s)`,
  );
  const writes = await interleaved(rounds, {
    jackdaw: () => timeMs(() => putInFlight(puts, (n) => database.put(`users/${n}`, textOf(n)))),
    lmdb: () =>
      timeMs(async () => {
        if (store === undefined) return;
        await putInFlight(puts, (n) => store.put(`users/${n}`, textOf(n)));
        await store.flushed;
      }),
  });
  const put = writes["jackdaw"] ?? Number.NaN;
  const lmdbPut = store === undefined ? Number.NaN : (writes["lmdb"] ?? Number.NaN);
  print(
    `durable put, ${inFlight} in flight: ${Math.round(puts / put)} k/s, ${ratio(lmdbPut, put)} LMDB (${Math.round(puts / lmdbPut)} k/s)`,
  );
  await store?.close();
  await engine.close();
}

/** The text as stored, without `@metadata`: what LMDB's get of a string gives too. */
function getSync(database: Database, documents: number, count: number): void {
  const random = seeded(7);
  let length = 0;
  for (let i = 0; i < count; i++) {
    const text = database.bodyText(`users/${random() % documents}`);
    if (typeof text === "string") length += text.length;
  }
  if (length === 0) throw new Error("nothing was read");
}

async function putInFlight(count: number, put: (n: number) => Promise<unknown>): Promise<void> {
  let next = 0;
  const worker = async () => {
    while (next < count) await put(next++);
  };
  await Promise.all(Array.from({ length: inFlight }, worker));
}

function printLimits(folder: string, print: (line: string) => void): void {
  const bytes = Buffer.alloc(1024 * 1024, 7);
  const target = Buffer.alloc(bytes.length);
  const file = openSync(join(folder, "limit"), "w");
  const time = (repeat: number, work: () => void) => {
    const start = performance.now();
    for (let i = 0; i < repeat; i++) work();
    return ((performance.now() - start) / repeat) * 1000;
  };
  writeSync(file, bytes, 0, bytes.length, 0);
  const copy = time(50, () => bytes.copy(target));
  const check = time(50, () => crc32(bytes));
  const sync = time(20, () => {
    writeSync(file, bytes, 0, bytes.length, 0);
    fdatasyncSync(file);
  });
  print(
    `limits for 1 MiB: memcpy ${copy.toFixed(0)} µs, crc32 ${check.toFixed(0)} µs, write + fdatasync ${sync.toFixed(0)} µs`,
  );
}
