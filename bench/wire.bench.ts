/**
 * Patches by query over HTTP, from the PATCH to the completed operation, durable, in a server in a separate process:
 * compared with SQLite in process, and with a RavenDB at the address in JACKDAW_BENCH_RAVENDB (without certificates),
 * with the same documents in the same run. Loads by bulk insert and by `bulk_docs`, compared with SQLite in process.
 * Also the latency of a GET from another process, over HTTP/2 with mutual TLS, during a patch of all documents.
 */
import { once } from "node:events";
import * as http2 from "node:http2";
import {
  type BenchSize,
  comparedCosts,
  costOf,
  interleaved,
  interleavedCosts,
  median,
  noCost,
  percentile,
  printer,
  ratio,
  seeded,
  temporaryFolder,
  timeMs,
} from "./harness.ts";
import { PlainClient, startPlain } from "./http/plain-client.ts";
import {
  processorMs,
  readPair,
  type Server,
  sendRequest,
  startJackdaw,
  stop,
} from "./http/processes.ts";
import { batchSize, filledSqlite, patches, textOf } from "./patched-documents.ts";

const metadata = ',"@metadata":{"@collection":"Users"}}';
/** Pause between two GETs, in milliseconds: a single user, not a load. */
const pauseMs = 1;
/** Number of documents of a load. */
const loadCount = 200_000;
/** Documents per request when filling the database for GETs. */
const gatheredCount = 1_000;
/** Number of patches measured with concurrent GETs, and the idle time before each. */
const getRounds = 3;
const idleMs = 2_000;
/** Time for RavenDB to choose and build the index for a condition. */
const staleTimeout = "00:01:00";

export async function run(size: BenchSize): Promise<string[]> {
  const count =
    size === "smoke" ? 2_000 : Number(process.env["JACKDAW_BENCH_DOCUMENTS"] ?? 1_000_000);
  const rounds = size === "smoke" ? 1 : 3;
  const { lines, print } = printer();
  const folder = temporaryFolder();
  const server = await startPlain(`${folder.path}/data`);
  const sqlite = filledSqlite(folder.path, count);
  const ravenUrl = process.env["JACKDAW_BENCH_RAVENDB"];
  try {
    const jackdaw = new PlainClient(server.url, "bench");
    const raven = ravenUrl === undefined ? null : new PlainClient(ravenUrl, "bench");
    const servers = raven === null ? [jackdaw] : [jackdaw, raven];
    for (const one of servers) await one.fill(commandsOf(count));
    await benchLoads(server, folder.path, Math.min(count, loadCount), rounds, print);
    for (const [what, { query, sql }] of Object.entries(patches)) {
      for (const one of servers) if (what === "some") await one.patch(query, staleTimeout); // builds the index
      const times = await interleaved(rounds, {
        jackdaw: () => timeMs(() => jackdaw.patch(query, staleTimeout)),
        sqlite: async () => (sqlite === null ? Number.NaN : timeMs(() => sqlite.exec(sql))),
        raven: async () =>
          raven === null ? Number.NaN : timeMs(() => raven.patch(query, staleTimeout)),
      });
      const { jackdaw: own = Number.NaN, sqlite: sqliteMs = Number.NaN, raven: ravenMs } = times;
      const besides = [
        sqlite === null ? "no SQLite is installed" : `${ratio(sqliteMs, own)} SQLite in process`,
        ...(raven === null ? [] : [`${ratio(ravenMs ?? Number.NaN, own)} RavenDB`]),
      ];
      print(`patch of ${what} over the wire: ${own.toFixed(0)} ms, ${besides.join(", ")}`);
    }
    await raven?.remove();
    await benchGets(folder.path, count, print);
  } finally {
    sqlite?.close();
    server.process.kill();
    await once(server.process, "exit");
    folder.remove();
  }
  return lines;
}

/** Loads new databases, the first of them into the server as started and filled. */
async function benchLoads(
  { url, process: { pid = 0 } }: Server,
  folder: string,
  count: number,
  rounds: number,
  print: (line: string) => void,
): Promise<void> {
  const of = (n: number) => `{"Id":"users/${n}","Type":"PUT","Document":${documentOf(n)}}`;
  const bodies: string[] = [];
  for (let from = 0; from < count; from += batchSize) {
    const commands = Array.from({ length: Math.min(batchSize, count - from) }, (_, n) =>
      of(from + n),
    );
    bodies.push(`{"Commands":[${commands.join(",")}]}`);
  }
  const inserted = [...commandsOf(count)];
  let round = 0;
  const measured = async (work: (client: PlainClient, name: string) => Promise<void>) => {
    const name = `load-${round++}`;
    const client = new PlainClient(url, name);
    await client.create();
    const before = processorMs(pid);
    const wallMs = await timeMs(() => work(client, name));
    const cost = { wallMs, processorMs: processorMs(pid) - before };
    await client.remove();
    return cost;
  };
  let hasPeer = true;
  const costs = await interleavedCosts(rounds, {
    insert: () => measured((client) => client.insert(inserted)),
    batches: () =>
      measured(async (client, name) => {
        for (const body of bodies) await client.ask("POST", `/databases/${name}/bulk_docs`, [body]);
      }),
    peer: () =>
      costOf(() => {
        const sqlite = filledSqlite(folder, count, `load-${round++}`);
        hasPeer = sqlite !== null;
        sqlite?.close();
      }),
  });
  const { insert = noCost, batches = noCost, peer = noCost } = costs;
  const name = hasPeer ? "SQLite in process" : null;
  print(comparedCosts("bulk insert over the wire", count, insert, peer, name));
  print(comparedCosts(`bulk_docs of ${batchSize} over the wire`, count, batches, peer, name));
}

/**
 * Gets random documents on one HTTP/2 connection with mutual TLS, sequentially, idle and during a patch of all
 * documents by another client. Returns the median of several patches.
 */
async function benchGets(
  folder: string,
  count: number,
  print: (line: string) => void,
): Promise<void> {
  const data = `${folder}/secure`;
  const server = await startJackdaw(data);
  const pair = readPair(data, "client");
  const [writer, reader] = [http2.connect(server.url, pair), http2.connect(server.url, pair)];
  try {
    const created = { DatabaseName: "bench" };
    await sendRequest(writer, "PUT", "/admin/databases?name=bench&replicationFactor=1", created);
    for (let from = 0; from < count; from += gatheredCount) {
      const Commands = Array.from({ length: Math.min(gatheredCount, count - from) }, (_, n) => ({
        Id: `users/${from + n}`,
        Type: "PUT",
        Document: JSON.parse(documentOf(from + n)) as unknown,
      }));
      await sendRequest(writer, "POST", "/databases/bench/bulk_docs", { Commands });
    }
    const random = seeded(7);
    const measure = async (isOver: () => boolean): Promise<number[]> => {
      const times: number[] = [];
      while (!isOver()) {
        const path = `/databases/bench/docs?id=users%2F${random() % count}`;
        times.push(await timeMs(async () => void (await sendRequest(reader, "GET", path))));
        await new Promise((resolve) => setTimeout(resolve, pauseMs));
      }
      return times;
    };
    const idles: number[][] = [];
    const busies: number[][] = [];
    for (let round = 0; round < getRounds; round++) {
      const until = performance.now() + idleMs;
      idles.push(await measure(() => performance.now() > until));
      let isPatched = false;
      const patched = patchOver(writer).finally(() => {
        isPatched = true;
      });
      busies.push(await measure(() => isPatched));
      await patched;
    }
    const at = (all: number[][], p: number) => median(all.map((times) => percentile(times, p)));
    const shown = (all: number[][]) =>
      `p50 ${at(all, 0.5).toFixed(2)} ms, p99 ${at(all, 0.99).toFixed(2)} ms`;
    print(
      `get over HTTP/2 with TLS during a patch of all: ${shown(busies)}; idle ${shown(idles)}: ` +
        `${ratio(at(busies, 0.99), at(idles, 0.99))}`,
    );
  } finally {
    for (const session of [writer, reader]) session.close();
    await stop(server.process);
  }
}

async function patchOver(session: http2.ClientHttp2Session): Promise<void> {
  const path = `/databases/bench/queries?allowStale=false&staleTimeout=${staleTimeout}`;
  const parsed = (text: string) => JSON.parse(Buffer.from(text, "base64").toString()) as object;
  const started = await sendRequest(session, "PATCH", path, {
    Query: { Query: patches.all.query },
  });
  const { OperationId } = parsed(started.body) as { OperationId: number };
  for (;;) {
    const state = `/databases/bench/operations/state?id=${OperationId}`;
    const { Status } = parsed((await sendRequest(session, "GET", state)).body) as {
      Status: string;
    };
    if (Status === "Completed") return;
    if (Status !== "InProgress") throw new Error(Status);
    await new Promise((resolve) => setTimeout(resolve, 50));
  }
}

function documentOf(n: number): string {
  return textOf(n).slice(0, -1) + metadata;
}

function* commandsOf(count: number): Generator<string> {
  for (let n = 0; n < count; n++) {
    yield `${n === 0 ? "[" : ","}{"Id":"users/${n}","Type":"PUT","Document":${documentOf(n)}}`;
  }
  yield "]";
}
