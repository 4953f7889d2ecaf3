/**
 * Patches by query over HTTP, from the PATCH to the completed operation, durable, in a server in a separate process:
 * against SQLite in process, and against a RavenDB at the address in JACKDAW_BENCH_RAVENDB (without certificates), with
 * the same documents in the same run. Also the latency of a GET from another process during a patch of all documents.
 */
import { once } from "node:events";
import {
  type BenchSize,
  interleaved,
  percentile,
  ratio,
  seeded,
  temporaryFolder,
  timeMs,
} from "./harness.ts";
import { PlainClient, startPlain } from "./http/plain-client.ts";
import { filledSqlite, patches, textOf } from "./patched-documents.ts";

const metadata = ',"@metadata":{"@collection":"Users"}}';
/** Milliseconds between two GETs: a single user, not a load. */
const pauseMs = 1;
/** RavenDB gets a minute to choose and build the index for a condition. */
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
  const server = await startPlain(`${folder.path}/data`);
  const sqlite = filledSqlite(folder.path, count);
  const ravenUrl = process.env["JACKDAW_BENCH_RAVENDB"];
  try {
    const jackdaw = new PlainClient(server.url, "bench");
    const raven = ravenUrl === undefined ? null : new PlainClient(ravenUrl, "bench");
    const servers = raven === null ? [jackdaw] : [jackdaw, raven];
    for (const one of servers) await one.fill(commandsOf(count));
    for (const [what, { query, sql }] of Object.entries(patches)) {
      for (const one of servers) if (what === "some") await one.patch(query, staleTimeout); // builds the index
      const times = await interleaved(rounds, {
        jackdaw: () => timeMs(() => jackdaw.patch(query, staleTimeout)),
        sqlite: async () => (sqlite === null ? Number.NaN : timeMs(() => sqlite.exec(sql))),
        raven: async () =>
          raven === null ? Number.NaN : timeMs(() => raven.patch(query, staleTimeout)),
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
    server.process.kill();
    await once(server.process, "exit");
    folder.remove();
  }
  return lines;
}

/** GETs of random documents on one connection, sequentially, idle and during a patch of all documents. */
async function benchGets(
  client: PlainClient,
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
  const patched = client.patch(patches.all.query, staleTimeout).finally(() => {
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

function* commandsOf(count: number): Generator<string> {
  for (let n = 0; n < count; n++) {
    const document = textOf(n).slice(0, -1) + metadata;
    yield `${n === 0 ? "[" : ","}{"Id":"users/${n}","Type":"PUT","Document":${document}}`;
  }
  yield "]";
}
