/**
 * Kills a real process at random moments while it writes, opens its files, and compares: no
 * acknowledged write is lost, none is partial. For long runs: `npm run stress crash -- --rounds=100
 * --seed=7`; with `--fresh=25` every 25 rounds start with an empty folder (the time of a round
 * grows with the data written before) and the next seed.
 */
import assert from "node:assert/strict";
import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { mkdtemp, readdir, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { parseArgs } from "node:util";
import { OpenDatabase } from "../../engine/api/database/open-database.ts";
import { nodeEnvironment } from "../../engine/base/platform/node-environment.ts";
import { attachmentKey } from "../../engine/state/keyspaces/attachments.ts";
import { counterKey } from "../../engine/state/keyspaces/counters.ts";
import { largeDocumentOf, operationsOf } from "../support/crash-writes.ts";
import { pictureOf } from "../support/database-picture.ts";
import { SeededRandom } from "../support/random.ts";

/** Maximum number of writes in flight when the process is killed. */
const writersCount = 8;

interface KillReport {
  readonly rounds: number;
  readonly acknowledged: number;
  /** Writes that were found although they were not acknowledged. */
  readonly foundBeside: number;
}

interface KillOptions {
  /** The writing program, as JavaScript. */
  readonly program: string;
  readonly rounds: number;
  readonly seed: number;
  /** Maximum time until the process is killed, measured from the opening of its database. */
  readonly roundMs: number;
}

/** The outcomes of the writes of all rounds so far. */
interface Known {
  readonly seed: number;
  readonly acknowledged: Set<number>;
  /** Numbers that may have been started and are not acknowledged. */
  readonly open: Set<number>;
  next: number;
}

/** @throws AssertionError naming the lost write, and the seed. */
export async function killLoop(options: KillOptions): Promise<KillReport> {
  const { rounds, seed } = options;
  const folder = await mkdtemp(join(tmpdir(), "jackdaw-kill-"));
  const random = new SeededRandom(seed);
  const known: Known = { seed, acknowledged: new Set(), open: new Set(), next: 1000 };
  let foundBeside = 0;
  try {
    for (let round = 0; round < rounds; round++) {
      await killOnce(options, join(folder, "db"), known, random);
      foundBeside = await checkAll(join(folder, "db"), known, round);
    }
  } catch (error) {
    if (error instanceof Error) error.message = `seed ${seed}, see ${folder}: ${error.message}`;
    throw error;
  }
  await rm(folder, { recursive: true, force: true });
  return { rounds, acknowledged: known.acknowledged.size, foundBeside };
}

async function killOnce(
  { program, seed, roundMs }: KillOptions,
  folder: string,
  known: Known,
  random: SeededRandom,
): Promise<void> {
  const child = spawn(process.execPath, [program, folder, `${seed}`, `${known.next}`], {
    stdio: ["ignore", "pipe", "inherit"],
  });
  const lines = readLines(child);
  // Sometimes it is killed while it opens.
  if (random.chance(0.8)) await lines.opened;
  await new Promise((resolve) => setTimeout(resolve, random.below(roundMs)));
  child.kill("SIGKILL");
  const [code] = (await once(child, "close")) as [number | null];
  assert.equal(code, null, "the process was killed and did not end by itself");
  const numbers = lines.numbers();
  for (const number of numbers) known.acknowledged.add(number);
  // A writer uses its next number once the last one is acknowledged.
  const end = known.next + numbers.length + writersCount;
  for (let number = known.next; number < end; number++) {
    if (!known.acknowledged.has(number)) known.open.add(number);
  }
  known.next = end;
}

function readLines(child: ChildProcess): { opened: Promise<void>; numbers(): number[] } {
  let text = "";
  const opened = new Promise<void>((resolve, reject) => {
    child.stdout?.on("data", (chunk: Buffer) => {
      text += chunk.toString();
      if (text.startsWith("open\n")) resolve();
    });
    child.once("close", () => reject(new Error("the process ended before it opened its database")));
  });
  opened.catch(() => undefined);
  return {
    opened,
    // The last line may be truncated: its write is not acknowledged then.
    numbers: () => text.split("\n").slice(1, -1).map(Number),
  };
}

/** Opens the files, with the snapshot and without, and checks every write so far. */
async function checkAll(folder: string, known: Known, round: number): Promise<number> {
  const database = await OpenDatabase.open(nodeEnvironment(), "killed", folder);
  database.checkInvariants();
  let foundBeside = 0;
  for (const number of known.acknowledged) await checkWrite(database, known, number);
  for (const number of known.open) if (await checkWrite(database, known, number)) foundBeside++;
  assert.deepEqual(await database.blobs.findDamaged(), []);
  const picture = pictureOf(database);
  await database.abandon();
  if (round % 2 === 1) {
    for (const name of await readdir(join(folder, "snap"))) await rm(join(folder, "snap", name));
    const again = await OpenDatabase.open(nodeEnvironment(), "killed", folder);
    assert.deepEqual(pictureOf(again), picture);
    await again.abandon();
  }
  return foundBeside;
}

/**
 * @returns whether the write exists. @throws AssertionError if it should exist, or exists partially
 */
async function checkWrite(database: OpenDatabase, known: Known, number: number): Promise<boolean> {
  const found: boolean[] = [];
  for (const operation of operationsOf(known.seed, number)) {
    if (operation.kind !== "put") continue;
    const { id, body } = operation;
    const text = await database.bodyText(id);
    found.push(text !== null);
    if (text === null) continue;
    assert.equal(text, body, `document ${id}`);
    const counter = database.state.keyspaces.counters.get(counterKey(id, "count"));
    assert.equal(counter?.value, `${number}`, `counter of ${id}`);
    await checkContent(database, known.seed, number, id);
  }
  const isThere = found.some((one) => one);
  await checkLarge(database, known, number, isThere);
  assert.ok(
    found.every((one) => one === isThere),
    `write ${number} is half there`,
  );
  if (isThere) {
    assert.ok(!isDeleted(known, number, known.acknowledged), `${number} was deleted`);
  } else if (known.acknowledged.has(number)) {
    const mayBeDeleted =
      isDeleted(known, number, known.acknowledged) || isDeleted(known, number, known.open);
    assert.ok(mayBeDeleted, `write ${number} was acknowledged and is lost`);
  }
  return isThere;
}

/** A large document is put before the rest of its write, so it may exist alone. */
async function checkLarge(database: OpenDatabase, known: Known, number: number, isNeeded: boolean) {
  const large = largeDocumentOf(known.seed, number);
  const text = await database.bodyText(`large/${number}`);
  if (text === null) {
    const isLost = large !== "" && (isNeeded || known.acknowledged.has(number));
    assert.ok(!isLost, `the large document of ${number} is lost`);
  } else {
    assert.ok(text === large, `the large document of ${number} is another`);
  }
}

async function checkContent(database: OpenDatabase, seed: number, number: number, id: string) {
  const operation = operationsOf(seed, number).find(({ kind }) => kind === "attach");
  const attachment = database.state.keyspaces.attachments.get(attachmentKey(id, "file"));
  assert.equal(attachment !== undefined, operation !== undefined, `attachment of ${id}`);
  if (attachment === undefined || operation?.kind !== "attach") return;
  const reader = await database.blobs.open(attachment.hash);
  const chunks: Buffer[] = [];
  for await (const chunk of reader.read(0, reader.size)) chunks.push(chunk);
  await reader.close();
  assert.equal(Buffer.concat(chunks).toString(), operation.content, `content of ${id}`);
}

/** Whether `writes` contains the write that may delete the documents of `number`, and it does. */
function isDeleted(known: Known, number: number, writes: ReadonlySet<number>): boolean {
  const deleter = number + 100;
  const hasSingle = operationsOf(known.seed, number).some(
    (operation) => operation.kind === "put" && operation.id === `single/${number}`,
  );
  if (!hasSingle || !writes.has(deleter)) return false;
  return operationsOf(known.seed, deleter).some(
    (operation) => operation.kind === "delete" && operation.id === `single/${number}`,
  );
}

const isMain = process.argv[1] === fileURLToPath(import.meta.url);
if (isMain) {
  const { values } = parseArgs({
    options: {
      rounds: { type: "string", default: "100" },
      seed: { type: "string", default: `${Date.now() % 1_000_000}` },
      ms: { type: "string", default: "700" },
      fresh: { type: "string" },
    },
  });
  const program = fileURLToPath(new URL("../support/crash-child.js", import.meta.url));
  const total = { rounds: 0, acknowledged: 0, foundBeside: 0 };
  const all = Number(values.rounds);
  const roundMs = Number(values.ms);
  for (let seed = Number(values.seed); total.rounds < all; seed++) {
    const rounds = Math.min(Number(values.fresh ?? all), all - total.rounds);
    const report = await killLoop({ program, rounds, seed, roundMs });
    total.rounds += report.rounds;
    total.acknowledged += report.acknowledged;
    total.foundBeside += report.foundBeside;
    console.log(`from seed ${values.seed} to ${seed}: ${JSON.stringify(total)}`);
  }
}
