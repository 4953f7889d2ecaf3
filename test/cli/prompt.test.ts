/** The prompt of `jackdaw query`: keys are written to a stream, and the screen is read from one. */
import { readFileSync, statSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { PassThrough } from "node:stream";
import { stripVTControlCharacters } from "node:util";
import { afterAll, beforeAll, expect, test } from "vitest";
import { addHistory, historyLinesMax, historyPath, readHistory } from "../../cli/history.ts";
import { runCommand } from "../../cli/run.ts";
import { type CommandLine, startCommandLine } from "../support/command-line.ts";

let line: CommandLine;

beforeAll(async () => {
  line = await startCommandLine();
  for (let number = 0; number < 25; number++) {
    const input = JSON.stringify({ Name: `user ${number}`, Address: { City: "Rome" } });
    await line.jackdaw(["put", `users/${number}`, "-c", "Users"], { input });
  }
});
afterAll(() => line.stop());

/** An interactive terminal. */
class Terminal {
  readonly input = Object.assign(new PassThrough(), { isTTY: true });
  readonly output = Object.assign(new PassThrough(), { isTTY: true, columns: 80, rows: 14 });
  readonly errors = Object.assign(new PassThrough(), { isTTY: true });
  readonly ended: Promise<number>;
  #seen = "";

  constructor(words: readonly string[], environment: Record<string, string>) {
    for (const stream of [this.output, this.errors]) {
      stream.on("data", (chunk: Buffer) => {
        this.#seen += stripVTControlCharacters(String(chunk));
      });
    }
    const signal = new AbortController().signal;
    const variables = { ...line.environment, NO_COLOR: "1", ...environment };
    this.ended = runCommand(words, this, variables, signal);
  }

  /** Types, and waits until the output contains `shown`. @returns the output since then */
  async type(keys: string, shown: string | RegExp): Promise<string> {
    this.#seen = "";
    this.input.write(keys);
    return await this.until(shown);
  }

  async until(shown: string | RegExp): Promise<string> {
    await expect.poll(() => this.#seen, { timeout: 10_000 }).toMatch(shown);
    return this.#seen;
  }
}

const historyFile = () => join(line.folder, "state", "history");

async function openPrompt(words: readonly string[] = [], more: Record<string, string> = {}) {
  const terminal = new Terminal(["query", ...words], { JACKDAW_HISTORY: historyFile(), ...more });
  await terminal.until(/shop> $/);
  return terminal;
}

test("supports queries of several lines, and pages of rows", async () => {
  const terminal = await openPrompt();
  await terminal.type("from Users\r", /- $/);
  await terminal.type("order by id()\r", /- $/);
  const first = await terminal.type(
    "select Name;\r",
    /15 more: enter an empty line to show them[\s\S]*shop> $/,
  );
  expect(first).toContain("10 of 25 rows");
  expect(await terminal.type("\r", /5 more[\s\S]*shop> $/)).toContain("10 of 25 rows");
  expect(await terminal.type("\\more\r", /shop> $/)).not.toContain(" more:");
  expect(await terminal.type("\\more\r", /shop> $/)).toContain("There are no more rows.");
  expect(await terminal.type("form Users;\r", /shop> $/)).toMatch(/error: /);
  expect(await terminal.type("\\x\r", /shop> $/)).toContain("Unknown command '\\x'");
  expect(await terminal.type("help\r", /shop> $/)).toContain("\\watch [SECONDS]");
  await terminal.type("exit\r", "");
  expect(await terminal.ended).toBe(0);
  const kept = readFileSync(historyFile(), "utf8").split("\n");
  expect(kept.slice(0, 3)).toEqual(["from Users", "order by id()", "select Name;"]);
  expect(statSync(historyFile()).mode & 0o777).toBe(0o600);
});

test("recalls history with the arrow keys, and stores it only if permitted", async () => {
  const before = readFileSync(historyFile(), "utf8");
  const terminal = await openPrompt(["--no-history"]);
  await terminal.type("from Users limit 1;\r", /1 of [\s\S]*shop> $/);
  await terminal.type("\u001b[A", /from Users limit 1;$/);
  terminal.input.write("\u0003\u0004");
  expect(await terminal.ended).toBe(0);
  expect(readFileSync(historyFile(), "utf8")).toBe(before);
  const again = await openPrompt();
  await again.type("\u001b[A\u001b[A\u001b[A", /form Users;|\\x/);
  again.input.end();
  expect(await again.ended).toBe(0);
});

test("Tab completes collections, fields, keywords and commands", async () => {
  const terminal = await openPrompt();
  await terminal.type("from Us\t", /from Users$/);
  await terminal.type(" where Addr\t", /where Address$/);
  await terminal.type(".Ci\t", /\.City$/);
  await terminal.type(" = 'Rome' orde\t", /order$/);
  await terminal.type("\u0003", /\^C[\s\S]*shop> $/);
  await terminal.type("\\wa\t", /\\watch$/);
  terminal.input.end("\u0003");
  await terminal.ended;
});

test("\\d describes, \\? helps, and Ctrl-C ends a repeated query", async () => {
  const terminal = await openPrompt();
  expect(await terminal.type("\\d\r", /shop> $/)).toMatch(/collection +documents\s+Users +25/);
  expect(await terminal.type("\\d users\r", /shop> $/)).toMatch(
    /Name +string +25\s+Address +object +25\s+Address.City +string +25/,
  );
  expect(await terminal.type("\\d none\r", /shop> $/)).toContain(
    "Collection 'none' does not exist",
  );
  expect(await terminal.type("\\?\r", /shop> $/)).toContain("\\watch [SECONDS]");
  expect(await terminal.type("\\watch\r", /shop> $/)).toContain("No query to repeat");
  expect(await terminal.type("\\plan\r", /shop> $/)).toContain("No query to explain");
  await terminal.type("from Users limit 1;\r", /shop> $/);
  expect(await terminal.type("\\plan\r", /shop> $/)).toMatch(
    /1\. Went through the collection Users, which has 25 documents[\s\S]*Returned 1 row\./,
  );
  expect(await terminal.type("\\watch x\r", /shop> $/)).toContain("must be a number of seconds");
  await terminal.type("\\watch 0.05\r", /(every 0\.05 s[\s\S]*){3}/);
  await terminal.type("\u0003", /Interrupted\.[\s\S]*shop> $/);
  expect(await terminal.type("from Users limit 2;\r", /shop> $/)).toContain("2 of");
  terminal.input.end();
  await terminal.ended;
});

test("stores the history in the system's location, limits it, and ignores errors", async () => {
  expect(historyPath({ JACKDAW_HISTORY: "off" })).toBeUndefined();
  expect(historyPath({ XDG_STATE_HOME: "/x" })).toBe(join("/x", "jackdaw", "history"));
  expect(historyPath({ HOME: "/home/ann" })).toBe("/home/ann/.local/state/jackdaw/history");
  const path = join(line.folder, "bounded", "history");
  const many = Array.from({ length: historyLinesMax + 7 }, (_, at) => `line ${at}`);
  await addHistory(path, many);
  await addHistory(path, ["last", "x".repeat(20_000)]);
  const kept = await readHistory(path);
  expect([kept.length, kept.at(-1)]).toEqual([historyLinesMax, "last"]);
  writeFileSync(join(line.folder, "file"), "");
  await addHistory(join(line.folder, "file", "history"), ["x"]);
  expect(await readHistory(join(line.folder, "file", "history"))).toEqual([]);
});
