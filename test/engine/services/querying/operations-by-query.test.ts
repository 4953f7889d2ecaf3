import { afterEach, describe, expect, it } from "vitest";
import type { OpenDatabase } from "../../../../engine/api/database/open-database.ts";
import {
  type SetOperationOptions,
  startDeleteByQuery,
  startPatchByQuery,
} from "../../../../engine/services/querying/operations-by-query.ts";
import type { OperationFigures, OperationInfo } from "../../../../engine/state/store/operations.ts";
import {
  closeDatabases,
  openAfterCrash,
  openDatabase,
  putAll,
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
  const { state } = database;
  const { putParsed } = await import("../../../../engine/writes/documents.ts");
  await database.write((transaction) => {
    for (let n = 0; n < count; n++) {
      const text = `{"N":${n},"D":1.5,"@metadata":{"@collection":"Numbers"}}`;
      putParsed(transaction, `numbers/${n}`, state.parseText(text));
    }
  });
  return database;
}

async function patch(
  database: OpenDatabase,
  text: string,
  options: Partial<SetOperationOptions> = {},
): Promise<OperationInfo> {
  const { ended } = await startPatchByQuery(database, text, { ...usual, ...options });
  return (await ended).info;
}

function resultOf({ state }: OperationInfo): OperationFigures {
  if (state.status !== "completed") throw new Error(`it ended otherwise: ${JSON.stringify(state)}`);
  return state.result;
}

describe("patching by query", () => {
  it("patches each document of a collection once, equally as bytes and by script", async () => {
    const database = await withNumbers(3000);
    expect(resultOf(await patch(database, "from Numbers update { this.N += 1 }"))).toMatchObject({
      Total: 3000,
      Message: "Processed 3,000 items.",
    });
    await patch(database, "from Numbers update { if (this.N > 0) this.N = this.N + 1; }");
    const { rows } = await query(database, "from Numbers");
    expect(rows.map(({ N }) => N)).toEqual(Array.from({ length: 3000 }, (_, n) => n + 2));
  });

  it("uses the index for a condition, and reports details", async () => {
    const database = await withNumbers(10);
    const info = await patch(database, "from Numbers where N >= 8 update { this.N = 8 }", {
      hasDetails: true,
    });
    const { Details } = resultOf(info) as { Details: Record<string, unknown>[] };
    expect(Details.map(({ Id, Status }) => [Id, Status])).toEqual([
      ["numbers/8", "NotModified"],
      ["numbers/9", "Patched"],
    ]);
    expect(await database.get("numbers/9")).toMatchObject({ N: 8 });
  });

  it("supports parameters, aliases, functions and loaded documents", async () => {
    const database = await openDatabase();
    await putAll(database, "Users", { "users/1": { Boss: "users/2" }, "users/2": { Name: "Bob" } });
    const text =
      "declare function shout(t) { return t ? t.toUpperCase() : null; } " +
      "from Users as u where id() = 'users/1' load u.Boss as b update { u.B = shout(b.Name) + $s }";
    resultOf(await patch(database, text, { parametersText: '{"s":"!"}' }));
    expect(await database.get("users/1")).toMatchObject({ B: "BOB!" });
  });

  it("respects offset and limit", async () => {
    const database = await withNumbers(10);
    resultOf(await patch(database, "from Numbers update { this.N = -1 } limit 3 offset 2"));
    const { rows } = await query(database, "from Numbers");
    expect(rows.filter(({ N }) => N === -1).map((row) => idOf(row))).toEqual([
      "numbers/2",
      "numbers/3",
      "numbers/4",
    ]);
  });

  it("does not change documents written after it began", async () => {
    const database = await withNumbers(6000);
    const { ended } = await startPatchByQuery(database, "from Numbers update { this.N = -1 }", {
      ...usual,
      operationsPerSecondMax: 20_000,
    });
    await database.put("numbers/5999", { N: 7, "@metadata": { "@collection": "Numbers" } });
    await database.put("numbers/new", { N: 8, "@metadata": { "@collection": "Numbers" } });
    await database.delete("numbers/5998");
    const result = resultOf((await ended).info) as { Total: number };
    expect(result.Total).toBe(5998);
    expect(await database.get("numbers/5999")).toMatchObject({ N: 7 });
    expect(await database.get("numbers/new")).toMatchObject({ N: 8 });
  });

  it("keeps earlier transactions when a script fails", async () => {
    const database = await withNumbers(2000);
    const info = await patch(
      database,
      "from Numbers update { if (this.N === 1999) throw 'enough'; this.X = 1 }",
    );
    expect(info.state).toMatchObject({
      status: "failed",
      failure: { code: "script-failed", message: expect.stringContaining("numbers/1999") },
    });
    expect(await database.get("numbers/0")).toMatchObject({ X: 1 });
    expect(await database.get("numbers/1999")).not.toHaveProperty("X");
  });

  it("stops when it is killed", async () => {
    const database = await withNumbers(2000);
    const { id, ended } = await startPatchByQuery(database, "from Numbers update { this.N = -1 }", {
      ...usual,
      operationsPerSecondMax: 100,
    });
    database.operations.kill(id);
    expect((await ended).info.state).toEqual({ status: "cancelled" });
    const { rows } = await query(database, "from Numbers");
    expect(rows.filter(({ N }) => N === -1).length).toBeLessThan(100);
  });

  it("reports its progress", async () => {
    const database = await withNumbers(2500);
    const reported: unknown[] = [];
    database.operations.listen(({ state }) => {
      if (state.status === "running" && state.progress !== null) reported.push(state.progress);
    });
    await patch(database, "from Numbers update { this.N += 1 }");
    expect(reported[0]).toEqual({ Processed: 0, Total: 2500, Changed: 0, Unchanged: 0 });
    expect(reported.at(-1)).toEqual({
      Processed: 2500,
      Total: 2500,
      Changed: 2500,
      Unchanged: 0,
    });
  });

  it("is limited to the allowed rate per second", async () => {
    const database = await withNumbers(60);
    const start = performance.now();
    resultOf(
      await patch(database, "from Numbers update { this.N += 1 }", {
        operationsPerSecondMax: 100,
      }),
    );
    expect(performance.now() - start).toBeGreaterThan(500);
  });

  it("reports errors immediately, and missing parameters through the operation", async () => {
    const database = await withNumbers(1);
    const start = (text: string, options: Partial<SetOperationOptions> = {}) =>
      startPatchByQuery(database, text, { ...usual, ...options });
    await expect(start("from Numbers")).rejects.toMatchObject({ code: "query-syntax" });
    await expect(start("from Numbers update { this.a = ; }")).rejects.toMatchObject({
      code: "query-invalid",
    });
    await expect(start("from Numbers filter N > 3 update { this.a = 1 }")).rejects.toMatchObject({
      code: "not-supported",
    });
    await expect(
      start("from Numbers update { this.a = 1 }", { operationsPerSecondMax: 0 }),
    ).rejects.toMatchObject({ code: "invalid-operation" });
    const info = await patch(database, "from Numbers where N = $n update { this.a = 1 }");
    expect(info.state).toMatchObject({ failure: { code: "query-invalid" } });
  });

  it("rejects groups, stale indexes and missing indexes", async () => {
    const database = await withNumbers(5);
    const failure = async (text: string, options: Partial<SetOperationOptions> = {}) => {
      const { state } = await patch(database, text, options);
      return state.status === "failed" ? state.failure : state.status;
    };
    expect(await failure("from Numbers group by N update { this.a = 1 }")).toEqual({
      code: "invalid-operation",
      message: "Cannot execute bulk operation on Map-Reduce indexes.",
    });
    expect(await failure("from index 'Nope' update { this.a = 1 }")).toEqual({
      code: "index-missing",
      message: "There is no index with 'Nope' name.",
    });
    await query(database, "from Numbers where N > 0");
    const index = database.queries.indexes.byName("Auto/Numbers/ByN");
    if (index !== undefined) index.isPaused = true;
    await database.put("numbers/99", { N: 99, "@metadata": { "@collection": "Numbers" } });
    const stale = "from index 'Auto/Numbers/ByN' where N > 3 update { this.a = 1 }";
    expect(await failure(stale, { staleTimeoutMs: undefined })).toEqual({
      code: "invalid-operation",
      message: "Cannot perform bulk operation. Index is stale.",
    });
    expect(await failure(stale, { allowsStale: true })).toBe("completed");
    expect(await database.get("numbers/4")).toMatchObject({ a: 1 });
    expect(await database.get("numbers/99")).not.toHaveProperty("a");
  });

  it("is reported as interrupted after a crash, and its committed batches persist", async () => {
    const folder = temporaryFolder();
    const database = await withNumbers(400, folder);
    const { id, ended } = await startPatchByQuery(database, "from Numbers update { this.N = -1 }", {
      ...usual,
      operationsPerSecondMax: 200,
    });
    // Some are done, and the rest takes two seconds more.
    const doneNow = async () =>
      (await query(database, "from Numbers")).rows.filter(({ N }) => N === -1).length;
    await expect.poll(doneNow).toBeGreaterThan(0);
    const again = await openAfterCrash(folder);
    database.operations.kill(id);
    await ended;
    expect(again.operations.get(id)?.state).toMatchObject({
      status: "failed",
      failure: { code: "operation-cancelled" },
    });
    const { rows } = await query(again, "from Numbers");
    const done = rows.filter(({ N }) => N === -1).length;
    expect(done).toBeGreaterThan(0);
    expect(done).toBeLessThan(400);
  });
});

describe("patching by bytes", () => {
  /** Documents of several shapes and types, in the order in which they were stored. */
  async function withMixture(): Promise<OpenDatabase> {
    const database = await openDatabase();
    const member = { "@metadata": { "@collection": "Ms" } };
    for (let n = 0; n < 300; n++) {
      const body = {
        N: n * 7,
        D: n / 4,
        T: `text ${n}`,
        Big: n % 50 === 0 ? "x".repeat(70_000) : 1,
      };
      const other = n % 3 === 0 ? { Extra: [n], ...body } : body;
      const odd = n % 5 === 0 ? { ...other, N: "a text", é: "ü" } : other;
      const owned = { "@metadata": { "@collection": "Ms", Owner: "x" } };
      await database.put(`ms/${n}`, {
        ...(n % 7 === 0 ? { D: 1 } : odd),
        ...(n % 4 ? member : owned),
      });
    }
    return database;
  }

  it.each([
    "this.N += 1",
    "this.N -= 1000; this.D = this.D / 8",
    "this.T = this.T + '!'; this.D = this.D * this.N",
    "this.D = null; this.N = true",
    "this.Big = 'y'; this.N = 123456789012",
  ])("produces the same documents as the script: %s", async (script) => {
    const texts = await Promise.all(
      [script, `if (true) { ${script} }`].map(async (update) => {
        const database = await withMixture();
        expect(resultOf(await patch(database, `from Ms update { ${update} }`))).toMatchObject({
          Total: 300,
        });
        const ids = Array.from({ length: 300 }, (_, n) => `ms/${n}`);
        return Promise.all(
          ids.map(async (id) =>
            String(await database.getText(id)).replace(
              /"@(change-vector|last-mod[a-z]+)":"[^"]*"/g,
              "",
            ),
          ),
        );
      }),
    );
    expect(texts[0]).toEqual(texts[1]);
  });

  it("sets a newer etag, the usual change vector and a later time on each document, in order", async () => {
    const database = await withMixture();
    const { documents, committedEtag } = database.state;
    const before = committedEtag;
    await patch(database, "from Ms update { this.N = 5 }");
    let modified = "";
    for (let n = 1; n < 300; n++) {
      if (n % 7 === 0) continue;
      const etag = documents.etagOf(documents.find(`ms/${n}`));
      expect(etag).toBeGreaterThan(before);
      const { "@metadata": metadata } = (await database.get(`ms/${n}`)) as {
        "@metadata": Record<string, string>;
      };
      expect(metadata["@change-vector"]).toBe(database.state.changeVectorAt(etag));
      expect((metadata["@last-modified"] ?? "") > modified).toBe(true);
      modified = metadata["@last-modified"] ?? "";
    }
  });

  it("creates revisions if the collection is configured to, as a script does", async () => {
    for (const update of ["this.N += 1", "if (this.N >= 0) { this.N += 1 }"]) {
      const database = await openDatabase();
      await database.putSettings({ Revisions: { Collections: { Ms: { Disabled: false } } } });
      await putAll(database, "Ms", { "ms/1": { N: 1 } });
      await patch(database, `from Ms update { ${update} }`);
      expect(await database.get("ms/1")).toMatchObject({
        N: 2,
        "@metadata": { "@flags": "HasRevisions" },
      });
      const { revisions } = database.state.keyspaces;
      expect(revisions.newestCountOf(database.find("ms/1"))).toBe(2);
    }
  });

  it("allows concurrent reads and writes, which see each document before or after the patch", async () => {
    const database = await withNumbers(20_000);
    const { ended } = await startPatchByQuery(
      database,
      "from Numbers update { this.N += 0.5 }",
      usual,
    );
    let isOver = false;
    const info = ended.then((end) => {
      isOver = true;
      return end.info;
    });
    const written = new Set<number>();
    let reads = 0;
    for (let n = 0; !isOver; n = (n + 7919) % 20_000) {
      const found = (await database.get(`numbers/${n}`)) as { N: number };
      if (!written.has(n)) expect([n, n + 0.5]).toContain(found.N);
      reads++;
      if (reads % 5 === 0) {
        written.add(n);
        await database.put(`numbers/${n}`, { N: -1, "@metadata": { "@collection": "Numbers" } });
      }
      await new Promise((resolve) => setImmediate(resolve));
    }
    expect(reads).toBeGreaterThan(10);
    resultOf(await info);
    const { rows } = await query(database, "from Numbers");
    expect(rows.length).toBe(20_000);
    for (const row of rows) {
      const n = Number(idOf(row).slice("numbers/".length));
      // Concurrent writes to a document before or after the patch reached it are unchanged.
      expect(row["N"]).toBe(written.has(n) ? -1 : n + 0.5);
    }
  });

  it("after a crash leaves complete batches, including all reported ones", async () => {
    const folder = temporaryFolder();
    const database = await withNumbers(20_000, folder);
    let reported = 0;
    const reached = new Promise<void>((resolve) =>
      database.operations.listen(({ state }) => {
        if (state.status === "running") reported = Number(state.progress?.["Processed"] ?? 0);
        if (reported > 5_000) resolve();
      }),
    );
    const { ended } = await startPatchByQuery(database, "from Numbers update { this.N += 1 }", {
      ...usual,
      operationsPerSecondMax: 200_000,
    });
    await reached;
    const reportedBefore = reported;
    const again = await openAfterCrash(folder);
    await ended;
    const { rows } = await query(again, "from Numbers");
    expect(rows.length).toBe(20_000);
    let patched = 0;
    for (const row of rows) {
      const n = Number(idOf(row).slice("numbers/".length));
      if (row["N"] === n + 1) patched++;
      else expect(row["N"]).toBe(n);
    }
    expect(patched).toBeGreaterThanOrEqual(reportedBefore);
    expect(patched).toBeLessThanOrEqual(20_000);
    // Batches are in etag order, and each is complete or absent.
    const { documents } = again.state;
    const first = rows.map((row) => documents.etagOf(documents.find(idOf(row))) > 20_000);
    expect(first.filter(Boolean).length).toBe(patched);
  });
});

describe("deleting by query", () => {
  it("deletes a collection, except documents not in the index", async () => {
    const database = await withNumbers(1500);
    const { ended } = await startDeleteByQuery(database, "from Numbers where N >= 100", usual);
    expect(resultOf((await ended).info)).toMatchObject({ Total: 1400 });
    expect((await query(database, "from Numbers")).outcome?.totalResults).toBe(100);
    await (await startDeleteByQuery(database, "from Numbers", usual)).ended;
    expect((await query(database, "from @all_docs")).rows).toEqual([]);
  });

  it("skips clients' id ranges when it deletes everything", async () => {
    const database = await withNumbers(3);
    await putAll(database, "@hilo", { "Raven/Hilo/numbers": { Max: 32 } });
    await (await startDeleteByQuery(database, "from @all_docs", usual)).ended;
    expect((await query(database, "from @all_docs")).ids).toEqual(["Raven/Hilo/numbers"]);
  });
});

function idOf(row: Record<string, unknown>): string {
  return (row["@metadata"] as { "@id": string })["@id"];
}
