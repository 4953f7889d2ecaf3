import { afterEach, describe, expect, test, vi } from "vitest";
import { InvariantError } from "../../engine/base/assert.ts";
import { routes } from "../../server/endpoints/route-table.ts";
import { QueryString } from "../../server/http/request.ts";
import { fuzz } from "./fuzz-run.ts";
import { mutateNode, nodeOf, textOf } from "./json-node.ts";
import { describeRequest, randomOf, requestOf } from "./request-maker.ts";
import { databaseName, seeds } from "./seeds.ts";
import { conversationOf } from "./socket-maker.ts";

afterEach(() => {
  vi.restoreAllMocks();
});

describe("a generated request", () => {
  test("is the same for the same number, independent of earlier ones", () => {
    const numbers = [0, 1, 7, 999_999];
    const first = numbers.map((number) => requestOf(5, number));
    expect(numbers.toReversed().map((number) => requestOf(5, number))).toEqual(first.toReversed());
    expect(requestOf(6, 7)).not.toEqual(requestOf(5, 7));
    expect(conversationOf(5, 7)).toEqual(conversationOf(5, 7));
  });

  test("covers every route of the table", () => {
    const known = new Set(seeds.map(({ method, path }) => `${method} ${path}`));
    for (const { kind, method, path } of routes) {
      if (kind === "websocket") continue;
      const own = `${method} ${path.replace(":database", databaseName).replace(/\/\*$/, "/x")}`;
      expect(known).toContain(own);
    }
  });

  test("is printed as a command that repeats it", () => {
    const body = Buffer.from(`{"it's":1}`);
    const headers = [["X-Other", "a'b"]] as const;
    const request = { method: "PUT", target: "/databases/fuzz/docs?id=a", headers, body };
    expect(describeRequest("http://127.0.0.1:1", request)).toBe(
      `curl -sS -X PUT 'http://127.0.0.1:1/databases/fuzz/docs?id=a' -H 'X-Other: a'\\''b' --data-binary '{"it'\\''s":1}'`,
    );
  });

  test("has changed values in most cases, and can always be sent", () => {
    let changed = 0;
    for (let number = 0; number < 500; number++) {
      const value = { a: [1, { b: "x" }], c: null };
      const before = textOf(nodeOf(value));
      const after = textOf(mutateNode(randomOf(3, number), nodeOf(value)));
      if (after !== before) changed++;
      expect(typeof after).toBe("string");
    }
    expect(changed).toBeGreaterThan(300);
  });
});

test("a few hundred requests find no failure", { timeout: 120_000 }, async () => {
  const failures: string[] = [];
  const onFailure = (text: string) => failures.push(text);
  const { sent, statuses } = await fuzz({ seed: 11, from: 0, count: 400, onFailure });
  expect(failures).toEqual([]);
  expect(sent).toBe(400);
  expect([...statuses.keys()].filter((status) => status >= 500)).toEqual([]);
});

test("a failure is found and reported with the command that repeats it", {
  timeout: 120_000,
}, async () => {
  const real = QueryString.prototype.int;
  vi.spyOn(QueryString.prototype, "int").mockImplementation(function (this: QueryString, name, or) {
    if (/[^0-9]/.test(this.get(name) ?? "")) throw new InvariantError("broken");
    return real.call(this, name, or);
  });
  const failures: string[] = [];
  const onFailure = (text: string) => failures.push(text);
  const { failures: count } = await fuzz({ seed: 12, from: 0, count: 2_000, onFailure });
  expect(count).toBeGreaterThan(0);
  const [first = ""] = failures;
  expect(first).toContain("answered 500");
  expect(first).toMatch(/--seed 12 --from \d+ --requests 1/);
  expect(first).toContain("curl -sS");
  expect(first).toContain("InvariantError: broken");
});
