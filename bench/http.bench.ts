/**
 * The server over HTTP/2 with mTLS, in a separate process, compared with a bare node:http2 server that sends the same
 * bytes: GET by id, durable PUT, and nine GETs per PUT. The load comes from a third process. The measure is the
 * server's processor time per request, as a ratio to the bare server's: wall time is shared with the clients.
 */
import { type ChildProcess, fork } from "node:child_process";
import { once } from "node:events";
import * as http2 from "node:http2";
import {
  type BenchSize,
  documentText,
  median,
  printer,
  ratio,
  temporaryFolder,
} from "./harness.ts";
import type { BareServerOptions } from "./http/bare-server.ts";
import type { LoadOptions, LoadResult } from "./http/load.ts";
import {
  mainThreadMs,
  type Pair,
  processorMs,
  readPair,
  runLoad,
  type Server,
  script,
  sendRequest,
  startJackdaw,
  startLoad,
  statusFields,
  stop,
} from "./http/processes.ts";

const connections = 8;
const inFlightPerConnection = 8;

const body = `${documentText(7).slice(0, -1)},"@metadata":{"@collection":"Users"}}`;

interface Measured extends LoadResult {
  /** Processor time of all threads, and of the main thread, in milliseconds. */
  readonly processorMs: number;
  readonly mainThreadMs: number;
}

export async function run(size: BenchSize): Promise<string[]> {
  const isSmoke = size === "smoke";
  const { lines, print } = printer();
  const folder = temporaryFolder();
  const children: ChildProcess[] = [];
  try {
    const jackdaw = await startJackdaw(folder.path);
    children.push(jackdaw.process);
    const client = readPair(folder.path, "client");
    const samples = await prepare(jackdaw, client);
    const bare = await startBare({ ...readPair(folder.path, "server"), ...samples });
    children.push(bare.process);
    const load = startLoad();
    children.push(load);
    const options = {
      ...client,
      connections: isSmoke ? 1 : connections,
      inFlightPerConnection,
      documents: isSmoke ? 100 : 10_000,
      body,
    };
    await fill(load, jackdaw, options);
    for (const [name, getShare, requests] of [
      ["GET", 1, isSmoke ? 100 : 20_000],
      ["durable PUT", 0, isSmoke ? 100 : 10_000],
      ["9 GET : 1 PUT", 0.9, isSmoke ? 100 : 20_000],
    ] as const) {
      const pair = { jackdaw, bare };
      print(await compare(name, load, pair, { ...options, getShare, requests }, isSmoke ? 1 : 5));
    }
    if (!isSmoke) print(await flatness(load, jackdaw, options));
  } finally {
    for (const child of children) await stop(child);
    folder.remove();
  }
  return lines;
}

async function startBare(options: BareServerOptions): Promise<Server> {
  const child = fork(script("./bare-server.js"));
  child.send(options);
  const [{ port }] = (await once(child, "message")) as [{ port: number }];
  return { url: `https://127.0.0.1:${port}`, process: child };
}

/** Creates the database and one document. @returns Jackdaw's replies, for the bare server to replay */
async function prepare(
  server: Server,
  pair: Pair,
): Promise<Pick<BareServerOptions, "get" | "put">> {
  const session = http2.connect(server.url, pair);
  const name = "bench";
  await sendRequest(session, "PUT", `/admin/databases?name=${name}&replicationFactor=1`, {
    DatabaseName: name,
  });
  const put = await sendRequest(
    session,
    "PUT",
    "/databases/bench/docs?id=users%2F7",
    JSON.parse(body),
  );
  const get = await sendRequest(session, "GET", "/databases/bench/docs?id=users%2F7");
  session.close();
  return { get, put };
}

type BaseOptions = Omit<LoadOptions, "url" | "requests" | "getShare" | "seed">;

/** Stores a document under every id, then sends requests until V8 has compiled nearly everything (80,000). */
async function fill(load: ChildProcess, server: Server, options: BaseOptions): Promise<void> {
  const session = http2.connect(server.url, options);
  const commands = Array.from({ length: options.documents }, (_, n) => ({
    Id: `users/${n}`,
    Type: "PUT",
    Document: JSON.parse(body),
  }));
  await sendRequest(session, "POST", "/databases/bench/bulk_docs", { Commands: commands });
  session.close();
  const { url } = server;
  await runLoad(load, { ...options, url, requests: options.documents * 8, getShare: 0.5, seed: 1 });
}

async function compare(
  name: string,
  load: ChildProcess,
  servers: { jackdaw: Server; bare: Server },
  options: Omit<LoadOptions, "url" | "seed">,
  rounds: number,
): Promise<string> {
  const own: Measured[] = [];
  const bare: Measured[] = [];
  for (let seed = 0; seed <= rounds; seed++) {
    const jackdawRun = await measure(load, servers.jackdaw, { ...options, seed });
    const bareRun = await measure(load, servers.bare, { ...options, seed });
    if (seed === 0 && rounds > 1) continue; // warm-up
    own.push(jackdawRun);
    bare.push(bareRun);
  }
  const middle = (runs: Measured[], field: keyof Measured) =>
    median(runs.map((each) => each[field]));
  const { requests } = options;
  const ownMicros = (middle(own, "processorMs") / requests) * 1000;
  const engineMicros = (middle(own, "mainThreadMs") / requests) * 1000;
  const bareMicros = (middle(bare, "processorMs") / requests) * 1000;
  const times = (["p50", "p95", "p99"] as const).map(
    (field) => `${field} ${middle(own, field).toFixed(1)} (${middle(bare, field).toFixed(1)})`,
  );
  return (
    `${name}, ${options.connections * options.inFlightPerConnection} in flight: processor ` +
    `${ownMicros.toFixed(1)} µs per request (engine thread ${engineMicros.toFixed(1)}), ${ratio(ownMicros, bareMicros)} bare (${bareMicros.toFixed(1)} µs); ` +
    `${Math.round((requests / middle(own, "ms")) * 1000)}/s (${Math.round((requests / middle(bare, "ms")) * 1000)}/s); ` +
    `ms ${times.join(", ")}`
  );
}

async function measure(
  load: ChildProcess,
  server: Server,
  options: Omit<LoadOptions, "url">,
): Promise<Measured> {
  const pid = server.process.pid ?? 0;
  const before = { all: processorMs(pid), main: mainThreadMs(pid) };
  const result = await runLoad(load, { ...options, url: server.url });
  return {
    ...result,
    processorMs: processorMs(pid) - before.all,
    mainThreadMs: mainThreadMs(pid) - before.main,
  };
}

function residentBytes({ pid = 0 }: ChildProcess): number {
  return Number(/^VmRSS:\s+(\d+) kB/m.exec(statusFields(pid, "status"))?.[1]) * 1024;
}

/** Reports the server's memory over a million requests. */
async function flatness(load: ChildProcess, server: Server, options: BaseOptions): Promise<string> {
  const url = server.url;
  const sizes: number[] = [];
  for (let part = 0; part < 10; part++) {
    await runLoad(load, { ...options, url, requests: 100_000, getShare: 1, seed: part });
    sizes.push(Math.round(residentBytes(server.process) / 1024 ** 2));
  }
  return `resident MiB after each 100,000 of 1,000,000 GETs: ${sizes.join(" ")}`;
}
