/** The plan for distributing copies over nodes. */
import { expect, test } from "vitest";
import { seeded } from "../../../bench/harness.ts";
import {
  type CopyMove,
  type PlacedDatabase,
  planCopyMoves,
} from "../../../cli/commands/copy-balance.ts";

/** `shop A B C`: a database that A leads. */
function placed(...texts: string[]): PlacedDatabase[] {
  return texts.map((text) => {
    const [name = "", ...tags] = text.split(" ");
    return { name, tags, leader: tags[0] ?? null, isSound: true };
  });
}

const texts = (moves: readonly CopyMove[]) =>
  moves.map(({ name, from, to }) => `${name} ${from ?? "+"} ${to}`);

function after(
  databases: readonly PlacedDatabase[],
  moves: readonly CopyMove[],
): Map<string, string[]> {
  const tags = new Map(databases.map((one) => [one.name, [...one.tags]]));
  for (const { name, from, to } of moves) {
    const kept = (tags.get(name) ?? []).filter((tag) => tag !== from);
    expect(kept).not.toContain(to);
    tags.set(name, [...kept, to]);
  }
  return tags;
}

test("a new node gets copies from fuller nodes, preferably copies that do not lead", () => {
  const databases = placed("a A B", "b B A", "c A B", "d B A");
  expect(texts(planCopyMoves(["A", "B", "C"], databases))).toEqual(["a B C", "b A C"]);
});

test("nothing is moved that makes nothing more even", () => {
  expect(planCopyMoves(["A", "B", "C"], placed("a A B C", "b B C A"))).toEqual([]);
  expect(planCopyMoves(["A", "B", "C"], placed("a A B", "b B C"))).toEqual([]);
  expect(planCopyMoves(["A"], placed("a A"))).toEqual([]);
  expect(planCopyMoves([], [])).toEqual([]);
});

test("creates missing copies first, on the emptiest nodes", () => {
  const databases = placed("a A", "b A B", "c A B C");
  expect(texts(planCopyMoves(["A", "B", "C"], databases, 3))).toEqual(["a + C", "a + B", "b + C"]);
  expect(texts(planCopyMoves(["A", "B", "C"], placed("a A"), 9))).toEqual(["a + B", "a + C"]);
});

test("what is in trouble stays, and counts", () => {
  const [a, b, c] = placed("a A B", "b A B", "c B A") as [
    PlacedDatabase,
    PlacedDatabase,
    PlacedDatabase,
  ];
  const databases = [{ ...a, isSound: false }, { ...b, isSound: false }, c];
  expect(texts(planCopyMoves(["A", "B", "C"], databases, 3))).toEqual(["c + C"]);
  expect(texts(planCopyMoves(["A", "B", "C"], databases))).toEqual(["c A C"]);
});

test("reaches a balance from any placement, with all copies and no unnecessary moves", () => {
  const random = seeded(5);
  for (let round = 0; round < 200; round++) {
    const nodes = Array.from({ length: 1 + (random() % 7) }, (_, at) => `N${at}`);
    const databases = Array.from({ length: random() % 30 }, (_, at): PlacedDatabase => {
      const tags = nodes.filter(() => random() % 3 > 0);
      if (tags.length === 0) tags.push("N0");
      return { name: `d${at}`, tags, leader: tags[0] as string, isSound: true };
    });
    const moves = planCopyMoves(nodes, databases);
    const tags = after(databases, moves);
    for (const { name, tags: before } of databases) {
      expect(tags.get(name)?.length).toBe(before.length);
    }
    const count = (of: Iterable<readonly string[]>) => {
      const all = [...of].flat();
      return nodes.map((node) => all.filter((tag) => tag === node).length);
    };
    const counts = count(tags.values());
    expect(Math.max(...counts) - Math.min(...counts), `round ${round}`).toBeLessThan(2);
    // Each move takes one from a node that had more than the mean.
    const before = count(databases.map((one) => one.tags));
    const mean = before.reduce((one, other) => one + other, 0) / nodes.length;
    const above = before.reduce((sum, one) => sum + Math.max(0, one - Math.floor(mean)), 0);
    expect(moves.length).toBeLessThanOrEqual(above);
    const ways = moves.map(({ name, from }) => `${name} ${from}`);
    expect(new Set(ways).size).toBe(ways.length);
  }
});

test("a new node shares equally many databases with each other node", () => {
  const nodes = ["A", "B", "C", "D", "E", "F"];
  const groups = ["A B C", "D E F"];
  const databases = placed(...Array.from({ length: 60 }, (_, at) => `d${at} ${groups[at % 2]}`));
  const tags = after(databases, planCopyMoves([...nodes, "G"], databases));
  const shared = nodes.map(
    (node) => [...tags.values()].filter((one) => one.includes(node) && one.includes("G")).length,
  );
  expect(Math.max(...shared) - Math.min(...shared)).toBeLessThan(4);
});
