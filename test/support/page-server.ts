/**
 * Runs the code blocks of a documentation page in order, in a shell, against a server of the built code started as by
 * `npm start`. The working directory has links to the parts of the project that the commands use.
 */
import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { existsSync, mkdirSync, symlinkSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { createInterface } from "node:readline";
import { text } from "node:stream/consumers";
import type { Block, Page } from "./page.ts";

/** The server's URL in the pages. */
const shownUrl = "https://127.0.0.1:8443";

export class PageServer {
  readonly folder: string;
  readonly url: string;
  readonly #process: ChildProcess;

  private constructor(folder: string, url: string, process: ChildProcess) {
    this.folder = folder;
    this.url = url;
    this.#process = process;
  }

  /** `folder`: working directory of the commands; may contain an existing `data`. */
  static async start(root: string, folder: string): Promise<PageServer> {
    if (!existsSync(join(root, "dist/server/main.js"))) throw new Error("run npm run build first");
    mkdirSync(join(folder, "node_modules"), { recursive: true });
    for (const name of ["bin", "dist", "package.json"])
      symlinkSync(join(root, name), join(folder, name));
    symlinkSync(root, join(folder, "node_modules/jackdaw-db"));
    symlinkSync(join(root, "node_modules/ravendb"), join(folder, "node_modules/ravendb"));
    const server = spawn(
      process.execPath,
      ["bin/jackdaw", "--ServerUrl=https://127.0.0.1:0", "--DataDir=data"],
      { cwd: folder, stdio: ["pipe", "pipe", "inherit"] },
    );
    for await (const line of createInterface({ input: server.stdout })) {
      const url = /^Server available on: (.*)$/.exec(line)?.[1];
      if (url !== undefined) return new PageServer(folder, url, server);
    }
    throw new Error("the server exited during startup");
  }

  /** @returns its exit code. */
  async stop(): Promise<number | null> {
    const { exitCode } = this.#process;
    if (exitCode !== null) return exitCode;
    const gone = once(this.#process, "exit");
    this.#process.stdin?.write("shutdown\n");
    const [code] = (await gone) as [number | null];
    return code;
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
    const shell = spawn("bash", ["-c", script.replaceAll(shownUrl, this.url)], {
      cwd: this.folder,
      stdio: ["ignore", "pipe", "ignore", "pipe"],
    });
    const [printed, failures] = await Promise.all([
      text(shell.stdout as NodeJS.ReadableStream),
      text(shell.stdio[3] as NodeJS.ReadableStream),
    ]);
    const failed = new Set(failures.split("\n"));
    const outputs = printed.replaceAll(this.url, shownUrl).split(`\n${separator}\n`);
    return blocks.map((block, index) => ({
      where: `${page.path}:${block.line}`,
      block,
      printed: outputs[index] ?? "(not reached)",
      hasFailed: failed.has(String(index)) || index >= outputs.length - 1,
    }));
  }

  #commandOf(page: Page, { language, line, text: source }: Block): string {
    if (language === "sh") return source;
    const name = `${page.path.replaceAll(/\W/g, "-")}-${line}.mjs`;
    writeFileSync(join(this.folder, name), source.replaceAll(shownUrl, this.url));
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
