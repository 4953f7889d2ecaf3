/** Databases of a version that folded ids by `toLowerCase`: their records are made here from those of other documents. */
import { afterEach, expect, test } from "vitest";
import { OpenDatabase } from "../../../../engine/api/database/open-database.ts";
import { recordLengthAt, sealRecord } from "../../../../engine/base/record.ts";
import { hasSigma, hasSigmaBytes } from "../../../../engine/state/store/sigma-ids.ts";
import { deleteDocument, putParsed } from "../../../../engine/writes/documents.ts";
import { simulatedEnvironment } from "../../../support/simulated-database.ts";
import { SimulatedFileSystem } from "../../../support/simulated-file-system.ts";

const open: OpenDatabase[] = [];
afterEach(async () => {
  for (const database of open.splice(0)) await database.close();
});

async function openShop(files: SimulatedFileSystem): Promise<OpenDatabase> {
  const database = await OpenDatabase.open(simulatedEnvironment(files), "shop", "/data/shop");
  open.push(database);
  return database;
}

/** Writes the log of the older version: each document is under an id of ASCII, but its record has the given one. */
class OlderDatabase {
  readonly files = new SimulatedFileSystem();
  readonly #database = openShop(this.files);
  readonly #standIns = new Map<string, string>();

  async put(id: string, body: object): Promise<void> {
    const standIn = this.#standInOf(id);
    await (await this.#database).write((transaction) => {
      const { scratch, state } = transaction;
      putParsed(transaction, standIn, state.parseText(JSON.stringify(body)));
      const { bytes } = scratch;
      for (let at = 0; at < scratch.length; at += bytes.readUInt32LE(at + recordLengthAt)) {
        const end = at + bytes.readUInt32LE(at + recordLengthAt);
        const idAt = bytes.subarray(at, end).indexOf(standIn);
        if (idAt < 0) continue;
        bytes.write(id, at + idAt);
        sealRecord(bytes, at);
      }
    });
  }

  /** The tombstone has the id of the record. */
  async delete(id: string): Promise<void> {
    await (await this.#database).write((transaction) => {
      deleteDocument(transaction, this.#standInOf(id));
    });
  }

  async count(): Promise<number> {
    return (await this.#database).state.documents.documentCount;
  }

  /** The folder as it is after a kill. */
  killed(): SimulatedFileSystem {
    return this.files.restart();
  }

  /** Ids that this version took for the same have one. */
  #standInOf(id: string): string {
    const key = id.toLowerCase();
    const length = Buffer.byteLength(id);
    const standIn = this.#standIns.get(key) ?? `x${this.#standIns.size}`.padEnd(length, "_");
    this.#standIns.set(key, standIn);
    return standIn;
  }
}

test("two documents whose ids are the same now are not opened, unless one is renamed", async () => {
  const older = new OlderDatabase();
  await older.put("ΟΔΟΣ", { a: 1 });
  await older.put("οδοσ", { a: 2 });
  expect(await older.count()).toBe(2);
  const both = older.killed();
  for (const attempt of [1, 2]) {
    await expect(openShop(both), String(attempt)).rejects.toMatchObject({
      code: "database-damaged",
      message: expect.stringContaining("are the same in this version: 'ΟΔΟΣ' and 'οδοσ'. Nothing"),
    });
  }
  // As the message says.
  await older.put("odos", { a: 1 });
  await older.delete("ΟΔΟΣ");
  await expect(openShop(older.killed())).rejects.toThrow("'ΟΔΟΣ' and 'οδοσ'");
  await older.put("οδοσ", { a: 2 });
  const database = await openShop(older.killed());
  expect(await database.get("ΟΔΟΣ")).toMatchObject({ a: 2 });
  expect(await database.get("odos")).toMatchObject({ a: 1 });
  expect(database.state.documents.documentCount).toBe(2);
});

test("an error names ten pairs of many", async () => {
  const older = new OlderDatabase();
  for (let n = 0; n < 12; n++) {
    await older.put(`${n}/ΑΣ`, {});
    await older.put(`${n}/ασ`, {});
  }
  await expect(openShop(older.killed())).rejects.toThrow("'9/ΑΣ' and '9/ασ', and 2 more. Nothing");
});

test.each([
  ["one document", ["ΟΔΟΣ"], []],
  ["one document, written again", ["ΟΔΟΣ", "ΟΔΟΣ"], []],
  ["two documents, both deleted", ["ΟΔΟΣ", "οδοσ"], ["ΟΔΟΣ", "οδοσ"]],
  ["sigma within a word", ["ΣΟΔΟ", "σοδο"], []],
] as const)("an older database is opened: %s", async (_about, puts, deletions) => {
  const older = new OlderDatabase();
  for (const id of puts) await older.put(id, { id });
  for (const id of deletions) await older.delete(id);
  const database = await openShop(older.killed());
  expect(database.state.documents.documentCount).toBe(await older.count());
  for (const id of puts) expect(database.find(id) >= 0).toBe(deletions.length === 0);
});

test("in this version a document may change its spelling, whatever is left of the log", async () => {
  const files = new SimulatedFileSystem();
  const database = await openShop(files);
  await database.put("ΟΔΟΣ", { a: 1 });
  await database.put("οδοσ", { a: 2 });
  await database.put("ΑΣ", { a: 3 });
  await database.delete("ΑΣ");
  await database.put("ασ", { a: 4 });
  const killed = files.restart();
  for (const start of ["replayed", "from a snapshot"]) {
    const again = await openShop(killed);
    expect(await again.get("ΟΔΟΣ"), start).toMatchObject({ a: 2, "@metadata": { "@id": "οδοσ" } });
    expect(await again.get("ΑΣ"), start).toMatchObject({ a: 4 });
    await open.pop()?.close();
  }
});

test("sigmas are found in text and in bytes", () => {
  for (const [id, expected] of [
    ["", false],
    ["users/1", false],
    ["οδος", false],
    ["Σ", true],
    ["users/σ1", true],
    ["é", false],
    ["日本", false],
    ["π", false],
  ] as const) {
    const bytes = Buffer.from(`x${id}\u00cf`);
    expect([id, hasSigma(id)]).toEqual([id, expected]);
    expect([id, hasSigmaBytes(bytes, 1, bytes.length - 2)]).toEqual([id, expected]);
  }
});
