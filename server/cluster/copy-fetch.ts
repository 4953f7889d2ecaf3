/**
 * Fetches copies of databases from other nodes of the cluster (server/endpoints/cluster/cluster-copies.ts): a base, which replaces
 * the local files of a database, and missing contents of attachments.
 *
 *     const fetch = new CopyFetch({ tag: "B", peers, sources, log });
 *     await databases.replaceFiles("shop", (restore, old) => fetch.copy(id, restore, old, signal));
 *
 * Invariants:
 * - Received bytes are accepted only if their hashes and checksums match; otherwise the next node is queried.
 * - A content that the old files contain is not fetched, and a fetched content is not fetched again after a node failed.
 */

import type { Readable } from "node:stream";
import { setTimeout as pause } from "node:timers/promises";
import { EngineError } from "../../engine/base/errors.ts";
import { collectBytes } from "../../engine/base/memory/collect-bytes.ts";
import type { LogRestore, OldContent } from "../../engine/engine.ts";
import type { Log } from "../logging/log.ts";
import type { PeerLink, PeerReply } from "./peer-link.ts";

interface CopyFetchOptions {
  /** Tag of this node. */
  readonly tag: string;
  readonly peers: PeerLink;
  /** Returns the tags of other nodes with an intact copy of the database, best first. Called for each attempt. */
  readonly sources: (id: string) => readonly string[];
  readonly log: Log;
  /** Maximum time without received bytes, in milliseconds. Default: 30,000. */
  readonly stallMs?: number;
  /** Pause between two rounds over all nodes, in milliseconds. Default: 1,000. */
  readonly roundMs?: number;
}

/** The result of a fetch. */
interface FetchedCopy {
  /** Tag of the node that sent the base. */
  readonly tag: string;
  /** Position of the base in the stream, or null if the base contains no message of it. */
  readonly mark: CopyMark | null;
  readonly contents: number;
  /** Number of contents that no node has, because their attachments were deleted meanwhile or all replicas are damaged. */
  readonly missing: number;
}

export interface CopyMark {
  readonly generation: number;
  readonly sequence: number;
}

/** A base that is being copied. The stream must retain the messages after its position. */
interface CopyUnderWay {
  readonly id: string;
  readonly tag: string;
  mark: CopyMark | null;
}

const usualStallMs = 30_000;
const usualRoundMs = 1000;
/** Maximum number of consecutive rounds in which no node could be queried for a content. */
const roundsMax = 60;
/** Contents fetched in parallel: most are small, and each waits for the disk. */
const contentsAtOnce = 8;
const namesBytesMax = 65;

/** A node has no copy, or sent invalid bytes. Another node may succeed. */
class PeerFailed extends Error {
  override readonly name = "PeerFailed";
}

export class CopyFetch {
  readonly #options: CopyFetchOptions;
  readonly #underWay = new Set<CopyUnderWay>();

  constructor(options: CopyFetchOptions) {
    this.#options = options;
  }

  /** Copies in progress. */
  get underWay(): ReadonlySet<CopyUnderWay> {
    return this.#underWay;
  }

  /**
   * Adds a base and its contents to `restore`. @param own position of the local files in the stream, which must not be
   * ahead of the base; null if they have none
   * @throws EngineError node-unreachable if no node has a usable base; errors of the disk; the reason of `signal`
   */
  async copy(
    id: string,
    restore: LogRestore,
    old: OldContent,
    signal: AbortSignal,
    own: CopyMark | null = null,
  ): Promise<FetchedCopy> {
    const [tag] = this.#options.sources(id);
    if (tag === undefined) throw unreachable(`No other node has a copy of database ${id}`);
    const underWay: CopyUnderWay = { id, tag, mark: null };
    this.#underWay.add(underWay);
    try {
      const base = await this.#send(tag, `${pathOf(id)}/base?node=${this.#options.tag}`, signal);
      underWay.mark = markOf(base);
      if (isBefore(underWay.mark, own)) {
        base.body.destroy();
        throw unreachable(`Node ${tag} has less of database ${id} than this one`);
      }
      const copy = String(base.headers["x-jackdaw-copy"]);
      try {
        await restore.add(`base of node ${tag}`, this.#bytesOf(base.body, signal));
        if (restore.databaseId !== id) throw unreachable(`Node ${tag} sent another database`);
        const count = Number(base.headers["x-jackdaw-contents"]);
        const names = await this.#names(tag, id, copy, count, signal);
        const missing = await this.#addContents(id, copy, names, restore, old, signal);
        return { tag, mark: underWay.mark, contents: names.length, missing };
      } finally {
        await this.#end(tag, id, copy);
      }
    } finally {
      this.#underWay.delete(underWay);
    }
  }

  /**
   * Returns the bytes of a content from any node that has it, or null if no node has it. The caller must verify the hash.
   * @throws EngineError node-unreachable if a node, or all nodes, could not be queried
   */
  async content(
    id: string,
    name: string,
    signal: AbortSignal,
  ): Promise<AsyncIterable<Buffer> | null> {
    const tags = this.#options.sources(id);
    let failure: unknown = tags.length === 0 ? new Error("no other node is available") : undefined;
    for (const tag of tags) {
      try {
        const reply = await this.#contentReply(tag, id, name, "", signal);
        if (reply !== null) return this.#bytesOf(reply.body, signal);
      } catch (error) {
        signal.throwIfAborted();
        failure = error;
      }
    }
    if (failure === undefined) return null;
    throw unreachable(`Content ${name} of database ${id} cannot be fetched`, failure);
  }

  /** @returns the number of contents that no node has */
  async #addContents(
    id: string,
    copy: string,
    names: readonly string[],
    restore: LogRestore,
    old: OldContent,
    signal: AbortSignal,
  ): Promise<number> {
    let [next, missing] = [0, 0];
    const work = async () => {
      for (let name = names[next++]; name !== undefined; name = names[next++]) {
        signal.throwIfAborted();
        const isThere =
          (await this.#addOld(name, restore, old)) ||
          (await this.#addContent(id, copy, name, restore, signal));
        if (!isThere) missing++;
      }
    };
    const workers = Array.from({ length: contentsAtOnce }, work);
    // All must settle, so that none is still running when this function returns.
    const results = await Promise.allSettled(
      workers.map((worker) =>
        worker.catch((error: unknown) => {
          next = names.length;
          throw error;
        }),
      ),
    );
    for (const result of results) if (result.status === "rejected") throw result.reason;
    return missing;
  }

  async #addOld(name: string, restore: LogRestore, old: OldContent): Promise<boolean> {
    try {
      await restore.addContent(name, old(name));
      return true;
    } catch (error) {
      if (isOfContent(error)) return false;
      throw error;
    }
  }

  /** Queries one node after another, in rounds. @returns false if no node has the content */
  async #addContent(
    id: string,
    copy: string,
    name: string,
    restore: LogRestore,
    signal: AbortSignal,
  ): Promise<boolean> {
    const { sources, roundMs = usualRoundMs } = this.#options;
    for (let round = 0; ; round++) {
      const tags = sources(id);
      let failure: unknown =
        tags.length === 0 ? new Error("no other node is available") : undefined;
      for (const tag of tags) {
        try {
          const reply = await this.#contentReply(tag, id, name, `?copy=${copy}`, signal);
          if (reply === null) continue;
          await restore.addContent(name, this.#bytesOf(reply.body, signal));
          return true;
        } catch (error) {
          signal.throwIfAborted();
          if (!isOfContent(error) && !isOfPeer(error)) throw error;
          failure = error;
        }
      }
      if (failure === undefined) return false;
      if (round === roundsMax) throw unreachable(`Content ${name} cannot be fetched`, failure);
      await pause(roundMs, undefined, { signal });
    }
  }

  /** Resolves to null if the node does not have the content. */
  async #contentReply(
    tag: string,
    id: string,
    name: string,
    query: string,
    signal: AbortSignal,
  ): Promise<PeerReply | null> {
    const target = `${pathOf(id)}/contents/${name}${query}`;
    const reply = await this.#options.peers.send(tag, { method: "GET", target, signal });
    if (reply.status === 200) return reply;
    reply.body.destroy();
    if (reply.status === 404) return null;
    throw new PeerFailed(`node ${tag} answers ${reply.status} to ${target}`);
  }

  /** Fetches the names of all contents of the base. */
  async #names(
    tag: string,
    id: string,
    copy: string,
    count: number,
    signal: AbortSignal,
  ): Promise<string[]> {
    if (count === 0) return [];
    const reply = await this.#send(tag, `${pathOf(id)}/contents?copy=${copy}`, signal);
    const body = this.#bytesOf(reply.body, signal);
    const bytes = await collectBytes(body, count * namesBytesMax, () =>
      unreachable(`Node ${tag} lists more contents than it announced`),
    );
    const names = bytes.toString("latin1").split("\n").slice(0, -1);
    const isWhole = names.length === count && names.every((one) => /^[0-9a-f]{64}$/.test(one));
    if (isWhole) return names;
    throw unreachable(`Node ${tag} does not list the ${count} contents of its copy`);
  }

  async #end(tag: string, id: string, copy: string): Promise<void> {
    try {
      const target = `${pathOf(id)}/base?copy=${copy}`;
      const reply = await this.#options.peers.send(tag, { method: "DELETE", target });
      reply.body.destroy();
    } catch {
      // The copy expires on the other node.
    }
  }

  /** @throws EngineError node-unreachable for any status but 200 */
  async #send(tag: string, target: string, signal: AbortSignal): Promise<PeerReply> {
    const reply = await this.#options.peers.send(tag, { method: "GET", target, signal });
    if (reply.status === 200) return reply;
    const text = await textOf(reply.body);
    throw unreachable(`Node ${tag} returned no copy: ${reply.status} ${text}`);
  }

  /** Yields the received bytes until the sender stalls. */
  async *#bytesOf(body: Readable, signal: AbortSignal): AsyncGenerator<Buffer> {
    const { stallMs = usualStallMs } = this.#options;
    const stalled = () => body.destroy(new PeerFailed(`no bytes received for ${stallMs} ms`));
    const ended = () => body.destroy(signal.reason as Error);
    signal.addEventListener("abort", ended, { once: true });
    let timer = setTimeout(stalled, stallMs);
    try {
      for await (const piece of body) {
        // The timeout does not apply while the disk writes.
        clearTimeout(timer);
        yield piece as Buffer;
        timer = setTimeout(stalled, stallMs);
      }
    } catch (error) {
      signal.throwIfAborted();
      if (isOfPeer(error)) throw error;
      throw new PeerFailed(`the connection ended: ${(error as Error).message}`, { cause: error });
    } finally {
      clearTimeout(timer);
      signal.removeEventListener("abort", ended);
      body.destroy();
    }
  }
}

function pathOf(id: string): string {
  return `/cluster/copies/${id}`;
}

/** Maximum number of bytes of an error that are reported. */
const toldBytesMax = 2000;

async function textOf(body: Readable): Promise<string> {
  let text = "";
  try {
    for await (const piece of body) {
      text += String(piece);
      if (text.length > toldBytesMax) break;
    }
  } catch {
    // The received part is reported.
  }
  body.destroy();
  return text.slice(0, toldBytesMax);
}

function markOf({ headers }: PeerReply): CopyMark | null {
  const [, generation, sequence] =
    /^(\d{1,15}):(\d{1,15})$/.exec(String(headers["x-jackdaw-mark"])) ?? [];
  if (generation === undefined) return null;
  return { generation: Number(generation), sequence: Number(sequence) };
}

/** Returns whether a copy up to `mark` would be older than `own`. */
function isBefore(mark: CopyMark | null, own: CopyMark | null): boolean {
  if (own === null) return false;
  if (mark === null || mark.generation < own.generation) return true;
  return mark.generation === own.generation && mark.sequence < own.sequence;
}

/** Returns whether the bytes do not match the hash, or are missing, as opposed to an error of the local disk. */
function isOfContent(error: unknown): boolean {
  if (!(error instanceof EngineError)) return false;
  return ["backup-damaged", "record-damaged", "read-failed"].includes(error.code);
}

function isOfPeer(error: unknown): boolean {
  if (error instanceof PeerFailed) return true;
  return error instanceof EngineError && error.code === "node-unreachable";
}

function unreachable(message: string, cause?: unknown): EngineError {
  const why = cause instanceof Error ? `: ${cause.message}` : "";
  return new EngineError("node-unreachable", `${message}${why}.`, { cause });
}
