/** The remaining files of a cluster node become a single node. */
import { existsSync, mkdtempSync, readdirSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, expect, test } from "vitest";
import { nodeEnvironment, openEngine } from "../../../engine/engine.ts";
import {
  moveAside,
  readRemains,
  recover,
  withoutCluster,
} from "../../../server/cluster/recovery.ts";
import { asSingleNode, createLostCluster } from "../../support/lost-cluster.ts";

let folder = "";

beforeEach(async () => {
  folder = mkdtempSync(join(tmpdir(), "jackdaw-recovery-"));
  await createLostCluster(folder);
});

afterEach(() => rmSync(folder, { recursive: true, force: true }));

async function remainsOf(isApplied = false) {
  const engine = await openEngine({
    folder,
    environment: nodeEnvironment(),
    replication: withoutCluster(),
  });
  try {
    const remains = await readRemains(engine);
    if (isApplied) await recover(engine, remains);
    return remains;
  } finally {
    await engine.close();
  }
}

test("lists the copies, their positions, and databases without a copy", async () => {
  const remains = await remainsOf();
  expect(remains.topologyId).toBe("6e2d3b9a-0000-4000-8000-000000000001");
  expect(remains.members.map(({ tag }) => tag)).toEqual(["A", "B", "C"]);
  expect(remains.lost).toEqual(["world"]);
  expect(remains.certificateCount).toBe(1);
  expect(remains.copies).toMatchObject([
    { name: "shop", epoch: 1, isComplete: true, members: ["A", "B", "C"] },
  ]);
  // GENESIS, EPOCH and two documents.
  expect(remains.copies[0]?.sequence).toBe(4);
  // The check has changed nothing.
  expect(await remainsOf()).toEqual(remains);
});

test("the copies become databases of the node, with the cluster's last certificates", async () => {
  await remainsOf(true);
  expect(await moveAside(nodeEnvironment(), folder, ".lost")).toEqual(["Cluster.lost"]);
  expect(existsSync(join(folder, "Cluster"))).toBe(false);
  await asSingleNode(folder, async ({ databases, values, shared }) => {
    expect(shared).toBeNull();
    const keys = [...values.entries("")].map(([key]) => key);
    expect(keys).toEqual(expect.arrayContaining(["certificates/AB12", "server/own"]));
    expect(keys.filter((key) => /^cluster|OLD/.test(key))).toEqual([]);
    expect(values.get("server/first-admin")).toBe("AB12");
    const shop = await databases.find("shop");
    expect(shop?.replication).toBeNull();
    expect(shop?.documents.find("users/2")).not.toBeNull();
    await shop?.documents.put("users/3", Buffer.from("{}"));
    expect(shop?.lastEtag).toBe(3);
  });
});

test("an interrupted recovery can be repeated", async () => {
  const before = await remainsOf(true);
  // The records of copies are gone, and the cluster's values still exist.
  expect(await remainsOf(true)).toEqual(before);
  await moveAside(nodeEnvironment(), folder, ".lost");
  expect(readdirSync(folder)).toContain("Cluster.lost");
  await asSingleNode(folder, async ({ databases }) => {
    expect((await databases.find("shop"))?.documents.find("users/1")).not.toBeNull();
  });
});
