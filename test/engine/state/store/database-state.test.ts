import { afterEach, expect, test } from "vitest";
import { OpenDatabase } from "../../../../engine/api/database/open-database.ts";
import { clockLeadMicrosMax } from "../../../../engine/base/limits.ts";
import { simulatedEnvironment } from "../../../support/simulated-database.ts";
import { SimulatedFileSystem } from "../../../support/simulated-file-system.ts";

const yearMs = 365 * 24 * 3_600_000;
const open: OpenDatabase[] = [];
afterEach(async () => {
  for (const database of open.splice(0)) await database.close();
});

async function openShop(files: SimulatedFileSystem) {
  const environment = simulatedEnvironment(files);
  const database = await OpenDatabase.open(environment, "shop", "/data/shop");
  open.push(database);
  const timeOfPut = async (id: string) => {
    await database.put(id, {});
    const metadata = (await database.get(id))?.["@metadata"] as Record<string, string>;
    return Date.parse(metadata["@last-modified"] as string);
  };
  return { database, clock: environment.clock, timeOfPut };
}

test("times of changes follow a clock that was set back far", async () => {
  const { clock, timeOfPut } = await openShop(new SimulatedFileSystem());
  const before = await timeOfPut("a");
  clock.shiftTimeOfDay(yearMs);
  expect(await timeOfPut("b")).toBeGreaterThanOrEqual(before + yearMs);
  clock.shiftTimeOfDay(-yearMs);
  const after = await timeOfPut("c");
  expect(after).toBeGreaterThanOrEqual(before);
  expect(after).toBeLessThan(before + 60_000);
  expect(await timeOfPut("d")).toBeGreaterThanOrEqual(after);
});

test("times of changes follow a clock that was set back while the database was closed", async () => {
  const files = new SimulatedFileSystem();
  const first = await openShop(files);
  const before = await first.timeOfPut("a");
  first.clock.shiftTimeOfDay(yearMs);
  await first.timeOfPut("b");
  await open.pop()?.close();
  const { timeOfPut } = await openShop(files);
  expect(await timeOfPut("c")).toBeLessThan(before + 600_000);
});

test("times of changes increase while a clock is set back by little", async () => {
  const { clock, timeOfPut, database } = await openShop(new SimulatedFileSystem());
  clock.shiftTimeOfDay(yearMs);
  const before = await timeOfPut("a");
  clock.shiftTimeOfDay(-clockLeadMicrosMax / 2000);
  await database.put("b", {});
  expect(await timeOfPut("c")).toBeGreaterThanOrEqual(before);
  expect(database.state.lastModified).toBeGreaterThan(clock.nowMicros());
});
