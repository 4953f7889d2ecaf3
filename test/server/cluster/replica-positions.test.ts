/** What clients of a node were shown of each database. */
import { expect, test } from "vitest";
import { positionOfReply, ReplicaPositions } from "../../../server/cluster/replica-positions.ts";

const shop = { id: "1f".repeat(16), generation: 1 };

test("what is told is the most until more is", () => {
  const positions = new ReplicaPositions();
  positions.recordLeader(shop, 0);
  expect(positions.of(shop)).toBe(0);
  for (const [sequence, most] of [
    [12, 12],
    [7, 12],
    [13, 13],
  ] as const) {
    positions.recordReply(positionOfReply(shop, sequence));
    expect(positions.of(shop)).toBe(most);
  }
  positions.record(shop, 14);
  expect(positions.of(shop)).toBe(14);
});

test("what was shown before the start is not known until the leader is heard, once", () => {
  const positions = new ReplicaPositions();
  positions.recordReply(positionOfReply(shop, 12));
  expect(positions.of(shop)).toBe(Number.POSITIVE_INFINITY);
  // A heartbeat that was sent before that reply.
  positions.recordLeader(shop, 11);
  expect(positions.of(shop)).toBe(12);
  positions.recordLeader(shop, 20);
  expect(positions.of(shop)).toBe(12);
});

test("another database, and another generation of a stream, have places of their own", () => {
  const positions = new ReplicaPositions();
  positions.recordLeader(shop, 12);
  const next = { ...shop, generation: 2 };
  expect(positions.of(next)).toBe(Number.POSITIVE_INFINITY);
  positions.recordLeader(next, 3);
  expect([positions.of(shop), positions.of(next)]).toEqual([12, 3]);
  positions.keep([next]);
  expect([positions.of(shop), positions.of(next)]).toEqual([Number.POSITIVE_INFINITY, 3]);
});

test.each(["", "12", `${shop.id}/1`, `${shop.id}/1/-1`, `${shop.id}/1/1e9`, "x/1/12"])(
  "what is no place is ignored: %s",
  (text) => {
    const positions = new ReplicaPositions();
    positions.recordLeader(shop, 1);
    positions.recordReply(text);
    expect(positions.of(shop)).toBe(1);
  },
);
