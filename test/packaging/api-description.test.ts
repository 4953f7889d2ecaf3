/**
 * The OpenAPI description: it is valid, lists exactly the existing routes, and agrees with the
 * code.
 */
import { readFileSync } from "node:fs";
import { Validator } from "@seriousme/openapi-schema-validator";
import { describe, expect, test } from "vitest";
import { describeApi } from "../../packaging/api-description.ts";
import type { Reading } from "../../packaging/handler-reading.ts";
import { routes } from "../../server/endpoints/route-table.ts";
import type { Route } from "../../server/routing/route.ts";
import { RouteTable } from "../../server/routing/router.ts";
import { projectRoot } from "../support/project-root.ts";

interface Operation {
  readonly operationId: string;
  readonly description: string;
  readonly "x-access": string;
  readonly security?: readonly unknown[];
  readonly parameters?: readonly { readonly name: string; readonly required?: boolean }[];
  readonly requestBody?: { readonly content: Readonly<Record<string, unknown>> };
  readonly responses: Readonly<
    Record<string, { readonly content?: Readonly<Record<string, unknown>> }>
  >;
}
type PathItem = Readonly<Record<string, unknown>>;
const text = readFileSync(`${projectRoot}docs/openapi.json`, "utf8");
const api = JSON.parse(text) as { readonly paths: Readonly<Record<string, PathItem>> };

/** `METHOD path` -> operation, for all described operations. */
const described = new Map<string, Operation>();
for (const [path, { parameters: _, "x-additional-operations": others, ...known }] of Object.entries(
  api.paths,
)) {
  for (const [method, operation] of Object.entries({ ...known, ...(others as PathItem) })) {
    described.set(`${method.toUpperCase()} ${path}`, operation as Operation);
  }
}
const pathOf = ({ path }: Route) =>
  path.replace("/:database/", "/{database}/").replace(/\/\*$/, "/{rest}");

describe("docs/openapi.json", () => {
  test("is a valid description in OpenAPI 3.1", async () => {
    const validator = new Validator();
    const { valid, errors } = await validator.validate(text);
    expect(errors ?? []).toEqual([]);
    expect(valid).toBe(true);
    expect(validator.version).toBe("3.1");
  });

  test("lists exactly the existing routes: after a change to routes run npm run openapi", () => {
    const known = routes.map((route) => `${route.method} ${pathOf(route)}`);
    expect([...described.keys()].sort()).toEqual(known.sort());
  });

  test("has paths that the router matches to the same route", () => {
    const table = new RouteTable(routes);
    for (const name of described.keys()) {
      const [method = "", path = ""] = name.split(" ");
      const { endpoint } = table.match(method, path.replace("{database}", "any"));
      expect(`${endpoint?.route.method} ${endpoint && pathOf(endpoint.route)}`).toBe(name);
    }
  });

  test("states the access level of each route, and that open ones need no certificate", () => {
    for (const route of routes) {
      const operation = described.get(`${route.method} ${pathOf(route)}`);
      expect(operation?.["x-access"]).toBe(route.access);
      expect(operation?.security).toEqual(route.access === "open" ? [] : undefined);
    }
  });

  test("has a unique id for each operation", () => {
    const ids = [...described.values()].map(({ operationId }) => operationId);
    expect(new Set(ids).size).toBe(ids.length);
  });

  test("describes the parameters and replies in the code", () => {
    const put = described.get("PUT /databases/{database}/docs");
    expect(put?.parameters?.map(({ name, required }) => [name, required])).toEqual([
      ["id", true],
      ["if-match", undefined],
    ]);
    expect(Object.keys(put?.requestBody?.content ?? {})).toContain("application/json");
    expect(Object.keys(put?.responses ?? {})).toEqual(["201", "default"]);
    const get = described.get("GET /databases/{database}/docs");
    const names = get?.parameters?.map(({ name }) => name) ?? [];
    // Documented for clients of this server (the others are RavenDB's).
    for (const name of ["id", "include", "counter", "metadataOnly", "pageSize", "if-none-match"]) {
      expect(names).toContain(name);
    }
    expect(get?.parameters?.filter(({ required }) => required)).toEqual([]);
    expect(Object.keys(get?.responses ?? {})).toEqual(["200", "304", "404", "default"]);
    const patch = described.get("PATCH /databases/{database}/queries");
    expect(patch?.parameters?.map(({ name }) => name)).toEqual(
      expect.arrayContaining(["allowStale", "staleTimeout", "maxOpsPerSec"]),
    );
    expect(described.get("GET /livez")?.responses["200"]?.content).toHaveProperty("text/plain");
    expect(described.get("RESET /databases/{database}/indexes")?.responses).toHaveProperty("204");
  });
});

describe("a route", () => {
  const reading: Reading = {
    comment: "GET /new: something new",
    parameters: [],
    headers: [],
    body: undefined,
    members: [],
    replies: [],
  };
  const route: Route = {
    kind: "server",
    method: "GET",
    path: "/new",
    access: "read",
    handle: function getNew() {},
  };
  const withReading = (change: Partial<Reading>) => () =>
    describeApi(
      [{ file: "new.ts", routes: [route] }],
      { read: () => ({ ...reading, ...change }), fileComment: () => "New things." },
      "1",
    );

  test.each(["", "GET /new", "GET /new?id=…"])(
    "with the comment %j is not described",
    (comment) => {
      expect(withReading({ comment })).toThrow(
        "a descriptive comment above the handler of GET /new",
      );
    },
  );

  test("with a parameter or a body without a description is not described", () => {
    const parameters = [
      { name: "unheard", reader: "get" as const, fallback: undefined, isRequired: false },
    ];
    expect(withReading({ parameters })).toThrow("a text of the parameter unheard (new)");
    expect(withReading({ body: "other" })).toThrow("the types of the body of GET /new");
  });

  test("that nobody has leaves texts that no route reads", () => {
    expect(withReading({})).toThrow(/unused: metadataOnly/);
  });
});
