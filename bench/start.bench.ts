/**
 * A start with many databases, one of them large, compared with a start without any: from the start of the process
 * until `Server available on:`, and the first GET in the large database, which opens it.
 *
 * JACKDAW_BENCH_DATABASES, JACKDAW_BENCH_DOCUMENTS: number of databases, and of documents in the large one.
 */
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { type BenchSize, documentText, median, temporaryFolder, timeMs } from "./harness.ts";
import { PlainClient, startPlain } from "./http/plain-client.ts";
import { processorMs, stop } from "./http/processes.ts";

/** The bundled executable; separate modules take three times as long to load. */
const executable = fileURLToPath(new URL("../../bin/jackdaw", import.meta.url));
/** Number of databases that are created concurrently. */
const concurrentCreations = 4;

interface Start {
  readonly wallMs: number;
  readonly processorMs: number;
  readonly firstGetMs: number;
}

/** Runs the bench. @returns the printed lines */
export async function run(size: BenchSize): Promise<string[]> {
  const isSmoke = size === "smoke";
  const databases = isSmoke ? 3 : Number(process.env["JACKDAW_BENCH_DATABASES"] ?? 1_000);
  const documents = isSmoke ? 1_000 : Number(process.env["JACKDAW_BENCH_DOCUMENTS"] ?? 5_000_000);
  const folder = temporaryFolder();
  try {
    const empty = join(folder.path, "empty");
    const full = join(folder.path, "full");
    await measured(empty, false);
    await fill(full, databases, documents);
    const starts = { empty: [] as Start[], full: [] as Start[] };
    for (let round = 0; round < (isSmoke ? 1 : 7); round++) {
      starts.empty.push(await measured(empty, false));
      starts.full.push(await measured(full, true));
    }
    const startsText = (list: Start[]) => {
      const of = (figure: keyof Start) => median(list.map((one) => one[figure])).toFixed(0);
      return `${of("wallMs")} ms (processor ${of("processorMs")} ms)`;
    };
    const first = median(starts.full.map((one) => one.firstGetMs)).toFixed(0);
    const lines = [
      `start without databases: ${startsText(starts.empty)}`,
      `start with ${databases} databases, one of ${documents} documents: ${startsText(starts.full)}`,
      `first GET in the large one: ${first} ms`,
    ];
    for (const line of lines) console.log(line);
    return lines;
  } finally {
    folder.remove();
  }
}

async function fill(folder: string, databases: number, documents: number): Promise<void> {
  const server = await startPlain(folder);
  await new PlainClient(server.url, "large").fill(commands(documents));
  let left = databases - 1;
  const create = async (): Promise<void> => {
    while (left > 0) {
      const name = `small-${left--}`;
      await new PlainClient(server.url, name).fill(commands(1));
    }
  };
  await Promise.all(Array.from({ length: concurrentCreations }, create));
  await stop(server.process);
}

async function measured(folder: string, asks: boolean): Promise<Start> {
  const beganMs = performance.now();
  const server = await startPlain(folder, { executable });
  const wallMs = performance.now() - beganMs;
  const used = processorMs(server.process.pid ?? 0);
  const client = new PlainClient(server.url, "large");
  const firstGetMs = asks
    ? await timeMs(async () => {
        await client.ask("GET", "/databases/large/docs?id=users%2F0");
      })
    : Number.NaN;
  await stop(server.process);
  return { wallMs, processorMs: used, firstGetMs };
}

function* commands(count: number): Generator<string> {
  for (let n = 0; n < count; n++) {
    const text = `${documentText(n).slice(0, -1)},"@metadata":{"@collection":"Users"}}`;
    yield `${n === 0 ? "[" : ","}{"Id":"users/${n}","Type":"PUT","Document":${text}}`;
  }
  yield "]";
}
