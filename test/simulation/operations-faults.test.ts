/**
 * Operations by query on a failing disk: power loss, failing calls and a full disk at every file
 * system call of a patch that is paused and limited, of one whose script writes other documents, of
 * a deletion, of undoing both, and of dropping retained revisions.
 *
 * After each fault the database is reopened and the scenario completed: an interrupted operation is
 * resumed, and undone if possible. Then each document was changed exactly once, no other data was
 * lost, everything reported as done persists, and no temporary data remains.
 *
 * By default every 23rd call fails, from a different start for each fault; every 5th with `npm run
 * stress long`, and each with `npm run stress faults`.
 */
import { expect, test } from "vitest";
import { OpenDatabase } from "../../engine/api/database/open-database.ts";
import { undoDaysMax } from "../../engine/base/limits.ts";
import { startUndo } from "../../engine/services/background/undo-operation.ts";
import {
  resumeByQuery,
  type SetOperationOptions,
  startDeleteByQuery,
  startPatchByQuery,
} from "../../engine/services/querying/operations-by-query.ts";
import {
  isInterrupted,
  markKey,
  type OperationEnd,
  type OperationInfo,
  type StartedOperation,
} from "../../engine/state/store/operations.ts";
import { countCalls, named, playWithFault } from "../support/crash-loop.ts";
import { everyFault } from "../support/every-fault.ts";
import type { SimulatedClock } from "../support/simulated-clock.ts";
import { databaseFolder, logOptions, simulatedEnvironment } from "../support/simulated-database.ts";
import type { Fault, SimulatedFileSystem } from "../support/simulated-file-system.ts";

const step = everyFault ? 1 : 23;
const count = 14;
const msPerDay = 86_400_000;
/** Changed by others after a patch has ended, and before it is undone. */
const changedSince = 2;
const deletedSince = 3;
/** Changed by others while the operation is paused, before it has reached the document. */
const changedBefore = count - 1;

interface Scenario {
  readonly kind: "patch" | "delete";
  readonly text: string;
  readonly keepsUndo: boolean;
  /** The new number of a document; undefined: it is deleted. */
  readonly after: (n: number) => number | undefined;
  /** Whether each changed document gets a log document, whose number increases with each change. */
  readonly hasLog?: boolean;
}

const scenarios: Readonly<Record<string, Scenario>> = {
  "a patch of numbers": {
    kind: "patch",
    text: "from Numbers update { this.N += 100 }",
    keepsUndo: false,
    after: (n) => n + 100,
  },
  "a script that leaves some unchanged, and writes other documents": {
    kind: "patch",
    text: "from Numbers update { const id = 'logs/' + this.N; const log = load(id); put(id, { Times: (log ? log.Times : 0) + 1 }); if (this.N % 2) this.N += 100; }",
    keepsUndo: false,
    after: (n) => (n % 2 === 1 ? n + 100 : n),
    hasLog: true,
  },
  "a patch that is undone": {
    kind: "patch",
    text: "from Numbers update { this.N += 100 }",
    keepsUndo: true,
    after: (n) => n + 100,
  },
  "a deletion that is undone": {
    kind: "delete",
    text: "from Numbers",
    keepsUndo: true,
    after: () => undefined,
  },
};

/** State that was reported to a client, and must hold afterwards. */
class Reported {
  isFilled = false;
  operation: number | null = null;
  /** Number of documents that the operation reported as changed. */
  changed = 0;
  isChangedBefore = false;
  hasEnded = false;
  isChangedSince = false;
  isDeletedSince = false;
  isUndone = false;
}

interface Opened {
  readonly database: OpenDatabase;
  readonly clock: SimulatedClock;
}

const usual: SetOperationOptions = {
  parametersText: null,
  allowsStale: false,
  staleTimeoutMs: 10_000,
  operationsPerSecondMax: 75,
  hasDetails: false,
  liftsLimits: false,
};

async function open(files: SimulatedFileSystem): Promise<Opened> {
  const environment = simulatedEnvironment(files);
  const database = await OpenDatabase.open(environment, "shop", databaseFolder, logOptions());
  return { database, clock: environment.clock };
}

const idOf = (n: number) => `numbers/${n}`;

async function put({ database }: Opened, n: number, value: number): Promise<void> {
  await database.put(idOf(n), { N: value, "@metadata": { "@collection": "Numbers" } });
}

async function fill({ database }: Opened): Promise<void> {
  const { putParsed } = await import("../../engine/writes/documents.ts");
  await database.write((transaction) => {
    for (let n = 0; n < count; n++) {
      const text = `{"N":${n},"@metadata":{"@collection":"Numbers"}}`;
      putParsed(transaction, idOf(n), database.state.parseText(text));
    }
  });
}

/** Advances the clock until the operation has ended, or is paused where `isThere` returns true. */
async function drive(
  { clock }: Opened,
  { ended }: StartedOperation,
  isThere: () => boolean = () => false,
): Promise<OperationEnd | null> {
  let end: OperationEnd | null = null;
  const known = ended.then((value) => {
    end = value;
  });
  for (let tick = 0; end === null && !isThere(); tick++) {
    if (tick > 20_000) expect.fail("the operation did not end");
    clock.advance(10);
    await new Promise((resolve) => setImmediate(resolve));
  }
  if (end !== null) await known;
  return end;
}

function changedOf({ state, reached }: OperationInfo): number {
  const figures = state.status === "running" ? state.progress : reached;
  return Number(figures?.["Changed"] ?? 0);
}

function start({ database }: Opened, story: Scenario): Promise<StartedOperation> {
  const options = { ...usual, keepsUndo: story.keepsUndo };
  return story.kind === "patch"
    ? startPatchByQuery(database, story.text, options)
    : startDeleteByQuery(database, story.text, options);
}

function operationOf({ database }: Opened, kind: string): OperationInfo | undefined {
  return database.operations.list().find((info) => info.kind === kind);
}

async function play(
  files: SimulatedFileSystem,
  reported: Reported,
  story: Scenario,
): Promise<void> {
  const shop = await open(files);
  const { operations } = shop.database;
  operations.listen((info) => {
    if (/ByQuery$/.test(info.kind)) reported.changed = Math.max(reported.changed, changedOf(info));
  });
  await fill(shop);
  reported.isFilled = true;
  const started = await start(shop, story);
  reported.operation = started.id;
  const isHalf = () => changedOf(operations.get(started.id) as OperationInfo) > 1;
  if ((await drive(shop, started, isHalf)) === null) {
    operations.pause(started.id);
    await put(shop, changedBefore, -1);
    reported.isChangedBefore = true;
    operations.limit(started.id, 150);
    operations.resume(started.id);
  }
  const end = await drive(shop, started);
  if (end?.info.state.status === "completed") reported.hasEnded = true;
  if (story.keepsUndo) await undoAndForget(shop, started.id, reported);
  await shop.database.close();
}

async function undoAndForget(shop: Opened, operation: number, reported: Reported): Promise<void> {
  await put(shop, changedSince, -2);
  reported.isChangedSince = true;
  await shop.database.delete(idOf(deletedSince));
  reported.isDeletedSince = true;
  const undo = await startUndo(shop.database, operation, undefined);
  shop.database.operations.limit(undo.id, 75);
  const end = await drive(shop, undo);
  if (end?.info.state.status === "completed") reported.isUndone = true;
  shop.clock.advance((undoDaysMax + 1) * msPerDay);
  await shop.database.undoRetention.run();
}

/** Opens the files and completes the scenario. */
async function goOn(
  files: SimulatedFileSystem,
  reported: Reported,
  story: Scenario,
): Promise<void> {
  const shop = await open(files);
  const { database } = shop;
  try {
    database.checkInvariants();
    const found = await numbersOf(shop);
    if (reported.isFilled) {
      await checkFound(shop, found, reported, story);
      await completeScenario(shop, reported, story);
    } else expect([0, count]).toContain(found.size);
    database.checkInvariants();
  } finally {
    await database.close();
  }
}

/** Reported state holds, and each document has its old or new value. */
async function checkFound(
  shop: Opened,
  found: ReadonlyMap<number, number>,
  reported: Reported,
  story: Scenario,
): Promise<void> {
  const kind = story.kind === "patch" ? "UpdateByQuery" : "DeleteByQuery";
  const info = operationOf(shop, kind);
  if (reported.operation !== null) expect(info?.id).toBe(reported.operation);
  let changed = 0;
  for (let n = 0; n < count; n++) {
    const value = found.get(n);
    const others: (number | undefined)[] = [];
    if (n === changedBefore) others.push(-1);
    if (n === changedSince) others.push(-2);
    if (n === deletedSince) others.push(undefined);
    if (n === changedBefore && reported.isChangedBefore) {
      expect(value, "written by others while it was paused").toBe(-1);
    } else if (n === changedSince && reported.isChangedSince) {
      expect(value, "written by others after it").toBe(-2);
    } else expect([n, story.after(n), ...others], idOf(n)).toContain(value);
    if (value === story.after(n) && value !== n && n !== deletedSince) changed++;
  }
  if (info === undefined) {
    expect(changed).toBe(0);
    return;
  }
  const isUndoBegun = operationOf(shop, "UndoOperation") !== undefined;
  expect(changedOf(info)).toBeGreaterThanOrEqual(reported.changed);
  if (!isUndoBegun && !reported.isChangedSince && isInterrupted(info) && story.kind === "patch") {
    const isPatched = (n: number | undefined, at: number) =>
      n !== undefined && n === story.after(at) && n !== at;
    const patched = Array.from({ length: count }, (_, n) => found.get(n)).filter(isPatched).length;
    const doubtful = found.get(changedSince) === -2 ? 1 : 0;
    expect(changedOf(info) - patched).toBeLessThanOrEqual(doubtful);
    expect(changedOf(info) - patched).toBeGreaterThanOrEqual(0);
  }
  // When the operation is reported as ended, its changes are durable, but perhaps not its end.
  if (reported.hasEnded && info.state.status !== "completed")
    expect(isInterrupted(info)).toBe(true);
  if (reported.hasEnded && !isUndoBegun) checkChanged(found, story);
}

/**
 * Resumes an interrupted operation, undoes it, and drops revisions: then the state is the same as
 * without a fault.
 */
async function completeScenario(shop: Opened, reported: Reported, story: Scenario): Promise<void> {
  const { database } = shop;
  const { operations } = database;
  const kind = story.kind === "patch" ? "UpdateByQuery" : "DeleteByQuery";
  const info = operationOf(shop, kind);
  if (info === undefined) return;
  if (isInterrupted(info)) {
    const gone = await resumeByQuery(database, info.id);
    operations.limit(info.id, null);
    const end = await drive(shop, gone);
    expect(end?.info.state.status).toBe("completed");
  }
  expect(database.state.keyspaces.values.get(markKey(info.id))).toBeUndefined();
  const isWhole = operations.get(info.id)?.state.status === "completed";
  const before = await numbersOf(shop);
  const isUndone = story.keepsUndo && operationOf(shop, "UndoOperation") !== undefined;
  if (isWhole && !isUndone) checkChanged(before, story);
  if (story.hasLog === true && isWhole) {
    for (const [n, value] of before) {
      const times = (await database.get(`logs/${n}`)) as { Times: number } | null;
      const isForeign = value === -1;
      expect(times?.Times ?? 0, `runs on ${idOf(n)}`).toBe(isForeign ? 0 : 1);
    }
  }
  if (!story.keepsUndo) return;
  const left = [...before].filter(([, value]) => value < 0);
  if (operations.get(info.id)?.facts?.["canUndo"] === true) {
    const undo = await startUndo(database, info.id, undefined);
    const end = await drive(shop, undo);
    expect(end?.info.state).toMatchObject({ status: "completed", result: { WithoutRevision: 0 } });
    const after = await numbersOf(shop);
    for (let n = 0; n < count; n++) {
      if (n === deletedSince && !after.has(n)) continue;
      const foreign = left.find(([one]) => one === n)?.[1];
      expect(after.get(n), idOf(n)).toBe(foreign ?? n);
    }
    if (!reported.isDeletedSince && before.has(deletedSince))
      expect(after.has(deletedSince)).toBe(true);
  }
  shop.clock.advance((undoDaysMax + 1) * msPerDay);
  await database.undoRetention.run();
  const { revisions, values } = database.state.keyspaces;
  expect([...values.withPrefix("undo/")]).toEqual([]);
  const kept = revisions.count - (before.has(deletedSince) ? 0 : 1);
  expect(kept, "retained revisions").toBeLessThanOrEqual(0);
}

function checkChanged(found: ReadonlyMap<number, number>, story: Scenario): void {
  for (let n = 0; n < count; n++) {
    const value = found.get(n);
    if (value !== undefined && value < 0) continue;
    if (n === deletedSince && value === undefined) continue;
    expect(value, `${idOf(n)} when it has ended`).toBe(story.after(n));
  }
}

async function numbersOf({ database }: Opened): Promise<Map<number, number>> {
  const found = new Map<number, number>();
  for (let n = 0; n < count; n++) {
    const document = (await database.get(idOf(n))) as { N: number } | null;
    if (document !== null) found.set(n, document.N);
  }
  return found;
}

/** Each returns the fault at call `index` if `at` is the chosen call. */
const faults: Readonly<Record<string, (index: number, at: number) => Fault | undefined>> = {
  "a crash": (index, at) => (index === at ? { kind: "crash" } : undefined),
  "an error": (index, at) => (index === at ? { kind: "error", code: "EIO" } : undefined),
  "a full disk, once": (index, at) =>
    index === at ? { kind: "error", code: "ENOSPC", writtenShare: 0.4 } : undefined,
  "a full disk from that call on": (index, at) =>
    index >= at ? { kind: "error", code: "ENOSPC" } : undefined,
};

for (const [name, story] of Object.entries(scenarios)) {
  test(`completes correctly whatever call fails: ${name}`, { timeout: 3_600_000 }, async () => {
    const scenario = (files: SimulatedFileSystem, reported: Reported) =>
      play(files, reported, story);
    const calls = await countCalls(() => new Reported(), scenario);
    for (const [turn, [fault, faultAt]] of Object.entries(faults).entries()) {
      for (let at = (3 * turn) % step; at < calls; at += step) {
        const reported = new Reported();
        const files = await playWithFault(scenario, reported, (index) => faultAt(index, at));
        const where = `${fault} in call ${at} (${files.calls[at]?.name} ${files.calls[at]?.path})`;
        await named(where, () => goOn(files.powerLoss(at), reported, story));
        if (fault !== "a crash") await named(where, () => goOn(files.restart(), reported, story));
      }
    }
  });
}
