/** The copies of a node: which of them may answer. */
import { expect, test } from "vitest";
import { LocalCopies } from "../../../server/cluster/local-copies.ts";

const shop = { name: "shop", id: "1".repeat(32), generation: 1, originTag: "A", isSeed: false };

function copiesOf(values: Map<string, string>): LocalCopies {
  const unused = () => {
    throw new Error("nothing is opened in this test");
  };
  return new LocalCopies({
    tag: "A",
    standAfterMs: 3000,
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

test("a copy that did not answer for a while is current when it has caught up again", async () => {
  const values = new Map([["cluster/copies/shop", JSON.stringify({ ...shop, isComplete: false })]]);
  const copies = copiesOf(values);
  expect([copies.isComplete(shop.id), copies.isCurrent(shop.id)]).toEqual([false, false]);
  await copies.completed("shop");
  expect([copies.isComplete(shop.id), copies.isCurrent(shop.id)]).toEqual([true, true]);
  copies.interrupted(shop.id);
  expect([copies.isComplete(shop.id), copies.isCurrent(shop.id)]).toEqual([true, false]);
  copies.caughtUp(shop.id);
  expect(copies.isCurrent(shop.id)).toBe(true);
});

test("that it had all once outlasts the process, and that it is current does not", async () => {
  const values = new Map([["cluster/copies/shop", JSON.stringify({ ...shop, isComplete: false })]]);
  await copiesOf(values).completed("shop");
  expect(JSON.parse(values.get("cluster/copies/shop") ?? "")).toEqual({
    ...shop,
    isComplete: true,
  });
  expect(copiesOf(values).isCurrent(shop.id)).toBe(false);
});
