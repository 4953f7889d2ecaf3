/** Text cases: each query is parsed, printed and analysed, or rejected. */
import { describe, expect, it } from "vitest";
import { EngineError } from "../../../../engine/base/errors.ts";
import { analyzeQuery } from "../../../../engine/queries/analysis/analyze.ts";
import type { QueryKind } from "../../../../engine/queries/analysis/analyzed-query.ts";
import { parseQueryParameters } from "../../../../engine/queries/analysis/query-parameters.ts";
import { parsePatchQuery, parseQuery } from "../../../../engine/queries/syntax/parser.ts";
import { printQuery } from "../../../../engine/queries/syntax/print.ts";
import { projectRoot } from "../../../support/project-root.ts";
import { summarize } from "../execution/summarize.ts";
import { parseCases, type TextCase, testCases } from "../execution/text-cases.ts";

const folder = `${projectRoot}test/cases/rql/`;

/** Settings: read type (read, patch, delete, subscription), parameters (JSON), start, pageSize. */
function run({ input, settings }: TextCase): string {
  const kind = (settings.get("kind") ?? "read") as QueryKind;
  const json = settings.get("parameters");
  const start = settings.get("start");
  const pageSize = settings.get("pageSize");
  try {
    const tree = kind === "patch" ? parsePatchQuery(input) : parseQuery(input);
    const analyzed = analyzeQuery(input, tree, {
      kind,
      parameters: json === undefined ? null : parseQueryParameters(json),
      paging: {
        start: start === undefined ? undefined : Number(start),
        pageSize: pageSize === undefined ? undefined : Number(pageSize),
      },
    });
    return `${printQuery(tree)}\n${summarize(analyzed)}`;
  } catch (error) {
    if (!(error instanceof EngineError)) throw error;
    return `${error.code}: ${error.message}`;
  }
}

testCases(folder, run);

describe("text cases", () => {
  it("reads names, settings, input and expectation", () => {
    const { header, cases } = parseCases(
      "top\n\n# one\n@kind patch\na\nb\n---\nc\n\n# two\n---\nd\n",
    );
    expect(header).toBe("top\n");
    expect(cases).toEqual([
      { name: "one", settings: new Map([["kind", "patch"]]), input: "a\nb", expected: "c" },
      { name: "two", settings: new Map(), input: "", expected: "d" },
    ]);
  });
});
