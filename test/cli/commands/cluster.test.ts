/** `jackdaw cluster` with a real server and a fake cluster. */
import { afterAll, beforeAll, beforeEach, describe, expect, test } from "vitest";
import { failureCodes } from "../../../cli/failure.ts";
import { EngineError } from "../../../engine/engine.ts";
import type { ReceivedHeartbeat, ReplicaState } from "../../../server/cluster/cluster-view.ts";
import { routes } from "../../../server/endpoints/route-table.ts";
import type { ServerServices } from "../../../server/routing/services.ts";
import { type CommandLine, startCommandLine } from "../../support/command-line.ts";
import {
  type FakeCluster,
  fakeCluster,
  fakeDatabase,
  fakeHeartbeat,
  fakeMember,
} from "../../support/seen-cluster.ts";

let line: CommandLine;
let cluster: FakeCluster;
const jackdaw = (...words: string[]) => line.jackdaw(words);
beforeAll(async () => {
  line = await startCommandLine();
});
afterAll(() => line.stop());

beforeEach(() => {
  cluster = fakeCluster({
    states: [
      fakeDatabase("shop", ["A", "B", "C"], { role: "leader", epoch: 2, applied: 20 }),
      fakeDatabase("world", ["B", "A", "C"], { role: "follower", epoch: 3, applied: 9 }),
      fakeDatabase("zoo", ["B", "C", "A"], { role: "follower", epoch: 3, applied: 1 }),
    ],
  });
  const follows = (applied: number) => ({ role: "follower", epoch: 2, applied }) as const;
  const leads = (applied: number) => ({ role: "leader", epoch: 3, applied }) as const;
  cluster.heartbeats.set("B", fakeHeartbeat({ shop: follows(17), world: leads(9), zoo: leads(1) }));
  cluster.heartbeats.set(
    "C",
    fakeHeartbeat({ shop: follows(20), world: follows(9), zoo: follows(1) }),
  );
  // Requested changes of the cluster take effect immediately.
  const done = cluster.transfer;
  cluster.transfer = async (name, tag) => {
    await done(name, tag);
    Object.assign(cluster.find(name) ?? {}, { leaderTag: tag });
  };
  const added = cluster.addMember;
  cluster.addMember = async (tag) => {
    await added(tag);
    cluster.nodes.push(...cluster.foreign.filter((one) => one.tag === tag));
    cluster.foreign = [];
  };
  const removed = cluster.removeMember;
  cluster.removeMember = async (tag) => {
    await removed(tag);
    cluster.nodes = cluster.nodes.filter((one) => one.tag !== tag);
  };
  become(cluster);
});

function become(value: FakeCluster | undefined): void {
  const services: ServerServices = line.server.running.services;
  Object.defineProperty(services, "cluster", { value, configurable: true });
}

test("status prints a table of nodes, a table of databases, and recommended actions", async () => {
  cluster.foreign = [fakeMember("D")];
  Object.assign(cluster.find("zoo") ?? {}, {
    trouble: "the stream is another one",
    leaderTag: null,
  });
  const { code, out, err } = await jackdaw("cluster");
  expect([code, err]).toEqual([0, ""]);
  expect(out.split("\n").map((text) => text.trimEnd())).toEqual([
    `Source     A, ${line.server.url}`,
    "Leader     A, epoch 1",
    "",
    "node  url                    version      leads  state",
    expect.stringMatching(/^A {5}http:\/\/a\.example:8080 {2}7\.2\.7\S* +1 +responding$/),
    expect.stringMatching(/^B {5}http:\/\/b\.example:8080 {2}7\.2\.7 +1 +reachable$/),
    expect.stringMatching(/^C {5}http:\/\/c\.example:8080 {2}7\.2\.7 +0 +reachable$/),
    expect.stringMatching(/^D {5}http:\/\/d\.example:8080 +not a member$/),
    "",
    "database  leader  epoch  copies  lag  state",
    "shop      A           2  A B C   B 3  ok",
    "world     B           3  B A C        ok",
    "zoo       -           3  B C A        no leader; stopped on ?",
    "",
    "zoo on A: the stream is another one",
    "D can be added: jackdaw cluster add D",
    "",
  ]);
  expect(await line.json(["cluster", "status"])).toMatchObject({ IsClustered: true, Leader: "A" });
});

test("a single node is reported as such, and rejects changes", async () => {
  become(undefined);
  expect((await jackdaw("cluster")).out).toBe(
    `${line.server.url} is a single node (A), not part of a cluster\n`,
  );
  const refused = await jackdaw("cluster", "transfer", "shop", "B");
  expect([refused.code, refused.err]).toEqual([
    failureCodes.failed,
    expect.stringContaining("is a single node; docs/cluster.md describes how to start a cluster"),
  ]);
});

test("transfer makes the named node the leader of a database, by tag or URL", async () => {
  expect((await jackdaw("cluster", "transfer", "SHOP", "b")).out).toBe("shop is led by B\n");
  const byUrl = await jackdaw("cluster", "transfer", "shop", "http://C.example:8080/");
  expect(byUrl.out).toBe("shop is led by C\n");
  expect(cluster.received).toEqual(["transfer shop B", "transfer shop C"]);
  const missing = await jackdaw("cluster", "transfer", "none", "B");
  expect([missing.code, missing.err]).toEqual([
    failureCodes.missing,
    "jackdaw: Database 'none' does not exist; 'jackdaw databases' lists all databases.\n",
  ]);
  expect((await jackdaw("cluster", "transfer", "shop", "X")).code).toBe(failureCodes.missing);
  expect((await jackdaw("cluster", "transfer", "shop")).code).toBe(failureCodes.usage);
});

test("transfer distributes all leaderships of a node over the other nodes", async () => {
  expect((await jackdaw("cluster", "transfer", "--from", "B")).out).toBe(
    "world is led by C\nzoo is led by C\n",
  );
  expect((await jackdaw("cluster", "transfer", "--from", "B")).out).toBe("B leads no database\n");
});

test("leaderships are balanced, as far as copies allow", async () => {
  expect((await jackdaw("cluster", "transfer", "--even")).out).toBe("world is led by C\n");
  expect((await jackdaw("cluster", "transfer", "--even")).out).toBe(
    "The leaderships are balanced\n",
  );
  // A leads all, and B has a copy of only one of them.
  const follows = { role: "follower", epoch: 3, applied: 1 } as const;
  cluster.heartbeats.set("B", fakeHeartbeat({ zoo: follows }));
  for (const { registered } of cluster.databases()) {
    const members = registered.name === "zoo" ? ["A", "B", "C"] : ["A", "C"];
    const state = { leaderTag: "A", registered: { ...registered, members } };
    Object.assign(cluster.find(registered.name) ?? {}, state);
  }
  const moved = JSON.parse((await jackdaw("cluster", "transfer", "--even", "--json")).out);
  expect(moved).toEqual([
    { Database: "shop", Leader: "C" },
    { Database: "zoo", Leader: "B" },
  ]);
  const usage = await jackdaw("cluster", "transfer", "--even", "--from", "B");
  expect(usage.code).toBe(failureCodes.usage);
});

test("what nobody else can lead stays where it is", async () => {
  cluster.heartbeats.delete("C");
  Object.assign(cluster.find("world") ?? {}, { role: "stopped", trouble: "damaged" });
  const { code, err } = await jackdaw("cluster", "transfer", "--from", "B");
  expect([code, err]).toEqual([
    failureCodes.conflict,
    "jackdaw: No other copy of 'world' can lead it now; 'jackdaw cluster status' shows the reason.\n",
  ]);
  expect(cluster.received).toEqual([]);
});

const hasRoutes = routes.some(
  ({ path, method }) => path === "/admin/cluster/node" && method === "PUT",
);

test.runIf(hasRoutes)("add adds a reachable node, once", async () => {
  cluster.foreign = [fakeMember("D")];
  expect((await jackdaw("cluster", "add", "d")).out).toBe(
    "D is a member of the cluster; move copies of databases to it with 'jackdaw cluster spread'\n",
  );
  expect(cluster.received).toEqual(["add D"]);
  expect((await jackdaw("cluster", "add", "D")).code).toBe(failureCodes.conflict);
  const unknown = await jackdaw("cluster", "add", "E");
  expect([unknown.code, unknown.err]).toEqual([
    failureCodes.missing,
    expect.stringContaining("Node 'E' is unknown. A node to add must be running"),
  ]);
});

test.runIf(hasRoutes)("remove hands over the node's leaderships first", async () => {
  const fewer = "shop (2), world (2), zoo (2)";
  const requested = await jackdaw("cluster", "remove", "B");
  expect([requested.code, requested.err]).toEqual([
    failureCodes.usage,
    "jackdaw: Node B and its copies of 3 databases would be removed from the cluster; add --yes to confirm.\n",
  ]);
  expect((await jackdaw("cluster", "remove", "B", "--yes")).out).toBe(
    "world is led by C\nzoo is led by C\nB was removed\n" +
      `These databases lost a copy: ${fewer}. Recreate missing copies with 'jackdaw cluster spread --copies COUNT'\n`,
  );
  expect(cluster.received).toEqual(["transfer world C", "transfer zoo C", "remove B"]);
});

test.runIf(hasRoutes)("a node that is silent is removed at once", async () => {
  cluster.heartbeats.delete("B");
  const { out } = await jackdaw("cluster", "remove", "B", "--yes", "--json");
  expect(JSON.parse(out)).toMatchObject({
    Tag: "B",
    Databases: [
      { Name: "shop", Copies: 2 },
      { Name: "world", Copies: 2 },
      { Name: "zoo", Copies: 2 },
    ],
  });
  expect(cluster.received).toEqual(["remove B"]);
});

describe("spread moves copies", () => {
  beforeAll(async () => {
    const { databases } = line.server.running.services;
    for (const name of ["world", "zoo"]) await databases.create(name, { DatabaseName: name });
  });
  beforeEach(() => {
    cluster.nodes.push(fakeMember("D"));
    cluster.heartbeats.set("D", fakeHeartbeat());
    for (const name of ["addCopy", "removeCopy"] as const) {
      const done = cluster[name];
      cluster[name] = async (database, tag) => {
        await done(database, tag);
        const state = cluster.find(database) as ReplicaState;
        const others = state.registered.members.filter((one) => one !== tag);
        const members = name === "addCopy" ? [...others, tag] : others;
        Object.assign(state, { registered: { ...state.registered, members } });
        if (name === "addCopy" && tag !== "A") setHeartbeat(tag, database, state.applied);
      };
    }
  });

  function setHeartbeat(tag: string, database: string, applied: number): void {
    const heartbeat = cluster.lastHeartbeat(tag) as ReceivedHeartbeat;
    const { id } = (cluster.find(database) as ReplicaState).registered;
    const databases = new Map(heartbeat.databases);
    databases.set(id, { role: "follower", epoch: 3, applied });
    cluster.heartbeats.set(tag, { ...heartbeat, databases });
  }

  test("to an added node, with their leadership", async () => {
    const plan = await jackdaw("cluster", "spread", "--dry-run");
    expect(plan.out).toBe(
      "shop would have a copy on D instead of B\nworld would have a copy on D instead of A\n",
    );
    expect(cluster.received).toEqual([]);
    const { code, out, err } = await jackdaw("cluster", "spread");
    expect([code, err]).toEqual([0, ""]);
    expect(out).toBe("shop has a copy on D instead of B\nworld has a copy on D instead of A\n");
    expect(cluster.received).toEqual([
      "add-copy shop D",
      "remove-copy shop B",
      "add-copy world D",
      "remove-copy world A",
    ]);
    expect((await jackdaw("cluster", "spread")).out).toBe("The copies are balanced\n");
    expect(await line.json(["cluster", "spread", "--copies", "4"])).toEqual(
      ["shop B", "world A", "zoo D"].map((text) => {
        const [Database, To] = text.split(" ");
        return { Database, From: null, To };
      }),
    );
  });

  test("and removes a leading copy once the new one leads", async () => {
    cluster.states = [fakeDatabase("shop", ["A"]), fakeDatabase("world", ["A"])].map((one) => ({
      ...one,
      role: "leader",
      applied: 5,
    }));
    cluster.nodes = ["A", "D"].map(fakeMember);
    expect((await jackdaw("cluster", "spread")).out).toBe("shop has a copy on D instead of A\n");
    expect(cluster.received).toEqual(["add-copy shop D", "transfer shop D", "remove-copy shop A"]);
  });

  test("but removes none before the new one is complete", async () => {
    const { addCopy } = cluster;
    const beforeCompletion: string[] = [];
    cluster.addCopy = async (name, tag) => {
      await addCopy(name, tag);
      setHeartbeat(tag, name, 0);
      setTimeout(() => {
        beforeCompletion.push(...cluster.received);
        setHeartbeat(tag, name, 20);
      }, 600);
    };
    cluster.states = cluster.states.slice(0, 1);
    cluster.nodes = ["A", "B", "D"].map(fakeMember);
    Object.assign(cluster.find("shop") ?? {}, {
      registered: { ...cluster.find("shop")?.registered, members: ["A", "B"] },
    });
    cluster.states.push({ ...fakeDatabase("world", ["A", "B"]), role: "stopped", trouble: "odd" });
    expect((await jackdaw("cluster", "spread")).out).toBe(
      "shop has a copy on D instead of B\n" + "Skipped, because a copy is not in sync: world\n",
    );
    expect(beforeCompletion).toEqual(["add-copy shop D"]);
    expect(cluster.received).toContain("remove-copy shop B");
  });

  test("and repeats requests that a node cannot serve at the moment", async () => {
    const { removeCopy } = cluster;
    let refusals = 2;
    cluster.removeCopy = async (name, tag) => {
      if (refusals-- > 0) throw new EngineError("not-leader", "Nobody leads it.");
      await removeCopy(name, tag);
    };
    cluster.states = cluster.states.slice(0, 2);
    cluster.nodes = ["A", "B", "C", "D"].map(fakeMember);
    expect((await jackdaw("cluster", "spread")).code).toBe(0);
    expect(refusals).toBeLessThan(0);
  });
});

test("lists databases that only this node has, and adopts them", async () => {
  cluster.ownDatabases = () => [
    { name: "mine", failure: null },
    { name: "taken", failure: "The name is taken." },
  ];
  const { out } = await jackdaw("cluster");
  expect(out).toContain("mine exists on A only: jackdaw cluster adopt mine A");
  expect(out).toContain("taken exists on A only: The name is taken.");
  const adopted = await jackdaw("cluster", "adopt", "mine");
  expect(adopted.out).toContain("mine is a database of the cluster, with a copy on A");
  const reported = await jackdaw("cluster", "adopt", "mine", "A", "--json");
  expect(JSON.parse(reported.out)).toEqual({ Database: "mine", Node: "A" });
  expect(cluster.received).toEqual(["adopt mine A", "adopt mine A"]);
  expect(await jackdaw("cluster", "adopt", "mine", "Q")).toMatchObject({
    code: failureCodes.missing,
  });
});
