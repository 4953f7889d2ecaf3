/** One node at a time repairs a replica. */
import { expect, test } from "vitest";
import { EngineError } from "../../../engine/engine.ts";
import type { ValueChange } from "../../../server/cluster/cluster-view.ts";
import { RepairClaim } from "../../../server/cluster/repair-claim.ts";

/** The values of a cluster, and nodes that see them. */
function sharedValues() {
  const values = new Map<string, string>();
  const state = { failure: null as EngineError | null, nowMs: 0 };
  const node = (tag: string) =>
    new RepairClaim(
      {
        tag,
        value: (key) => values.get(key),
        async change(changes: readonly ValueChange[]) {
          if (state.failure !== null) throw state.failure;
          for (const { key, expected, value } of changes) {
            if ((values.get(key) ?? null) !== expected) throw new EngineError("concurrency", key);
            if (value === null) values.delete(key);
            else values.set(key, value);
          }
        },
      },
      () => state.nowMs,
    );
  return { values, state, node };
}

test("what one node has claimed, no other does until it is given up", async () => {
  const { values, node } = sharedValues();
  const [a, b] = [node("A"), node("B")];
  expect(await a.take("JD_1_1")).toBe(true);
  expect(JSON.parse(values.get("cluster/repair") ?? "")).toMatchObject({
    tag: "A",
    stream: "JD_1_1",
  });
  expect(await b.take("JD_2_1")).toBe(false);
  await b.release();
  expect(values.size).toBe(1);
  await a.release();
  expect(values.size).toBe(0);
  expect(await b.take("JD_2_1")).toBe(true);
});

test("a claim of an earlier start of the node is its own", async () => {
  const { node } = sharedValues();
  expect(await node("A").take("JD_1_1")).toBe(true);
  expect(await node("A").take("JD_1_1")).toBe(true);
});

test("a claim of a node that died counts no more after five minutes in which it is seen", async () => {
  const { state, node } = sharedValues();
  await node("A").take("JD_1_1");
  const b = node("B");
  for (const [minutes, isFree] of [
    [60, false],
    [64, false],
    [65, true],
  ] as const) {
    state.nowMs = minutes * 60_000;
    expect(await b.take("JD_1_1")).toBe(isFree);
  }
});

test("one that cannot be given up now is given up later", async () => {
  const { values, state, node } = sharedValues();
  const a = node("A");
  await a.take("JD_1_1");
  state.failure = new EngineError("not-leader", "nobody leads");
  await a.release();
  expect(values.size).toBe(1);
  await expect(a.take("JD_1_1")).rejects.toThrow("nobody leads");
  state.failure = null;
  await a.releaseLeft();
  expect(values.size).toBe(0);
  await a.releaseLeft();
});

test("one that another node has taken over is not taken from it", async () => {
  const { values, node } = sharedValues();
  const a = node("A");
  await a.take("JD_1_1");
  values.set("cluster/repair", '{"tag":"B"}');
  await a.release();
  expect(values.get("cluster/repair")).toBe('{"tag":"B"}');
});
