/**
 * The checks of recorded histories: each detects its type of fault, and accepts correct histories.
 */
import { describe, expect, test } from "vitest";
import { type Contents, checkHistory, checkSame } from "./checks.ts";
import { History, type HistoryEvent, type Outcome, type RegisterEvent } from "./history.ts";
import { checkerPath, checkLinearizable } from "./linearizable.ts";

const nothing: Contents = {
  documents: new Map(),
  counters: new Map(),
  attachments: new Map(),
  values: new Map(),
};

function problems(events: readonly HistoryEvent[], contents: Partial<Contents>): string[] {
  const history = new History();
  for (const event of events) history.add(event);
  return checkHistory(history, { ...nothing, ...contents });
}

const documents = (all: Readonly<Record<string, Readonly<Record<string, unknown>>>>) => ({
  documents: new Map(Object.entries(all)),
});

const put = (n: number, outcome: Outcome, call = n * 10) =>
  ({ kind: "put", id: "p", n, outcome, call, return: call + 5 }) as const;

const append = (item: string, outcome: Outcome, ids = ["l"], isRepeated = false) =>
  ({ kind: "append", ids, item, outcome, isRepeated, call: 1, return: 2 }) as const;

const read = (n: number, call: number, isAtLeader = false) =>
  ({
    kind: "read",
    session: "s",
    id: "p",
    n,
    isAtLeader,
    call,
    return: call + 1,
    outcome: "ok",
  }) as const;

describe("puts", () => {
  test("the last acknowledged put is present, or another one with unknown outcome", () => {
    expect(problems([put(1, "ok"), put(2, "ok")], documents({ p: { n: 2 } }))).toEqual([]);
    expect(problems([put(1, "ok"), put(2, "unknown")], documents({ p: { n: 2 } }))).toEqual([]);
    expect(problems([put(1, "ok"), put(2, "unknown")], documents({ p: { n: 1 } }))).toEqual([]);
  });

  test("detects a lost put, and a rejected put that is present", () => {
    expect(problems([put(1, "ok"), put(2, "ok")], documents({ p: { n: 1 } }))).toHaveLength(1);
    expect(problems([put(1, "ok")], {})).toHaveLength(1);
    expect(problems([put(1, "ok"), put(2, "failed")], documents({ p: { n: 2 } }))).toHaveLength(1);
  });
});

describe("appends", () => {
  test("each acknowledged append is present once, and one with unknown outcome at most once", () => {
    const events = [append("a", "ok"), append("b", "unknown"), append("c", "failed")];
    expect(problems(events, documents({ l: { items: ["a"] } }))).toEqual([]);
    expect(problems(events, documents({ l: { items: ["a", "b"] } }))).toEqual([]);
    expect(problems(events, documents({ l: { items: ["b"] } }))).toHaveLength(1);
    expect(problems(events, documents({ l: { items: ["a", "b", "b"] } }))).toHaveLength(1);
    expect(problems(events, documents({ l: { items: ["a", "a"] } }))).toHaveLength(1);
    expect(problems(events, documents({ l: { items: ["a", "c"] } }))).toHaveLength(1);
    expect(problems(events, documents({ l: { items: ["a", "x"] } }))).toHaveLength(1);
  });

  test("an append that its sender repeats may be present twice", () => {
    const events = [append("a", "ok", ["l"], true)];
    expect(problems(events, documents({ l: { items: ["a", "a"] } }))).toEqual([]);
  });

  test("detects half of a transaction", () => {
    const events = [append("a", "unknown", ["l", "m"])];
    expect(problems(events, documents({ l: { items: ["a"] }, m: { items: ["a"] } }))).toEqual([]);
    expect(problems(events, documents({ l: { items: ["a"] }, m: { items: [] } }))).toHaveLength(1);
  });
});

describe("counters", () => {
  const count = (delta: number, outcome: Outcome) =>
    ({ kind: "count", id: "d/c", delta, outcome, call: 1, return: 2 }) as const;
  const counted = (value: number) => ({ counters: new Map([["d/c", value]]) });

  test("have the sum of acknowledged increments, plus any complete increments of unknown outcome", () => {
    const events = [count(2, "ok"), count(1, "ok"), count(5, "unknown"), count(7, "failed")];
    expect(problems(events, counted(3))).toEqual([]);
    expect(problems(events, counted(8))).toEqual([]);
    for (const wrong of [0, 2, 4, 10, 13]) expect(problems(events, counted(wrong))).toHaveLength(1);
  });
});

describe("attachments, deletions and subscriptions", () => {
  const attach = (outcome: Outcome) =>
    ({ kind: "attach", id: "d", name: "f", hash: "12", outcome, call: 1, return: 2 }) as const;

  test("detects an attachment that is lost or has other bytes", () => {
    expect(problems([attach("ok")], { attachments: new Map([["d/f", "12"]]) })).toEqual([]);
    expect(problems([attach("ok")], {})).toHaveLength(1);
    expect(problems([attach("ok")], { attachments: new Map([["d/f", "13"]]) })).toHaveLength(1);
    expect(problems([attach("failed")], { attachments: new Map([["d/f", "12"]]) })).toHaveLength(1);
  });

  test("detects a deleted document that reappears, and a deletion nobody requested", () => {
    const deleted = (outcome: Outcome) =>
      ({ kind: "delete", id: "x", outcome, call: 1, return: 2 }) as const;
    expect(problems([deleted("ok")], {})).toEqual([]);
    expect(problems([deleted("ok")], documents({ x: {} }))).toHaveLength(1);
    expect(problems([deleted("failed")], {})).toHaveLength(1);
    expect(problems([deleted("unknown")], {})).toEqual([]);
  });

  test("detects an undelivered document, and a delivered document that was never put", () => {
    const event = { kind: "event", id: "e", outcome: "ok", call: 1, return: 2 } as const;
    const delivered = { kind: "delivered", id: "e" } as const;
    expect(problems([event, delivered, delivered], documents({ e: {} }))).toEqual([]);
    expect(problems([event], documents({ e: {} }))).toHaveLength(1);
    expect(problems([event, delivered], {})).toHaveLength(1);
    expect(problems([delivered], {})).toHaveLength(1);
  });
});

describe("reads", () => {
  const end = documents({ p: { n: 2 } });
  const puts = [put(1, "ok"), put(2, "ok")];

  test("may be stale, but never go back", () => {
    expect(problems([...puts, read(1, 30), read(1, 40), read(2, 50)], end)).toEqual([]);
    expect(problems([...puts, read(2, 30), read(1, 40)], end)).toHaveLength(1);
    expect(problems([...puts, read(1, 30), read(0, 40)], end)).toHaveLength(1);
  });

  test("at the leader, include the session's own writes", () => {
    expect(problems([...puts, read(2, 30, true)], end)).toEqual([]);
    expect(problems([...puts, read(1, 30, true)], end)).toHaveLength(1);
  });

  test("detects a value that was never written, was rejected, or was not yet written", () => {
    expect(problems([...puts, read(3, 30)], end)).toHaveLength(1);
    expect(problems([...puts, put(3, "failed"), read(3, 60)], end)).toHaveLength(1);
    expect(problems([...puts, read(2, 15)], end)).toHaveLength(1);
  });
});

test("detects copies that differ, in each section", () => {
  const one: Contents = { ...nothing, ...documents({ x: { n: 1, cv: "A:1" } }) };
  expect(
    checkSame(
      new Map([
        ["A", one],
        ["B", { ...one }],
      ]),
    ),
  ).toEqual([]);
  const other = { ...one, ...documents({ x: { n: 1, cv: "A:2" } }) };
  expect(
    checkSame(
      new Map([
        ["A", one],
        ["B", one],
        ["C", other],
      ]),
    ),
  ).toHaveLength(1);
  for (const part of ["documents", "counters", "attachments", "values"] as const) {
    const more = { ...one, [part]: new Map<string, never>([["more", 5 as never]]) };
    expect(
      checkSame(
        new Map([
          ["A", one],
          ["B", more],
        ]),
      ),
    ).toHaveLength(1);
  }
});

const program = checkerPath();

describe.skipIf(program === null)("registers, by Porcupine", () => {
  const absent = { version: "", value: "" };
  let clock = 0;
  const event = (
    outcome: RegisterEvent["outcome"],
    parts: Partial<RegisterEvent>,
  ): RegisterEvent => {
    clock += 10;
    const times = { call: clock, return: clock + 5 };
    return { kind: "register", group: "g", client: 1, outcome, ...times, ...parts };
  };
  const write = (
    outcome: RegisterEvent["outcome"],
    expected: string,
    version: string,
    value: string,
    parts: Partial<RegisterEvent> = {},
  ) => event(outcome, { writes: { k: { expected, version, value } }, ...parts });
  const see = (version: string, value: string, parts: Partial<RegisterEvent> = {}) =>
    event("read", { reads: { k: { version, value } }, ...parts });
  const check = (events: readonly RegisterEvent[]) => checkLinearizable(program ?? "", events);

  test("accepts a history of one object", () => {
    expect(
      check([
        event("read", { reads: { k: absent } }),
        write("written", "", "5", "x"),
        see("5", "x"),
        write("refused", "", "", "y", { reads: { k: { version: "5", value: "x" } } }),
        write("unknown", "5", "", "z"),
        see("5", "x"),
        see("9", "z"),
        write("written", "9", "", ""),
        event("read", { reads: { k: absent } }),
        event("none", {}),
      ]),
    ).toEqual([]);
  });

  test.each<readonly [string, () => readonly RegisterEvent[]]>([
    [
      "a lost write",
      () => [write("written", "", "5", "x"), event("read", { reads: { k: absent } })],
    ],
    [
      "a stale read",
      () => [write("written", "", "5", "x"), write("written", "5", "6", "y"), see("5", "x")],
    ],
    [
      "two writes with the same expected version",
      () => [write("written", "", "5", "x"), write("written", "", "6", "y")],
    ],
    ["a read of a failed write", () => [see("5", "x")]],
    [
      "a value read, then lost",
      () => [write("unknown", "", "", "x"), see("5", "x"), event("read", { reads: { k: absent } })],
    ],
    ["a rejection without a reason", () => [write("refused", "", "", "x")]],
    [
      "a rejection with a wrong reason",
      () => [
        write("written", "", "5", "x"),
        write("refused", "4", "", "y", { reads: { k: { version: "6", value: "w" } } }),
      ],
    ],
    [
      "half of a transaction",
      () => [
        event("written", {
          writes: {
            k: { expected: "", version: "", value: "x" },
            l: { expected: "", version: "", value: "x" },
          },
        }),
        event("read", { reads: { l: absent } }),
      ],
    ],
    ["a version that changes by itself", () => [write("written", "", "5", "x"), see("6", "x")]],
  ])("%s is rejected", (_, events) => {
    expect(check(events())).toEqual(["g illegal"]);
  });

  test("distinguishes groups", () => {
    const fine = write("written", "", "5", "x", { group: "fine" });
    const bad = see("5", "x", { group: "bad" });
    expect(check([fine, bad])).toEqual(["bad illegal"]);
  });
});
