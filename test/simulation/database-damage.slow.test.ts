/**
 * Files damaged while no process has them open: truncated, flipped, emptied, removed. A database
 * opens with all acknowledged writes, or with a prefix of them if only the last writes are missing;
 * else it fails to open and names the file. It never returns a document, a counter or an attachment
 * that differs from the written one.
 *
 * In each file 40 evenly spread bits are flipped; with `npm run stress faults` all of them, in eight
 * parts: one for each bit position within a byte.
 */
import { describe, expect, test, vi } from "vitest";
import { OpenDatabase } from "../../engine/api/database/open-database.ts";
import { EngineError } from "../../engine/base/errors.ts";
import { describeDatabase } from "../support/database-picture.ts";
import { put } from "../support/database-scenarios.ts";
import { everyFault } from "../support/every-fault.ts";
import {
  databaseFolder,
  History,
  logOptions,
  SimulatedDatabase,
  simulatedEnvironment,
} from "../support/simulated-database.ts";
import { SimulatedFileSystem } from "../support/simulated-file-system.ts";

/** Number of bytes of each file in which a test flips its bit. */
const flips = everyFault ? Number.POSITIVE_INFINITY : 5;

interface Store {
  readonly files: SimulatedFileSystem;
  readonly history: History;
}

/**
 * Three segments with records of all types, and an attachment. `isClosed`: shut down cleanly, with
 * an index snapshot.
 */
async function createStore(isClosed: boolean): Promise<Store> {
  const files = new SimulatedFileSystem();
  const history = new History();
  const shop = await SimulatedDatabase.open(files, history, { segmentBytesMax: 1024 });
  await shop.write([put("a", "A".repeat(100)), { kind: "increment", id: "a", name: "n", by: 1 }]);
  await shop.write([{ kind: "attach", id: "a", name: "file", content: "the content" }]);
  for (let index = 0; index < 4; index++) {
    await shop.write([
      put("b", `${index}`.repeat(150)),
      { kind: "increment", id: "a", name: "n", by: 10 },
    ]);
  }
  await shop.write([{ kind: "delete", id: "b" }]);
  if (isClosed) await shop.database.close();
  return { files, history };
}

type Outcome = "whole" | "prefix" | "refused" | "damaged record";

/** Opens a copy after `damage`. Fails if it contains data that was never written. */
async function outcomeOf(
  { files, history }: Store,
  damage: (files: SimulatedFileSystem) => void,
): Promise<Outcome> {
  const copy = files.restart();
  damage(copy);
  const before = copy.paths().map((path) => [path, Buffer.from(copy.content(path))] as const);
  let database: OpenDatabase;
  try {
    const options = logOptions({ mustExist: true });
    database = await OpenDatabase.open(simulatedEnvironment(copy), "shop", databaseFolder, options);
  } catch (error) {
    if (!(error instanceof EngineError)) throw error;
    expect(["database-damaged", "database-missing"]).toContain(error.code);
    expect(error.message).toContain(databaseFolder);
    for (const [path, bytes] of before) expect(copy.content(path).equals(bytes), path).toBe(true);
    return "refused";
  }
  try {
    const description = await describeDatabase(database);
    const known = history.states.map((state) => state.text());
    const found = known.lastIndexOf(description);
    if (found < 0) expect.fail(`found data that was never written: ${description}`);
    return found === known.length - 1 ? "whole" : "prefix";
  } catch (error) {
    if (error instanceof EngineError && error.code === "record-damaged") return "damaged record";
    throw error;
  } finally {
    await database.abandon().catch(() => undefined);
  }
}

function logFiles({ files }: Store): string[] {
  return files.paths().filter((path) => path.endsWith(".seg"));
}

/** Used bytes of a segment: only zeros follow. */
function usedBytes({ files }: Store, path: string): number {
  const bytes = files.content(path);
  let end = bytes.length;
  while (end > 0 && bytes[end - 1] === 0) end--;
  return end;
}

function flip(path: string, bit: number): (files: SimulatedFileSystem) => void {
  return (files) =>
    files.damage(path, (bytes) => {
      bytes[bit >>> 3] = (bytes[bit >>> 3] ?? 0) ^ (1 << (bit & 7));
      return bytes;
    });
}

test("the newest segment, zeroed from any byte on, opens with a prefix or is rejected", {
  timeout: 300_000,
}, async () => {
  const store = await createStore(false);
  const newest = logFiles(store)
    .filter((path) => usedBytes(store, path) > 64)
    .at(-1) as string;
  const outcomes = new Set<Outcome>();
  for (let at = 0; at <= usedBytes(store, newest); at++) {
    const outcome = await outcomeOf(store, (files) =>
      files.damage(newest, (bytes) => bytes.fill(0, at)),
    );
    expect(outcome).not.toBe("damaged record");
    outcomes.add(outcome);
  }
  expect(outcomes).toContain("whole");
  expect(outcomes).toContain("refused");
});

test("the newest segment, truncated at any byte, is rejected, because files keep their length", {
  timeout: 300_000,
}, async () => {
  const store = await createStore(false);
  const newest = logFiles(store)
    .filter((path) => usedBytes(store, path) > 64)
    .at(-1) as string;
  const { length } = store.files.content(newest);
  for (let at = 0; at < length; at++) {
    const outcome = await outcomeOf(store, (files) =>
      files.damage(newest, (bytes) => bytes.subarray(0, at)),
    );
    expect(outcome).toBe("refused");
  }
});

const bitsOfByte = [0, 1, 2, 3, 4, 5, 6, 7];

describe.each([
  ["after a crash", false],
  ["after a clean shutdown", true],
])("a flipped bit never yields data that was not written: %s", (_, isClosed) => {
  test.each(bitsOfByte)("bit %i of a byte", { timeout: 3_600_000 }, async (bit) => {
    const store = await createStore(isClosed);
    const outcomes: Record<Outcome, number> = {
      whole: 0,
      prefix: 0,
      refused: 0,
      "damaged record": 0,
    };
    expect(logFiles(store).length).toBeGreaterThanOrEqual(3);
    for (const path of store.files.paths()) {
      const bytes = Math.max(usedBytes(store, path), 64);
      const step = Math.max(1, Math.floor(bytes / flips));
      // Sampled tests begin at different bytes.
      for (let at = Math.floor((step * bit) / bitsOfByte.length); at < bytes; at += step) {
        outcomes[await outcomeOf(store, flip(path, at * 8 + bit))]++;
      }
    }
    expect(outcomes.refused).toBeGreaterThan(0);
    // An attachment's file is checked when it is read, and so are segments preceding a complete
    // snapshot.
    expect(outcomes["damaged record"]).toBeGreaterThan(0);
  });
});

test.each(["removed", "emptied"])(
  "a file that is %s is detected, or is not needed",
  async (how) => {
    for (const isClosed of [false, true]) {
      const store = await createStore(isClosed);
      for (const path of store.files.paths()) {
        const outcome = await outcomeOf(store, (files) => {
          if (how === "removed") files.remove(path);
          else files.damage(path, () => Buffer.alloc(0));
        });
        if (path.includes("/snap/")) expect(outcome, path).toBe("whole");
        else if (path.includes("/blobs/")) expect(outcome, path).toBe("damaged record");
        else if (path.endsWith("MANIFEST")) expect(outcome, path).toBe("refused");
        else expect(["refused", "whole"], path).toContain(outcome);
        if (path.endsWith("1.seg")) expect(outcome, path).toBe("refused");
      }
    }
  },
);

test("a scrub lists and reports damage, and the rest stays usable", async () => {
  const { files, history } = await createStore(true);
  const shop = await SimulatedDatabase.open(files, history, { cacheBytes: 1 });
  expect(shop.database.damaged).toEqual([]);
  const { documents } = shop.database.state;
  const document = documents.find("a");
  const position = documents.positionOf(document);
  const number = Math.floor(position / 2 ** 32);
  const path = `${databaseFolder}/log/${number.toString().padStart(20, "0")}.seg`;
  flip(path, (position - number * 2 ** 32 + 60) * 8)(files);
  const blob = files.paths().find((one) => one.includes("/blobs/")) as string;
  flip(blob, 3)(files);
  const report = vi.spyOn(shop.database, "report");
  await shop.database.scrub();
  const output = report.mock.calls.map(([message]) => message).join("\n");
  expect(output).toContain("the stored bytes of document 'a' are damaged (");
  expect(output).toContain("the stored bytes of attachment '");
  report.mockClear();
  await shop.database.scrub();
  expect(report.mock.calls).toEqual([]);
  const found = shop.database.damaged.map(({ kind, id }) => `${kind} ${id}`);
  expect(found).toContain("document a");
  expect(found.some((one) => one.startsWith("attachment "))).toBe(true);
  await shop.database.write((transaction) => {
    transaction.putEntry(transaction.keyspaces.values, "still", "writing");
  });
  await shop.database.close();
});
