/**
 * A database that follows another loses power at every file system call. Its mark has the number of
 * its groups, and its contents equal the leader's after that number: no group is missing or applied
 * twice. Then it continues.
 *
 * By default power is lost at every 7th call; with `npm run stress faults` at every call, with three
 * outcomes.
 */
import { expect, test } from "vitest";
import { OpenDatabase } from "../../engine/api/database/open-database.ts";
import { crashEverywhere } from "../support/crash-loop.ts";
import { describeDatabase } from "../support/database-picture.ts";
import { put } from "../support/database-scenarios.ts";
import { everyFault } from "../support/every-fault.ts";
import {
  expectSameContents,
  FollowingCarrier,
  follow,
  GroupList,
  groupsIn,
} from "../support/followed-database.ts";
import type { Batch } from "../support/model-database.ts";
import {
  databaseFolder,
  logOptions,
  SimulatedDatabase,
  simulatedEnvironment,
} from "../support/simulated-database.ts";
import { SimulatedFileSystem } from "../support/simulated-file-system.ts";

const seeds = everyFault ? 3 : 1;
const step = everyFault ? 1 : 7;

const batches: readonly Batch[] = [
  [put("things/1", "one"), put("people/1", "Ann", "People")],
  [{ kind: "increment", id: "things/1", name: "Likes", by: 3 }],
  [{ kind: "exchange", key: "Lock", text: '{"Object":1}', expected: "absent" }],
  [put("things/1", "x".repeat(3000)), { kind: "identity", name: "invoices" }],
  [{ kind: "delete", id: "people/1" }],
  [put("people/1", "again", "People"), { kind: "put", id: "new", body: '{"other":"shape"}' }],
  [{ kind: "value", key: "setting", value: 1 }, put("things/1", "short")],
  [{ kind: "deleteCounter", id: "things/1", name: "likes" }, put("things/2", "y".repeat(5000))],
  [{ kind: "delete", id: "things/2" }],
  [put("last", "of all")],
];

/** A leader, and its contents after each of its groups. */
async function createLeader() {
  const carrier = new GroupList();
  const shop = await SimulatedDatabase.open(new SimulatedFileSystem(), undefined, { carrier });
  const states = [await describeDatabase(shop.database)];
  for (const batch of batches) {
    await shop.write(batch);
    states.push(await describeDatabase(shop.database));
  }
  expect(carrier.groups).toHaveLength(batches.length);
  return { leader: shop.database, groups: carrier.groups, states };
}

async function openFollower(files: SimulatedFileSystem, databaseId: Buffer) {
  const { log, ...options } = logOptions();
  const read = new FollowingCarrier();
  const probe = await OpenDatabase.open(simulatedEnvironment(files), "shop", databaseFolder, {
    ...options,
    log: { ...log, databaseId, carrier: read },
  });
  const count = groupsIn(probe);
  await probe.abandon();
  const own = new FollowingCarrier(count);
  const follower = await OpenDatabase.open(simulatedEnvironment(files), "shop", databaseFolder, {
    ...options,
    log: { ...log, databaseId, carrier: own },
  });
  follower.follow();
  return { follower, own, count };
}

test("a follower matches its mark after a crash at any call", {
  timeout: 3_600_000,
}, async () => {
  const { leader, groups, states } = await createLeader();
  interface Progress {
    /** Number of durable groups. */
    acknowledged: number;
  }
  const scenario = async (files: SimulatedFileSystem, progress: Progress) => {
    const { follower, own } = await openFollower(files, leader.databaseId);
    for (let n = 0; n < groups.length; n += 2) {
      await follow(leader, groups.slice(n, n + 2), follower, own);
      progress.acknowledged = Math.min(n + 2, groups.length);
      if (n === 4) await follower.writeSnapshot();
      if (n === 6) await follower.compact();
    }
    await follower.close();
  };
  const check = async (after: SimulatedFileSystem, { acknowledged }: Progress) => {
    const { follower, own, count } = await openFollower(after, leader.databaseId);
    expect(count).toBeGreaterThanOrEqual(acknowledged);
    expect(await describeDatabase(follower)).toBe(states[count]);
    await follow(leader, groups.slice(count), follower, own);
    await expectSameContents(leader, follower);
    await follower.abandon();
  };
  await crashEverywhere(() => ({ acknowledged: 0 }), scenario, { seeds, step }, check);
});
