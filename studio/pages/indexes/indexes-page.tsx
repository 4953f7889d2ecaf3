/** The indexes of a database, those with problems first. */

import { useEffect, useState } from "preact/hooks";
import { watch } from "../../base/changes.ts";
import { send } from "../../base/client.ts";
import { ago, count } from "../../base/format.ts";
import { may } from "../../base/identity.ts";
import { useResource } from "../../base/resource.ts";
import { address, href, setQuery } from "../../base/router.ts";
import { Icon } from "../../components/icon.tsx";
import { Menu } from "../../components/menu.tsx";
import { Empty, Failure, Skeleton } from "../../components/messages.tsx";
import { actionsColumn, numeric, Table } from "../../components/table.tsx";
import { usePage } from "../../shell/page.ts";
import { actionsOf, DeleteIndex } from "./index-actions.tsx";
import {
  byAttention,
  type IndexStats,
  isAuto,
  isUnused,
  kindOf,
  replacementOf,
} from "./index-info.ts";
import { IndexState } from "./index-state.tsx";

type Show = "all" | "static" | "auto" | "errors" | "stale" | "unused";

const shows: readonly (readonly [Show, string, (index: IndexStats, nowMs: number) => boolean])[] = [
  ["all", "All", () => true],
  ["static", "Static", (index) => !isAuto(index)],
  ["auto", "Auto", isAuto],
  ["errors", "Errors", ({ ErrorsCount, IsInvalidIndex }) => ErrorsCount > 0 || IsInvalidIndex],
  ["stale", "Stale", ({ IsStale }) => IsStale],
  ["unused", "Unused", isUnused],
];
/** Poll interval, in milliseconds: lag and counts change without a notice. */
const pollMs = 3000;

export function IndexesPage({ database }: { database: string }) {
  const base = `/databases/${encodeURIComponent(database)}`;
  usePage("indexes", [{ text: database, to: href(["db", database, "docs"]) }, { text: "Indexes" }]);
  const stats = useResource<{ Results: readonly IndexStats[] }>(
    `${base}/indexes/stats?sinceStart=true`,
    pollMs,
  );
  const [error, setError] = useState<Error | null>(null);
  const [deleting, setDeleting] = useState<IndexStats | null>(null);
  const { reload } = stats;
  useEffect(() => watch(database, "watch-indexes", null, () => reload()), [database]);
  const act = (work: () => Promise<unknown>) => {
    setError(null);
    work().then(reload, setError);
  };
  const all = stats.body?.Results ?? [];
  const running = all.filter(({ Status }) => Status === "Running");
  const isPaused = all.length > 0 && running.length === 0;
  const make = href(["db", database, "index"], { new: "map" });
  return (
    <div class="page">
      <div class="head wraps">
        <h1>Indexes</h1>
        {all.length > 0 && <Segments all={all} />}
        <span class="grow" />
        {all.length > 0 && may("database-admin") && (
          <button
            type="button"
            class="btn"
            onClick={() =>
              act(() => send("POST", `${base}/admin/indexes/${isPaused ? "start" : "stop"}`))
            }
          >
            <Icon name={isPaused ? "play" : "pause"} />
            {isPaused ? "Resume all" : "Pause all"}
          </button>
        )}
        {may("write") && (
          <a class="btn primary" href={make}>
            <Icon name="plus" />
            New index
          </a>
        )}
      </div>
      {error !== null && <Failure error={error} />}
      {stats.error !== undefined && <Failure error={stats.error} retry={reload} />}
      {stats.isLoading && <Skeleton rows={6} />}
      {stats.body !== undefined && all.length === 0 && <NoIndexes database={database} />}
      {all.length > 0 && (
        <List
          all={all}
          database={database}
          actions={(index) => actionsOf(base, index, act, setDeleting)}
        />
      )}
      {deleting !== null && (
        <DeleteIndex
          index={deleting}
          close={() => setDeleting(null)}
          remove={() => {
            const name = encodeURIComponent(deleting.Name);
            act(() => send("DELETE", `${base}/indexes?name=${name}`));
            setDeleting(null);
          }}
        />
      )}
    </div>
  );
}

function NoIndexes({ database }: { database: string }) {
  return (
    <Empty icon="index" title="No indexes yet">
      <p>
        Queries create the indexes that they need, which are then kept up to date. Your own indexes
        can compute fields, join documents, or aggregate.
      </p>
      <div class="row">
        <a class="btn" href={href(["db", database, "query"])}>
          Run a query
        </a>
        {may("write") && (
          <a class="btn" href={href(["db", database, "index"], { new: "map" })}>
            Write an index
          </a>
        )}
      </div>
    </Empty>
  );
}

function shown(): Show {
  const given = address.value.query.get("show");
  return shows.find(([key]) => key === given)?.[0] ?? "all";
}

function Segments({ all }: { all: readonly IndexStats[] }) {
  const chosen = shown();
  const nowMs = Date.now();
  return (
    <fieldset class="seg">
      <legend class="hidden-label">Which indexes to show</legend>
      {shows.map(([key, text, fits]) => (
        <button
          key={key}
          type="button"
          aria-pressed={chosen === key}
          onClick={() => setQuery({ show: key === "all" ? undefined : key })}
        >
          {text} {count(all.filter((index) => fits(index, nowMs)).length)}
        </button>
      ))}
    </fieldset>
  );
}

function List({
  all,
  database,
  actions,
}: {
  all: readonly IndexStats[];
  database: string;
  actions: (index: IndexStats) => ReturnType<typeof actionsOf>;
}) {
  const nowMs = Date.now();
  const fits = shows.find(([key]) => key === shown())?.[2] ?? (() => true);
  const rows = byAttention(all.filter((index) => fits(index, nowMs)));
  if (rows.length === 0) return <Empty icon="find" title="No matching indexes" />;
  return (
    <>
      <div class="panel scroll">
        <Table
          kind="lines"
          label="Indexes"
          columns={[
            "Name",
            "State",
            "Kind",
            "Over",
            numeric("Entries"),
            "Last query",
            actionsColumn,
          ]}
        >
          {rows.map((index) => (
            <tr key={index.Name}>
              <td class="l1">
                <a
                  class="idlink"
                  href={href(["db", database, "index", index.Name], {
                    tab: index.ErrorsCount > 0 ? "errors" : undefined,
                  })}
                >
                  {index.Name}
                </a>
              </td>
              <td class="l2">
                <IndexState index={index} replacement={replacementOf(index, all)} />
              </td>
              <td class="l0">{kindOf(index)}</td>
              <td class="l0">{overText(index)}</td>
              <td class="num l3">{count(index.EntriesCount)}</td>
              <td class="l0 soft">
                {index.LastQueryingTime === null || index.QueriedSinceStart === false
                  ? "none since the start"
                  : ago(index.LastQueryingTime, nowMs)}
              </td>
              <td class="act">
                {may("write") && <Menu label={`More about ${index.Name}`} items={actions(index)} />}
              </td>
            </tr>
          ))}
        </Table>
      </div>
      <p class="soft">Auto indexes are created by queries, and become idle when unused.</p>
    </>
  );
}

function overText({ Collections, ReferencedCollections }: IndexStats): string {
  const mapped = Object.keys(Collections);
  return [...new Set([...mapped, ...ReferencedCollections])].join(", ");
}
