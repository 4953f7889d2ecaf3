/**
 * File system calls that fail, in all database scenarios: the device returns an error, is full, or writes only a part.
 * Then the process ends, with and without a power loss, and acknowledged writes must exist. Every 47th call fails, from
 * a different start for each scenario and fault; with `npm run stress faults` every call.
 */
import { expect, test } from "vitest";
import { OpenDatabase } from "../../engine/api/database/open-database.ts";
import { countCalls, named, playWithFault } from "../support/crash-loop.ts";
import { checkRecovery, databaseScenarios, put } from "../support/database-scenarios.ts";
import { everyFault } from "../support/every-fault.ts";
import {
  History,
  logOptions,
  SimulatedDatabase,
  simulatedEnvironment,
} from "../support/simulated-database.ts";
import { type Fault, SimulatedFileSystem } from "../support/simulated-file-system.ts";

const step = everyFault ? 1 : 97;

/** Each returns the fault at call `index` if `at` is the chosen call. */
const faults: Readonly<Record<string, (index: number, at: number) => Fault | undefined>> = {
  "an error": (index, at) => (index === at ? { kind: "error", code: "EIO" } : undefined),
  "an error after which old pages are read": (index, at) =>
    index === at ? { kind: "error", code: "EIO", revert: true } : undefined,
  "a short write": (index, at) =>
    index === at ? { kind: "error", code: "EIO", writtenShare: 0.6 } : undefined,
  "a full disk, once": (index, at) =>
    index === at ? { kind: "error", code: "ENOSPC", writtenShare: 0.4 } : undefined,
  "a full disk from that call on": (index, at) =>
    index >= at ? { kind: "error", code: "ENOSPC" } : undefined,
  "errors from that call on": (index, at) =>
    index >= at ? { kind: "error", code: "EIO" } : undefined,
};

for (const [name, scenario] of Object.entries(databaseScenarios)) {
  test(`failed calls lose nothing acknowledged: ${name}`, {
    timeout: 3_600_000,
  }, async () => {
    const calls = await countCalls(() => new History(), scenario);
    let tick = 0;
    for (const [fault, faultAt] of Object.entries(faults)) {
      for (let at = tick++ % step; at < calls; at += step) {
        const history = new History();
        const files = await playWithFault(scenario, history, (index) => faultAt(index, at));
        await named(
          `${fault} in call ${at} (${files.calls[at]?.name} ${files.calls[at]?.path})`,
          async () => {
            await checkRecovery(files.restart(), history);
            await checkRecovery(files.powerLoss(at), history);
          },
        );
      }
    }
  });
}

test("a full disk rejects writes and uploads, accepts deletions, and recovers", async () => {
  const files = new SimulatedFileSystem();
  const options = { diskReserveBytes: 20_000, segmentBytesMin: 1024, segmentBytesMax: 1024 };
  const shop = await SimulatedDatabase.open(files, new History(), options);
  for (let index = 0; index < 12; index++) {
    await shop.write([put(`things/${index}`, "x".repeat(200))]);
  }
  files.capacityBytes = files.usedBytes() + 19_000;
  await untilFull(shop);
  expect(shop.database.isDiskFull).toBe(true);
  await expect(shop.write([put("new", "no")])).rejects.toMatchObject({ code: "disk-full" });
  await expect(shop.database.blobs.store([Buffer.from("content")])).rejects.toMatchObject({
    code: "disk-full",
  });
  expect(await shop.database.getText("things/1")).not.toBeNull();
  for (let index = 0; index < 11; index++) {
    expect(await shop.write([{ kind: "delete", id: `things/${index}` }], true)).toBe(true);
  }
  const report = await shop.database.compact();
  expect(report.bytesFreed).toBeGreaterThan(0);
  await shop.check();
  files.capacityBytes = Number.POSITIVE_INFINITY;
  await untilAccepted(shop);
  await shop.check();
  await shop.database.close();
});

test("a device that accepts no writes stops no reads, and recovers without reopening", async () => {
  const files = new SimulatedFileSystem();
  const shop = await SimulatedDatabase.open(files);
  await shop.write([put("a", "A"), { kind: "increment", id: "a", name: "n", by: 1 }]);
  files.capacityBytes = files.usedBytes();
  const large = put("b", "B".repeat(3000));
  await expect(shop.write([large])).rejects.toMatchObject({ code: "disk-full" });
  await expect(
    shop.write([{ kind: "attach", id: "a", name: "file", content: "c".repeat(1000) }]),
  ).rejects.toMatchObject({ code: "disk-full" });
  expect(await shop.database.getText("a")).not.toBeNull();
  files.capacityBytes = Number.POSITIVE_INFINITY;
  await untilAccepted(shop);
  await shop.write([large, { kind: "attach", id: "a", name: "file", content: "c" }]);
  await shop.check();
  await shop.database.close();
});

test("a failed sync stops its own database only", async () => {
  const files = new SimulatedFileSystem();
  const shop = await SimulatedDatabase.open(files);
  await shop.write([put("a", "A")]);
  files.onCall = ({ name, path }) =>
    name === "sync" && path.includes("/log/") ? { kind: "error", code: "EIO" } : undefined;
  await expect(shop.write([put("b", "B")])).rejects.toMatchObject({ code: "database-stopped" });
  files.onCall = undefined;
  await expect(shop.write([put("c", "C")])).rejects.toMatchObject({ code: "database-stopped" });
  expect(() => shop.database.find("a")).toThrow("has stopped");
  await shop.database.close();
  const again = await SimulatedDatabase.open(files, shop.history);
  await again.write([put("d", "D")]);
  await again.check();
  await again.database.close();
});

/** Writes until the disk is known to be full. */
async function untilFull(shop: SimulatedDatabase): Promise<void> {
  for (let attempt = 0; attempt < 100; attempt++) {
    shop.clock.advance(2000);
    try {
      await shop.write([put("fill", "f".repeat(attempt))]);
    } catch {
      return;
    }
  }
  expect.fail("the disk did not fill up");
}

/** Writes until a write is accepted: the disk is checked once a second. */
async function untilAccepted(shop: SimulatedDatabase): Promise<void> {
  for (let attempt = 0; attempt < 10; attempt++) {
    shop.clock.advance(2000);
    await new Promise<void>((resolve) => setImmediate(resolve));
    try {
      await shop.write([put("healed", "yes")]);
      return;
    } catch {}
  }
  expect.fail("the disk did not recover");
}

test("a full disk is reported once each time, with the reserve", async () => {
  const files = new SimulatedFileSystem();
  const reports: string[] = [];
  const environment = simulatedEnvironment(files);
  const reserve = 4096;
  const open = (folder: string) =>
    OpenDatabase.open(environment, folder, `/data/${folder}`, {
      ...logOptions({ diskReserveBytes: reserve }),
      report: (message) => reports.push(message),
    });
  const [one, other] = [await open("one"), await open("other")];
  const used = files.usedBytes();
  for (let filling = 1; filling <= 2; filling++) {
    files.capacityBytes = used + reserve;
    for (let tick = 0; tick < 20; tick++) {
      for (const database of [one, other]) await database.put("a", {}).catch(() => undefined);
      environment.clock.advance(2000);
    }
    await expect(one.put("b", {})).rejects.toMatchObject({ code: "disk-full" });
    expect(reports).toHaveLength(2 * filling - 1);
    expect(reports.at(-1)).toMatch(
      /disk of \/data\/\w+ is full.*writes are refused, but for deletions/,
    );
    files.capacityBytes = Number.POSITIVE_INFINITY;
    for (let tick = 0; tick < 20; tick++) {
      for (const database of [one, other]) await database.put("a", {}).catch(() => undefined);
      environment.clock.advance(2000);
    }
    await one.put("c", {});
    expect(reports).toHaveLength(2 * filling);
    expect(reports.at(-1)).toContain("has room again");
  }
  await one.close();
  await other.close();
});
