import { afterEach, expect, test } from "vitest";
import { type Database, timeMin } from "../../../engine/engine.ts";
import { closeDatabaseApis, openDatabaseApi, putText } from "../../support/open-database-api.ts";

afterEach(closeDatabaseApis);

const noon = Date.UTC(2026, 4, 31, 12);
const all = { from: undefined, to: undefined };

async function withHeartRate(): Promise<Database> {
  const database = await openDatabaseApi();
  await putText(database, "users/1", {});
  await database.timeSeries.apply("users/1", {
    Name: "HeartRate",
    Appends: [0, 1, 2].map((minute) => ({
      Timestamp: new Date(noon + minute * 60_000).toISOString(),
      Values: [60 + minute],
      Tag: "watches/1",
    })),
  });
  return database;
}

test("reads appended entries in pages", async () => {
  const { timeSeries } = await withHeartRate();
  expect(timeSeries.names("users/1")).toEqual(["HeartRate"]);
  const page = timeSeries.page("users/1", "heartrate", all, 1, 1);
  expect(page).toMatchObject({ count: 1, skipped: 1, isCut: true, first: noon + 60_000 });
  const [slice] = page.slices;
  expect(slice?.segment.unpack().values[slice.from]).toBe(61);
  expect(timeSeries.summary("users/1", "HeartRate")).toMatchObject({ count: 3, first: noon });
  expect(timeSeries.summary("users/1", "Steps")).toBeUndefined();
});

test("the version changes with the series, and is null if the series does not exist", async () => {
  const { timeSeries } = await withHeartRate();
  const before = timeSeries.version("users/1", "HeartRate");
  await timeSeries.apply("users/1", { Name: "HeartRate", Deletes: [{ From: null, To: null }] });
  expect(before).not.toBeNull();
  expect(timeSeries.version("users/1", "HeartRate")).toBeNull();
});

test.each([
  ["the last two entries", { kind: "lastCount", count: 2 } as const, noon + 60_000],
  ["the last minute", { kind: "lastTime", value: 60, unit: "Second" } as const, noon + 60_000],
  [
    "three months",
    { kind: "lastTime", value: 3, unit: "Month" } as const,
    Date.UTC(2026, 1, 28, 12, 2),
  ],
  ["more than the maximum", { kind: "lastTime", value: 1e9, unit: "Month" } as const, timeMin],
])("%s are a range", async (_name, include, from) => {
  const { timeSeries } = await withHeartRate();
  const bounds = timeSeries.includedBounds("users/1", { name: "HeartRate", ...include });
  expect(bounds).toMatchObject({ from, to: undefined });
  expect(timeSeries.includedBounds("users/1", { name: "Steps", ...include })).toBeNull();
});
