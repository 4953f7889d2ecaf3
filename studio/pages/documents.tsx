/** Page 2: the documents of a collection, or of all, newest change first. */
import { useCallback, useEffect, useMemo, useRef, useState } from "preact/hooks";
import { get } from "../base/client.ts";
import { ago, count, counted } from "../base/format.ts";
import { useResource } from "../base/resource.ts";
import { href, open } from "../base/router.ts";
import { Bones, Empty, Failure } from "../components/messages.tsx";
import { type Column, VirtualTable } from "../components/virtual-table.tsx";
import { usePage } from "../shell/page.ts";
import { cellOf, type Preview, type PreviewRow, widthOf } from "./document-cells.tsx";

interface CollectionStats {
  readonly CountOfDocuments: number;
  readonly Collections: Readonly<Record<string, number>>;
}

const blockRows = 128;
const blocksMax = 20;
const shownColumnsMax = 8;
const pollMs = 5000;

export function DocumentsPage({
  database,
  collection,
}: {
  database: string;
  collection: string | undefined;
}) {
  const base = `/databases/${encodeURIComponent(database)}`;
  const title = collection ?? "All documents";
  usePage("docs", [
    { text: database, to: href(["db", database, "docs"]) },
    { text: "Documents", to: href(["db", database, "docs"]) },
    { text: title },
  ]);
  const stats = useResource<CollectionStats>(`${base}/collections/stats`, pollMs);
  const collections = Object.entries(stats.body?.Collections ?? {})
    .filter(([, documents]) => documents > 0)
    .sort(([, a], [, b]) => b - a);
  const all = stats.body?.CountOfDocuments ?? 0;
  return (
    <div class="docs">
      <nav class="colls" aria-label="Collections">
        <h3>
          <span>Collections</span>
          <span>{stats.body === undefined ? "" : count(all)}</span>
        </h3>
        <a
          href={href(["db", database, "docs"])}
          aria-current={collection === undefined ? "page" : undefined}
        >
          All documents
        </a>
        {collections.map(([name, documents]) => (
          <a
            key={name}
            href={href(["db", database, "docs", name])}
            aria-current={collection === name ? "page" : undefined}
          >
            <span class="cut">{name}</span>
            <small>{count(documents)}</small>
          </a>
        ))}
      </nav>
      <div class="pane">
        {stats.error !== undefined && <Failure error={stats.error} retry={stats.reload} />}
        {stats.body !== undefined && all === 0 ? (
          <NoDocuments database={database} reload={stats.reload} />
        ) : (
          <List key={title} base={base} database={database} collection={collection} title={title} />
        )}
      </div>
    </div>
  );
}

function NoDocuments({ database, reload }: { database: string; reload: () => void }) {
  return (
    <Empty icon="doc" title={`No documents in ${database} yet`}>
      <p>
        A document is JSON with an id. Documents that have the same kind of content form a
        collection.
      </p>
      <button type="button" class="btn" onClick={reload}>
        Look again
      </button>
    </Empty>
  );
}

interface Blocks {
  readonly total: number;
  readonly columns: readonly string[];
  readonly blocks: ReadonlyMap<number, readonly PreviewRow[]>;
}

function List({
  base,
  database,
  collection,
  title,
}: {
  base: string;
  database: string;
  collection: string | undefined;
  title: string;
}) {
  const { state, error, need, reload } = useBlocks(base, collection);
  const nowMs = Date.now();
  const columns = useMemo(
    () => (state === null ? [] : columnsOf(database, state, collection === undefined, nowMs)),
    [database, state?.columns],
  );
  const row = (index: number) =>
    state?.blocks.get(Math.floor(index / blockRows))?.[index % blockRows];
  const openRow = useCallback(
    (found: PreviewRow) => open(href(["db", database, "doc", found["@metadata"]["@id"]])),
    [database],
  );
  return (
    <>
      <div class="tools">
        <h1>{title}</h1>
        <span class="muted">{state === null ? "" : counted(state.total, "document")}</span>
      </div>
      {error !== null && <Failure error={error} retry={reload} />}
      {state === null && error === null && <Bones rows={20} />}
      {state !== null && (
        <VirtualTable
          label={`Documents of ${title}`}
          columns={columns}
          total={state.total}
          row={row}
          need={need}
          open={openRow}
        />
      )}
      <div class="status">
        <span>newest change first</span>
      </div>
    </>
  );
}

/** The documents in blocks, of which those that were needed last are kept. */
function useBlocks(base: string, collection: string | undefined) {
  const [state, setState] = useState<Blocks | null>(null);
  const [error, setError] = useState<Error | null>(null);
  const [round, setRound] = useState(0);
  const asked = useRef(new Map<number, AbortController>());
  const held = useRef<Blocks | null>(null);
  held.current = state;
  const fetchBlock = useCallback(
    async (block: number) => {
      const abort = new AbortController();
      asked.current.set(block, abort);
      const query = new URLSearchParams({
        start: String(block * blockRows),
        pageSize: String(blockRows),
      });
      if (collection !== undefined) query.set("collection", collection);
      try {
        const { body } = await get<Preview>(
          `${base}/studio/collections/preview?${query}`,
          abort.signal,
        );
        setState((before) => withBlock(before, block, body));
        setError(null);
      } catch (failed) {
        if (!abort.signal.aborted) setError(failed as Error);
      } finally {
        asked.current.delete(block);
      }
    },
    [base, collection],
  );
  useEffect(() => {
    const requests = asked.current;
    void fetchBlock(0);
    return () => {
      for (const abort of requests.values()) abort.abort();
    };
  }, [fetchBlock, round]);
  const need = useCallback(
    (from: number, to: number) => {
      const first = Math.floor(from / blockRows);
      const last = Math.floor(Math.max(from, to - 1) / blockRows);
      for (const [block, abort] of asked.current)
        if (block < first - 1 || block > last + 1) abort.abort();
      for (let block = first; block <= last; block++) {
        if (!held.current?.blocks.has(block) && !asked.current.has(block)) void fetchBlock(block);
      }
    },
    [fetchBlock],
  );
  return { state, error, need, reload: () => setRound((before) => before + 1) };
}

function withBlock(before: Blocks | null, block: number, found: Preview): Blocks {
  const blocks = new Map(before?.blocks);
  blocks.delete(block);
  blocks.set(block, found.Results);
  for (const oldest of blocks.keys()) {
    if (blocks.size <= blocksMax) break;
    blocks.delete(oldest);
  }
  const columns = before?.columns ?? found.AvailableColumns;
  return { total: found.TotalResults, columns, blocks };
}

function columnsOf(
  database: string,
  { columns, blocks }: Blocks,
  isOfAll: boolean,
  nowMs: number,
): Column<PreviewRow>[] {
  const sample = [...blocks.values()].flat().slice(0, blockRows);
  const shown = columns.filter((name) => sample.some((row) => name in row || isCounted(row, name)));
  return [
    {
      key: "@id",
      title: "Id",
      width: 200,
      cell: ({ "@metadata": { "@id": id } }) => (
        <a class="idlink" href={href(["db", database, "doc", id])}>
          {id}
        </a>
      ),
    },
    ...(isOfAll ? [collectionColumn(database)] : []),
    ...shown.slice(0, shownColumnsMax).map((name): Column<PreviewRow> => {
      const isNumber = sample.every((row) => row[name] == null || typeof row[name] === "number");
      return {
        key: name,
        title: name,
        width: widthOf(name, sample),
        isNumber: isNumber && sample.some((row) => typeof row[name] === "number"),
        cell: (row) => cellOf(row, name, database),
      };
    }),
    {
      key: "@last-modified",
      title: "Changed",
      width: 130,
      cell: ({ "@metadata": meta }) => (
        <span class="muted" title={meta["@last-modified"]}>
          {ago(meta["@last-modified"], nowMs)}
        </span>
      ),
    },
  ];
}

/** Of the list of all documents, whose fields differ. */
function collectionColumn(database: string): Column<PreviewRow> {
  return {
    key: "@collection",
    title: "Collection",
    width: 180,
    cell: ({ "@metadata": { "@collection": name } }) =>
      name === undefined ? null : <a href={href(["db", database, "docs", name])}>{name}</a>,
  };
}

function isCounted(row: PreviewRow, name: string): boolean {
  return name in row["@metadata"].$a || name in row["@metadata"].$o;
}
