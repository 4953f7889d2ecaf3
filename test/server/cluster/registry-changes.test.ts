/** Changes of nodes and copies, computed from a registry. */
import { expect, test } from "vitest";
import { Registry } from "../../../server/cluster/registry.ts";
import {
  addingCopy,
  addingMember,
  deletingDatabase,
  registeredDatabase,
  removingCopy,
  removingMember,
} from "../../../server/cluster/registry-changes.ts";

const member = (tag: string) => ({ tag, url: "", tcpUrl: null, fingerprint: null });
const shop = { name: "Shop", id: "1".repeat(32), generation: 2, members: ["A", "B"], index: 5 };
const values = new Map<string, unknown>([
  ["cluster/databases/shop", shop],
  ...["A", "B", "C"].map((tag) => [`cluster/members/${tag}`, member(tag)] as const),
]);
const registry = new Registry({
  get: (key) => values.get(key),
  entries: (prefix) => [...values].filter(([key]) => key.startsWith(prefix)),
});
const shopWith = (members: readonly string[], index: number) => ({
  key: "cluster/databases/shop",
  expected: JSON.stringify(shop),
  value: JSON.stringify({ ...shop, members, index }),
});

test("a copy is added and removed, with an index above all others", () => {
  expect(addingCopy(registry, "SHOP", "C", 9)).toEqual([shopWith(["A", "B", "C"], 10)]);
  expect(removingCopy(registry, "shop", "A", 3)).toEqual([shopWith(["B"], 6)]);
  const add = (tag: string) => () => addingCopy(registry, "shop", tag, 9);
  expect(add("A")).toThrow("The node A has a copy of 'Shop'.");
  expect(add("D")).toThrow("The node D does not exist in the cluster.");
  expect(() => addingCopy(registry, "none", "A", 9)).toThrow("Database 'none' does not exist.");
  const remove = () => removingCopy(registry, "shop", "C", 9);
  expect(remove).toThrow("The node C has no copy of 'Shop'.");
});

test("a node is removed with its copies, except the only copy of a database", () => {
  expect(removingMember(registry, "B", 9)).toEqual([
    { key: "cluster/members/B", expected: JSON.stringify(member("B")), value: null },
    { key: "cluster/removed/B", value: expect.stringMatching(/^"\d{4}-/) },
    shopWith(["A"], 10),
  ]);
  expect(() => removingMember(registry, "D", 9)).toThrow("The node D does not exist");
  const alone = { ...registeredDatabase(registry, "shop"), members: ["A"] };
  const one = { ...registry, databases: new Map([["shop", alone]]) };
  expect(() => removingMember(one, "A", 9)).toThrow("The node A has the only copy of 'Shop'");
  expect(deletingDatabase(alone)).toEqual([
    { key: "cluster/databases/shop", expected: JSON.stringify(alone), value: null },
    { key: `cluster/deleted/${shop.id}`, value: '{"name":"Shop","generation":2}' },
  ]);
});

test("a node is added if it sends heartbeats and is not registered", () => {
  expect(addingMember(registry, "D", member("D"))).toEqual([
    { key: "cluster/removed/D", value: null },
    { key: "cluster/members/D", expected: null, value: JSON.stringify(member("D")) },
  ]);
  expect(() => addingMember(registry, "A", member("A"))).toThrow("is in the cluster already");
  expect(() => addingMember(registry, "D", undefined)).toThrow("Node D sends no heartbeats");
});
