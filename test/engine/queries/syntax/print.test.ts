import { readdirSync, readFileSync } from "node:fs";
import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { EngineError } from "../../../../engine/base/errors.ts";
import type { Query } from "../../../../engine/queries/syntax/ast.ts";
import { parsePatchQuery, parseQuery } from "../../../../engine/queries/syntax/parser.ts";
import { describeArgument, printQuery } from "../../../../engine/queries/syntax/print.ts";
import { projectRoot } from "../../../support/project-root.ts";
import { patchQuery, readQuery } from "../execution/arbitrary-query.ts";
import { parseCases } from "../execution/text-cases.ts";

const folder = `${projectRoot}test/cases/rql/`;

function withoutOffsets(query: Query): unknown {
  return JSON.parse(JSON.stringify(query, (key, value) => (key === "offset" ? undefined : value)));
}

describe("printQuery", () => {
  it("prints text that parses to the same tree", () => {
    fc.assert(
      fc.property(readQuery, (query) => {
        const printed = printQuery(query);
        expect(withoutOffsets(parseQuery(printed))).toEqual(withoutOffsets(query));
      }),
      { numRuns: 600 },
    );
  });

  it("prints patches that parse to the same tree", () => {
    fc.assert(
      fc.property(patchQuery, (query) => {
        const printed = printQuery(query);
        expect(withoutOffsets(parsePatchQuery(printed))).toEqual(withoutOffsets(query));
      }),
      { numRuns: 200 },
    );
  });

  it("is idempotent on every query of the text cases", () => {
    let count = 0;
    for (const file of readdirSync(folder)) {
      for (const { input, settings } of parseCases(readFileSync(folder + file, "utf8")).cases) {
        const parse = settings.get("kind") === "patch" ? parsePatchQuery : parseQuery;
        let tree: Query;
        try {
          tree = parse(input);
        } catch (error) {
          if (error instanceof EngineError) continue;
          throw error;
        }
        const printed = printQuery(tree);
        expect(withoutOffsets(parse(printed)), input).toEqual(withoutOffsets(tree));
        expect(printQuery(parse(printed))).toBe(printed);
        count += 1;
      }
    }
    expect(count).toBeGreaterThan(500);
  });

  it("keeps `not` before a chain of `and` after `or`", () => {
    const printed = printQuery(parseQuery("from A where x = 1 or not y = 2 and z = 3"));
    expect(printed).toBe("from A where x = 1 or not y = 2 and z = 3");
  });
});

describe("describeArgument", () => {
  it("prints operands as in messages", () => {
    const { include } = parseQuery("from A include f(B.C, 'x', 5, $p, null, g(D = 1))");
    expect(describeArgument(include[0] as (typeof include)[0])).toBe(
      "f(<Field>: B.C, x (String), 5 (Long), p (Parameter),  (Null), g(D = 1))",
    );
  });
});
