/** Matching paths to routes. */
import { describe, expect, test } from "vitest";
import type { Method, Route } from "../../../server/routing/route.ts";
import { RouteTable } from "../../../server/routing/router.ts";
import type { Access } from "../../../server/security/access.ts";

function route(method: Method, path: string, access: Access = "valid-user"): Route {
  const handle = () => undefined;
  return path.startsWith("/databases/:database/")
    ? { kind: "database", method, path, access, handle }
    : { kind: "server", method, path, access, handle };
}

const docs = route("GET", "/databases/:database/docs", "read");
const table = new RouteTable([
  docs,
  route("PUT", "/databases/:database/docs", "write"),
  route("GET", "/databases/:database/admin/indexes", "database-admin"),
  route("GET", "/databases"),
  route("GET", "/"),
  route("GET", "/studio/*"),
  route("GET", "/studio/assets/*"),
]);

describe("a table of routes", () => {
  test.each([
    ["GET", "/databases/a/docs", "/databases/:database/docs", "a"],
    ["PUT", "/databases/a%20b%2Fc/docs", "/databases/:database/docs", "a b/c"],
    ["GET", "/databases/a/DOCS", "/databases/:database/docs", "a"],
    ["GET", "/databases/%zz/docs", "/databases/:database/docs", "%zz"],
    ["GET", "/databases//docs", "/databases/:database/docs", ""],
    ["GET", "/databases/a/admin/indexes", "/databases/:database/admin/indexes", "a"],
    ["GET", "/databases", "/databases", undefined],
    ["GET", "/", "/", undefined],
    ["GET", "/studio/index.html", "/studio/*", undefined],
    ["GET", "/studio/assets/x/y.js", "/studio/assets/*", undefined],
  ] as const)("matches %s %s", (method, path, expected, database) => {
    const match = table.match(method, path);
    expect(match.endpoint?.route.path).toBe(expected);
    expect(match.endpoint?.route.method).toBe(method);
    expect(match.database).toBe(database);
  });

  test.each([
    "/Databases",
    "/databases/",
    "/databases/a",
    "/databases/a/",
    "/databases/a/docs/",
    "/studio",
    "",
    "/constructor",
    "/__proto__",
  ])("does not match '%s'", (path) => {
    const match = table.match("GET", path);
    expect(match.endpoint).toBeUndefined();
    expect(match.allowed).toBeUndefined();
  });

  test("lists the methods of a path", () => {
    const match = table.match("DELETE", "/databases/a/docs");
    expect(match.endpoint).toBeUndefined();
    expect(match.allowed).toEqual(["GET", "PUT"]);
    expect(match.database).toBe("a");
  });

  test("rejects ambiguous or invalid routes", () => {
    expect(() => new RouteTable([docs, docs])).toThrow(/two routes/);
    expect(() => new RouteTable([route("GET", "/x", "read")])).toThrow(/needs a database/);
    const wrong = { ...docs, path: "/x" } as Route;
    expect(() => new RouteTable([wrong])).toThrow(/database route/);
  });
});
