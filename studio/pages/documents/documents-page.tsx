/** The collections of a database, and their documents. */

import { useEffect, useRef, useState } from "preact/hooks";
import { watch } from "../../base/changes.ts";
import { count } from "../../base/format.ts";
import { may } from "../../base/identity.ts";
import { useResource } from "../../base/resource.ts";
import { address, href, open } from "../../base/router.ts";
import { Icon } from "../../components/icon.tsx";
import { Empty, Failure } from "../../components/messages.tsx";
import { Separator } from "../../components/separator.tsx";
import { usePage } from "../../shell/page.ts";
import { DocumentList } from "./document-list.tsx";
import { useDropImport } from "./drop-import.ts";
import { OtherList, otherLists } from "./other-lists.tsx";
import { SchemaView } from "./schema-view.tsx";

interface CollectionStats {
  readonly CountOfDocuments: number;
  readonly Collections: Readonly<Record<string, number>>;
}

/** Poll interval while no change notices are received, in milliseconds. */
const pollMs = 15_000;
/** Minimum interval between two counts while documents change, in milliseconds. */
const countMs = 1000;
const liveMs = 2000;

interface Properties {
  database: string;
  /** Collection as in the address; undefined for all documents. */
  collection: string | undefined;
}

export function DocumentsPage({ database, collection }: Properties) {
  const base = `/databases/${encodeURIComponent(database)}`;
  const other = collection === undefined ? undefined : otherLists[collection];
  const title = other ?? collection ?? "All documents";
  usePage("docs", [
    { text: database, to: href(["db", database, "docs"]) },
    { text: "Documents", to: href(["db", database, "docs"]) },
    { text: title },
  ]);
  const stats = useResource<CollectionStats>(`${base}/collections/stats`, pollMs);
  const named = other === undefined ? collection : undefined;
  const drop = useDropImport(database, named);
  const live = useLive(database, stats.reload);
  const fieldsPath =
    collection === undefined || other !== undefined
      ? null
      : `${base}/studio/collections/fields?${new URLSearchParams({ collection })}`;
  const types = useResource<Record<string, string>>(fieldsPath);
  const collections = Object.entries(stats.body?.Collections ?? {})
    .filter(([name, documents]) => documents > 0 || name === collection)
    .sort(([, a], [, b]) => b - a);
  const all = stats.body?.CountOfDocuments ?? 0;
  const choices: readonly (readonly [string | undefined, string, number | undefined])[] = [
    [undefined, "All documents", stats.body === undefined ? undefined : all],
    ...collections.map(([name, documents]) => [name, name, documents] as const),
    ...Object.entries(otherLists).map(([name, text]) => [name, text, undefined] as const),
  ];
  const path = (name: string | undefined) =>
    href(["db", database, "docs", ...(name === undefined ? [] : [name])]);
  return (
    <div class="docs" {...drop.handlers}>
      {drop.isOver && (
        <p class="drop over drop-here">
          <Icon name="file" />
          <b>Drop the file to import it{named === undefined ? "" : ` into ${named}`}</b>
        </p>
      )}
      <nav class="colls" aria-label="Collections">
        <h3>
          <span>Collections</span>
          <span>{stats.body === undefined ? "" : count(all)}</span>
        </h3>
        {choices.map(([name, text, documents]) => (
          <a
            key={text}
            class={name === "@cmpxchg" ? "first-other" : ""}
            href={path(name)}
            aria-current={collection === name ? "page" : undefined}
          >
            <span class="cut">{text}</span>
            {name !== undefined && live.has(name) && <i class="live" title="Changed recently" />}
            {name !== undefined && documents !== undefined && <small>{count(documents)}</small>}
          </a>
        ))}
      </nav>
      <Separator name="collections" label="Resize collections and documents" />
      <label class="colls-choice">
        <span class="hidden-label">Collection</span>
        <select
          value={collection ?? ""}
          onChange={({ currentTarget: { value } }) => open(path(value || undefined))}
        >
          {choices.map(([name, text, documents]) => (
            <option key={text} value={name ?? ""}>
              {documents === undefined ? text : `${text} (${count(documents)})`}
            </option>
          ))}
        </select>
      </label>
      {stats.error !== undefined && stats.body === undefined ? (
        <div class="pane">
          <Failure error={stats.error} retry={stats.reload} />
        </div>
      ) : other !== undefined && collection !== undefined ? (
        <OtherList key={collection} name={collection} base={base} database={database} />
      ) : stats.body !== undefined && all === 0 ? (
        <NoDocuments database={database} reload={stats.reload} />
      ) : stats.body !== undefined &&
        collection !== undefined &&
        address.value.query.get("view") === "schema" ? (
        <SchemaView
          key={collection}
          base={base}
          database={database}
          collection={collection}
          total={stats.body.Collections[collection] ?? 0}
        />
      ) : (
        <DocumentList
          key={title}
          base={base}
          database={database}
          collection={collection}
          title={title}
          types={types.body ?? {}}
        />
      )}
    </div>
  );
}

/** Tracks collections that changed recently, and reloads the counts. */
function useLive(database: string, countAgain: () => void): ReadonlySet<string> {
  const [live, setLive] = useState<ReadonlySet<string>>(new Set());
  const latest = useRef(countAgain);
  latest.current = countAgain;
  useEffect(() => {
    let counting: ReturnType<typeof setTimeout> | undefined;
    let quiet: ReturnType<typeof setTimeout> | undefined;
    const stop = watch(database, "watch-docs", null, (notices) => {
      const names = notices.flatMap((notice) =>
        notice.Type === "DocumentChange" ? [notice.Value.CollectionName] : [],
      );
      setLive((before) => (names.every((name) => before.has(name)) ? before : new Set(names)));
      clearTimeout(quiet);
      quiet = setTimeout(() => setLive(new Set()), liveMs);
      counting ??= setTimeout(() => {
        counting = undefined;
        latest.current();
      }, countMs);
    });
    return () => {
      stop();
      clearTimeout(counting);
      clearTimeout(quiet);
    };
  }, [database]);
  return live;
}

function NoDocuments({ database, reload }: { database: string; reload: () => void }) {
  return (
    <div class="pane">
      <Empty icon="doc" title={`No documents in ${database} yet`}>
        <p>A document is JSON with an id. Documents of the same type form a collection.</p>
        <div class="row">
          {may("write") && (
            <a class="btn primary" href={href(["db", database, "doc"], { new: "@" })}>
              New document
            </a>
          )}
          {may("write") ? (
            <>
              <a class="btn" href={href(["db", database, "backup"], { tab: "import" })}>
                Import a file
              </a>
              <a class="btn" href={href(["db", database, "backup"], { tab: "sample" })}>
                Sample data
              </a>
            </>
          ) : (
            <button type="button" class="btn" onClick={reload}>
              Reload
            </button>
          )}
        </div>
      </Empty>
    </div>
  );
}
