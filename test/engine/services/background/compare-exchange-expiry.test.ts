/** Which values are deleted, and which times are refused, is that of RavenDB 7.2.7. */
import { afterEach, describe, expect, test } from "vitest";
import { OpenDatabase } from "../../../../engine/api/database/open-database.ts";
import { compareExchangeExpirySeconds, documentsPerTask } from "../../../../engine/base/limits.ts";
import { formatTimestamp } from "../../../../engine/base/timestamp.ts";
import { putCompareExchange } from "../../../../engine/writes/compare-exchange.ts";
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
  const { compareExchange } = database.state.keyspaces;
  const inSeconds = (seconds: number) => formatTimestamp(clock.nowMicros() + seconds * 1e6);
  const put = (key: string, value: object) =>
    database.write((transaction) => {
      const expected = compareExchange.newest(key.toLowerCase())?.index ?? 0;
      return putCompareExchange(transaction, key, expected, JSON.stringify(value));
    });
  const keys = () => [...compareExchange.withPrefix("")].map(([, { key }]) => key);
  const afterSeconds = async (seconds: number, isThere: () => boolean) => {
    clock.advance(seconds * 1000);
    for (let turn = 0; turn < 50 && !isThere(); turn++) {
      await new Promise((resolve) => setImmediate(resolve));
    }
  };
  return { database, files, inSeconds, put, keys, afterSeconds };
}

const expiring = (expires: unknown) => ({ Object: 1, "@metadata": { "@expires": expires } });

describe("compare-exchange values that expire", () => {
  test("are deleted at their time, without a configuration; the others stay", async () => {
    const { database, inSeconds, put, keys } = await openShop();
    await put("Past", expiring(inSeconds(-3600)));
    await put("east", expiring(`${inSeconds(0).slice(0, 19)}+05:00`));
    await put("no zone", expiring(inSeconds(-3600).slice(0, 23)));
    await put("later", expiring(inSeconds(3600)));
    await put("none", { Object: 1 });
    await put("in the object", { Object: { "@metadata": { "@expires": inSeconds(-3600) } } });
    await put("refresh", { Object: 1, "@metadata": { "@refresh": inSeconds(-3600) } });
    expect(keys()).toHaveLength(7);
    expect(await database.compareExchangeExpiry.run()).toBe(3);
    expect(keys()).toEqual(["in the object", "later", "none", "refresh"]);
    expect(await database.compareExchangeExpiry.run()).toBe(0);
  });

  test("are deleted by a timer, which runs only while there are any", async () => {
    const { database, inSeconds, put, keys, afterSeconds } = await openShop();
    await put("none", { Object: 1 });
    expect(database.compareExchangeExpiry.isWaiting).toBe(false);
    await put("a", expiring(inSeconds(1)));
    expect(database.compareExchangeExpiry.isWaiting).toBe(true);
    await afterSeconds(compareExchangeExpirySeconds + 1, () => keys().length === 1);
    expect(keys()).toEqual(["none"]);
    expect(database.compareExchangeExpiry.isWaiting).toBe(false);
    await put("b", expiring(inSeconds(1)));
    await afterSeconds(compareExchangeExpirySeconds + 1, () => keys().length === 1);
    expect(keys()).toEqual(["none"]);
  });

  test("are found when the database is opened again", async () => {
    const { files, inSeconds, put } = await openShop();
    await put("a", expiring(inSeconds(1)));
    await put("b", expiring(inSeconds(3600)));
    await open.pop()?.close();
    const { keys, afterSeconds, database } = await openShop(files);
    expect(database.mayBeUnloaded).toBe(false);
    await afterSeconds(compareExchangeExpirySeconds + 1, () => keys().length === 1);
    expect(keys()).toEqual(["b"]);
  });

  test("stay when their time was moved or taken away, and when they were put again", async () => {
    const { database, inSeconds, put, keys } = await openShop();
    for (const key of ["a", "b", "c"]) await put(key, expiring(inSeconds(-1)));
    const running = database.compareExchangeExpiry.run();
    await put("a", expiring(inSeconds(3600)));
    await put("b", { Object: 2 });
    await running;
    expect(keys()).toEqual(["a", "b"]);
    expect(await database.compareExchangeExpiry.run()).toBe(0);
  });

  test("are deleted in batches, each value with an index of its own", async () => {
    const { database, inSeconds, put, keys } = await openShop();
    const count = documentsPerTask + 10;
    for (let n = 0; n < count; n++) await put(`k/${n}`, expiring(inSeconds(-1)));
    expect(await database.compareExchangeExpiry.run()).toBe(count);
    expect(keys()).toEqual([]);
    expect(await put("k", { Object: 1 })).toMatchObject({ index: 2 * count + 1 });
  });
});
