/**
 * The `nats-server` process of this node: finds the program, runs it as a child, restarts it after an exit, and stops it
 * with this server.
 *
 * Invariants:
 * - At most one process uses the store: a process left over from a killed server is stopped before another one starts.
 * - The child has ended before `stop` resolves.
 */
import { type ChildProcess, execFile, spawn } from "node:child_process";
import { once } from "node:events";
import { access, constants, mkdir, readFile, writeFile } from "node:fs/promises";
import { delimiter, join } from "node:path";
import { createInterface } from "node:readline";
import { setTimeout as pause } from "node:timers/promises";
import { promisify } from "node:util";
import type { Log } from "../../logging/log.ts";
import { StartError } from "../../settings/start-error.ts";
import {
  isRecent,
  oldestVersion,
  type ServerOptions,
  serverConfiguration,
  serverLine,
  versionIn,
} from "./server-configuration.ts";

const command = "nats-server";
/** Maximum time for reporting readiness, in milliseconds. A server with much to read takes longer, and is awaited elsewhere. */
const readyMs = 30_000;
const stopMs = 10_000;
const restartMsMin = 250;
const restartMsMax = 10_000;
/** Uptime after which an exit does not count as a failed start, in milliseconds. */
const steadyMs = 60_000;
const advice = `Install ${command} ${oldestVersion} or newer, and set Cluster.Nats.Path or put it on the path`;

interface FoundServer {
  readonly path: string;
  readonly version: string;
}

/** Returns the path of `nats-server`. @throws StartError nats-unusable if it is missing or too old */
export async function findNatsServer(
  given: string | undefined,
  searched = process.env["PATH"] ?? "",
): Promise<FoundServer> {
  const path = given ?? (await onPath(searched));
  if (path === undefined) {
    throw new StartError("nats-unusable", `${command} was not found on the path. ${advice}`);
  }
  let printed: string;
  try {
    printed = (await promisify(execFile)(path, ["--version"], { timeout: 10_000 })).stdout;
  } catch (error) {
    const text = (error as Error).message;
    throw new StartError("nats-unusable", `${path} cannot be run: ${text}. ${advice}`);
  }
  const version = versionIn(printed);
  if (version === null || !isRecent(version)) {
    const detail = version === null ? "is not a nats-server" : `has version ${version}`;
    throw new StartError("nats-unusable", `${path} ${detail}; older ones lose streams. ${advice}`);
  }
  return { path, version };
}

async function onPath(searched: string): Promise<string | undefined> {
  for (const folder of searched.split(delimiter).filter((one) => one !== "")) {
    const path = join(folder, process.platform === "win32" ? `${command}.exe` : command);
    const isThere = await access(path, constants.X_OK).then(
      () => true,
      () => false,
    );
    if (isThere) return path;
  }
  return undefined;
}

interface ChildOptions {
  readonly server: FoundServer;
  /** Folder of the configuration and the store. */
  readonly folder: string;
  readonly configuration: Omit<ServerOptions, "storeFolder" | "pidPath">;
  readonly log: Log;
}

export class NatsServer {
  readonly #options: ChildOptions;
  readonly storeFolder: string;
  readonly #configurationPath: string;
  readonly #pidPath: string;
  #child: ChildProcess | null = null;
  #running: Promise<void> = Promise.resolve();
  #isWanted = false;
  #restartMs = restartMsMin;
  /** Interrupts the pause before a restart. */
  #awake = new AbortController();
  restartCount = 0;

  private constructor(options: ChildOptions) {
    this.#options = options;
    // A server that joins a cluster removes the streams of its time alone.
    const isAlone = options.configuration.routes.length < 2;
    this.storeFolder = join(options.folder, isAlone ? "store-alone" : "store");
    this.#configurationPath = join(options.folder, "nats-server.conf");
    this.#pidPath = join(options.folder, "nats-server.pid");
  }

  /** Resolves when the server is ready for clients. @throws StartError nats-unusable with its last log lines */
  static async start(options: ChildOptions): Promise<NatsServer> {
    const server = new NatsServer(options);
    await mkdir(server.storeFolder, { recursive: true, mode: 0o700 });
    await server.#stopLeftOver();
    const text = serverConfiguration({
      ...options.configuration,
      storeFolder: server.storeFolder,
      pidPath: server.#pidPath,
    });
    await writeFile(server.#configurationPath, text, { mode: 0o600 });
    await server.resume();
    return server;
  }

  /** Process id, or undefined while it does not run. */
  get pid(): number | undefined {
    return this.#child?.pid;
  }

  /** Restarts the server after `stop`. @throws StartError nats-unusable */
  async resume(): Promise<void> {
    this.#isWanted = true;
    this.#awake = new AbortController();
    await this.#startOnce();
    this.#running = this.#keepRunning();
  }

  async stop(): Promise<void> {
    this.#isWanted = false;
    this.#awake.abort();
    const child = this.#child;
    if (child !== null && child.exitCode === null && child.signalCode === null) {
      child.kill("SIGTERM");
      const slow = setTimeout(() => child.kill("SIGKILL"), stopMs);
      await once(child, "exit");
      clearTimeout(slow);
    }
    await this.#running;
  }

  async #keepRunning(): Promise<void> {
    const { log } = this.#options;
    while (this.#isWanted) {
      const begunMs = performance.now();
      const child = this.#child;
      if (child !== null && child.exitCode === null && child.signalCode === null) {
        await once(child, "exit");
      }
      if (!this.#isWanted) return;
      if (performance.now() - begunMs > steadyMs) this.#restartMs = restartMsMin;
      const how = child?.signalCode ?? `code ${child?.exitCode}`;
      const detail = `nats-server exited (${how}) and restarts in ${this.#restartMs} ms`;
      log.write("Error", detail, { event: "nats-server-ended" });
      await pause(this.#restartMs, undefined, { signal: this.#awake.signal }).catch(() => {});
      this.#restartMs = Math.min(restartMsMax, this.#restartMs * 2);
      if (!this.#isWanted) return;
      this.restartCount++;
      await this.#startOnce().catch((error: Error) => {
        log.write("Error", error.message, { event: "nats-server-ended" });
      });
    }
  }

  /** @throws StartError nats-unusable */
  async #startOnce(): Promise<void> {
    const { server, log } = this.#options;
    const child = spawn(server.path, ["--config", this.#configurationPath], {
      stdio: ["ignore", "ignore", "pipe"],
      // Signals of a terminal must not reach the child, which is stopped last.
      detached: true,
    });
    this.#child = child;
    const lastWords: string[] = [];
    const ended = new Promise<"ended">((resolve) => {
      child.once("exit", () => resolve("ended"));
      child.on("error", (error) => {
        lastWords.push(error.message);
        if (child.pid === undefined) this.#child = null; // it was not started
        resolve("ended");
      });
    });
    const ready = new Promise<"ready">((resolve) => {
      if (child.stderr === null) return;
      createInterface({ input: child.stderr }).on("line", (line) => {
        const { level, text } = serverLine(line);
        if (level !== "Debug" && level !== "Info") {
          lastWords.push(text);
          if (lastWords.length > 5) lastWords.shift();
        }
        log.write(level === "Info" ? "Debug" : level, `nats-server: ${text}`);
        if (text === "Server is ready") resolve("ready");
      });
    });
    const slow = new AbortController();
    const late = pause(readyMs, "late" as const, { signal: slow.signal }).catch(() => "late");
    const outcome = await Promise.race([ended, ready, late]);
    slow.abort();
    if (outcome !== "ended") return;
    const detail = lastWords.length === 0 ? "without a message" : `: ${lastWords.join("; ")}`;
    throw new StartError("nats-unusable", `${server.path} exited immediately${detail}`);
  }

  /** Stops the process that a killed server left over, which would write to the same store. */
  async #stopLeftOver(): Promise<void> {
    const pid = Number(await readFile(this.#pidPath, "utf8").catch(() => ""));
    if (!Number.isSafeInteger(pid) || pid <= 1 || !(await this.#isOurs(pid))) return;
    this.#options.log.warn(
      `The nats-server of an earlier start still runs (process ${pid}) and is stopped`,
    );
    const untilMs = performance.now() + stopMs;
    process.kill(pid, "SIGTERM");
    while (await this.#isOurs(pid)) {
      if (performance.now() > untilMs) process.kill(pid, "SIGKILL");
      await pause(50);
    }
  }

  /** Returns whether this process runs with our configuration. The process id may have been reused. */
  async #isOurs(pid: number): Promise<boolean> {
    const words = await readFile(`/proc/${pid}/cmdline`, "utf8").catch(async () => {
      const shown = await promisify(execFile)("ps", ["-p", String(pid), "-o", "args="]).catch(
        () => ({ stdout: "" }),
      );
      return shown.stdout;
    });
    return words.includes(this.#configurationPath);
  }
}
