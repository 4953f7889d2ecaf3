/**
 * The prompt of `jackdaw query`: queries over several lines, and commands that begin with a backslash.
 *
 * Invariants:
 * - One line is processed at a time; further input is queued.
 * - No error closes the prompt.
 */
import { once } from "node:events";
import { createInterface, type Interface } from "node:readline";
import { setTimeout as wait } from "node:timers/promises";
import { rqlKeywords, rqlMethods } from "../engine/queries/syntax/words.ts";
import type { CommandContext } from "./command.ts";
import { Failure } from "./failure.ts";
import { addHistory, historyLinesMax, historyPath, readHistory } from "./history.ts";
import { painter, tableLines } from "./output.ts";
import { Schema } from "./schema.ts";

/** Runs queries and prints the results. */
interface QueryRunner {
  /** Prints rows from offset `start`. @returns the number of printed rows, and the total */
  rows(text: string, start: number, signal: AbortSignal): Promise<{ rows: number; total: number }>;
  /** Prints the query plan. */
  plan(text: string, signal: AbortSignal): Promise<void>;
}

const commands: Readonly<Record<string, string>> = {
  "\\d [COLLECTION]": "list the collections, or the fields of one",
  "\\more": "show the next rows (or enter an empty line)",
  "\\plan": "show the plan of the last query, with counts and times",
  "\\watch [SECONDS]": "repeat the last query until Ctrl-C",
  "\\?": "list the commands (or help)",
  "\\q": "quit (or exit, quit, Ctrl-D)",
};
/** Words that are commands if they are a whole line. */
const words = new Map([
  ["exit", "\\q"],
  ["quit", "\\q"],
  ["help", "\\?"],
]);
const watchSecondsDefault = 2;
const watchSecondsMax = 86_400;

export async function runPrompt(context: CommandContext, ask: QueryRunner): Promise<void> {
  const { streams, environment, options, database, client } = context;
  const path = options.is("no-history") ? undefined : historyPath(environment);
  const history = (await readHistory(path)).reverse();
  const schema = new Schema(client(), database());
  const completer = (line: string, done: (error: null, found: [string[], string]) => void) => {
    completions(line, schema).then(
      (found) => done(null, found),
      () => done(null, [[], line]),
    );
  };
  const terminal = createInterface({
    input: streams.input,
    output: streams.output,
    terminal: true,
    history,
    historySize: historyLinesMax,
    removeHistoryDuplicates: true,
    completer,
  });
  const typed: string[] = [];
  const prompt = new Prompt(context, ask, schema, terminal);
  let work = prompt.begin();
  terminal.on("line", (line) => {
    if (line.trim() !== "") typed.push(line);
    work = work.then(() => prompt.take(line));
  });
  terminal.on("SIGINT", () => prompt.interrupt());
  await once(terminal, "close");
  prompt.close();
  await work;
  await addHistory(path, typed);
}

class Prompt {
  readonly #context: CommandContext;
  readonly #ask: QueryRunner;
  readonly #schema: Schema;
  readonly #terminal: Interface;
  /** Lines of an incomplete query. */
  #lines: string[] = [];
  #last: { readonly text: string; shown: number; total: number } | null = null;
  #running: AbortController | null = null;
  #isClosed = false;

  constructor(context: CommandContext, ask: QueryRunner, schema: Schema, terminal: Interface) {
    this.#context = context;
    this.#ask = ask;
    this.#schema = schema;
    this.#terminal = terminal;
  }

  async begin(): Promise<void> {
    this.#say("help lists commands, exit quits; end a query with ; or an empty line");
    this.#ready();
  }

  /** Handles Ctrl-C: cancels the running query, or discards the typed lines. */
  interrupt(): void {
    if (this.#running !== null) {
      this.#running.abort();
      return;
    }
    this.#lines = [];
    this.#terminal.write(null, { ctrl: true, name: "e" });
    this.#terminal.write(null, { ctrl: true, name: "u" });
    this.#say("^C");
    this.#ready();
  }

  close(): void {
    this.#isClosed = true;
    this.#running?.abort();
  }

  async take(line: string): Promise<void> {
    if (this.#isClosed) return;
    this.#running = new AbortController();
    try {
      await this.#work(line, this.#running.signal);
    } catch (error) {
      const isStopped = this.#running.signal.aborted;
      const { message } = error as Error;
      this.#say(isStopped ? "Interrupted." : `${this.#paint("red", "error")}: ${message}`);
    } finally {
      this.#running = null;
    }
    this.#ready();
  }

  async #work(line: string, signal: AbortSignal): Promise<void> {
    const typed = line.trim();
    const word = words.get(typed.replace(/;$/, "").toLowerCase());
    const text = this.#lines.length === 0 && word !== undefined ? word : typed;
    if (this.#lines.length === 0 && text.startsWith("\\")) {
      await this.#command(text, signal);
      return;
    }
    if (this.#lines.length === 0 && text === "") {
      if (this.#hasMore()) await this.#more(signal);
      return;
    }
    const isEnd = text === "" || text.endsWith(";");
    this.#lines.push(text.replace(/;$/, ""));
    if (!isEnd) return;
    const query = this.#lines.join("\n").trim();
    this.#lines = [];
    if (query === "") return;
    this.#last = { text: query, shown: 0, total: 0 };
    await this.#more(signal);
  }

  async #command(text: string, signal: AbortSignal): Promise<void> {
    const [name = "", argument] = text.replace(/;$/, "").split(/\s+/, 2);
    if (name === "\\q") this.#terminal.close();
    else if (name === "\\?") {
      for (const [command, about] of Object.entries(commands))
        this.#say(`${command.padEnd(18)}${about}`);
    } else if (name === "\\d") await this.#describe(argument);
    else if (name === "\\more" || name === "\\m") {
      if (this.#hasMore()) await this.#more(signal);
      else this.#say("There are no more rows.");
    } else if (name === "\\plan") {
      if (this.#last === null) throw new Failure("usage", "No query to explain yet");
      await this.#ask.plan(this.#last.text, signal);
    } else if (name === "\\watch") await this.#watch(argument, signal);
    else throw new Failure("usage", `Unknown command '${name}'; \\? lists the commands`);
  }

  #hasMore(): boolean {
    return this.#last !== null && this.#last.shown < this.#last.total;
  }

  async #more(signal: AbortSignal): Promise<void> {
    const last = this.#last;
    if (last === null) return;
    const { rows, total } = await this.#ask.rows(last.text, last.shown, signal);
    last.shown += rows;
    last.total = rows === 0 ? last.shown : total;
    if (this.#hasMore()) {
      const left = total - last.shown;
      this.#say(this.#paint("dim", `-- ${left} more: enter an empty line to show them`));
    }
  }

  async #watch(argument: string | undefined, signal: AbortSignal): Promise<void> {
    if (this.#last === null) throw new Failure("usage", "No query to repeat yet");
    const seconds = argument === undefined ? watchSecondsDefault : Number(argument);
    if (!(seconds > 0 && seconds <= watchSecondsMax)) {
      throw new Failure("usage", `\\watch '${argument}' must be a number of seconds`);
    }
    for (;;) {
      this.#say(this.#paint("dim", `${new Date().toISOString()}, every ${seconds} s`));
      await this.#ask.rows(this.#last.text, 0, signal);
      await wait(seconds * 1000, undefined, { signal });
    }
  }

  async #describe(collection: string | undefined): Promise<void> {
    const { streams } = this.#context;
    const counts = await this.#schema.collections(true);
    const table = (header: string[], rows: unknown[][]) => {
      const paint = this.#paint;
      for (const line of tableLines(header, rows, streams.output.columns, paint)) this.#say(line);
    };
    if (collection === undefined) {
      table(["collection", "documents"], Object.entries(counts));
      return;
    }
    const name = Object.keys(counts).find((one) => one.toLowerCase() === collection.toLowerCase());
    if (name === undefined)
      throw new Failure(
        "missing",
        `Collection '${collection}' does not exist; \\d lists all collections`,
      );
    const fields = await this.#schema.fields(name, true);
    table(
      ["field", "type", "in"],
      fields.map((field) => [field.name, field.types, field.count]),
    );
  }

  #ready(): void {
    if (this.#isClosed) return;
    const name = this.#context.database();
    this.#terminal.setPrompt(
      this.#lines.length === 0 ? `${name}> ` : `${" ".repeat(name.length)}- `,
    );
    this.#terminal.prompt();
  }

  get #paint() {
    const { streams, environment } = this.#context;
    return painter(streams.output.isTTY === true, environment);
  }

  #say(line: string): void {
    this.#context.print(line);
  }
}

/** Returns the completions of the last word of `line`, and that word. */
export async function completions(line: string, schema: Schema): Promise<[string[], string]> {
  const word = /[\w.\\@/-]*$/.exec(line)?.[0] ?? "";
  const before = line.slice(0, line.length - word.length);
  const fits = (words: readonly string[]): [string[], string] => {
    const lower = word.toLowerCase();
    return [words.filter((one) => one.toLowerCase().startsWith(lower)).sort(), word];
  };
  if (before.trim() === "" && word.startsWith("\\")) {
    return fits(Object.keys(commands).map((command) => command.split(" ")[0] ?? ""));
  }
  if (/(\bfrom\s+['"]?|\\d\s+)$/i.test(before))
    return fits(Object.keys(await schema.collections()));
  const collection = /\bfrom\s+['"]?([\w-]+)/i.exec(line)?.[1];
  const known = Object.keys(await schema.collections());
  const name = known.find((one) => one.toLowerCase() === collection?.toLowerCase());
  const fields = name === undefined ? [] : await schema.fields(name);
  return fits([...rqlKeywords, ...rqlMethods, ...fields.map((field) => field.name)]);
}
