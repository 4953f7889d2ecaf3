/**
 * Text cases: documents, queries and the replies of RavenDB 7.2.7, in test/cases/queries/*.txt.
 * Cases are separated by an empty line; `deviation` gives the reason if an expected reply differs
 * from RavenDB's.
 */
import { readdirSync, readFileSync } from "node:fs";
import { describe, expect, it } from "vitest";
import { projectRoot } from "../../../support/project-root.ts";
import { ArrayDatabase } from "./execute-array-host.ts";

const folder = `${projectRoot}test/cases/queries/`;

interface Case {
  readonly query: string;
  readonly parameters: string | null;
  readonly start: number | undefined;
  readonly pageSize: number | undefined;
  /** Lines in file order, including `row` lines. */
  readonly expected: readonly string[];
}

function parseCase(lines: readonly string[]): Case {
  const value = (name: string) =>
    lines.find((line) => line.startsWith(`${name} `))?.slice(name.length + 1);
  const number = (name: string) => (value(name) === undefined ? undefined : Number(value(name)));
  const ignored = /^(query|parameters|start|pageSize|deviation) /;
  return {
    query: value("query") as string,
    parameters: value("parameters") ?? null,
    start: number("start"),
    pageSize: number("pageSize"),
    expected: lines.filter((line) => !ignored.test(line)),
  };
}

function rowLine(row: string): string {
  const { "@metadata": metadata } = JSON.parse(row) as { "@metadata": Record<string, unknown> };
  const id = metadata["@id"];
  if (id !== undefined && metadata["@projection"] === undefined) return `row ${id}`;
  return `row ${row.slice(0, row.lastIndexOf('"@metadata":')).replace(/,$/, "")}}`;
}

async function answer(database: ArrayDatabase, one: Case): Promise<string[]> {
  const paging = {
    ...(one.start === undefined ? {} : { start: one.start }),
    ...(one.pageSize === undefined ? {} : { pageSize: one.pageSize }),
  };
  const { outcome, rows } = await database.query(one.query, one.parameters, paging);
  const lines = [`total ${outcome.totalResults}`];
  if (outcome.cappedMaxResults !== null) lines.push(`capped ${outcome.cappedMaxResults}`);
  if (outcome.scannedResults !== 0) lines.push(`scanned ${outcome.scannedResults}`);
  if (outcome.skippedResults !== 0) lines.push(`skipped ${outcome.skippedResults}`);
  if (one.expected.some((line) => line.startsWith("index "))) {
    lines.push(`index ${outcome.indexName}`);
  }
  return [...lines, ...rows.map(rowLine)];
}

const files = readdirSync(folder).filter((name) => /\.txt$/.test(name));

describe.each(files)("%s", (file) => {
  const blocks = readFileSync(folder + file, "utf8")
    .split("\n\n")
    .map((block) => block.split("\n").filter((line) => line !== "" && !line.startsWith("#")));
  const database = new ArrayDatabase();

  for (const lines of blocks) {
    if (lines.length === 0) continue;
    if (lines[0]?.startsWith("put ")) {
      it(`stores ${lines.length} documents`, () => {
        for (const line of lines) {
          const [, id, text] = /^put (\S+) (.*)$/.exec(line) as RegExpExecArray;
          database.put(id as string, text as string);
        }
        expect(database.countOf(null)).toBeGreaterThan(0);
      });
      continue;
    }
    const one = parseCase(lines);
    it(`${one.query} ${one.parameters ?? ""}`, async () => {
      expect(await answer(database, one)).toEqual(one.expected);
    });
  }

  it("leaves its indexes valid", () => {
    database.indexes.checkInvariants();
    database.indexes.close();
    expect(database.indexes.all().every((index) => index.failure === null)).toBe(true);
  });
});
