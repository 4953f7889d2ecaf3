/**
 * The rows of a list of documents, loaded in blocks as they become visible. Without filter and order, rows come from
 * a preview of the collection, newest change first; otherwise from a query.
 */
import { useCallback, useEffect, useRef, useState } from "preact/hooks";
import { getText, ServerError, sendText } from "../../base/client.ts";
import type { Sort } from "../../components/virtual-table.tsx";
import {
  type JsonMembers,
  type JsonNode,
  JsonNumber,
  memberOf,
  parseSource,
} from "../../json/json-source.ts";

export interface ListRow {
  readonly id: string;
  readonly collection: string | undefined;
  readonly lastModified: string;
  readonly flags: string;
  readonly members: JsonMembers;
  /** Lists and objects of which only the size is known. */
  readonly lists: JsonMembers;
  readonly objects: JsonMembers;
}

/** Parameters of the list. */
export interface ListAsk {
  readonly base: string;
  readonly collection: string | undefined;
  /** Id prefix, or RQL condition; "" for all documents. */
  readonly where: string;
  readonly sort: Sort | undefined;
  /** Type of the sorted field, from `studio/collections/fields`. */
  readonly sortType: string | undefined;
  /** Additional fields, comma-separated. */
  readonly paths: string;
}

export interface ListState {
  readonly total: number;
  /** False if the total is a lower bound. */
  readonly isTotalKnown: boolean;
  readonly isStale: boolean;
  readonly indexName: string | null;
  readonly ms: number;
  readonly blocks: ReadonlyMap<number, readonly ListRow[]>;
}

export const blockRows = 128;
const blocksMax = 20;
const pauseMs = 40;
/** Matches an id prefix: `orders/8`, `orders/`, `orders`. A condition has an operator or a function. */
const idStart = /^[^\s=<>()'"]+$/;

export function isIdStart(where: string): boolean {
  return idStart.test(where.trim());
}

/** Returns the query for the same documents, ordered only if an order is selected. */
export function rqlOf(ask: ListAsk): { text: string; parameters: Record<string, string> } {
  const { collection, where, sort } = ask;
  const from = collection === undefined ? "from @all_docs" : `from ${quoted(collection)}`;
  const isById = isIdStart(where);
  const condition = isById ? "startsWith(id(), $prefix)" : where.trim();
  const text = [
    from,
    ...(condition === "" ? [] : [`where ${condition}`]),
    ...(sort === undefined ? [] : [`order by ${orderOf(sort, ask.sortType)}`]),
  ].join(" ");
  return { text, parameters: isById ? { prefix: where.trim() } : {} };
}

export function quoted(name: string): string {
  return `'${name.replaceAll("\\", "\\\\").replaceAll("'", "\\'")}'`;
}

function orderOf({ key, isDescending }: Sort, type: string | undefined): string {
  const end = isDescending ? " desc" : "";
  if (key === "@id") return `id()${end}`;
  const field = key
    .split(".")
    .map((name) => (/^[A-Za-z_]\w*$/.test(name) ? name : quoted(name)))
    .join(".");
  return `${field}${type === "Number" ? " as double" : ""}${end}`;
}

export function useRows(ask: ListAsk) {
  const [state, setState] = useState<ListState | null>(null);
  const [error, setError] = useState<Error | null>(null);
  const [round, setRound] = useState(0);
  const [waits, setWaits] = useState(false);
  const [loaded, setLoaded] = useState("");
  const asked = useRef(new Map<number, AbortController>());
  const held = useRef<ListState | null>(null);
  held.current = state;
  const key = JSON.stringify([ask, round, waits]);
  const latest = useRef(key);
  latest.current = key;

  const fetchBlock = useCallback(
    async (block: number) => {
      const abort = new AbortController();
      asked.current.set(block, abort);
      const startedMs = performance.now();
      try {
        const { signal } = abort;
        const before = held.current?.blocks.get(block - 1);
        const found = isQuery(ask)
          ? await queried(ask, block, waits, signal)
          : await loadFollowing(ask, block, shift, before, signal);
        if (latest.current !== key) return;
        const ms = performance.now() - startedMs;
        // A new list replaces the previous one as soon as its first block is loaded.
        setState((before) => withBlock(isNew.current ? null : before, block, found, ms));
        isNew.current = false;
        setLoaded(key);
        setError(null);
      } catch (failed) {
        if (abort.signal.aborted || latest.current !== key) return;
        setError(failed as Error);
        // The rows belong to another filter.
        if (isNew.current && failed instanceof ServerError) setState(null);
      } finally {
        if (asked.current.get(block) === abort) asked.current.delete(block);
      }
    },
    [key],
  );
  const isNew = useRef(true);
  /** Number of rows by which the list has shifted on the server since its first block was loaded. */
  const shift = useRef(0);
  const pause = useRef<ReturnType<typeof setTimeout> | undefined>(undefined);
  useEffect(() => {
    isNew.current = true;
    shift.current = 0;
    const requests = asked.current;
    void fetchBlock(0);
    return () => {
      clearTimeout(pause.current);
      for (const abort of requests.values()) abort.abort();
      requests.clear();
    };
  }, [fetchBlock]);
  const need = useCallback(
    (from: number, to: number) => {
      if (isNew.current) return;
      const first = Math.floor(from / blockRows);
      const last = Math.floor(Math.max(from, to - 1) / blockRows);
      for (const [block, abort] of asked.current)
        if (block < first - 1 || block > last + 1) abort.abort();
      // Blocks that are scrolled past are not loaded.
      clearTimeout(pause.current);
      pause.current = setTimeout(() => {
        for (let block = first; block <= last; block++) {
          if (!held.current?.blocks.has(block) && !asked.current.has(block)) void fetchBlock(block);
        }
      }, pauseMs);
    },
    // A new function when a list is loaded: the table then requests the rows that it shows.
    [fetchBlock, loaded],
  );
  return {
    state,
    error,
    need,
    reload: () => setRound((before) => before + 1),
    waitForIndex: () => {
      setWaits(true);
      setRound((before) => before + 1);
    },
  };
}

interface Found {
  readonly total: number;
  readonly isStale: boolean;
  readonly indexName: string | null;
  readonly rows: readonly ListRow[];
}

function withBlock(before: ListState | null, block: number, found: Found, ms: number): ListState {
  const blocks = new Map(before?.blocks);
  blocks.delete(block);
  blocks.set(block, found.rows);
  for (const oldest of blocks.keys()) {
    if (blocks.size <= blocksMax) break;
    blocks.delete(oldest);
  }
  const { isStale, indexName } = found;
  if (found.total >= 0) {
    return { total: found.total, isTotalKnown: true, isStale, indexName, ms, blocks };
  }
  // The server does not count unread rows: an incomplete block is the last one.
  const seen = block * blockRows + found.rows.length;
  const isEnd = found.rows.length < blockRows;
  const isTotalKnown = before?.isTotalKnown === true || isEnd;
  const total = isEnd
    ? seen
    : before?.isTotalKnown
      ? before.total
      : Math.max(before?.total ?? 0, seen);
  return {
    total: isTotalKnown ? total : Math.max(total, seen + 1),
    isTotalKnown,
    isStale,
    indexName,
    ms,
    blocks,
  };
}

/** Returns true if the list is a query; otherwise it is a preview, newest change first. */
export function isQuery({ where, sort }: ListAsk): boolean {
  return where.trim() !== "" || sort !== undefined;
}

/**
 * Loads a block of a preview that continues after the preceding block. Concurrent writes are inserted at the top and
 * shift the following rows.
 */
async function loadFollowing(
  ask: ListAsk,
  block: number,
  shift: { current: number },
  before: readonly ListRow[] | undefined,
  signal: AbortSignal,
): Promise<Found> {
  const last = before?.length === blockRows ? before.at(-1) : undefined;
  for (let tries = 0; ; tries++) {
    const start = block * blockRows + shift.current;
    const overlap = last === undefined ? 0 : 1;
    const found = await previewed(ask, start - overlap, blockRows + overlap, signal);
    const at = overlap === 0 ? -1 : found.rows.findIndex(({ id }) => id === last?.id);
    // If the last row is not found, it changed and moved to the top.
    if (at <= 0 || tries > 2) return { ...found, rows: found.rows.slice(overlap) };
    shift.current += at;
  }
}

/** Loads rows of the preview, newest change first. */
export async function previewed(
  { base, collection, paths }: ListAsk,
  start: number,
  pageSize: number,
  signal: AbortSignal,
): Promise<Found> {
  const query = new URLSearchParams({ start: String(start), pageSize: String(pageSize) });
  if (collection !== undefined) query.set("collection", collection);
  for (const path of paths === "" ? [] : paths.split(",")) {
    const [root = path, ...rest] = path.split(".");
    query.append("binding", root);
    if (rest.length > 0) query.append("fullBinding", root);
  }
  const { body } = await getText(`${base}/studio/collections/preview?${query}`, signal);
  const answer = parseSource(body);
  return {
    total: numberOf(memberOf(answer, "TotalResults")),
    isStale: false,
    indexName: null,
    rows: rowsOf(answer),
  };
}

async function queried(
  ask: ListAsk,
  block: number,
  waits: boolean,
  signal: AbortSignal,
): Promise<Found> {
  const { text, parameters } = rqlOf(ask);
  const json = {
    Query: text,
    QueryParameters: parameters,
    Start: block * blockRows,
    PageSize: blockRows,
    ...(waits ? { WaitForNonStaleResults: true, WaitForNonStaleResultsTimeout: "00:00:15" } : {}),
  };
  const { body } = await sendText("POST", `${ask.base}/queries`, { json, signal });
  const answer = parseSource(body);
  return {
    total: numberOf(memberOf(answer, "TotalResults")),
    isStale: memberOf(answer, "IsStale") === true,
    indexName: String(memberOf(answer, "IndexName") ?? ""),
    rows: rowsOf(answer),
  };
}

function numberOf(node: JsonNode | undefined): number {
  return node instanceof JsonNumber ? Number(node.digits) : 0;
}

const none: JsonMembers = new Map();

function rowsOf(answer: JsonNode): ListRow[] {
  const results = memberOf(answer, "Results");
  return (Array.isArray(results) ? results : []).map(rowOf);
}

function rowOf(node: JsonNode): ListRow {
  const members = node instanceof Map ? node : none;
  const metadata = members.get("@metadata");
  const text = (name: string) => {
    const value = memberOf(metadata, name);
    return typeof value === "string" ? value : "";
  };
  const map = (name: string) => {
    const value = memberOf(metadata, name);
    return value instanceof Map ? value : none;
  };
  return {
    id: text("@id"),
    collection: text("@collection") || undefined,
    lastModified: text("@last-modified"),
    flags: text("@flags"),
    members,
    lists: map("$a"),
    objects: map("$o"),
  };
}
