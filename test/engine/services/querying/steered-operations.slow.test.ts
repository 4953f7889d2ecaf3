/** Operations by query that are paused, limited, dry-run, undone, and resumed after a crash. */
import { afterEach, describe, expect, it } from "vitest";
import type { OpenDatabase } from "../../../../engine/api/database/open-database.ts";
import { undoOperationsMax } from "../../../../engine/base/limits.ts";
import { startUndo } from "../../../../engine/services/background/undo-operation.ts";
import {
  resumeByQuery,
  type SetOperationOptions,
  startDeleteByQuery,
  startDryRun,
  startPatchByQuery,
} from "../../../../engine/services/querying/operations-by-query.ts";
import type {
  OperationFigures,
  OperationInfo,
  StartedOperation,
} from "../../../../engine/state/store/operations.ts";
import { setCounter } from "../../../../engine/writes/counters.ts";
import {
  closeDatabases,
  openAfterCrash,
  openDatabase,
  query,
  temporaryFolder,
} from "../../../support/open-database.ts";

afterEach(closeDatabases);

const usual: SetOperationOptions = {
  parametersText: null,
  allowsStale: false,
  staleTimeoutMs: 10_000,
  operationsPerSecondMax: undefined,
  hasDetails: false,
  liftsLimits: false,
};

async function withNumbers(count: number, folder?: string): Promise<OpenDatabase> {
  const database = await openDatabase(folder);
  const { putParsed } = await import("../../../../engine/writes/documents.ts");
  await database.write((transaction) => {
    for (let n = 0; n < count; n++) {
      const text = `{"N":${n},"@metadata":{"@collection":"Numbers"}}`;
      putParsed(transaction, `numbers/${n}`, database.state.parseText(text));
    }
  });
  return database;
}

async function resultOf({ ended }: StartedOperation): Promise<OperationFigures> {
  const { state } = (await ended).info;
  if (state.status !== "completed") throw new Error(`it ended otherwise: ${JSON.stringify(state)}`);
  return state.result;
}

async function valuesOf(database: OpenDatabase, text = "from Numbers"): Promise<unknown[]> {
  return (await query(database, text)).rows.map(({ N }) => N);
}

function infoOf(database: OpenDatabase, id: number): OperationInfo {
  const info = database.operations.get(id);
  if (info === undefined) throw new Error("there is no such operation");
  return info;
}

function processed(database: OpenDatabase, id: number): number {
  const { state } = infoOf(database, id);
  return state.status === "running" ? Number(state.progress?.["Processed"] ?? 0) : -1;
}

describe("a dry run", () => {
  it("counts documents that would change, stay or fail, and stores nothing", async () => {
    const database = await withNumbers(3000);
    const before = database.state.lastEtag;
    const script = "if (this.N >= 2995) throw 'too large'; if (this.N % 3 == 0) this.N = -1;";
    const found = await resultOf(
      await startDryRun(database, `from Numbers update { ${script} }`, {
        ...usual,
        samples: 2,
        most: undefined,
      }),
    );
    expect(found).toMatchObject({ Total: 3000, WouldChange: 999, Unchanged: 1996, WouldFail: 5 });
    expect(found["Errors"]).toHaveLength(5);
    expect(found["Errors"]).toContainEqual({
      Id: "numbers/2995",
      Message: expect.stringContaining("too large"),
    });
    const samples = found["Samples"] as { Id: string; Before: string; After: string }[];
    expect(samples.map(({ Id }) => Id)).toEqual(["numbers/0", "numbers/3"]);
    expect(JSON.parse(samples[1]?.Before ?? "")).toMatchObject({ N: 3 });
    expect(JSON.parse(samples[1]?.After ?? "")).toMatchObject({ N: -1 });
    expect(await valuesOf(database)).toEqual(Array.from({ length: 3000 }, (_, n) => n));
    // A dry run consumes no ids.
    expect(database.state.lastEtag).toBe(before);
  });

  it("counts on the byte path as the patch does, and only the first ones if limited", async () => {
    const database = await withNumbers(2000);
    const text = "from Numbers update { this.N = this.N * 0 + 7 }";
    const tried = await resultOf(
      await startDryRun(database, text, { ...usual, samples: 0, most: undefined }),
    );
    expect(tried).toMatchObject({ Total: 2000, WouldChange: 1999, Unchanged: 1, Samples: [] });
    const some = await startDryRun(database, text, { ...usual, samples: 0, most: 100 });
    expect(await resultOf(some)).toMatchObject({ Total: 100 });
    const patch = await startPatchByQuery(database, text, usual);
    await resultOf(patch);
    expect(infoOf(database, patch.id).reached).toMatchObject({ Changed: 1999, Unchanged: 1 });
  });

  it("goes through an index, and does not store a script's additional documents", async () => {
    const database = await withNumbers(50);
    const found = await resultOf(
      await startDryRun(
        database,
        "from Numbers where N >= 40 update { put('others/' + this.N, { a: 1 }); this.N = 0; }",
        { ...usual, samples: 1, most: undefined },
      ),
    );
    expect(found).toMatchObject({ Total: 10, WouldChange: 10 });
    expect(await database.get("others/41")).toBeNull();
  });
});

describe("control", () => {
  it("pauses, allows other writes, and resumes to the exact end", async () => {
    const database = await withNumbers(5000);
    const { id, ended } = await startPatchByQuery(database, "from Numbers update { this.N += 1 }", {
      ...usual,
      operationsPerSecondMax: 2000,
    });
    await expect.poll(() => processed(database, id)).toBeGreaterThan(0);
    database.operations.pause(id);
    expect(infoOf(database, id)).toMatchObject({ isPaused: true, rateMax: 2000 });
    await new Promise((resolve) => setTimeout(resolve, 150));
    const stood = processed(database, id);
    await database.put("numbers/4999", { N: -5, "@metadata": { "@collection": "Numbers" } });
    await new Promise((resolve) => setTimeout(resolve, 300));
    expect(processed(database, id)).toBe(stood);
    expect(stood).toBeLessThan(5000);
    database.operations.limit(id, null);
    expect(processed(database, id)).toBe(stood);
    database.operations.resume(id);
    expect((await ended).info).toMatchObject({
      state: { status: "completed", result: { Total: 4999 } },
      reached: { Changed: 4999, Unchanged: 0 },
    });
    expect(await valuesOf(database, "from Numbers where id() = 'numbers/4999'")).toEqual([-5]);
    expect(await valuesOf(database, "from Numbers where id() = 'numbers/17'")).toEqual([18]);
    expect(() => database.operations.pause(id)).toThrow("it has ended");
  });

  it("applies a new limit while it runs", async () => {
    const database = await withNumbers(3000);
    const started = performance.now();
    const { id, ended } = await startPatchByQuery(database, "from Numbers update { this.N += 1 }", {
      ...usual,
      operationsPerSecondMax: 10,
    });
    await new Promise((resolve) => setTimeout(resolve, 300));
    expect(processed(database, id)).toBeLessThan(20);
    database.operations.limit(id, 3000);
    await ended;
    const ms = performance.now() - started;
    expect(ms).toBeGreaterThan(1000);
    expect(ms).toBeLessThan(20_000);
  });

  it("can be stopped while it is paused", async () => {
    const database = await withNumbers(3000);
    const { id, ended } = await startPatchByQuery(database, "from Numbers update { this.N += 1 }", {
      ...usual,
      operationsPerSecondMax: 1000,
    });
    database.operations.pause(id);
    database.operations.kill(id);
    expect((await ended).info.state).toEqual({ status: "cancelled" });
  });

  it("is rejected for operations of other types", async () => {
    const database = await openDatabase();
    const { id, ended } = await database.operations.start(
      "Other",
      "waiting",
      (_progress, signal) =>
        new Promise((_resolve, reject) => signal.addEventListener("abort", () => reject())),
    );
    expect(() => database.operations.pause(id)).toThrow("only patches and deletions by query");
    expect(() => database.operations.limit(99, 5)).toThrow("Operation 99 was not registered");
    database.operations.kill(id);
    await ended;
  });
});

describe("after a crash", () => {
  /** Starts, waits until some documents are done, and reopens the files as after a crash. */
  async function interrupted(
    text: string,
    count: number,
    options: Partial<SetOperationOptions> = {},
  ): Promise<{ again: OpenDatabase; id: number }> {
    const folder = temporaryFolder();
    const database = await withNumbers(count, folder);
    if (text.includes("where")) await query(database, "from Numbers where N >= 0");
    const { id, ended } = await startPatchByQuery(database, text, {
      ...usual,
      operationsPerSecondMax: 1000,
      ...options,
    });
    await expect.poll(() => processed(database, id)).toBeGreaterThan(100);
    const again = await openAfterCrash(folder);
    database.operations.kill(id);
    await ended;
    return { again, id };
  }

  it("resumes where it stopped: patches and counts each document of a collection once", async () => {
    const { again, id } = await interrupted(
      "from Numbers update { if (this.N % 2) this.N += 10000; }",
      2000,
    );
    const info = infoOf(again, id);
    expect(info.state).toMatchObject({ status: "failed" });
    const written = (await valuesOf(again)).filter((n) => Number(n) > 2000).length;
    expect(info.reached).toMatchObject({ Changed: written });
    expect(written).toBeGreaterThan(0);
    expect(written).toBeLessThan(1000);
    // Documents written after the crash are not changed.
    await again.put("numbers/1999", { N: 1, "@metadata": { "@collection": "Numbers" } });
    await again.put("numbers/new", { N: 1, "@metadata": { "@collection": "Numbers" } });
    const gone = await resumeByQuery(again, id);
    expect(gone.id).toBe(id);
    again.operations.limit(id, null);
    expect(await resultOf(gone)).toMatchObject({ Total: 1999 });
    expect(infoOf(again, id).reached).toMatchObject({ Changed: 999, Unchanged: 1000, Total: 2000 });
    const { rows, ids } = await query(again, "from Numbers");
    rows.forEach((row, at) => {
      const n = Number(ids[at]?.slice("numbers/".length));
      if (n === 1999 || Number.isNaN(n)) expect(row["N"]).toBe(1);
      else expect(row["N"]).toBe(n % 2 ? n + 10_000 : n);
    });
    expect(again.state.keyspaces.values.get(`operation-marks/${id}`)).toBeUndefined();
    await expect(resumeByQuery(again, id)).rejects.toThrow("was not interrupted");
  });

  it("respects a document limit across the resume", async () => {
    const { again, id } = await interrupted(
      "from Numbers update { this.N += 10000; } limit 500, 700",
      2000,
    );
    again.operations.get(id);
    const gone = await resumeByQuery(again, id);
    expect(await resultOf(gone)).toMatchObject({ Total: 700 });
    const changed = (await valuesOf(again)).filter((n) => Number(n) >= 10_000);
    expect(changed.length).toBe(700);
  });

  it("resumes the rest of an index result, each document once", async () => {
    const { again, id } = await interrupted(
      "from Numbers where N < 1500 update { this.N += 10000; }",
      2000,
    );
    expect(await resultOf(await resumeByQuery(again, id))).toMatchObject({ Total: 1500 });
    const changed = (await valuesOf(again)).map(Number).filter((n) => n >= 10_000);
    expect(changed.length).toBe(1500);
    expect(Math.max(...changed)).toBe(11_499);
  });

  it("resumes with parameters, and after the database was closed in between", async () => {
    const folder = temporaryFolder();
    const database = await withNumbers(1000, folder);
    const { id } = await startPatchByQuery(database, "from Numbers update { this.N += $by; }", {
      ...usual,
      parametersText: '{"by":5000}',
      operationsPerSecondMax: 1000,
    });
    await expect.poll(() => processed(database, id)).toBeGreaterThan(100);
    await database.close();
    const again = await openAfterCrash(folder);
    expect(infoOf(again, id).state).toMatchObject({ status: "failed" });
    expect(await resultOf(await resumeByQuery(again, id))).toMatchObject({ Total: 1000 });
    expect(await valuesOf(again)).toEqual(Array.from({ length: 1000 }, (_, n) => n + 5000));
  });

  it("can be undone completely after a resume", async () => {
    const { again, id } = await interrupted("from Numbers update { this.N += 10000; }", 1500, {
      keepsUndo: true,
    });
    await resultOf(await resumeByQuery(again, id));
    expect(await resultOf(await startUndo(again, id, undefined))).toMatchObject({ Restored: 1500 });
    const values = (await valuesOf(again)).map(Number).sort((a, b) => a - b);
    expect(values).toEqual(Array.from({ length: 1500 }, (_, n) => n));
  });
});

describe("undoing", () => {
  const undoable = { ...usual, keepsUndo: true };
  const sorted = async (database: OpenDatabase) =>
    (await valuesOf(database)).map(Number).sort((a, b) => a - b);

  it("reverts a patch, except for documents changed or deleted since", async () => {
    const database = await withNumbers(3000);
    const patch = await startPatchByQuery(
      database,
      "from Numbers update { if (this.N != 5) this.N += 0.5; }",
      undoable,
    );
    await resultOf(patch);
    expect(infoOf(database, patch.id).facts).toEqual({ canUndo: true });
    await database.put("numbers/7", { N: -7, "@metadata": { "@collection": "Numbers" } });
    await database.delete("numbers/8");
    const undo = await startUndo(database, patch.id, "ann");
    const found = await resultOf(undo);
    expect(found).toMatchObject({ Restored: 2997, ChangedSince: 2, WithoutRevision: 0 });
    expect((found["LeftAlone"] as string[]).sort()).toEqual(["numbers/7", "numbers/8"]);
    expect(infoOf(database, undo.id)).toMatchObject({
      startedBy: "ann",
      facts: { undoes: patch.id },
    });
    const wanted = Array.from({ length: 3000 }, (_, n) => (n === 7 ? -7 : n)).filter(
      (n) => n !== 8,
    );
    expect(await sorted(database)).toEqual(wanted.sort((a, b) => a - b));
    await expect(startUndo(database, patch.id, undefined)).rejects.toThrow("was undone already");
  });

  it("restores deleted documents with their counters", async () => {
    const database = await withNumbers(300);
    await database.write((transaction) =>
      setCounter(transaction, "numbers/1", "li}kes", 2n ** 60n),
    );
    const deletion = await startDeleteByQuery(database, "from Numbers where N < 200", undoable);
    expect(await resultOf(deletion)).toMatchObject({ Total: 200 });
    expect(await sorted(database)).toHaveLength(100);
    await database.put("numbers/3", { N: 33, "@metadata": { "@collection": "Numbers" } });
    const found = await resultOf(await startUndo(database, deletion.id, undefined));
    expect(found).toMatchObject({ Restored: 199, ChangedSince: 1, LeftAlone: ["numbers/3"] });
    expect(await sorted(database)).toHaveLength(300);
    expect(await database.get("numbers/3")).toMatchObject({ N: 33 });
    const { counters } = database.state.keyspaces;
    expect(
      [...counters.withPrefix("numbers/1\0")].map(([, { name, value }]) => [name, value]),
    ).toEqual([["li}kes", String(2n ** 60n)]]);
  });

  it("uses the revisions that the collection retains anyway, even if few", async () => {
    const database = await withNumbers(20);
    await database.putSettings({
      ...database.settings,
      Revisions: { Default: { Disabled: false, MinimumRevisionsToKeep: 1 }, Collections: {} },
    });
    for (let n = 0; n < 10; n++)
      await database.put(`numbers/${n}`, { N: n + 100, "@metadata": { "@collection": "Numbers" } });
    const before = await sorted(database);
    const patch = await startPatchByQuery(database, "from Numbers update { this.N = 1 }", undoable);
    await resultOf(patch);
    const found = await resultOf(await startUndo(database, patch.id, undefined));
    expect(found).toMatchObject({ ChangedSince: 0, WithoutRevision: 0 });
    expect(await sorted(database)).toEqual(before);
  });

  it("reverts a script's other writes and deletions, and lists documents it created", async () => {
    const database = await withNumbers(2);
    await database.put("side/1", { a: 1 });
    await database.put("side/2", { a: 2 });
    const patch = await startPatchByQuery(
      database,
      "from Numbers where id() = 'numbers/0' update { put('side/1', { a: 9 }); del('side/2'); put('new/1', {}); }",
      undoable,
    );
    await resultOf(patch);
    expect(await database.get("side/2")).toBeNull();
    const found = await resultOf(await startUndo(database, patch.id, undefined));
    expect(found).toMatchObject({ Restored: 2, WithoutRevision: 1, LeftAlone: ["new/1"] });
    expect(await database.get("side/1")).toMatchObject({ a: 1 });
    expect(await database.get("side/2")).toMatchObject({ a: 2 });
    expect(await database.get("new/1")).not.toBeNull();
  });

  it("is possible only for the newest operations, whose revisions are deleted with them", async () => {
    const database = await withNumbers(20);
    const ids: number[] = [];
    for (let n = 0; n < undoOperationsMax + 2; n++) {
      const patch = await startPatchByQuery(
        database,
        "from Numbers update { this.N += 1 }",
        undoable,
      );
      await resultOf(patch);
      ids.push(patch.id);
    }
    const { revisions } = database.state.keyspaces;
    expect(revisions.count).toBe(20 * (undoOperationsMax + 2));
    expect(await database.undoRetention.run()).toBe(2);
    expect(revisions.count).toBe(20 * undoOperationsMax);
    await expect(startUndo(database, ids[1] ?? 0, undefined)).rejects.toThrow(
      "no earlier versions",
    );
    const found = await resultOf(await startUndo(database, ids.at(-1) ?? 0, undefined));
    expect(found).toMatchObject({ Restored: 20 });
    expect(await sorted(database)).toEqual(
      Array.from({ length: 20 }, (_, n) => n + undoOperationsMax + 1),
    );
  });

  it("is rejected if no revisions were retained, and while the operation runs", async () => {
    const database = await withNumbers(1000);
    const plain = await startPatchByQuery(database, "from Numbers update { this.N += 1 }", usual);
    await resultOf(plain);
    await expect(startUndo(database, plain.id, undefined)).rejects.toThrow("no earlier versions");
    await expect(startUndo(database, 99, undefined)).rejects.toThrow("was not registered");
    const slow = await startPatchByQuery(database, "from Numbers update { this.N += 1 }", {
      ...undoable,
      operationsPerSecondMax: 50,
    });
    await expect(startUndo(database, slow.id, undefined)).rejects.toThrow("stop it first");
    await expect.poll(() => processed(database, slow.id)).toBeGreaterThan(0);
    database.operations.kill(slow.id);
    const { info } = await slow.ended;
    const changed = Number(info.reached?.["Changed"]);
    expect(await resultOf(await startUndo(database, slow.id, undefined))).toMatchObject({
      Restored: changed,
    });
    expect(await sorted(database)).toEqual(Array.from({ length: 1000 }, (_, n) => n + 1));
  });
});
