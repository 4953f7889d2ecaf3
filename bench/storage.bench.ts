/**
 * The engine in process compared with LMDB and SQLite on the same documents in the same run: get by id, durable put
 * with 64 in flight, durable bulk insert in batches of 1,000; and the bare limits of the machine.
 */
import { fdatasyncSync, openSync, writeSync } from "node:fs";
import { join } from "node:path";
import { crc32 } from "node:zlib";
import type { OpenDatabase } from "../engine/api/database/open-database.ts";
import { openFolder } from "../engine/api/database/open-folder.ts";

import { putText } from "../engine/writes/documents.ts";
import {
  type BenchSize,
  type Cost,
  comparedCosts,
  costOf,
  documentText,
  interleavedCosts,
  noCost,
  peer,
  printer,
  seeded,
  temporaryFolder,
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
const batchesInFlight = 8;
const textsMax = 100_000;
const metadata = ',"@metadata":{"@collection":"Users"}}';

export async function run(size: BenchSize): Promise<string[]> {
  const documents = size === "smoke" ? 2_000 : 1_000_000;
  const puts = size === "smoke" ? 640 : 64_000;
  const rounds = size === "smoke" ? 1 : 5;
  const { lines, print } = printer();
  makeTexts(documents);
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

/**
 * Texts created before the measurement, as flat strings like those from a socket. There are fewer texts than
 * documents.
 */
const texts: string[] = [];

function makeTexts(documents: number): void {
  for (let n = texts.length; n < Math.min(documents, textsMax); n++) {
    texts.push(Buffer.from(documentText(n).slice(0, -1) + metadata).toString("latin1"));
  }
}

function textOf(n: number): string {
  return texts[n % texts.length] as string; // filled by makeTexts
}

async function insertAll(database: OpenDatabase, count: number): Promise<void> {
  const pending: Promise<void>[] = [];
  for (let from = 0; from < count; from += batchSize) {
    pending.push(
      database.write((transaction) => {
        for (let n = from; n < from + batchSize && n < count; n++) {
          putText(transaction, `users/${n}`, textOf(n));
        }
      }),
    );
    // Several batches are in flight: the next batches are prepared while these are written to disk.
    if (pending.length > batchesInFlight) await pending.shift();
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
  const freshCount = Math.min(documents, 200_000);
  const peerName = Sqlite === null ? null : "SQLite";
  let round = 0;
  const variantsOf = (count: number) => ({
    jackdaw: async () => {
      const engine = await openFolder({ folder: join(folder, `bulk-${round++}`) });
      const database = await engine.databases.create("bench", {});
      const cost = await costOf(() => insertAll(database, count));
      await engine.close();
      return cost;
    },
    peer: async () => {
      if (Sqlite === null) return noCost;
      const sqlite = new Sqlite(join(folder, `bulk-${round++}.sqlite`));
      sqlite.pragma("journal_mode = WAL");
      sqlite.pragma("synchronous = FULL");
      sqlite.exec("create table d (id text primary key, body text)");
      const insert = sqlite.prepare("insert into d values (?, ?)");
      const batch = sqlite.transaction((from: number) => {
        for (let n = from; n < from + batchSize; n++) insert.run(`users/${n}`, textOf(n));
      });
      const cost = await costOf(() => {
        for (let from = 0; from < count; from += batchSize) batch(from);
      });
      sqlite.close();
      return cost;
    },
  });
  const what = `bulk insert, ${batchSize} a batch`;
  const first = await interleavedCosts(1, variantsOf(freshCount));
  print(
    compared(`${what}, the first ${freshCount} of a fresh process`, freshCount, first, peerName),
  );
  print(compared(what, count, await interleavedCosts(rounds, variantsOf(count)), peerName));
}

async function benchPutsAndGets(
  folder: string,
  documents: number,
  puts: number,
  rounds: number,
  print: (line: string) => void,
): Promise<void> {
  const lmdb = peer<Lmdb>("lmdb");
  const engine = await openFolder({ folder: join(folder, "jackdaw") });
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
  const gets = await interleavedCosts(rounds, {
    jackdaw: () => costOf(() => getSync(database, documents, getCount)),
    peer: () =>
      costOf(() => {
        const random = seeded(7);
        for (let i = 0; i < getCount; i++) store?.get(`users/${random() % documents}`);
      }),
  });
  print(compared("get", getCount, gets, store === undefined ? null : "LMDB"));
  const writes = await interleavedCosts(rounds, {
    jackdaw: () => costOf(() => putInFlight(puts, (n) => database.put(`users/${n}`, textOf(n)))),
    peer: () =>
      costOf(async () => {
        if (store === undefined) return;
        await putInFlight(puts, (n) => store.put(`users/${n}`, textOf(n)));
        await store.flushed;
      }),
  });
  const what = `durable put, ${inFlight} in flight`;
  print(compared(what, puts, writes, store === undefined ? null : "LMDB"));
  await store?.close();
  await engine.close();
}

function compared(
  what: string,
  count: number,
  costs: Readonly<Record<string, Cost>>,
  peerName: string | null,
): string {
  return comparedCosts(what, count, costs["jackdaw"] ?? noCost, costs["peer"] ?? noCost, peerName);
}

/** Reads the stored text without `@metadata`: the equivalent of LMDB's get of a string. */
function getSync(database: OpenDatabase, documents: number, count: number): void {
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
