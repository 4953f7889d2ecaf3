/** The copies of a node, and which of them may answer. */
import { expect, test } from "vitest";
import { LocalCopies } from "../../../server/cluster/local-copies.ts";

const shop = { name: "shop", id: "1".repeat(32), generation: 1, originTag: "A", isSeed: false };

function copiesOf(values: Map<string, string>): LocalCopies {
  const unused = () => {
    throw new Error("nothing is opened in this test");
  };
  return new LocalCopies({
    tag: "A",
    standAfterMs: () => 3000,
    databases: unused,
    values: () => ({
      get: (key) => values.get(key),
      put: (key, text) => Promise.resolve(void values.set(key, text)),
      delete: (key) => Promise.resolve(void values.delete(key)),
      entries: (prefix) => [...values].filter(([key]) => key.startsWith(prefix)),
      diskWrites: unused,
      logFigures: unused,
    }),
    stream: unused,
    watcher: unused,
    fetchContent: unused,
  });
}

test("a completed copy is still complete after a restart", async () => {
  const values = new Map([["cluster/copies/shop", JSON.stringify({ ...shop, isComplete: false })]]);
  const copies = copiesOf(values);
  expect(copies.isComplete(shop.id)).toBe(false);
  await copies.completed("shop");
  expect(copies.isComplete(shop.id)).toBe(true);
  expect(JSON.parse(values.get("cluster/copies/shop") ?? "")).toEqual({
    ...shop,
    isComplete: true,
  });
});
