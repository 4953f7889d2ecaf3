/** A program that is started, killed, suspended and restarted, and its output. */
import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { setTimeout as pause } from "node:timers/promises";

interface Program {
  readonly command: string;
  readonly args: readonly string[];
  readonly environment?: Readonly<Record<string, string>>;
  /** An output line that shows that it is ready. */
  readonly ready: RegExp;
}

/** Number of output lines that are retained. */
const lineCountMax = 4_000;
const readyMs = 60_000;

export class Child {
  readonly name: string;
  readonly program: Program;
  /** Its output over all its lives. */
  readonly lines: string[] = [];
  #process: ChildProcess | null = null;
  #isStopped = false;
  /**
   * Called before it starts, and when it stops accepting connections: it has exited, or was
   * signalled to.
   */
  whenChanged: (isRunning: boolean) => void = () => undefined;

  constructor(name: string, program: Program) {
    this.name = name;
    this.program = program;
  }

  get isRunning(): boolean {
    const child = this.#process;
    return child !== null && child.exitCode === null && child.signalCode === null;
  }

  get isStopped(): boolean {
    return this.#isStopped;
  }

  get pid(): number | undefined {
    return this.isRunning ? this.#process?.pid : undefined;
  }

  /** Resolves when it is ready. */
  async start(): Promise<void> {
    if (this.isRunning) return;
    const { command, args, environment, ready } = this.program;
    const child = spawn(command, args, {
      stdio: ["pipe", "pipe", "pipe"],
      env: { ...process.env, ...environment },
    });
    this.#process = child;
    this.#isStopped = false;
    this.whenChanged(true);
    child.on("exit", () => this.whenChanged(false));
    child.on("error", (error) => this.lines.push(error.message));
    let isReady = false;
    for (const stream of [child.stdout, child.stderr]) {
      let rest = "";
      stream?.setEncoding("utf8").on("data", (text: string) => {
        const lines = (rest + text).split("\n");
        rest = lines.pop() ?? "";
        for (const line of lines) {
          this.lines.push(line);
          if (ready.test(line)) isReady = true;
        }
        if (this.lines.length > lineCountMax) this.lines.splice(0, lineCountMax / 2);
      });
    }
    const endMs = performance.now() + readyMs;
    while (!isReady) {
      if (!this.isRunning) throw new Error(`${this.name} ended immediately: ${this.lastWords()}`);
      if (performance.now() > endMs) throw new Error(`${this.name} is late: ${this.lastWords()}`);
      await pause(10);
    }
  }

  lastWords(): string {
    return this.lines.slice(-12).join("\n  ");
  }

  /** Like `kill -9`. Resolves when it has exited. */
  kill(): Promise<void> {
    return this.end("SIGKILL");
  }

  async end(signal: "SIGKILL" | "SIGTERM"): Promise<void> {
    const child = this.#process;
    if (child === null || !this.isRunning) return;
    const gone = once(child, "exit");
    // A suspended process receives no other signals.
    if (this.#isStopped && signal !== "SIGKILL") this.continue();
    this.whenChanged(false);
    child.kill(signal);
    const late = setTimeout(() => child.kill("SIGKILL"), 20_000);
    await gone;
    clearTimeout(late);
    this.#isStopped = false;
  }

  stop(): void {
    if (!this.isRunning) return;
    this.#isStopped = true;
    this.#process?.kill("SIGSTOP");
  }

  continue(): void {
    if (!this.isRunning) return;
    this.#isStopped = false;
    this.#process?.kill("SIGCONT");
  }
}
