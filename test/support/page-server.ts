/**
 * Runs the code blocks of a documentation page in order, in a shell, against a server of the built code started as by
 * `npm start`. The working directory has links to the parts of the project that the commands use. Pages of docs/ run in
 * its folder `try`.
 */
import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { mkdirSync, readdirSync, symlinkSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { createInterface } from "node:readline";
import { text } from "node:stream/consumers";
import type { Block, Page } from "./page.ts";
import { builtPath } from "./project-root.ts";

/** Arguments that start a server, and its URL in the pages. README.md uses a server for development. */
const kinds = {
  serve: {
    words: ["--ServerUrl=https://127.0.0.1:0", "--DataDir=data"],
    shown: "https://127.0.0.1:8443",
  },
  dev: { words: ["dev", "--memory", "--no-open", "--port", "0"], shown: "http://127.0.0.1:8080" },
} as const;
type Kind = keyof typeof kinds;

/** The part of the project that the pages use, as links in the working directory. */
const linked = ["bin", "dist", "package.json", "node_modules"];

export class PageServer {
  readonly folder: string;
  readonly url: string;
  readonly #process: ChildProcess;
  readonly #kind: Kind;

  private constructor(folder: string, url: string, process: ChildProcess, kind: Kind) {
    this.folder = folder;
    this.url = url;
    this.#process = process;
    this.#kind = kind;
  }

  /** `folder`: working directory of the commands; may contain an existing `data`. */
  static async start(root: string, folder: string, kind: Kind = "serve"): Promise<PageServer> {
    builtPath("server/main.js");
    mkdirSync(join(folder, "node_modules"), { recursive: true });
    for (const name of ["bin", "dist", "package.json"])
      symlinkSync(join(root, name), join(folder, name));
    symlinkSync(root, join(folder, "node_modules/jackdaw-db"));
    symlinkSync(join(root, "node_modules/ravendb"), join(folder, "node_modules/ravendb"));
    const server = spawn(process.execPath, ["bin/jackdaw", ...kinds[kind].words], {
      cwd: folder,
      stdio: ["pipe", "pipe", "inherit"],
    });
    for await (const line of createInterface({ input: server.stdout })) {
      const url = /^(?:Server available on|Jackdaw for development): (.*)$/.exec(line)?.[1];
      if (url !== undefined) return new PageServer(folder, url, server, kind);
    }
    throw new Error("the server exited during startup");
  }

  /** @returns its exit code. */
  async stop(): Promise<number | null> {
    const { exitCode } = this.#process;
    if (exitCode !== null) return exitCode;
    const gone = once(this.#process, "exit");
    if (this.#kind === "dev") this.#process.kill("SIGINT");
    else this.#process.stdin?.write("shutdown\n");
    const [code] = (await gone) as [number | null];
    return code;
  }

  /** Returns the names in the working directory besides links, the server's data, and files that git ignores. */
  leftFiles(): string[] {
    return readdirSync(this.folder).filter(
      (name) => !linked.includes(name) && !/^(data|try|example.*)$/.test(name),
    );
  }

  /** Runs `setup`, then the blocks, in order in one shell; a failing command does not stop it. */
  async run(page: Page, blocks: readonly Block[], setup: string): Promise<RanBlock[]> {
    const separator = "=== the next block ===";
    const script = [
      "set -uE -o pipefail",
      "exec 2>&1", // error output is interleaved as in a terminal
      setup,
      ...blocks.map((block, index) => {
        const failed = `trap 'printf "%s\\n" ${index} >&3' ERR`;
        return `${failed}\n${this.#commandOf(page, block)}\nprintf '\\n%s\\n' '${separator}'`;
      }),
    ].join("\n");
    const { shown } = kinds[this.#kind];
    const shell = spawn("bash", ["-c", script.replaceAll(shown, this.url)], {
      cwd: this.folder,
      stdio: ["ignore", "pipe", "ignore", "pipe"],
    });
    const [printed, failures] = await Promise.all([
      text(shell.stdout as NodeJS.ReadableStream),
      text(shell.stdio[3] as NodeJS.ReadableStream),
    ]);
    const failed = new Set(failures.split("\n"));
    const outputs = printed.replaceAll(this.url, shown).split(`\n${separator}\n`);
    return blocks.map((block, index) => ({
      where: `${page.path}:${block.line}`,
      block,
      printed: outputs[index] ?? "(not reached)",
      hasFailed: failed.has(String(index)) || index >= outputs.length - 1,
    }));
  }

  #commandOf(page: Page, { language, line, text: source }: Block): string {
    if (language === "sh") return source;
    const name = `example-${page.path.replaceAll(/\W/g, "-")}-${line}.mjs`;
    const folder = join(this.folder, this.#kind === "dev" ? "." : "try");
    mkdirSync(folder, { recursive: true });
    writeFileSync(join(folder, name), source.replaceAll(kinds[this.#kind].shown, this.url));
    return `node ${name}`;
  }
}

interface RanBlock {
  /** `<page>:<line>` */
  readonly where: string;
  readonly block: Block;
  readonly printed: string;
  /** Whether a command exited with a code other than 0, or the block was not completed. */
  readonly hasFailed: boolean;
}
