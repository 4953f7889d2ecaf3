/**
 * Repairs copies of this node that cannot resume from their own files, or lack contents of attachments. It fetches them
 * from other nodes, one database at a time, until it succeeds.
 */
import { setMaxListeners } from "node:events";
import { setTimeout as pause } from "node:timers/promises";
import { type Databases, EngineError, type SharedValues } from "../../engine/engine.ts";
import type { Log } from "../logging/log.ts";
import { CopyFetch, type CopyMark } from "./copy-fetch.ts";
import type { PeerLink } from "./peer-link.ts";

const retryMsMin = 1_000;
const retryMsMax = 60_000;

interface CopyRepairsOptions {
  /** Tag of this node. */
  readonly tag: string;
  readonly log: Log;
  readonly databases: () => Databases;
  readonly shared: () => SharedValues;
  /** The id of the shared values. */
  readonly sharedId: string;
  /** Returns other nodes with an intact copy, best first. */
  readonly sources: (id: string) => readonly string[];
}

/** A copy that needs the files of another node. */
interface Need {
  readonly name: string;
  readonly id: string;
}

export class CopyRepairs {
  readonly #options: CopyRepairsOptions;
  readonly #needs = new Map<string, Need>();
  readonly #ending = new AbortController();
  #fetch: CopyFetch | null = null;
  #running: Promise<void> | null = null;

  constructor(options: CopyRepairsOptions) {
    this.#options = options;
    // Several contents are fetched in parallel, and each request adds a listener.
    setMaxListeners(0, this.#ending.signal);
  }

  /** Starts when other nodes can be reached. */
  start(peers: PeerLink): void {
    const { tag, sources, log } = this.#options;
    this.#fetch = new CopyFetch({ tag, peers, sources, log });
    this.#runSoon();
  }

  /** Schedules the replacement of the files of a database. */
  need(need: Need): void {
    this.#needs.set(need.id, need);
    this.#runSoon();
  }

  /** Returns the position in the stream of the files being fetched for a database, or null. */
  markOf(id: string): CopyMark | null {
    for (const one of this.#fetch?.underWay ?? []) if (one.id === id) return one.mark;
    return null;
  }

  /** Implements `FetchContent` of the engine. */
  async content(id: string, name: string): Promise<AsyncIterable<Buffer> | null> {
    if (this.#fetch === null) {
      throw new EngineError("node-unreachable", "This node cannot reach other nodes yet.");
    }
    return await this.#fetch.content(id, name, this.#ending.signal);
  }

  async stop(): Promise<void> {
    this.#ending.abort(new EngineError("database-stopped", "The server is stopping."));
    await this.#running;
  }

  #runSoon(): void {
    if (this.#running !== null || this.#fetch === null || this.#ending.signal.aborted) return;
    this.#running = this.#run(this.#fetch).finally(() => {
      this.#running = null;
    });
  }

  async #run(fetch: CopyFetch): Promise<void> {
    const { signal } = this.#ending;
    let waitMs = retryMsMin;
    while (!signal.aborted) {
      const [need] = this.#needs.values();
      if (need === undefined) return;
      // Moves the entry to the end, so that another database is next if this one fails.
      this.#needs.delete(need.id);
      try {
        await this.#replace(fetch, need);
        waitMs = retryMsMin;
      } catch (error) {
        if (signal.aborted || isGone(error)) continue;
        this.#needs.set(need.id, need);
        this.#options.log.warn(
          `The files of '${need.name}' could not be fetched from another node, and are tried again: ${(error as Error).message}`,
        );
        await pause(waitMs, undefined, { signal }).catch(() => undefined);
        waitMs = Math.min(waitMs * 2, retryMsMax);
      }
    }
  }

  async #replace(fetch: CopyFetch, { name, id }: Need): Promise<void> {
    const { log, databases, shared, sharedId } = this.#options;
    const { signal } = this.#ending;
    const isShared = id === sharedId;
    const replication = isShared ? shared().replication : databases().peek(name)?.replication;
    const own: CopyMark | null = replication?.mark ?? null;
    const add: Parameters<SharedValues["replaceFiles"]>[0] = async (restore, old) => {
      const { tag, contents, missing } = await fetch.copy(id, restore, old, signal, own);
      log.info(
        `The files of '${name}' were replaced by those of node ${tag}, with ${contents} contents of attachments. No node has ${missing} contents`,
      );
    };
    if (isShared) await shared().replaceFiles(add);
    else await databases().replaceFiles(name, add);
  }
}

/** Returns whether the database was deleted meanwhile. */
function isGone(error: unknown): boolean {
  return error instanceof EngineError && error.code === "database-missing";
}
