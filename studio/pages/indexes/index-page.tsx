/** One index, or a new one. */

import { useEffect, useState } from "preact/hooks";
import { watch } from "../../base/changes.ts";
import { send } from "../../base/client.ts";
import { count, counted } from "../../base/format.ts";
import { may } from "../../base/identity.ts";
import { useResource } from "../../base/resource.ts";
import { address, href, open, setQuery } from "../../base/router.ts";
import { AccessDenied } from "../../components/access-denied.tsx";
import { Icon } from "../../components/icon.tsx";
import { Menu } from "../../components/menu.tsx";
import { Empty, Failure, Skeleton } from "../../components/messages.tsx";
import { panel, Tabs } from "../../components/tabs.tsx";
import { usePage } from "../../shell/page.ts";
import { actionsOf, DeleteIndex } from "./index-actions.tsx";
import { DefinitionTab } from "./index-definition.tsx";
import { ErrorsTab } from "./index-errors.tsx";
import { EntriesTab, HistoryTab, TermsTab } from "./index-figures.tsx";
import {
  type Definition,
  hasFailed,
  type IndexStats,
  isAuto,
  kindOf,
  lagOf,
  replacementOf,
} from "./index-info.ts";
import { SpeedTab } from "./index-speed.tsx";
import { IndexState } from "./index-state.tsx";
import { TestTab } from "./index-test.tsx";

type TabKey = "definition" | "errors" | "test" | "terms" | "entries" | "speed" | "history";

const pollMs = 2000;
const listPollMs = 5000;

export function IndexPage({ database, name }: { database: string; name: string | undefined }) {
  return name === undefined ? (
    <NewIndex database={database} />
  ) : (
    <KnownIndex database={database} name={name} />
  );
}

function useBreadcrumbs(database: string, text: string) {
  usePage("indexes", [
    { text: database, to: href(["db", database, "docs"]) },
    { text: "Indexes", to: href(["db", database, "indexes"]) },
    { text },
  ]);
}

function NewIndex({ database }: { database: string }) {
  useBreadcrumbs(database, "New index");
  const isReduce = address.value.query.get("new") === "reduce";
  const base = `/databases/${encodeURIComponent(database)}`;
  const collections = useResource<{ Collections: Record<string, number> }>(
    `${base}/collections/stats`,
  );
  if (!may("write")) return <AccessDenied title={`${database} is read-only for you`} />;
  if (collections.isLoading) return <Skeleton rows={4} />;
  const found = Object.entries(collections.body?.Collections ?? {})
    .filter(([one]) => !one.startsWith("@"))
    .sort(([, a], [, b]) => b - a)[0]?.[0];
  return (
    <div class="pane">
      <div class="tools">
        <h1>New index</h1>
        <fieldset class="seg">
          <legend class="hidden-label">Kind</legend>
          {(["map", "reduce"] as const).map((kind) => (
            <button
              key={kind}
              type="button"
              aria-pressed={isReduce === (kind === "reduce")}
              onClick={() => setQuery({ new: kind })}
            >
              {kind === "map" ? "Map" : "Map-reduce"}
            </button>
          ))}
        </fieldset>
      </div>
      <DefinitionTab
        key={String(isReduce)}
        database={database}
        deployed={null}
        draft={draftOf(found ?? "Orders", isReduce)}
        index={null}
      />
    </div>
  );
}

function draftOf(collection: string, isReduce: boolean): Definition {
  return isReduce
    ? {
        Name: "",
        Maps: [
          `map(${JSON.stringify(collection)}, doc => ({\n    Name: doc.Name,\n    Count: 1\n}))`,
        ],
        Reduce:
          "groupBy(x => x.Name)\n    .aggregate(g => ({\n        Name: g.key,\n        Count: g.values.reduce((n, v) => n + v.Count, 0)\n    }))",
        Fields: {},
      }
    : {
        Name: "",
        Maps: [`map(${JSON.stringify(collection)}, doc => ({\n    Name: doc.Name\n}))`],
        Reduce: null,
        Fields: {},
      };
}

function KnownIndex({ database, name }: { database: string; name: string }) {
  useBreadcrumbs(database, name);
  const base = `/databases/${encodeURIComponent(database)}`;
  const query = `name=${encodeURIComponent(name)}`;
  const stats = useResource<{ Results: readonly IndexStats[] } | null>(
    `${base}/indexes/stats?${query}`,
    pollMs,
  );
  const all = useResource<{ Results: readonly IndexStats[] }>(`${base}/indexes/stats`, listPollMs);
  const definitions = useResource<{ Results: readonly Definition[] } | null>(
    `${base}/indexes?${query}`,
  );
  const [error, setError] = useState<Error | null>(null);
  const [deleting, setDeleting] = useState(false);
  const reload = () => {
    stats.reload();
    definitions.reload();
  };
  useEffect(() => watch(database, "watch-index", name, reload), [database, name]);
  const index = stats.body?.Results[0];
  const definition = definitions.body?.Results[0];
  if (stats.error !== undefined)
    return <Unknown database={database} name={name} error={stats.error} />;
  if (index === undefined || definition === undefined) return <Skeleton rows={6} />;
  const act = (work: () => Promise<unknown>) => {
    setError(null);
    work().then(reload, setError);
  };
  const list = href(["db", database, "indexes"]);
  const replacement = replacementOf(index, all.body?.Results ?? []);
  const remove = () =>
    act(async () => {
      await send("DELETE", `${base}/indexes?${query}`);
      open(list);
    });
  return (
    <div class="pane">
      <div class="tools">
        <h1 class="mono">{index.Name}</h1>
        <IndexState index={index} replacement={replacement} />
        <span class="soft cut wide-only">
          {kindOf(index)} · {counted(index.EntriesCount, "entry", "entries")}
          {lagOf(index) > 0 && ` · ${count(lagOf(index))} documents left`}
        </span>
        <span class="grow" />
        {may("write") && (
          <Menu
            label={`More about ${index.Name}`}
            items={actionsOf(base, index, act, () => setDeleting(true))}
          />
        )}
        <a class="btn" href={href(["db", database, "query"], { q: `from index '${index.Name}'` })}>
          Query
        </a>
        {!isAuto(index) && may("write") && <EditLink index={index} />}
      </div>
      {error !== null && <Failure error={error} />}
      {replacement !== undefined && hasFailed(replacement) && (
        <p class="note bad edge" role="status">
          <Icon name="bad" />
          <span class="grow">
            The new version failed: {counted(replacement.MapErrors, "map")} of{" "}
            {counted(replacement.MapAttempts, "document")} failed. The old version serves queries.
          </span>
          <a
            class="btn"
            href={href(["db", database, "index", replacement.Name], { tab: "errors" })}
          >
            Show its errors
          </a>
        </p>
      )}
      <IndexTabs
        database={database}
        index={index}
        replacement={replacement}
        definition={definition}
        act={act}
      />
      {deleting && <DeleteIndex index={index} close={() => setDeleting(false)} remove={remove} />}
    </div>
  );
}

function EditLink({ index }: { index: IndexStats }) {
  const isLocked = index.LockMode !== "Unlock";
  return (
    <button
      type="button"
      class="btn primary"
      disabled={isLocked}
      title={isLocked ? "Locked. Unlock to change" : undefined}
      onClick={() => setQuery({ tab: undefined, edit: "1" })}
    >
      Edit
    </button>
  );
}

function IndexTabs({
  database,
  index,
  replacement,
  definition,
  act,
}: {
  database: string;
  index: IndexStats;
  replacement: IndexStats | undefined;
  definition: Definition;
  act: (work: () => Promise<unknown>) => void;
}) {
  const { query } = address.value;
  const static_ = !isAuto(index);
  const tabs: { key: TabKey; text: string; count?: number | undefined; isErrored?: boolean }[] = [
    { key: "definition", text: "Definition" },
    {
      key: "errors",
      text: "Errors",
      count: index.ErrorsCount > 0 ? index.ErrorsCount : undefined,
      isErrored: true,
    },
    ...(static_ && may("write") ? [{ key: "test" as const, text: "Test a document" }] : []),
    { key: "terms", text: "Terms" },
    { key: "entries", text: "Entries", count: index.EntriesCount },
    { key: "speed", text: "Speed" },
    ...(static_ ? [{ key: "history" as const, text: "History" }] : []),
  ];
  const chosen = tabs.find(({ key }) => key === query.get("tab"))?.key ?? "definition";
  const common = { database, index, definition };
  return (
    <>
      <Tabs
        label={`About ${index.Name}`}
        name="index"
        tabs={tabs}
        chosen={chosen}
        choose={(tab) => setQuery({ tab: tab === "definition" ? undefined : tab })}
      />
      <div class="pane grow" {...panel("index", chosen)}>
        {chosen === "definition" && (
          <DefinitionTab
            key={JSON.stringify(definition)}
            database={database}
            deployed={definition}
            draft={definition}
            index={index}
          />
        )}
        {chosen === "errors" && <ErrorsTab {...common} act={act} />}
        {chosen === "test" && <TestTab {...common} />}
        {chosen === "terms" && <TermsTab {...common} />}
        {chosen === "entries" && <EntriesTab {...common} />}
        {chosen === "speed" && (
          <SpeedTab database={database} index={index} replacement={replacement} />
        )}
        {chosen === "history" && <HistoryTab {...common} />}
      </div>
    </>
  );
}

/** Suggests existing indexes with similar names. */
function Unknown({ database, name, error }: { database: string; name: string; error: Error }) {
  const base = `/databases/${encodeURIComponent(database)}`;
  const names = useResource<{ Results: readonly string[] }>(`${base}/indexes?namesOnly=true`);
  if ((error as { status?: number }).status !== 404) return <Failure error={error} />;
  const start = name.toLowerCase().split(/[/.]/)[0] ?? "";
  const near = (names.body?.Results ?? []).filter((one) => one.toLowerCase().includes(start));
  return (
    <Empty icon="find" title={`Index ${name} does not exist`}>
      {near.slice(0, 5).map((one) => (
        <a key={one} href={href(["db", database, "index", one])}>
          {one}
        </a>
      ))}
      <a href={href(["db", database, "indexes"])}>All indexes</a>
    </Empty>
  );
}
