import { afterEach, describe, expect, test } from "vitest";
import { OpenDatabase } from "../../../../engine/api/database/open-database.ts";
import { documentsPerTask } from "../../../../engine/base/limits.ts";
import { formatTimestamp } from "../../../../engine/base/timestamp.ts";
import { simulatedEnvironment } from "../../../support/simulated-database.ts";
import { SimulatedFileSystem } from "../../../support/simulated-file-system.ts";

const open: OpenDatabase[] = [];
afterEach(async () => {
  for (const database of open.splice(0)) await database.close();
});

async function openShop(files = new SimulatedFileSystem()) {
  const environment = simulatedEnvironment(files);
  const database = await OpenDatabase.open(environment, "shop", "/data/shop");
  open.push(database);
  const { clock } = environment;
  const inSeconds = (seconds: number) => formatTimestamp(clock.nowMicros() + seconds * 1e6);
  const put = (id: string, metadata: object) => database.put(id, { id, "@metadata": metadata });
  return { database, clock, inSeconds, put };
}

const metadataOf = async (database: OpenDatabase, id: string) =>
  (await database.get(id))?.["@metadata"] as Record<string, unknown> | undefined;

describe("due documents", () => {
  test("are deleted after they expire, if the database is configured to", async () => {
    const { database, inSeconds, put } = await openShop();
    await put("gone", { "@expires": inSeconds(-1) });
    await put("later", { "@expires": inSeconds(3600) });
    await put("plain", {});
    expect(await database.expiration.run()).toBe(0);
    await database.putSettings({ Expiration: { Disabled: true } });
    expect(await database.expiration.run()).toBe(0);
    await database.putSettings({ Expiration: { Disabled: false } });
    expect(await database.expiration.run()).toBe(1);
    expect(database.find("gone")).toBe(-1);
    expect(database.state.documents.documentCount).toBe(2);
  });

  test("are due at the time in UTC if the value has an offset", async () => {
    const { database, clock, put } = await openShop();
    await database.putSettings({ Expiration: {}, Refresh: {} });
    const local = (seconds: number, hours: number) =>
      formatTimestamp(clock.nowMicros() + (seconds + hours * 3600) * 1e6).slice(0, 19);
    await put("past-east", { "@expires": `${local(-1, 5)}+05:00` });
    await put("past-west", { "@expires": `${local(-1, -5)}-0500` });
    await put("future-east", { "@expires": `${local(60, 5)}+05:00` });
    await put("future-west", {
      "@expires": `${local(60, -5)}-05:00`,
      "@refresh": `${local(-1, -5)}-5:00`,
    });
    expect(await database.expiration.run()).toBe(2);
    expect(["past-east", "past-west"].map((id) => database.find(id))).toEqual([-1, -1]);
    expect(database.state.documents.documentCount).toBe(2);
    expect(await database.refresh.run()).toBe(1);
  });

  test("cannot be stored with a null or malformed time", async () => {
    const { database, put } = await openShop();
    for (const key of ["@expires", "@refresh", "@archive-at"]) {
      for (const [value, shown] of [
        [null, ""],
        ["", ""],
        ["tomorrow", "tomorrow"],
      ] as const) {
        await expect(put("a", { [key]: value })).rejects.toThrow(
          `The due date format for document 'a' is not valid: '${shown}'. Use the following format: 20`,
        );
      }
      for (const value of [true, 0, [], {}]) await put("a", { [key]: value });
    }
    expect(database.find("a")).toBeGreaterThanOrEqual(0);
  });

  test("are kept if their time was postponed after they were found", async () => {
    const { database, inSeconds, put } = await openShop();
    await database.putSettings({ Expiration: {}, Refresh: {} });
    await put("a", { "@expires": inSeconds(-1) });
    const running = database.expiration.run();
    await put("a", { "@expires": inSeconds(3600) });
    await running;
    expect(database.find("a")).toBeGreaterThanOrEqual(0);
    expect(await database.expiration.run()).toBe(0);
  });

  test("are stored again without the key when they are refreshed", async () => {
    const { database, inSeconds, put } = await openShop();
    await database.putSettings({ Refresh: {} });
    await put("a", { "@refresh": inSeconds(-1), kept: 1 });
    const before = await metadataOf(database, "a");
    expect(await database.refresh.run()).toBe(1);
    const after = await metadataOf(database, "a");
    expect(after?.["@refresh"]).toBeUndefined();
    expect(after?.["kept"]).toBe(1);
    expect(after?.["@change-vector"]).not.toBe(before?.["@change-vector"]);
    expect(await database.refresh.run()).toBe(0);
  });

  test("are processed in batches, the longest overdue first if there is a limit", async () => {
    const { database, inSeconds, put } = await openShop();
    const count = documentsPerTask + 10;
    for (let n = 0; n < count; n++) await put(`d/${n}`, { "@expires": inSeconds(-1000 + n) });
    await database.putSettings({ Expiration: { MaxItemsToProcess: 5 } });
    expect(await database.expiration.run()).toBe(5);
    expect(database.find("d/4")).toBe(-1);
    expect(database.find("d/5")).toBeGreaterThanOrEqual(0);
    await database.putSettings({ Expiration: {} });
    expect(await database.expiration.run()).toBe(count - 5);
    expect(database.state.documents.documentCount).toBe(0);
  });

  test("are found by the timer after the database is reopened", async () => {
    const files = new SimulatedFileSystem();
    const { database, inSeconds, put } = await openShop(files);
    await put("a", { "@expires": inSeconds(10) });
    await database.putSettings({ Expiration: { DeleteFrequencyInSec: 30 } });
    await open.pop()?.close();
    const second = await openShop(files);
    second.clock.advance(40_000);
    for (let tick = 0; tick < 50 && second.database.find("a") >= 0; tick++) {
      await new Promise((resolve) => setImmediate(resolve));
    }
    expect(second.database.find("a")).toBe(-1);
  });
});
