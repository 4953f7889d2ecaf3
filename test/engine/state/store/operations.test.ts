import { cpSync, mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, describe, expect, test } from "vitest";
import { type OpenFolder, openFolder } from "../../../../engine/api/database/open-folder.ts";
import { EngineError } from "../../../../engine/base/errors.ts";
import { finishedOperationsMax } from "../../../../engine/base/limits.ts";

import { bulkResult, type OperationInfo } from "../../../../engine/state/store/operations.ts";
import { isNoLock } from "../../../support/open-database.ts";

const folders: string[] = [];
const engines: OpenFolder[] = [];

async function open(folder: string) {
  const engine = await openFolder({ folder });
  engines.push(engine);
  const database = (await engine.databases.find("db")) ?? (await engine.databases.create("db", {}));
  return { engine, database, operations: database.operations };
}

function newFolder(): string {
  const folder = mkdtempSync(join(tmpdir(), "jackdaw-operations-"));
  folders.push(folder);
  return folder;
}

afterEach(async () => {
  for (const engine of engines.splice(0)) await engine.close();
  for (const folder of folders.splice(0)) rmSync(folder, { recursive: true, force: true });
});

describe("Operations", () => {
  test("report their progress and result", async () => {
    const { operations } = await open(newFolder());
    const reported: OperationInfo["state"][] = [];
    operations.listen(({ state }) => reported.push(state));
    const { id, ended } = await operations.start("Test", "counting", async (progress) => {
      progress({ Processed: 1, Total: 2 });
      return bulkResult({ total: 2, documents: 2 });
    });
    expect(id).toBe(1);
    await ended;
    expect(reported.map(({ status }) => status)).toEqual(["running", "running", "completed"]);
    expect(operations.get(1)).toMatchObject({
      kind: "Test",
      description: "counting",
      state: {
        status: "completed",
        result: { Total: 2, DocumentsProcessed: 2, Message: "Processed 2 items." },
      },
    });
    const failing = await operations.start("Test", "failing", async () => {
      throw new EngineError("index-missing", "no such index");
    });
    const { error } = await failing.ended;
    expect(error).toBeInstanceOf(EngineError);
    expect(operations.get(failing.id)?.state).toEqual({
      status: "failed",
      failure: { code: "index-missing", message: "no such index" },
    });
    const odd = await operations.start("Test", "odd", async () => {
      throw new TypeError("inner secret");
    });
    await odd.ended;
    expect(JSON.stringify(operations.get(odd.id))).not.toContain("secret");
  });

  test("can be killed, and a completed one keeps its state", async () => {
    const { operations } = await open(newFolder());
    const { id, ended } = await operations.start(
      "Test",
      "waiting",
      (_progress, signal) =>
        new Promise((_resolve, reject) =>
          signal.addEventListener("abort", () => reject(new Error("stopped"))),
        ),
    );
    operations.kill(id);
    expect((await ended).info.state).toEqual({ status: "cancelled" });
    operations.kill(id);
    expect(operations.get(id)?.state.status).toBe("cancelled");
    expect(() => operations.kill(99)).toThrow("Operation 99 was not registered");
  });

  test("have ids that no other run of the process issued", async () => {
    const folder = newFolder();
    const first = await open(folder);
    expect([await first.operations.nextId(), await first.operations.nextId()]).toEqual([1, 2]);
    await first.engine.close();
    engines.length = 0;
    const second = await open(folder);
    expect(await second.operations.nextId()).toBe(3);
    // A crash leaves the reserved block of ids.
    const copy = newFolder();
    cpSync(folder, copy, { recursive: true, filter: isNoLock });
    const third = await open(copy);
    expect(await third.operations.nextId()).toBeGreaterThan(3);
  });

  test("are reported as interrupted after a crash, and their durable changes persist", async () => {
    const folder = newFolder();
    const { database, operations } = await open(folder);
    let halfDone: () => void = () => undefined;
    const half = new Promise<void>((resolve) => {
      halfDone = resolve;
    });
    const { id } = await operations.start(
      "UpdateByQuery",
      "from Users",
      async (_progress, signal) => {
        await database.put("first", { done: true });
        halfDone();
        await new Promise((_resolve, reject) => signal.addEventListener("abort", reject));
        return {};
      },
    );
    await half;
    const copy = newFolder();
    cpSync(folder, copy, { recursive: true, filter: isNoLock });
    const reopened = await open(copy);
    expect(reopened.operations.get(id)).toMatchObject({
      kind: "UpdateByQuery",
      state: { status: "failed", failure: { code: "operation-cancelled" } },
    });
    expect(await reopened.database.get("first")).toMatchObject({ done: true });
    await operations.stop();
  });

  test("the latest completed ones are known after a restart", async () => {
    const folder = newFolder();
    const { engine, operations } = await open(folder);
    for (let i = 0; i < finishedOperationsMax + 5; i++) {
      operations.startWithId(1000 + i, "Test", "quick", async () => ({ i }));
    }
    await operations.stop();
    await engine.close();
    engines.length = 0;
    const reopened = await open(folder);
    const ids = reopened.operations.list().map(({ id }) => id);
    expect(ids).toHaveLength(finishedOperationsMax);
    expect(ids.at(-1)).toBe(1000 + finishedOperationsMax + 4);
    expect(reopened.operations.get(ids.at(-1) as number)?.state.status).toMatch(
      /completed|cancelled/,
    );
  });

  test("are rejected under an id that is in use", async () => {
    const { operations } = await open(newFolder());
    const wait = (_progress: unknown, signal: AbortSignal) =>
      new Promise<never>((_resolve, reject) => signal.addEventListener("abort", reject));
    const { ended } = operations.startWithId(7, "Test", "one", wait);
    expect(() => operations.startWithId(7, "Test", "two", wait)).toThrow("running already");
    operations.kill(7);
    await ended;
    await operations.startWithId(7, "Test", "three", async () => ({})).ended;
    expect(operations.get(7)?.description).toBe("three");
  });
});
