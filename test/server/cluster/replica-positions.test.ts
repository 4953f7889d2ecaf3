/** What clients of a node were shown of each database. */
import { expect, test } from "vitest";
import { positionOfReply, ReplicaPositions } from "../../../server/cluster/replica-positions.ts";

const shop = { id: "1f".repeat(16), generation: 1 };

test("what is told is the most until more is", () => {
  const places = new ReplicaPositions();
  places.heard(shop, 0);
  expect(places.of(shop)).toBe(0);
  for (const [sequence, most] of [
    [12, 12],
    [7, 12],
    [13, 13],
  ] as const) {
    places.told(positionOfReply(shop, sequence));
    expect(places.of(shop)).toBe(most);
  }
  places.shown(shop, 14);
  expect(places.of(shop)).toBe(14);
});

test("what was shown before the start is not known until the leader is heard, once", () => {
  const places = new ReplicaPositions();
  places.told(positionOfReply(shop, 12));
  expect(places.of(shop)).toBe(Number.POSITIVE_INFINITY);
  // A heartbeat that was sent before that reply.
  places.heard(shop, 11);
  expect(places.of(shop)).toBe(12);
  places.heard(shop, 20);
  expect(places.of(shop)).toBe(12);
});

test("another database, and another generation of a stream, have places of their own", () => {
  const places = new ReplicaPositions();
  places.heard(shop, 12);
  const next = { ...shop, generation: 2 };
  expect(places.of(next)).toBe(Number.POSITIVE_INFINITY);
  places.heard(next, 3);
  expect([places.of(shop), places.of(next)]).toEqual([12, 3]);
  places.keep([next]);
  expect([places.of(shop), places.of(next)]).toEqual([Number.POSITIVE_INFINITY, 3]);
});

test.each(["", "12", `${shop.id}/1`, `${shop.id}/1/-1`, `${shop.id}/1/1e9`, "x/1/12"])(
  "what is no place is ignored: %s",
  (text) => {
    const places = new ReplicaPositions();
    places.heard(shop, 1);
    places.told(text);
    expect(places.of(shop)).toBe(1);
  },
);
