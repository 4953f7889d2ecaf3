/**
 * The server's processor time per query over HTTP/1.1, over 200,000 documents of about 150 bytes, with 16 queries in
 * flight. Compared in the same run with: a bare node:http server that sends the same bytes; a RavenDB without
 * certificates at the address in JACKDAW_BENCH_RAVENDB, whose process is JACKDAW_BENCH_RAVENDB_PID; and another
 * version of Jackdaw, whose executable is JACKDAW_BENCH_BEFORE. Ratios are those of this version to the others.
 * Logging of slow queries is disabled, because its lines would be mixed with the output.
 */
import { type ChildProcess, fork } from "node:child_process";
import { once } from "node:events";
import { type BenchSize, median, printer, ratio, temporaryFolder } from "./harness.ts";
import { PlainClient, startPlain } from "./http/plain-client.ts";
import { mainThreadMs, processorMs, script, stop } from "./http/processes.ts";
import { measuredQueries, type QueryLoad, userText } from "./http/query-load.ts";
import type { RawResult } from "./http/raw-client.ts";

const inFlight = 16;

/** A measured server. */
interface Contestant {
  readonly name: string;
  readonly url: string;
  readonly pid: number;
}

interface Measured extends RawResult {
  /** The server's processor time per query, of all threads and of the main thread, in microseconds. */
  readonly micros: number;
  readonly mainThreadMicros: number;
}

/** Runs the bench. @returns the printed lines */
export async function run(size: BenchSize): Promise<string[]> {
  const isSmoke = size === "smoke";
  const documents = isSmoke ? 2_000 : 200_000;
  const requests = isSmoke ? 50 : 5_000;
  const rounds = isSmoke ? 1 : 5;
  const { lines, print } = printer();
  const folder = temporaryFolder();
  const children: ChildProcess[] = [];
  const removals: (() => Promise<void>)[] = [];
  try {
    const contestants: Contestant[] = [];
    const join = async (name: string, { url, pid }: { url: string; pid: number }) => {
      const client = new PlainClient(url, "bench");
      await client.fill(commandsOf(documents));
      contestants.push({ name, url, pid });
      return client;
    };
    const start = async (name: string, executable?: string) => {
      const settings = ["--Logs.SlowQueryInMs=0"];
      const server = await startPlain(`${folder.path}/${name}`, { executable, settings });
      children.push(server.process);
      await join(name, { url: server.url, pid: server.process.pid ?? 0 });
    };
    await start("Jackdaw");
    const before = process.env["JACKDAW_BENCH_BEFORE"];
    if (before !== undefined) await start("before", before);
    const raven = process.env["JACKDAW_BENCH_RAVENDB"];
    if (raven !== undefined) {
      const pid = Number(process.env["JACKDAW_BENCH_RAVENDB_PID"] ?? 0);
      const client = await join("RavenDB", { url: raven, pid });
      removals.push(() => client.remove());
    }
    const bare = fork(script("./bare-http1.js"));
    children.push(bare);
    const load = fork(script("./query-load.js"));
    children.push(load);
    for (const query of Object.keys(measuredQueries)) {
      const asked = { query, documents, requests, inFlight };
      print(await measureAll(asked, contestants, { load, bare }, rounds));
    }
  } finally {
    for (const remove of removals) await remove();
    for (const child of children) await stop(child);
    folder.remove();
  }
  return lines;
}

async function measureAll(
  asked: Omit<QueryLoad, "url" | "seed">,
  contestants: readonly Contestant[],
  { load, bare }: { load: ChildProcess; bare: ChildProcess },
  rounds: number,
): Promise<string> {
  const runs = new Map<string, Measured[]>();
  let limit: Contestant | null = null;
  if (rounds > 1) for (const one of contestants) await warm(load, one, asked);
  for (let seed = 1; seed <= rounds; seed++) {
    const order = limit === null ? [...contestants] : [...contestants, limit];
    // In a fixed order, the first of two equal servers took 1.1 times as long.
    if (seed % 2 === 0) order.reverse();
    for (const one of order) {
      const measured = await measure(load, one, { ...asked, url: one.url, seed });
      limit ??= { name: "bare", url: await serve(bare, measured.reply), pid: bare.pid ?? 0 };
      runs.set(one.name, [...(runs.get(one.name) ?? []), measured]);
    }
  }
  const micros: number[] = [];
  const shown = [...runs].map(([name, list]) => {
    const of = (figure: "micros" | "mainThreadMicros" | "p50" | "p99") =>
      median(list.map((each) => each[figure]));
    const result = `${name} ${of("micros").toFixed(0)} µs (main thread ${of("mainThreadMicros").toFixed(0)}; p50 ${of("p50").toFixed(2)}, p99 ${of("p99").toFixed(2)} ms)`;
    micros.push(of("micros"));
    const own = micros[0] ?? Number.NaN;
    return micros.length === 1 ? result : `${result} (${ratio(own, of("micros"))})`;
  });
  return `${asked.query}: ${shown.join("; ")}`;
}

const warmRequests = 40_000;
const warmMs = 8000;

/** Creates the index, and lets the server compile its code: runs many queries, or for some seconds. */
async function warm(
  load: ChildProcess,
  one: Contestant,
  asked: Omit<QueryLoad, "url" | "seed">,
): Promise<void> {
  let ms = 0;
  for (let n = 0; n < warmRequests && ms < warmMs; n += asked.requests) {
    ms += (await measure(load, one, { ...asked, url: one.url, seed: 1000 + n })).ms;
  }
}

async function measure(
  load: ChildProcess,
  server: Contestant,
  asked: QueryLoad,
): Promise<Measured> {
  const before = processorMs(server.pid);
  const mainThreadBefore = mainThreadMs(server.pid);
  load.send(asked);
  const [result] = (await once(load, "message")) as [RawResult];
  const perQuery = (usedMs: number) => (usedMs * 1000) / asked.requests;
  return {
    ...result,
    micros: perQuery(processorMs(server.pid) - before),
    mainThreadMicros: perQuery(mainThreadMs(server.pid) - mainThreadBefore),
  };
}

/** Sets the reply of the bare server. @returns its URL */
async function serve(bare: ChildProcess, body: string): Promise<string> {
  bare.send({ body });
  const [{ port }] = (await once(bare, "message")) as [{ port: number }];
  return `http://127.0.0.1:${port}`;
}

function* commandsOf(count: number): Generator<string> {
  for (let n = 0; n < count; n++) {
    yield `${n === 0 ? "[" : ","}{"Id":"users/${n}","Type":"PUT","Document":${userText(n)}}`;
  }
  yield "]";
}
