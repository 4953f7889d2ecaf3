import { expect, test } from "vitest";
import { framesInFlightMax } from "../../../../engine/base/limits.ts";
import { AppendWindow } from "../../../../engine/storage/replication/append-window.ts";
import { frameTypes, zeroHash } from "../../../../engine/storage/replication/frame.ts";
import type { Proposal } from "../../../../engine/storage/replication/replica-types.ts";

const after = { generation: 1, epoch: 1, sequence: 5, previous: zeroHash };
const group = (...texts: string[]): Proposal => ({
  kind: "group",
  pieces: texts.map((text) => Buffer.from(text)),
});

function fill(window: AppendWindow): string[] {
  const created: string[] = [];
  for (let next = window.next(after); next !== null; next = window.next(after)) {
    created.push(`${next.frame.sequence} ${next.frame.payload}`);
  }
  return created;
}

test("cuts a group into parts, independent of its chunks", () => {
  const window = new AppendWindow(4);
  window.add(1, group("a", "bcdef", "", "gh", "ij"));
  window.add(2, group("abcd"));
  expect(fill(window)).toEqual(["6 abcd", "7 efgh", "8 ij", "9 abcd"]);
  const types = window.frames.map(({ frame }) => frame.type);
  const { part, commit } = frameTypes;
  expect(types).toEqual([part, part, commit, commit]);
  expect(window.frames.map(({ completes }) => completes)).toEqual([null, null, 1, 2]);
  for (const [at, { frame }] of window.frames.entries()) {
    expect(frame.previous).toBe(window.frames[at - 1]?.frame.hash ?? zeroHash);
  }
});

test("limits the frames in flight until the first one is confirmed", () => {
  const window = new AppendWindow(1);
  window.add(1, group("a".repeat(framesInFlightMax - 1)));
  window.add(2, group("b"));
  window.add(3, { kind: "barrier" });
  expect(fill(window)).toHaveLength(framesInFlightMax);
  expect(window.confirm().completes).toBeNull();
  expect(fill(window)).toEqual([`${6 + framesInFlightMax} `]);
  for (let at = 2; at < framesInFlightMax; at++) window.confirm();
  expect(window.confirm().completes).toBe(2);
  expect(window.isEmpty).toBe(false);
  expect(window.confirm().completes).toBe(3);
  expect(window.isEmpty).toBe(true);
});

test("restarts a group at its first part, also if that was confirmed", () => {
  const window = new AppendWindow(2);
  window.add(1, group("abc"));
  window.add(2, group("d"));
  fill(window);
  window.confirm();
  window.rewind();
  expect(window.frames).toEqual([]);
  expect(fill(window)).toEqual(["6 ab", "7 c", "8 d"]);
});

test("reports which groups may still enter the chain: those whose last frame was sent", () => {
  const window = new AppendWindow(1);
  window.add(1, group("a"));
  window.add(2, group("b".repeat(framesInFlightMax)));
  window.add(3, group("c"));
  fill(window);
  expect(window.drain()).toEqual([
    { token: 1, wasSent: true },
    { token: 2, wasSent: false },
    { token: 3, wasSent: false },
  ]);
  expect(window.isEmpty).toBe(true);
  expect(fill(window)).toEqual([]);
});

test("rejects a group without bytes", () => {
  expect(() => new AppendWindow(1).add(1, group(""))).toThrow("a group has bytes");
});
