/**
 * A server as a separate process, with its data on disk and a port that is kept across restarts.
 */
import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { createInterface } from "node:readline";
import { builtPath } from "./project-root.ts";

export class ChildServer {
  readonly #folder = mkdtempSync(join(tmpdir(), "jackdaw-child-"));
  #process: ChildProcess | null = null;
  #url = "http://127.0.0.1:0";

  get url(): string {
    return this.#url;
  }

  /** Starts the built server, which grants access to local clients. */
  async start(): Promise<void> {
    const program = builtPath("server/main.js");
    const flags = [
      `--ServerUrl=${this.#url}`,
      `--DataDir=${this.#folder}`,
      "--Security.UnsecuredAccessAllowed=Local",
    ];
    const child = spawn(process.execPath, [program, ...flags], {
      stdio: ["ignore", "pipe", "inherit"],
    });
    this.#process = child;
    for await (const line of createInterface({ input: child.stdout })) {
      const url = /^Server available on: (.*)$/.exec(line)?.[1];
      if (url === undefined) continue;
      this.#url = url;
      child.stdout.resume();
      return;
    }
    throw new Error("the server exited during startup");
  }

  /** Like `kill -9`. */
  async kill(): Promise<void> {
    const child = this.#process;
    this.#process = null;
    if (child === null || child.exitCode !== null) return;
    const gone = once(child, "exit");
    child.kill("SIGKILL");
    await gone;
  }

  async request(path: string, method = "GET", body?: unknown): Promise<unknown> {
    const reply = await fetch(this.#url + path, {
      method,
      ...(body === undefined ? {} : { body: JSON.stringify(body) }),
    });
    const text = await reply.text();
    if (!reply.ok) throw new Error(`${method} ${path}: ${reply.status} ${text}`);
    return text === "" ? null : JSON.parse(text);
  }

  async remove(): Promise<void> {
    await this.kill();
    rmSync(this.#folder, { recursive: true, force: true });
  }
}
