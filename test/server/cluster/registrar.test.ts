import { expect, test } from "vitest";
import type { ValueChange } from "../../../server/cluster/cluster-view.ts";
import { Registrar } from "../../../server/cluster/registrar.ts";
import { deletedKey, Registry, topologyIdKey } from "../../../server/cluster/registry.ts";

/** Shared values, and a log of the calls. */
function sharedValues(values: Map<string, string>) {
  const removed: string[] = [];
  let isReached = true;
  const change = async (changes: readonly ValueChange[]) => {
    for (const { key, expected, value } of changes) {
      if (expected !== undefined) expect(values.get(key) ?? null).toBe(expected);
      if (value === null) values.delete(key);
      else values.set(key, value);
    }
  };
  const removeStream = async (id: string, generation: number) => {
    if (!isReached) throw new Error("not reached");
    removed.push(`${id} ${generation}`);
  };
  const registry = () =>
    new Registry({
      get: (key) => JSON.parse(values.get(key) ?? "null"),
      entries: (prefix) =>
        [...values]
          .filter(([key]) => key.startsWith(prefix))
          .map(([key, value]) => [key, JSON.parse(value)] as const),
    });
  return {
    removed,
    setReached: (is: boolean) => {
      isReached = is;
    },
    /** By a process that became the leader of the values just now. */
    lead: () => new Registrar({ change, removeStream }).work(registry(), []),
  };
}

test("removes the stream of a deleted database once, whether or not the leader changes", async () => {
  const values = new Map([
    [topologyIdKey, '"1"'],
    [deletedKey("a"), JSON.stringify({ name: "shop", generation: 3 })],
    [deletedKey("b"), JSON.stringify({ name: "zoo", generation: 1, isTidied: true })],
  ]);
  const shared = sharedValues(values);
  shared.setReached(false);
  await expect(shared.lead()).rejects.toThrow("not reached");
  shared.setReached(true);
  await shared.lead();
  await shared.lead();
  expect(shared.removed).toEqual(["a 3"]);
  expect(values.get(deletedKey("a"))).toBe('{"name":"shop","generation":3,"isTidied":true}');
});
