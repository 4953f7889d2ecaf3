import { afterEach, describe, expect, test } from "vitest";
import { JsonText } from "../../../engine/base/json/json-text.ts";
import type { Database, DocumentRow, ListedDocuments } from "../../../engine/engine.ts";
import { closeDatabaseApis, openDatabaseApi, putText } from "../../support/open-database-api.ts";

afterEach(closeDatabaseApis);

const freely = () => Promise.resolve(() => undefined);

async function rowOf(database: Database, id: string): Promise<DocumentRow> {
  const found = database.documents.find(id);
  if (found === null) throw new Error(`${id} is missing`);
  return await found.read();
}

async function listed(database: Database, wanted: ListedDocuments, most = 100): Promise<string[]> {
  const view = database.documents.view();
  const ids: string[] = [];
  await view.list(wanted, (row) => {
    ids.push(row.id);
    return ids.length === most ? false : undefined;
  });
  view.release();
  return ids;
}

describe("a document", () => {
  test("is found in any letter case, with its properties and text", async () => {
    const database = await openDatabaseApi();
    const changeVector = await putText(database, "users/1", { Name: "Ann" });
    const row = await rowOf(database, "USERS/1");
    expect(row.id).toBe("users/1");
    expect(row.changeVector).toBe(changeVector);
    expect(row.body()).toEqual({ Name: "Ann" });
    const text = new JsonText();
    row.addTo(text);
    expect(JSON.parse(text.bytes.toString())).toMatchObject({
      Name: "Ann",
      "@metadata": { "@id": "users/1", "@change-vector": changeVector },
    });
  });

  test("that is missing, or has no id, is null", async () => {
    const { documents } = await openDatabaseApi();
    expect(documents.find("users/1")).toBeNull();
    expect(documents.find("")).toBeNull();
  });

  test("is counted, by collection in any letter case, until it is deleted", async () => {
    const database = await openDatabaseApi();
    await putText(database, "users/1", {});
    await putText(database, "orders/1", {}, "Orders");
    expect(database.documents.count).toBe(2);
    expect(database.documents.countOf("orders")).toBe(1);
    expect(await database.documents.delete("orders/1")).toBe(true);
    expect(await database.documents.delete("orders/1")).toBe(false);
    expect(database.documents.countOf("Orders")).toBe(0);
  });

  test("is not stored if the expected change vector differs", async () => {
    const database = await openDatabaseApi();
    await putText(database, "users/1", {});
    const late = database.documents.put("users/1", Buffer.from("{}"), "");
    await expect(late).rejects.toMatchObject({ code: "concurrency" });
  });

  test("opens a large document once for all readers and releases its memory once", async () => {
    const database = await openDatabaseApi();
    await putText(database, "users/1", { Text: "x".repeat(3_000_000) });
    const found = database.documents.find("users/1");
    expect(found?.isLarge).toBe(true);
    let held = 0;
    const reserve = (bytes: number) => {
      held += bytes;
      return Promise.resolve(() => {
        held -= bytes;
      });
    };
    const first = await found?.open(reserve);
    const second = await found?.open(reserve);
    expect(held).toBe(found?.storedBytes);
    expect(second?.pieces).toBe(first?.pieces);
    first?.release();
    first?.release();
    expect(held).toBe(found?.storedBytes);
    const { length } = second?.pieces ?? { length: 0 };
    expect(second?.pieces.copy(length - 2, length).toString()).toBe("}}");
    second?.release();
    expect(held).toBe(0);
  });

  test("can be opened later if reserving its memory failed", async () => {
    const database = await openDatabaseApi();
    await putText(database, "users/1", { Text: "x".repeat(3_000_000) });
    const found = database.documents.find("users/1");
    const refused = found?.open(() => Promise.reject(new Error("no memory")));
    await expect(refused).rejects.toThrow("no memory");
    const opened = await found?.open(freely);
    expect(opened?.row.id).toBe("users/1");
    opened?.release();
  });
});

describe("a list", () => {
  test("follows the requested order and ends when the receiver stops it", async () => {
    const database = await openDatabaseApi();
    for (const id of ["users/2", "users/1", "orders/1", "users/3"]) {
      await putText(database, id, {}, id.startsWith("users") ? "Users" : "Orders");
    }
    expect(await listed(database, { startsWith: "users/" })).toEqual([
      "users/1",
      "users/2",
      "users/3",
    ]);
    expect(await listed(database, { startsWith: "users/", startAfter: "users/1" }, 1)).toEqual([
      "users/2",
    ]);
    expect(await listed(database, { collection: "users" })).toEqual([
      "users/3",
      "users/1",
      "users/2",
    ]);
    expect(await listed(database, { collection: "Nobody" })).toEqual([]);
    expect(await listed(database, {})).toEqual(["users/3", "orders/1", "users/1", "users/2"]);
    expect(await listed(database, { fromEtag: 3 })).toEqual(["orders/1", "users/3"]);
  });

  test("contains the documents of its view", async () => {
    const database = await openDatabaseApi();
    await putText(database, "users/1", { Name: "Ann" });
    const view = database.documents.view();
    await putText(database, "users/1", { Name: "Bob" });
    await putText(database, "users/2", {});
    const rows: unknown[] = [];
    await view.list({}, (row) => {
      rows.push(row.body());
      return undefined;
    });
    expect(rows).toEqual([{ Name: "Ann" }]);
    expect(view.find("users/2")).toBeNull();
    view.release();
  });
});
