/**
 * Readiness of this server: its databases are usable, its disk is writable and not full, no index has failed, and in a
 * cluster its copies are current and a leader exists. Callers without a certificate receive yes or no; the reasons are
 * logged and exposed as metrics.
 *
 * Invariants:
 * - However often it is called, it checks at most once in `lookMs`, and writes to the disk at most once in `probeMs`.
 * - It opens no database.
 */
import { rm, statfs, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { diskReserveBytes } from "../../engine/base/limits.ts";
import type { Database } from "../../engine/engine.ts";
import type { Log } from "../logging/log.ts";

const lookMs = 1_000;
const probeMs = 10_000;

/** The checks. */
export const healthChecks = ["cluster", "databases", "disk", "indexes", "serving"] as const;
type HealthCheck = (typeof healthChecks)[number];

interface HealthHost {
  /** Undefined if no data is on disk. */
  readonly dataFolder: string | undefined;
  opened(): readonly Database[];
  troubles(): ReadonlyMap<string, Error>;
  /** Returns the reason why the cluster makes this node unready, or null. */
  clusterTrouble(): string | null;
}

type Findings = ReadonlyMap<HealthCheck, string>;

/** A reply of the health routes. */
export interface HealthAnswer {
  readonly status: 200 | 503;
  readonly body: string;
}

/** The reply of a live process. */
export const alive: HealthAnswer = { status: 200, body: "ok\n" };
export const notReady: HealthAnswer = { status: 503, body: "not ready\n" };

export class Health {
  readonly #host: HealthHost;
  readonly #log: Log;
  readonly #nowMs: () => number;
  #findings: Findings = new Map();
  #lookedMs = Number.NEGATIVE_INFINITY;
  #looking: Promise<Findings> | null = null;
  #probedMs = Number.NEGATIVE_INFINITY;
  #probeFailure: string | null = null;
  #isStopping = false;

  constructor(host: HealthHost, log: Log, nowMs: () => number = () => performance.now()) {
    this.#host = host;
    this.#log = log;
    this.#nowMs = nowMs;
  }

  /** Makes the server unready because it stops. */
  stop(): void {
    this.#isStopping = true;
    this.#lookedMs = Number.NEGATIVE_INFINITY;
  }

  /** Returns the reasons why the server is not ready, or an empty map. */
  findings(): Promise<Findings> {
    if (this.#nowMs() - this.#lookedMs < lookMs) return Promise.resolve(this.#findings);
    this.#looking ??= this.#look().finally(() => {
      this.#looking = null;
    });
    return this.#looking;
  }

  async #look(): Promise<Findings> {
    const found = new Map<HealthCheck, string>();
    if (this.#isStopping) found.set("serving", "the server is stopping");
    const troubles = [...this.#host.troubles().keys()];
    if (troubles.length > 0) found.set("databases", `cannot be used: ${troubles.join(", ")}`);
    const failed = this.#host.opened().flatMap((database) =>
      database
        .figures()
        .indexes.filter(({ hasFailed }) => hasFailed)
        .map(({ name }) => `${name} of ${database.name}`),
    );
    if (failed.length > 0) found.set("indexes", `have failed: ${failed.join(", ")}`);
    const cluster = this.#host.clusterTrouble();
    if (cluster !== null) found.set("cluster", cluster);
    const disk = await this.#diskTrouble();
    if (disk !== null) found.set("disk", disk);
    this.#logFindings(found);
    this.#findings = found;
    this.#lookedMs = this.#nowMs();
    return found;
  }

  async #diskTrouble(): Promise<string | null> {
    const { dataFolder } = this.#host;
    if (dataFolder === undefined) return null;
    try {
      const { bavail, bsize } = await statfs(dataFolder);
      if (bavail * bsize < diskReserveBytes) return "the disk is full";
    } catch (error) {
      return `the data folder cannot be read: ${(error as Error).message}`;
    }
    if (this.#nowMs() - this.#probedMs >= probeMs) {
      this.#probeFailure = await probe(dataFolder);
      this.#probedMs = this.#nowMs();
    }
    return this.#probeFailure;
  }

  /** Logs one line when the findings change. */
  #logFindings(found: Findings): void {
    const text = textOf(found);
    if (text === textOf(this.#findings)) return;
    if (found.size === 0) this.#log.info("The server is ready again", { event: "ready" });
    else this.#log.warn(`The server is not ready: ${text}`, { event: "not-ready" });
  }
}

function textOf(found: Findings): string {
  return [...found].map(([check, reason]) => `${check} (${reason})`).join("; ");
}

/** Writes and removes a small file. @returns the reason of a failure, or null */
async function probe(folder: string): Promise<string | null> {
  const path = join(folder, `.probe-${process.pid}`);
  try {
    await writeFile(path, "1");
    await rm(path);
    return null;
  } catch (error) {
    return `the data folder cannot be written: ${(error as Error).message}`;
  }
}
