import { beforeEach, expect, test } from "vitest";
import { EngineError } from "../../../engine/engine.ts";
import { ClusterBootstrap, openBootstrap } from "../../../server/cluster/cluster-bootstrap.ts";
import type { ValueChange } from "../../../server/cluster/cluster-view.ts";
import {
  bootstrapKey,
  databaseKey,
  Registry,
  topologyIdKey,
} from "../../../server/cluster/registry.ts";
import { silentLog } from "../../../server/logging/log.ts";
import type { ValueStore } from "../../../server/settings/value-store.ts";

let own: Map<string, string>;
let shared: Map<string, string>;
let databases: string[];

function storeOf(values: Map<string, string>): ValueStore {
  return {
    get: (key) => values.get(key),
    put: async (key, text) => void values.set(key, text),
    delete: async (key) => void values.delete(key),
    entries: (prefix) => [...values].filter(([key]) => key.startsWith(prefix)),
    diskWrites: () => [],
    logFigures: () => {
      throw new Error("not used in this test");
    },
  };
}

async function change(changes: readonly ValueChange[]): Promise<void> {
  for (const { key, expected } of changes) {
    if (expected === undefined || (shared.get(key) ?? null) === expected) continue;
    throw new EngineError("concurrency", key);
  }
  for (const { key, value } of changes) {
    if (value === null) shared.delete(key);
    else shared.set(key, value);
  }
}

function founderOf(tag: string): ClusterBootstrap {
  const values = storeOf(shared);
  const registry = () => {
    const parsed = [...shared].map(([key, text]) => [key, JSON.parse(text) as unknown] as const);
    return new Registry({
      get: (key) => new Map(parsed).get(key),
      entries: (prefix) => parsed.filter(([key]) => key.startsWith(prefix)),
    });
  };
  const ownDatabases = () => databases;
  return new ClusterBootstrap({
    tag,
    registry,
    shared: values,
    own: () => storeOf(own),
    ownDatabases,
    change,
    log: silentLog(),
  });
}

const certificate = (thumbprint: string) =>
  [`certificates/${thumbprint}`, JSON.stringify({ Thumbprint: thumbprint })] as const;

beforeEach(() => {
  own = new Map([
    certificate("ADMIN"),
    ["server/first-admin", '"ADMIN"'],
    certificate("READER"),
    ["server/command-index", "512"],
  ]);
  shared = new Map();
  databases = ["shop"];
});

const start = () => {
  shared.set(topologyIdKey, '"id"');
  shared.set(bootstrapKey, JSON.stringify(openBootstrap));
};

test("brings certificates, settings and the names of databases in one change, once the cluster begins", async () => {
  const bootstrap = founderOf("A");
  expect(bootstrap.isAlone).toBe(true);
  await bootstrap.work();
  expect(shared.size).toBe(0);
  start();
  expect(bootstrap.isAlone).toBe(true);
  await bootstrap.work();
  expect(JSON.parse(shared.get(bootstrapKey) ?? "")).toEqual({
    isOpen: false,
    tag: "A",
    databases: ["shop"],
  });
  expect([...shared.keys()]).toEqual(
    expect.arrayContaining(["certificates/ADMIN", "certificates/READER"]),
  );
  expect(shared.get("server/command-index")).toBe("512");
  expect(bootstrap.isAlone).toBe(false);
  expect(own.has("certificates/ADMIN")).toBe(true);
  // In the next turn, when the cluster has them.
  await bootstrap.work();
  expect([...own.keys()]).toEqual([]);
});

test("revokes only the administrator that a new node created for itself", async () => {
  start();
  for (const [key, value] of [certificate("MADE"), certificate("GIVEN")]) shared.set(key, value);
  shared.set("server/first-admin", '"MADE"');
  shared.set("server/command-index", "1024");
  await founderOf("A").work();
  expect([...shared.keys()].filter((key) => key.startsWith("certificates/")).sort()).toEqual([
    "certificates/ADMIN",
    "certificates/GIVEN",
    "certificates/READER",
  ]);
  expect(shared.get("server/first-admin")).toBe('"ADMIN"');
  expect(shared.get("server/command-index")).toBe("1024");
});

test("other nodes cannot register their own administrator if there was none before", async () => {
  own.delete("server/first-admin");
  start();
  await founderOf("A").work();
  expect(shared.get("server/first-admin")).toBe('""');
});

test("transfers nothing from an empty server, nor to a cluster with databases, with a founder, or of an older version", async () => {
  databases = [];
  own.delete("certificates/READER");
  start();
  expect(founderOf("A").isAlone).toBe(false);
  databases = ["shop"];
  expect(founderOf("A").isAlone).toBe(true);
  shared.set(databaseKey("notes"), JSON.stringify({ name: "notes" }));
  expect(founderOf("A").isAlone).toBe(false);
  await founderOf("A").work();
  expect(shared.get(bootstrapKey)).toBe(JSON.stringify(openBootstrap));
  shared.delete(databaseKey("notes"));
  await founderOf("B").work();
  for (const key of [bootstrapKey, "nothing"]) {
    if (key === "nothing") shared.delete(bootstrapKey);
    expect(founderOf("A").isAlone).toBe(false);
    await founderOf("A").work();
    expect(own.has("certificates/ADMIN")).toBe(true);
  }
});

test("what nodes share is changed when the own values are brought, not before", async () => {
  start();
  const bootstrap = founderOf("A");
  await bootstrap.settled();
  expect(shared.has("certificates/READER")).toBe(true);
});
