/** One node at a time repairs a replica. */
import { expect, test } from "vitest";
import { EngineError } from "../../../engine/engine.ts";
import type { ValueChange } from "../../../server/cluster/cluster-view.ts";
import { RepairClaim } from "../../../server/cluster/repair-claim.ts";

/** The values of a cluster, and nodes that read them. */
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

test("a claim of one node excludes other nodes until it is released", async () => {
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

test("a node owns its claims from before a restart", async () => {
  const { node } = sharedValues();
  expect(await node("A").take("JD_1_1")).toBe(true);
  expect(await node("A").take("JD_1_1")).toBe(true);
});

test("a claim of a dead node expires after five minutes of observation", async () => {
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

test("retries the release of a claim later if it fails", async () => {
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

test("does not release a claim that another node has taken over", async () => {
  const { values, node } = sharedValues();
  const a = node("A");
  await a.take("JD_1_1");
  values.set("cluster/repair", '{"tag":"B"}');
  await a.release();
  expect(values.get("cluster/repair")).toBe('{"tag":"B"}');
});
