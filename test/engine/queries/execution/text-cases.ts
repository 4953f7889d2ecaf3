/**
 * Text cases: files of small inputs and expected outputs, readable and rewritable by a run.
 *
 *     # description of the case
 *     @parameters {"p": 1}        settings, one per line, optional
 *     from Users where Age > $p   the query, one line or more
 *     ---
 *     expected lines
 *                                 an empty line ends the case
 *
 * A run with UPDATE_CASES=1 in the environment writes the actual output into the files; review the
 * diff. The caller defines the meaning of the lines, so that other tests can use the same format.
 */
import { readdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, it } from "vitest";

const { UPDATE_CASES } = process.env;

export interface TextCase {
  readonly name: string;
  readonly settings: ReadonlyMap<string, string>;
  readonly input: string;
  readonly expected: string;
}

/**
 * Splits a file into its header comment and its cases. Asserts nothing: a malformed case has empty
 * parts.
 */
export function parseCases(text: string): { header: string; cases: TextCase[] } {
  const [header = "", ...blocks] = `\n${text}`.split(/\n(?=# )/);
  return { header: header.slice(1), cases: blocks.map(parseCase) };
}

function parseCase(block: string): TextCase {
  const lines = block.trimEnd().split("\n");
  const name = (lines.shift() ?? "").slice(2);
  const settings = new Map<string, string>();
  while (lines[0]?.startsWith("@") === true) {
    const [, key = "", value = ""] = /^@(\w+) ?(.*)$/.exec(lines.shift() ?? "") ?? [];
    settings.set(key, value);
  }
  const divider = lines.indexOf("---");
  return {
    name,
    settings,
    input: lines.slice(0, divider).join("\n"),
    expected: lines.slice(divider + 1).join("\n"),
  };
}

function printCase({ name, settings, input }: TextCase, outcome: string): string {
  const options = [...settings].map(([key, value]) => `@${key} ${value}\n`).join("");
  return `# ${name}\n${options}${input}\n---\n${outcome}\n`;
}

/**
 * Registers a test for each case of each `.txt` file in a folder. `run` returns the output of a
 * case.
 */
export function testCases(folder: string, run: (textCase: TextCase) => string): void {
  for (const file of readdirSync(folder).filter((name) => name.endsWith(".txt"))) {
    const path = join(folder, file);
    const { header, cases } = parseCases(readFileSync(path, "utf8"));
    if (UPDATE_CASES === "1") {
      const blocks = cases.map((textCase) => printCase(textCase, run(textCase)));
      writeFileSync(path, [header, ...blocks].join("\n"));
    }
    describe(file, () => {
      for (const textCase of cases) {
        it(textCase.name, () => {
          const outcome = run(textCase);
          if (UPDATE_CASES !== "1") expect(outcome).toBe(textCase.expected);
        });
      }
    });
  }
}
