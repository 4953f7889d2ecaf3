import { afterEach, beforeEach, expect, test, vi } from "vitest";
import type { OpenDatabase } from "../../../engine/api/database/open-database.ts";
import { Database } from "../../../engine/api/database.ts";
import { parseDumpOptions, wholeDump } from "../../../engine/services/smuggler/dump-options.ts";
import { closeDatabases, openDatabase, putAll } from "../../support/open-database.ts";

let opened: OpenDatabase;
let database: Database;
beforeEach(async () => {
  opened = await openDatabase();
  database = Database.of(opened);
});
afterEach(closeDatabases);

const settings = {
  mayChangeRecord: false,
  mayDeployCSharp: false,
  nextIndex: () => Promise.resolve(1),
};

async function* chunk(text: string): AsyncGenerator<Buffer> {
  yield Buffer.from(text);
}

test("imports an exported dump", async () => {
  await putAll(opened, "Things", { a: { n: 1 }, b: { n: 2 } });
  const chunks: Buffer[] = [];
  const exported = database.smuggler.startExport(3, wholeDump, async (dump) => {
    for await (const piece of dump) chunks.push(Buffer.from(piece));
  });
  const { info } = await exported.ended;
  expect(info).toMatchObject({
    id: 3,
    kind: "DatabaseExport",
    state: { status: "completed", result: { Documents: { ReadCount: 2 } } },
  });
  const other = Database.of(await openDatabase());
  const dump = Buffer.concat(chunks).toString();
  const imported = other.smuggler.startImport(4, chunk(dump), wholeDump, settings);
  expect((await imported.ended).info).toMatchObject({
    kind: "DatabaseImport",
    state: { status: "completed", result: { Documents: { ReadCount: 2 } } },
  });
  expect(other.statistics.counts().CountOfDocuments).toBe(2);
});

test("an import counts the items that its options admit", async () => {
  const item = (id: string, name: string) => ({ "@metadata": { "@id": id, "@collection": name } });
  const dump = JSON.stringify({ BuildVersion: 72_051, Docs: [item("a", "A"), item("b", "B")] });
  const options = parseDumpOptions({ Collections: ["B"] });
  const counts = await database.smuggler.import(chunk(dump), options, settings);
  expect(counts["Documents"]).toMatchObject({ Processed: true });
  expect(await opened.get("a")).toBeNull();
  expect(await opened.get("b")).not.toBeNull();
});

test("an operation fails if nobody reads its output", async () => {
  const { ended } = database.smuggler.startExport(1, wholeDump, () =>
    Promise.reject(new Error("gone")),
  );
  expect(await ended).toMatchObject({ info: { state: { status: "failed" } } });
});

test("a full backup reports its initiator, and the documents and revisions that it has read", async () => {
  await putAll(opened, "Things", { a: { n: 1 }, b: { n: 2 } });
  const seen: unknown[] = [];
  let nowMs = performance.now();
  vi.spyOn(opened.clock, "monotonicMs").mockImplementation(() => (nowMs += 1000));
  const backup = async (since: number) => {
    const started = await database.smuggler.startBackup(
      9 + since,
      "backup",
      since,
      async ({ dump }) => {
        for await (const _ of dump) {
          const state = database.operations.get(9 + since)?.state;
          if (state?.status === "running") seen.push(state.progress);
        }
        return {};
      },
      "Ann",
    );
    return (await started.ended).info;
  };
  expect(await backup(0)).toMatchObject({ startedBy: "Ann", state: { status: "completed" } });
  expect(seen.at(-1)).toMatchObject({ Processed: 2, Total: 2 });
  await backup(1);
  expect(seen.at(-1)).not.toHaveProperty("Total");
  vi.restoreAllMocks();
});
