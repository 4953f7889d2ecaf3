/**
 * Patches by query over HTTP, from the PATCH to the completed operation, durable, in a server of its own process: against
 * SQLite in process, and against a RavenDB whose address is in JACKDAW_BENCH_RAVENDB (without certificates), with the same
 * documents in the same run. And how long a GET takes while all documents are patched, as another process sees it.
 */
import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { Agent, type IncomingMessage, request } from "node:http";
import { createInterface } from "node:readline";
import { Readable } from "node:stream";
import { fileURLToPath } from "node:url";
import {
  type BenchSize,
  interleaved,
  percentile,
  ratio,
  seeded,
  temporaryFolder,
  timeMs,
} from "./harness.ts";
import { filledSqlite, patches, textOf } from "./patched-documents.ts";

const metadata = ',"@metadata":{"@collection":"Users"}}';
const pollMs = 5;
/** Between one GET and the next: a user, not a load. */
const pauseMs = 1;
/** A RavenDB is given a minute for what it needs to settle on the index of a condition. */
const staleTimeout = "00:01:00";

export async function run(size: BenchSize): Promise<string[]> {
  const count =
    size === "smoke" ? 2_000 : Number(process.env["JACKDAW_BENCH_DOCUMENTS"] ?? 1_000_000);
  const rounds = size === "smoke" ? 1 : 3;
  const lines: string[] = [];
  const print = (line: string) => {
    lines.push(line);
    console.log(line);
  };
  const folder = temporaryFolder();
  const child = spawn(
    process.execPath,
    [
      fileURLToPath(new URL("../server/main.js", import.meta.url)),
      "--ServerUrl=http://127.0.0.1:0",
      `--DataDir=${folder.path}/data`,
    ],
    { stdio: ["pipe", "pipe", "inherit"] },
  );
  const sqlite = filledSqlite(folder.path, count);
  const ravenUrl = process.env["JACKDAW_BENCH_RAVENDB"];
  try {
    const jackdaw = new Client(await urlOf(child));
    const raven = ravenUrl === undefined ? null : new Client(ravenUrl);
    const servers = raven === null ? [jackdaw] : [jackdaw, raven];
    for (const server of servers) await server.fill(count);
    for (const [what, { query, sql }] of Object.entries(patches)) {
      for (const server of servers) if (what === "some") await server.patch(query); // makes the index
      const times = await interleaved(rounds, {
        jackdaw: () => timeMs(() => jackdaw.patch(query)),
        sqlite: async () => (sqlite === null ? Number.NaN : timeMs(() => sqlite.exec(sql))),
        raven: async () => (raven === null ? Number.NaN : timeMs(() => raven.patch(query))),
      });
      const { jackdaw: own = Number.NaN } = times;
      print(
        `patch of ${what} over the wire: ${own.toFixed(0)} ms, ${ratio(times["sqlite"] ?? Number.NaN, own)} SQLite in process, ` +
          `${ratio(times["raven"] ?? Number.NaN, own)} RavenDB`,
      );
    }
    await benchGets(jackdaw, count, print);
    await raven?.remove();
  } finally {
    sqlite?.close();
    child.kill();
    await once(child, "exit");
    folder.remove();
  }
  return lines;
}

async function urlOf(child: ChildProcess): Promise<string> {
  if (child.stdout === null) throw new Error("the server has no output");
  for await (const line of createInterface({ input: child.stdout })) {
    const url = /^Server available on: (.*)$/.exec(line)?.[1];
    if (url !== undefined) return url;
  }
  throw new Error("the server did not start");
}

/** GETs of random documents on one connection, one after the other, idle and beside a patch of all. */
async function benchGets(
  client: Client,
  count: number,
  print: (line: string) => void,
): Promise<void> {
  const random = seeded(7);
  const measure = async (isOver: () => boolean): Promise<number[]> => {
    const times: number[] = [];
    while (!isOver()) {
      const path = `/databases/bench/docs?id=users%2F${random() % count}`;
      times.push(await timeMs(async () => void (await client.ask("GET", path))));
      await new Promise((resolve) => setTimeout(resolve, pauseMs));
    }
    return times;
  };
  const until = performance.now() + 2000;
  const idle = await measure(() => performance.now() > until);
  let isPatched = false;
  const patched = client.patch(patches.all.query).finally(() => {
    isPatched = true;
  });
  const busy = await measure(() => isPatched);
  await patched;
  const shown = (times: number[]) =>
    `p50 ${percentile(times, 0.5).toFixed(2)} ms, p99 ${percentile(times, 0.99).toFixed(2)} ms`;
  print(
    `get over the wire beside a patch of all: ${shown(busy)}; idle ${shown(idle)}: ` +
      `${ratio(percentile(busy, 0.99), percentile(idle, 0.99))}`,
  );
}

class Client {
  readonly #url: string;
  readonly #agent = new Agent({ keepAlive: true });

  constructor(url: string) {
    this.#url = url;
  }

  async fill(count: number): Promise<void> {
    const record = { DatabaseName: "bench" };
    await this.ask("PUT", "/admin/databases?name=bench&replicationFactor=1", [
      JSON.stringify(record),
    ]);
    function* commands(): Generator<string> {
      for (let n = 0; n < count; n++) {
        const document = textOf(n).slice(0, -1) + metadata;
        yield `${n === 0 ? "[" : ","}{"Id":"users/${n}","Type":"PUT","Document":${document}}`;
      }
      yield "]";
    }
    await this.ask("POST", "/databases/bench/bulk_insert?id=1", commands());
  }

  async remove(): Promise<void> {
    const body = JSON.stringify({ DatabaseNames: ["bench"], HardDelete: true });
    await this.ask("DELETE", "/admin/databases", [body]);
  }

  /** Patches, and waits until it is done. */
  async patch(query: string): Promise<void> {
    const body = JSON.stringify({ Query: { Query: query } });
    const path = `/databases/bench/queries?allowStale=false&staleTimeout=${staleTimeout}`;
    const started = JSON.parse(await this.ask("PATCH", path, [body])) as { OperationId: number };
    for (;;) {
      const path = `/databases/bench/operations/state?id=${started.OperationId}`;
      const state = JSON.parse(await this.ask("GET", path)) as { Status: string };
      if (state.Status === "Completed") return;
      if (state.Status !== "InProgress") throw new Error(JSON.stringify(state));
      await new Promise((resolve) => setTimeout(resolve, pollMs));
    }
  }

  async ask(method: string, path: string, body?: Iterable<string>): Promise<string> {
    const sent = request(this.#url + path, {
      method,
      agent: this.#agent,
      headers: {
        "Content-Type": "application/json",
        "Raven-Client-Version": "7.2.0",
        ...(body === undefined ? {} : { "Transfer-Encoding": "chunked" }),
      },
    });
    const answered = once(sent, "response") as Promise<[IncomingMessage]>;
    if (body === undefined) sent.end();
    else Readable.from(chunksOf(body)).pipe(sent);
    const [reply] = await answered;
    const text = Buffer.concat((await reply.toArray()) as Buffer[]).toString();
    if ((reply.statusCode ?? 0) >= 300) throw new Error(`${method} ${path}: ${text}`);
    return text;
  }
}

/** Joins small texts. */
function* chunksOf(texts: Iterable<string>): Generator<string> {
  let chunk = "";
  for (const text of texts) {
    chunk += text;
    if (chunk.length < 256 * 1024) continue;
    yield chunk;
    chunk = "";
  }
  if (chunk !== "") yield chunk;
}
