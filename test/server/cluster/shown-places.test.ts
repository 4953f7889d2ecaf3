/** Replica positions that clients of a node have seen, per database. */
import { expect, test } from "vitest";
import { placeOfReply, ShownPlaces } from "../../../server/cluster/shown-places.ts";

const shop = { id: "1f".repeat(16), generation: 1 };

test("keeps the highest position", () => {
  const places = new ShownPlaces();
  places.heard(shop, 0);
  expect(places.of(shop)).toBe(0);
  for (const [sequence, most] of [
    [12, 12],
    [7, 12],
    [13, 13],
  ] as const) {
    places.told(placeOfReply(shop, sequence));
    expect(places.of(shop)).toBe(most);
  }
  places.shown(shop, 14);
  expect(places.of(shop)).toBe(14);
});

test("positions seen before the start are unknown until the leader's first heartbeat", () => {
  const places = new ShownPlaces();
  places.told(placeOfReply(shop, 12));
  expect(places.of(shop)).toBe(Number.POSITIVE_INFINITY);
  // A heartbeat that was sent before that reply.
  places.heard(shop, 11);
  expect(places.of(shop)).toBe(12);
  places.heard(shop, 20);
  expect(places.of(shop)).toBe(12);
});

test("another database, and another stream generation, have separate positions", () => {
  const places = new ShownPlaces();
  places.heard(shop, 12);
  const next = { ...shop, generation: 2 };
  expect(places.of(next)).toBe(Number.POSITIVE_INFINITY);
  places.heard(next, 3);
  expect([places.of(shop), places.of(next)]).toEqual([12, 3]);
  places.keep([next]);
  expect([places.of(shop), places.of(next)]).toEqual([Number.POSITIVE_INFINITY, 3]);
});

test.each(["", "12", `${shop.id}/1`, `${shop.id}/1/-1`, `${shop.id}/1/1e9`, "x/1/12"])(
  "ignores an invalid position: %s",
  (text) => {
    const places = new ShownPlaces();
    places.heard(shop, 1);
    places.told(text);
    expect(places.of(shop)).toBe(1);
  },
);
