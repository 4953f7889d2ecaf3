/**
 * Parses a documentation page: its fenced blocks, headings, links and tables. Does not interpret the blocks.
 *
 * - Blocks in `sh` or `js` can be run. A block in `text` or `json` directly after one is its expected output.
 * - In expected output, `…` matches any text or none; white space is ignored, so that long replies can be wrapped.
 */
import { readFileSync } from "node:fs";
import { join } from "node:path";

export interface Block {
  /** Line of the opening fence, from 1. */
  readonly line: number;
  readonly language: string;
  readonly text: string;
  /** The expected output in the page, or null. */
  shown: string | null;
}

export interface Page {
  /** Relative to the root of the project: `docs/queries.md`. */
  readonly path: string;
  /** Without the blocks of expected output, which are in `shown` of their block. */
  readonly blocks: readonly Block[];
  /** Anchors of the headings, in GitHub's form. */
  readonly anchors: ReadonlySet<string>;
  readonly links: readonly { readonly line: number; readonly target: string }[];
  /** The text outside the fenced blocks. */
  readonly prose: string;
}

const runnable = new Set(["sh", "js"]);
const output = new Set(["text", "json"]);

export function readPage(root: string, path: string): Page {
  const blocks: Block[] = [];
  const anchors = new Set<string>();
  const links: { line: number; target: string }[] = [];
  const prose: string[] = [];
  let last: Block | null = null;
  let inside: { line: number; language: string; lines: string[] } | null = null;
  for (const [index, line] of readFileSync(join(root, path), "utf8").split("\n").entries()) {
    const fence = /^```(\S*)$/.exec(line);
    if (inside !== null && fence === null) inside.lines.push(line);
    else if (inside !== null) {
      const { language, lines } = inside;
      const block: Block = {
        line: inside.line,
        language,
        text: `${lines.join("\n")}\n`,
        shown: null,
      };
      if (last !== null && output.has(language)) last.shown = block.text;
      else blocks.push(block);
      last = runnable.has(language) ? block : null;
      inside = null;
    } else if (fence !== null) inside = { line: index + 1, language: fence[1] ?? "", lines: [] };
    else {
      if (line.trim() !== "") last = null;
      prose.push(line);
      const heading = /^#+ (.*)$/.exec(line)?.[1];
      if (heading !== undefined) anchors.add(anchorOf(heading));
      for (const [, target = ""] of line.matchAll(/\]\(([^)\s]+)\)/g)) {
        links.push({ line: index + 1, target });
      }
    }
  }
  return { path, blocks, anchors, links, prose: prose.join("\n") };
}

function anchorOf(heading: string): string {
  return heading
    .toLowerCase()
    .replace(/[^\p{L}\p{N}\- ]/gu, "")
    .replaceAll(" ", "-");
}

/** Does the output `printed` match the expected output `shown`? */
export function isShown(printed: string, shown: string): boolean {
  const parts = withoutSpace(shown).split("…");
  const pattern = parts.map((part) => part.replace(/[.*+?^${}()|[\]\\]/g, "\\$&")).join("[^]*?");
  return new RegExp(`^${pattern}$`).test(withoutSpace(printed));
}

function withoutSpace(text: string): string {
  return text.replace(/\s+/g, "");
}

/** The trimmed cells of the first table under a heading, by row, without the header row. */
export function tableUnder({ prose }: Page, heading: string): string[][] {
  const [, section = ""] = prose.split(new RegExp(`^#+ ${heading}$`, "m"));
  const rows = section.split("\n").map((line) => (line.startsWith("|") ? line : ""));
  const from = rows.findIndex((row) => row !== "");
  const to = rows.findIndex((row, index) => index > from && row === "");
  return rows.slice(from + 2, to < 0 ? undefined : to).map((row) =>
    row
      .slice(1, -1)
      .split(/(?<!\\)\|/)
      .map((cell) => cell.trim()),
  );
}
