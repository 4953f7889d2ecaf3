/**
 * Takes copies of databases from other nodes of the cluster (server/endpoints/cluster-copies.ts): a base, which replaces
 * the files of a database here, and contents of attachments that are missing.
 *
 *     const fetch = new CopyFetch({ tag: "B", peers, sources, log });
 *     await databases.replaceFiles("shop", (restore, old) => fetch.copy(id, restore, old, signal));
 *
 * Invariants:
 * - What is taken is what the hashes and checksums in it say; what is not is asked of the next node.
 * - A content that the old files have is not asked for. One that was taken is not taken again, whichever node fails.
 */
import type { Readable } from "node:stream";
import { setTimeout as pause } from "node:timers/promises";
import { EngineError } from "../../engine/base/errors.ts";
import type { LogRestore, OldContent } from "../../engine/engine.ts";
import type { Log } from "../logging/log.ts";
import type { PeerLink, PeerReply } from "./peer-link.ts";

export interface CopyFetchOptions {
  /** Of this node. */
  readonly tag: string;
  readonly peers: PeerLink;
  /** Tags of other nodes that have a sound copy of a database, by its id; the best one first. Asked for each attempt. */
  readonly sources: (id: string) => readonly string[];
  readonly log: Log;
  /** Milliseconds that a node may send nothing; left out: 30,000. */
  readonly stallMs?: number;
  /** Milliseconds between two rounds through all nodes; left out: 1,000. */
  readonly roundMs?: number;
}

/** What was copied. */
export interface FetchedCopy {
  /** The node that the base is from. */
  readonly tag: string;
  /** How far the base is a copy of the stream; null: it has nothing of it. */
  readonly mark: CopyMark | null;
  readonly contents: number;
  /** Contents that no node has: of attachments that were deleted meanwhile, or are damaged everywhere. */
  readonly missing: number;
}

export interface CopyMark {
  readonly generation: number;
  readonly sequence: number;
}

/** A base that is being copied: its place in the stream must not be purged. */
export interface CopyUnderWay {
  readonly id: string;
  readonly tag: string;
  mark: CopyMark | null;
}

const usualStallMs = 30_000;
const usualRoundMs = 1000;
/** Rounds in which not one node could be asked for a content, until the copy is given up. */
const roundsMax = 60;
/** Contents at once: most are small, and each waits for the disk. */
const contentsAtOnce = 8;
const namesBytesMax = 65;

/** The nodes have nothing, or other bytes than they should: another one may be better. */
class PeerFailed extends Error {
  override readonly name = "PeerFailed";
}

export class CopyFetch {
  readonly #options: CopyFetchOptions;
  readonly #underWay = new Set<CopyUnderWay>();

  constructor(options: CopyFetchOptions) {
    this.#options = options;
  }

  /** Copies that are being taken. */
  get underWay(): ReadonlySet<CopyUnderWay> {
    return this.#underWay;
  }

  /**
   * Adds a base, and the contents that belong to it, to `restore`. @param own where the own files are in the stream, which
   * must not be ahead; null: nowhere
   * @throws EngineError node-unreachable when no node has a base that can be used; what the disk throws; the reason of
   * `signal`
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
   * The bytes of a content, from whichever node has it; null: every node was asked and has it not. Compare them with the
   * hash. @throws EngineError node-unreachable when not all could be asked, or none
   */
  async content(
    id: string,
    name: string,
    signal: AbortSignal,
  ): Promise<AsyncIterable<Buffer> | null> {
    const tags = this.#options.sources(id);
    let failure: unknown = tags.length === 0 ? new Error("no other node is there") : undefined;
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
    throw unreachable(`Content ${name} of database ${id} cannot be asked for`, failure);
  }

  /** @returns how many are nowhere */
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
    // None of them may go on after this has ended.
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

  /** Asks one node after the other, again and again. @returns false: none has it */
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
      let failure: unknown = tags.length === 0 ? new Error("no other node is there") : undefined;
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
      if (round === roundsMax) throw unreachable(`Content ${name} cannot be taken`, failure);
      await pause(roundMs, undefined, { signal });
    }
  }

  /** null: it has it not. */
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

  /** The names of all contents that belong to the base. */
  async #names(
    tag: string,
    id: string,
    copy: string,
    count: number,
    signal: AbortSignal,
  ): Promise<string[]> {
    if (count === 0) return [];
    const reply = await this.#send(tag, `${pathOf(id)}/contents?copy=${copy}`, signal);
    const pieces: Buffer[] = [];
    let left = count * namesBytesMax;
    for await (const piece of this.#bytesOf(reply.body, signal)) {
      left -= piece.length;
      if (left < 0) throw unreachable(`Node ${tag} names more contents than it said`);
      pieces.push(piece);
    }
    const names = Buffer.concat(pieces).toString("latin1").split("\n").slice(0, -1);
    const isWhole = names.length === count && names.every((one) => /^[0-9a-f]{64}$/.test(one));
    if (isWhole) return names;
    throw unreachable(`Node ${tag} does not name the ${count} contents of its copy`);
  }

  async #end(tag: string, id: string, copy: string): Promise<void> {
    try {
      const target = `${pathOf(id)}/base?copy=${copy}`;
      const reply = await this.#options.peers.send(tag, { method: "DELETE", target });
      reply.body.destroy();
    } catch {
      // It ends by itself.
    }
  }

  /** @throws EngineError node-unreachable for any answer but 200 */
  async #send(tag: string, target: string, signal: AbortSignal): Promise<PeerReply> {
    const reply = await this.#options.peers.send(tag, { method: "GET", target, signal });
    if (reply.status === 200) return reply;
    const text = await textOf(reply.body);
    throw unreachable(`Node ${tag} gives no copy: ${reply.status} ${text}`);
  }

  /** As they come, until they stall. */
  async *#bytesOf(body: Readable, signal: AbortSignal): AsyncGenerator<Buffer> {
    const { stallMs = usualStallMs } = this.#options;
    const stalled = () => body.destroy(new PeerFailed(`nothing came for ${stallMs} ms`));
    const ended = () => body.destroy(signal.reason as Error);
    signal.addEventListener("abort", ended, { once: true });
    let timer = setTimeout(stalled, stallMs);
    try {
      for await (const piece of body) {
        // While the disk takes it, nothing need come.
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

/** Bytes of an error that are told. */
const toldBytesMax = 2000;

async function textOf(body: Readable): Promise<string> {
  let text = "";
  try {
    for await (const piece of body) {
      text += String(piece);
      if (text.length > toldBytesMax) break;
    }
  } catch {
    // What came is told.
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

/** Would a copy up to `mark` go back behind `own`? */
function isBefore(mark: CopyMark | null, own: CopyMark | null): boolean {
  if (own === null) return false;
  if (mark === null || mark.generation < own.generation) return true;
  return mark.generation === own.generation && mark.sequence < own.sequence;
}

/** The bytes are not those of the hash, or there are none: not an error of the disk that is written to. */
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
