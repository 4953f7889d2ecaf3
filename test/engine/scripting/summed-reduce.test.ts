import { describe, expect, it, test } from "vitest";
import { parseBody } from "../../../engine/scripting/language/script-parser.ts";
import { summedMembersOf } from "../../../engine/scripting/summed-reduce.ts";

const sum = (name: string) => ({ name, isSum: true });
const key = (name: string, part: string | null = null) => ({ name, isSum: false, part });
const adds = (name: string) => `${name}: g.values.reduce((n, v) => n + v.${name}, 0)`;
const scriptOf = (aggregate: string) => `groupBy(x => x.K).aggregate(${aggregate})`;
const membersOf = (text: string) => summedMembersOf(parseBody(text), "script");

describe("summedMembersOf", () => {
  test.each([
    [`g => ({ K: g.key, ${adds("N")} })`, [key("K"), sum("N")]],
    [
      `(g) => { return { ${adds("N")}, 'K': g.key.A, B: g.key.B }; }`,
      [sum("N"), key("K", "A"), key("B", "B")],
    ],
    [`function (g) { return { ${adds("A")}, ${adds("B")} }; }`, [sum("A"), sum("B")]],
    ["g => ({ N: g.values.reduce(function (n, v) { return v.N + n; }, 0) })", [sum("N")]],
  ])("recognizes %s", (aggregate, members) => {
    expect(membersOf(scriptOf(aggregate))).toEqual(members);
  });

  test.each([
    ["a reduce without a sum", "g => ({ K: g.key })"],
    ["another initial value", "g => ({ N: g.values.reduce((n, v) => n + v.N, 1) })"],
    ["a missing initial value", "g => ({ N: g.values.reduce((n, v) => n + v.N) })"],
    ["another operator", "g => ({ N: g.values.reduce((n, v) => n - v.N, 0) })"],
    [
      "another name, under which a second reduce finds nothing",
      "g => ({ M: g.values.reduce((n, v) => n + v.N, 0) })",
    ],
    ["a path", "g => ({ N: g.values.reduce((n, v) => n + v.N.N, 0) })"],
    ["a computed name", "g => ({ N: g.values.reduce((n, v) => n + v['N'], 0) })"],
    ["a duplicate member", `g => ({ ${adds("N")}, ${adds("N")} })`],
    ["another list", "g => ({ N: g.others.reduce((n, v) => n + v.N, 0) })"],
    ["another group", "g => ({ N: h.values.reduce((n, v) => n + v.N, 0) })"],
    ["another total", "g => ({ N: g.values.reduce((n, v) => m + v.N, 0) })"],
    ["one name for both", "g => ({ N: g.values.reduce((n, n2) => n + n.N, 0) })"],
    ["a third parameter", "g => ({ N: g.values.reduce((n, v, i) => n + v.N, 0) })"],
    ["a parameter with a default", `(g = {}) => ({ ${adds("N")} })`],
    ["a preceding statement", `g => { g.values.reverse(); return { ${adds("N")} }; }`],
    ["a deeper key", `g => ({ K: g.key.A.B, ${adds("N")} })`],
    ["a value computed from the key", `g => ({ K: g.key + 1, ${adds("N")} })`],
    ["a constant", `g => ({ K: 1, ${adds("N")} })`],
    ["spread members", `g => ({ ...g.key, ${adds("N")} })`],
    ["a method", `g => ({ K() { return 1; }, ${adds("N")} })`],
    ["a numeric name, which is ordered first", `g => ({ 1: g.key, ${adds("N")} })`],
    ["a reserved name", `g => ({ $name: g.key, ${adds("N")} })`],
    ["a list", `g => [{ ${adds("N")} }]`],
  ])("does not recognize %s", (_, aggregate) => {
    expect(membersOf(scriptOf(aggregate))).toBeNull();
  });

  it("does not recognize scripts that contain anything else", () => {
    const aggregate = `g => ({ ${adds("N")} })`;
    expect(membersOf(`const a = 1; ${scriptOf(aggregate)}`)).toBeNull();
    expect(membersOf(`${scriptOf(aggregate)}.aggregate(${aggregate})`)).toBeNull();
    expect(membersOf(`groupBy(x => x.K).aggregate(${aggregate}, 1)`)).toBeNull();
    expect(membersOf(`groupBy(x => x.K).other(${aggregate})`)).toBeNull();
    expect(membersOf(`grouped(x => x.K).aggregate(${aggregate})`)).toBeNull();
  });
});
