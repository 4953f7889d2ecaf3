/**
 * Churn: creates and deletes ids next to permanent documents. Measures the memory and disk space that deleted ids
 * occupy, and their effect on the next opening. The server is a separate process; ids are created by bulk insert and
 * deleted by `bulk_docs`, in rounds.
 *
 * The memory baseline is the same server after opening and reading the permanent documents; memory after the first
 * round, which shows what a working server needs, is printed too. Opening is measured from the start of the process
 * until a document has been read.
 *
 * JACKDAW_BENCH_IDS: number of ids created and deleted. JACKDAW_BENCH_DOCUMENTS: number of permanent documents.
 */
import { once } from "node:events";
import { lstatSync, readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { setTimeout } from "node:timers/promises";
import { type BenchSize, printer, temporaryFolder, timeMs } from "./harness.ts";
import { PlainClient, startPlain } from "./http/plain-client.ts";
import type { Server } from "./http/processes.ts";

const memoryRatioMax = 1.3;
const diskRatioMax = 2.2;
const openingRatioMax = 1.5;
const batchSize = 1_000;
const clients = 3;
const openings = 3;

interface Sizes {
  readonly staying: number;
  readonly passing: number;
  readonly perRound: number;
  /** Delay before disk and memory are measured, in milliseconds. */
  readonly restMs: number;
}

interface Measures {
  readonly memoryBytes: number;
  readonly diskBytes: number;
}

export async function run(size: BenchSize): Promise<string[]> {
  const { env } = process;
  const given: Sizes = {
    staying: Number(env["JACKDAW_BENCH_DOCUMENTS"] ?? 200_000),
    passing: Number(env["JACKDAW_BENCH_IDS"] ?? 10_000_000),
    perRound: 50_000,
    restMs: 50_000,
  };
  const smoke: Sizes = { staying: 2_000, passing: 4_000, perRound: 2_000, restMs: 200 };
  const { lines, print } = printer();
  const folder = temporaryFolder();
  try {
    await benchChurn(join(folder.path, "data"), size === "smoke" ? smoke : given, print);
  } finally {
    folder.remove();
  }
  return lines;
}

async function benchChurn(
  data: string,
  sizes: Sizes,
  print: (line: string) => void,
): Promise<void> {
  const { staying, passing, perRound, restMs } = sizes;
  let server = await startPlain(data);
  try {
    await new PlainClient(server.url, "bench").fill(stayingCommands(staying));
    await stop(server);
    const live = liveBytes(staying);
    const openedBefore = await medianOpening(data);
    server = await startPlain(data);
    await readAll(server, staying);
    const before = measures(server, data);
    print(
      `${staying} documents of ${megabytes(live)} MB: ${textOf(before)}, opens in ${openedBefore.toFixed(0)} ms`,
    );
    await round(server, "first", perRound);
    const first = measures(server, data);
    print(`after the first ${perRound} ids: ${textOf(first)}`);
    let most = first;
    const tookMs = await timeMs(async () => {
      for (let done = 0, turn = 0; done < passing; done += perRound, turn++) {
        await round(server, String(turn), Math.min(perRound, passing - done));
        most = larger(most, measures(server, data));
      }
    });
    const rate = Math.round((passing / tookMs) * 1_000);
    print(`${passing} ids created and deleted at ${rate}/s: at most ${textOf(most)}`);
    await setTimeout(restMs);
    await readAll(server, staying);
    const after = measures(server, data);
    await stop(server);
    const openedAfter = await medianOpening(data);
    print(
      `${Math.round(restMs / 1_000)} s later: ${textOf(after)}, opens in ${openedAfter.toFixed(0)} ms`,
    );
    verdict(
      print,
      "resident memory, relative to before",
      after.memoryBytes / before.memoryBytes,
      memoryRatioMax,
    );
    verdict(print, "disk, relative to the live bytes", after.diskBytes / live, diskRatioMax);
    verdict(print, "opening, relative to before", openedAfter / openedBefore, openingRatioMax);
  } finally {
    if (server.process.exitCode === null) server.process.kill("SIGKILL");
  }
}

function verdict(print: (line: string) => void, what: string, ratio: number, most: number): void {
  const word = ratio <= most ? "holds" : "FALLS";
  print(`${what}: ${ratio.toFixed(2)}, at most ${most}: ${word}`);
}

/** Creates ids by one bulk insert, and deletes them from several clients. */
async function round({ url }: Server, name: string, count: number): Promise<void> {
  const idOf = (n: number) => `tmp/${name}/${n}/some-longer-identifier`;
  const inserting = new PlainClient(url, "bench");
  await inserting.ask(
    "POST",
    `/databases/bench/bulk_insert?id=${Date.now()}`,
    commands(count, idOf, "Temps"),
  );
  let next = 0;
  const remove = async () => {
    const client = new PlainClient(url, "bench");
    while (next < count) {
      const from = next;
      next = Math.min(count, from + batchSize);
      const Commands = Array.from({ length: next - from }, (_, at) => ({
        Type: "DELETE",
        Id: idOf(from + at),
      }));
      await client.ask("POST", "/databases/bench/bulk_docs", [JSON.stringify({ Commands })]);
    }
  };
  await Promise.all(Array.from({ length: clients }, remove));
}

const stayingId = (n: number) => `users/${n}`;

function stayingCommands(count: number): Iterable<string> {
  return commands(count, stayingId, "Users");
}

function* commands(
  count: number,
  idOf: (n: number) => string,
  collection: string,
): Generator<string> {
  yield "[";
  for (let n = 0; n < count; n++) {
    const document = documentOf(n).slice(0, -1);
    const text = `${document},"@metadata":{"@collection":"${collection}"}}`;
    yield `${n === 0 ? "" : ","}{"Id":"${idOf(n)}","Type":"PUT","Document":${text}}`;
  }
  yield "]";
}

function documentOf(n: number): string {
  return JSON.stringify({
    Name: `User ${n} harbour lantern`,
    Age: 18 + (n % 60),
    City: `city${(n * 31) % 1_000}`,
    Email: `u${n}@example.org`,
    Active: n % 3 === 0,
    Tags: ["a", `b${n % 10}`],
    Score: ((n * 7) % 1_000) / 10,
  });
}

/** Size of the permanent documents with their ids, in bytes: a lower bound of their records. */
function liveBytes(count: number): number {
  let bytes = 0;
  for (let n = 0; n < count; n++) bytes += documentOf(n).length + stayingId(n).length;
  return bytes + count * recordBytes;
}

/** Bytes of a record in addition to id and body: header, metadata, offset table. */
const recordBytes = 72;

async function readAll({ url }: Server, staying: number): Promise<void> {
  const client = new PlainClient(url, "bench");
  const { TotalResults } = await client.query({
    Query: "from Users where Age > 1000 limit 1",
    DisableCaching: true,
  });
  if (TotalResults !== 0) throw new Error("the query must not match");
  await client.ask("GET", `/databases/bench/docs?id=users%2F${staying - 1}`);
}

async function medianOpening(data: string): Promise<number> {
  const times: number[] = [];
  for (let turn = 0; turn < openings; turn++) {
    const start = performance.now();
    const server = await startPlain(data);
    await new PlainClient(server.url, "bench").ask("GET", "/databases/bench/docs?id=users%2F5");
    times.push(performance.now() - start);
    await stop(server);
  }
  return times.sort((left, right) => left - right)[openings >> 1] as number;
}

async function stop(server: Server): Promise<void> {
  const exit = once(server.process, "exit");
  server.process.kill("SIGTERM");
  await exit;
}

function measures({ process: child }: Server, data: string): Measures {
  const status = readFileSync(`/proc/${child.pid}/status`, "utf8");
  const kilobytes = Number(/VmRSS:\s+(\d+)/.exec(status)?.[1]);
  return { memoryBytes: kilobytes * 1024, diskBytes: bytesUnder(data) };
}

function larger(left: Measures, right: Measures): Measures {
  return {
    memoryBytes: Math.max(left.memoryBytes, right.memoryBytes),
    diskBytes: Math.max(left.diskBytes, right.diskBytes),
  };
}

function textOf({ memoryBytes, diskBytes }: Measures): string {
  return `${megabytes(memoryBytes)} MB resident, ${megabytes(diskBytes)} MB on disk`;
}

function megabytes(bytes: number): string {
  return (bytes / 1024 ** 2).toFixed(1);
}

function bytesUnder(folder: string): number {
  let bytes = 0;
  for (const path of readdirSync(folder, { recursive: true, encoding: "utf8" })) {
    const stats = lstatSync(join(folder, path), { throwIfNoEntry: false });
    if (stats?.isFile() === true) bytes += stats.blocks * 512;
  }
  return bytes;
}
