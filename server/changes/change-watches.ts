/**
 * The watches of one connection, set by its client's commands and queried for every change. Independent of sockets and of
 * the wire format of changes.
 *
 * Invariants:
 * - Ids and names are case-insensitive.
 * - Watching the same thing twice is the same as watching it once.
 * - At most `watchCountMax` ids and names are watched.
 */
import { foldedName, lowerCased } from "../../engine/base/case-folding.ts";
import type { DocumentFacts, PartFacts } from "./change-message.ts";

/** Maximum number of ids and names that one connection may watch. */
const watchCountMax = 4096;

/** An invalid command; the message is sent to the client. */
export class WatchCommandError extends Error {}

/** Separates the two parts of a pair's key; occurs neither in ids nor in counter names. */
const separator = "\u001e";

const allKinds = [
  "docs",
  "indexes",
  "operations",
  "counters",
  "all-timeseries",
  "aggressive-caching",
  "topology-change",
] as const;
/** Kinds that watch one id or name. */
const namedKinds = [
  "doc",
  "prefix",
  "collection",
  "index",
  "operation",
  "counter",
  "document-counters",
  "timeseries",
  "all-document-timeseries",
] as const;
/** Kinds that watch a name within a document. */
const pairKinds = ["document-counter", "document-timeseries"] as const;

type AllKind = (typeof allKinds)[number];
type NamedKind = (typeof namedKinds)[number];
type PairKind = (typeof pairKinds)[number];

export class ChangeWatches {
  /** Lower-cased key -> its parts as the client wrote them. */
  readonly #named = new Map<NamedKind | PairKind, Map<string, readonly string[]>>();
  readonly #all = new Set<AllKind>();

  constructor() {
    for (const kind of [...namedKinds, ...pairKinds]) this.#named.set(kind, new Map());
  }

  /**
   * Executes `watch-…` or `unwatch-…`, in any letter case. `param`: the id or name, for commands with one; `params`:
   * the id and name, for commands with two.
   * @throws WatchCommandError
   */
  apply(command: string, param: unknown, params: unknown): void {
    const match = /^(un)?watch-(.*)$/.exec(command.toLowerCase());
    const isWatch = match?.[1] === undefined;
    const kind = match?.[2] ?? "";
    if (isOneOf(allKinds, kind)) {
      if (isWatch) this.#all.add(kind);
      else this.#all.delete(kind);
    } else if (isOneOf(namedKinds, kind)) {
      this.#change(kind, [nameOf(command, kind, param)], isWatch);
    } else if (isOneOf(pairKinds, kind)) {
      this.#change(kind, pairOf(command, params), isWatch);
    } else throw new WatchCommandError(`There is no command '${command.slice(0, 60)}'.`);
  }

  isAll(kind: AllKind): boolean {
    return this.#all.has(kind);
  }

  /** Returns the watched ids or names as received; pairs have two parts. */
  listed(kind: NamedKind | PairKind): (readonly string[])[] {
    return [...this.#of(kind).values()];
  }

  /** Whether it watches anything that writes change. */
  get needsWrites(): boolean {
    for (const kind of ["docs", "counters", "all-timeseries", "aggressive-caching"] as const) {
      if (this.#all.has(kind)) return true;
    }
    for (const [kind, keys] of this.#named) {
      if (keys.size > 0 && kind !== "index" && kind !== "operation") return true;
    }
    return false;
  }

  wantsDocument({ lowerId, lowerCollection }: DocumentFacts): boolean {
    if (this.#all.has("docs") || this.#of("doc").has(lowerId)) return true;
    if (this.#of("collection").has(lowerCollection)) return true;
    for (const prefix of this.#of("prefix").keys()) if (lowerId.startsWith(prefix)) return true;
    return false;
  }

  wantsCounter({ lowerId, lowerName }: PartFacts): boolean {
    if (this.#all.has("counters") || this.#of("counter").has(lowerName)) return true;
    if (this.#of("document-counters").has(lowerId)) return true;
    const pairs = this.#of("document-counter");
    return pairs.size > 0 && pairs.has(lowerId + separator + lowerName);
  }

  wantsTimeSeries({ lowerId, lowerName }: PartFacts): boolean {
    if (this.#all.has("all-timeseries") || this.#of("timeseries").has(lowerName)) return true;
    if (this.#of("all-document-timeseries").has(lowerId)) return true;
    const pairs = this.#of("document-timeseries");
    return pairs.size > 0 && pairs.has(lowerId + separator + lowerName);
  }

  wantsIndex(lowerName: string): boolean {
    return this.#all.has("indexes") || this.#of("index").has(lowerName);
  }

  wantsOperation(id: number): boolean {
    return this.#all.has("operations") || this.#of("operation").has(String(id));
  }

  #of(kind: NamedKind | PairKind): Map<string, readonly string[]> {
    return this.#named.get(kind) as Map<string, readonly string[]>; // the constructor made all
  }

  #change(kind: NamedKind | PairKind, parts: readonly string[], isWatch: boolean): void {
    const fold = kind === "collection" || kind === "index" ? foldedName : lowerCased;
    const key = fold(parts.join(separator));
    const keys = this.#of(kind);
    if (!isWatch) keys.delete(key);
    else if (this.#count < watchCountMax || keys.has(key)) keys.set(key, parts);
    else
      throw new WatchCommandError(`A connection watches at most ${watchCountMax} ids and names.`);
  }

  get #count(): number {
    let count = 0;
    for (const keys of this.#named.values()) count += keys.size;
    return count;
  }
}

function isOneOf<Kind extends string>(kinds: readonly Kind[], kind: string): kind is Kind {
  return (kinds as readonly string[]).includes(kind);
}

function nameOf(command: string, kind: NamedKind, param: unknown): string {
  if (kind === "operation") {
    if (/^\d{1,15}$/.test(String(param))) return String(Number(param));
  } else if (typeof param === "string") return param;
  throw new WatchCommandError(`The command '${command}' needs a Param.`);
}

function pairOf(command: string, params: unknown): readonly string[] {
  if (Array.isArray(params) && params.length === 2) {
    const [id, name] = params as unknown[];
    if (typeof id === "string" && typeof name === "string") return [id, name];
  }
  throw new WatchCommandError(`The command '${command}' needs Params of an id and a name.`);
}
