/**
 * A database that follows another: the same groups produce the same contents, for any writes. With
 * FOLLOWED=1, the engine's tests also compare each of their databases with a follower.
 */
import { expect, onTestFinished, test } from "vitest";
import { OpenDatabase } from "../../../../engine/api/database/open-database.ts";
import type { EngineError } from "../../../../engine/base/errors.ts";
import { nodeEnvironment } from "../../../../engine/base/platform/node-environment.ts";
import type { Change } from "../../../../engine/state/store/changes.ts";
import {
  type CarriedGroup,
  expectSameContents,
  FollowingCarrier,
  follow,
  GroupList,
  groupsIn,
} from "../../../support/followed-database.ts";
import { newTestFolder } from "../../../support/open-test-database.ts";

interface Pair {
  readonly leader: OpenDatabase;
  readonly carrier: GroupList;
  readonly follower: OpenDatabase;
  readonly own: FollowingCarrier;
  /** Applies the leader's new groups. */
  catchUp(): Promise<void>;
}

async function open(
  carrier: GroupList | FollowingCarrier,
  folder: string | null,
  databaseId?: Buffer,
): Promise<OpenDatabase> {
  const log = { carrier, ...(databaseId === undefined ? {} : { databaseId }) };
  const database = await OpenDatabase.open(nodeEnvironment(), "test", folder, { log });
  onTestFinished(() => database.abandon());
  return database;
}

async function pair(folder: string | null = null): Promise<Pair> {
  const carrier = new GroupList();
  const leader = await open(carrier, null);
  const own = new FollowingCarrier();
  const follower = await open(own, folder, leader.databaseId);
  follower.follow();
  let done = 0;
  const catchUp = async () => {
    await leader.flush();
    const groups = carrier.groups.slice(done);
    done = carrier.groups.length;
    await follow(leader, groups, follower, own);
  };
  return { leader, carrier, follower, own, catchUp };
}

async function rowsOf(database: OpenDatabase, query: string): Promise<unknown[]> {
  const rows: unknown[] = [];
  const add = (row: Buffer) => {
    rows.push(JSON.parse(row.toString()));
    return null;
  };
  await database.query(query, {}, { add });
  return rows;
}

test("documents that are added, changed and removed are the same, with their revisions and shapes", async () => {
  const { leader, follower, catchUp } = await pair();
  await leader.changeSettings((record) => ({
    ...record,
    Revisions: { Default: { Disabled: false, MinimumRevisionsToKeep: 2 } },
  }));
  for (let round = 0; round < 4; round++) {
    await Promise.all(
      Array.from({ length: 40 }, (_, n) =>
        leader.put(`things/${n}`, {
          [`field${n % 5}`]: round,
          "@metadata": { "@collection": `C${n % 3}` },
        }),
      ),
    );
    await leader.delete(`things/${round}`);
    await catchUp();
    await expectSameContents(leader, follower);
  }
  expect(groupsIn(follower)).toBeGreaterThan(4);
  expect(follower.state.keyspaces.revisions.count).toBeGreaterThan(70);
});

test("a follower rejects writes, and reports that another node accepts them", async () => {
  const { leader, follower, catchUp } = await pair();
  await leader.put("a", { n: 1 });
  await catchUp();
  for (const write of [
    () => follower.put("a", { n: 2 }),
    () => follower.delete("a"),
    () => follower.changeSettings((record) => record),
    () => follower.skipEtags(1),
  ]) {
    const error = await write().then(
      () => null,
      (reason: EngineError) => reason,
    );
    expect(error?.code).toBe("not-leader");
  }
  expect(await follower.get("a")).toMatchObject({ n: 1 });
});

test("its listeners receive the same changes, with the same change vectors", async () => {
  const { leader, follower, catchUp } = await pair();
  const reported: [Change[], Change[]] = [[], []];
  leader.state.feed.listen((change) => reported[0].push(change));
  follower.state.feed.listen((change) => reported[1].push(change));
  await leader.put("orders/1", { n: 1, "@metadata": { "@collection": "Orders" } });
  await leader.put("orders/1", { n: 2, "@metadata": { "@collection": "Orders" } });
  await leader.delete("orders/1");
  await catchUp();
  expect(reported[1]).toEqual(reported[0]);
  expect(reported[1].map(({ type }) => type)).toEqual(["Put", "Put", "Delete"]);
});

test("queries of a follower find applied writes", async () => {
  const { leader, follower, catchUp } = await pair();
  await leader.put("orders/1", { total: 5, "@metadata": { "@collection": "Orders" } });
  await catchUp();
  expect(await rowsOf(follower, "from Orders")).toHaveLength(1);
  await leader.put("orders/2", { total: 7, "@metadata": { "@collection": "Orders" } });
  await catchUp();
  expect(await rowsOf(follower, "from Orders order by id() desc limit 1")).toMatchObject([
    { total: 7 },
  ]);
});

test("a damaged group is rejected as a whole", async () => {
  const { leader, carrier, follower, own } = await pair();
  await leader.put("a", { text: "some text that is long enough" });
  const [group] = carrier.groups as [CarriedGroup];
  for (const damage of [10, 24, group.payload.length - 1]) {
    const payload = Buffer.from(group.payload);
    payload[damage] = (payload[damage] ?? 0) ^ 1;
    const added = follow(leader, [{ ...group, payload }], follower, own);
    await expect(added).rejects.toMatchObject({ code: "record-damaged" });
  }
  await expect(
    follow(leader, [{ ...group, payload: group.payload.subarray(0, -8) }], follower, own),
  ).rejects.toMatchObject({ code: "record-damaged" });
  expect(await follower.get("a")).toBe(null);
  await follow(leader, carrier.groups, follower, own);
  await expectSameContents(leader, follower);
});

test("a follower that parses texts of its own assigns no shape number", async () => {
  const { leader, follower, catchUp } = await pair();
  await leader.put("a", { one: 1 });
  await catchUp();
  follower.state.parseText('{"of":"its own"}');
  expect(follower.state.shapes.count).toBe(leader.state.shapes.count);
  await leader.put("b", { another: 2 });
  await catchUp();
  expect(await follower.get("b")).toMatchObject({ another: 2 });
  await expectSameContents(leader, follower);
});

test("a follower that becomes leader continues etags, shapes and collections, and the old leader can follow it", async () => {
  const { leader, carrier, follower, catchUp } = await pair();
  await leader.put("a", { one: 1, "@metadata": { "@collection": "First" } });
  await catchUp();
  // The same contents in another log that can lead, because the first one has stopped.
  const second = new GroupList();
  const next = await open(second, null, leader.databaseId);
  next.follow();
  for (const { payload } of carrier.groups) await next.addGroup(payload, () => undefined);
  const before = second.groups.length;
  next.lead();
  await next.put("b", { two: 2, "@metadata": { "@collection": "Second" } });
  await next.put("a", { one: 3, "@metadata": { "@collection": "First" } });
  expect(next.state.committedEtag).toBe(leader.state.committedEtag + 2);
  for (const { payload } of second.groups.slice(before))
    await follower.addGroup(payload, () => undefined);
  expect(await follower.get("b")).toMatchObject({ two: 2 });
  expect(await follower.getText("a")).toEqual(await next.getText("a"));
  expect(follower.state.committedEtag).toBe(next.state.committedEtag);
});

test("after a restart it resumes at its mark", async () => {
  const folder = `${await newTestFolder()}/follower`;
  const { leader, carrier, follower, own } = await pair(folder);
  for (let n = 0; n < 20; n++) await leader.put(`things/${n}`, { n });
  await leader.flush();
  await follow(leader, carrier.groups.slice(0, 7), follower, own);
  await follower.abandon();
  const again = new FollowingCarrier(7);
  const reopened = await open(again, folder);
  reopened.follow();
  expect(groupsIn(reopened)).toBe(7);
  await follow(leader, carrier.groups.slice(7), reopened, again);
  await expectSameContents(leader, reopened);
});
