/** The table of documents: filter, columns, order, selection; a note announces concurrent changes. */

import { useEffect, useMemo, useRef, useState } from "preact/hooks";
import { watch } from "../../base/changes.ts";
import { send } from "../../base/client.ts";
import { count, counted, milliseconds } from "../../base/format.ts";
import { may } from "../../base/identity.ts";
import { address, href, open, setQuery } from "../../base/router.ts";
import { Icon } from "../../components/icon.tsx";
import { Empty, Failure, Skeleton } from "../../components/messages.tsx";
import {
  type Sort,
  type Selection as TableSelection,
  VirtualTable,
} from "../../components/virtual-table.tsx";
import { ColumnChoice } from "./column-choice.tsx";
import { Export } from "./export.tsx";
import { Filter } from "./filter.tsx";
import { Jump, type Landed } from "./jump.tsx";
import {
  type ChosenColumn,
  columnsOf,
  fieldsIn,
  foundColumns,
  isFixed,
  pathsOf,
  readChosen,
  storeColumns,
  storedColumns,
  widened,
  writeChosen,
} from "./list-columns.tsx";
import {
  blockRows,
  isIdStart,
  isQuery,
  type ListAsk,
  type ListRow,
  type ListState,
  quoted,
  rqlOf,
  useRows,
} from "./list-rows.ts";
import { Peek } from "./peek.tsx";
import { nothingSelected, type Selected, SelectionBar, selectedMax } from "./selection-bar.tsx";

interface Properties {
  readonly base: string;
  readonly database: string;
  readonly collection: string | undefined;
  readonly title: string;
  /** Types of the collection's fields. */
  readonly types: Readonly<Record<string, string>>;
}

type List = ReturnType<typeof useList>;

export function DocumentList(properties: Properties) {
  const list = useList(properties);
  const { state, error, failed, peeked } = list;
  const { base, database, collection } = properties;
  const shownError = error ?? failed;
  return (
    <div class="beside">
      <div class="pane grow">
        <Tools list={list} properties={properties} />
        <Notes list={list} />
        {shownError !== null && (
          <Failure
            error={shownError}
            retry={() => {
              list.setFailed(null);
              list.reload();
            }}
          />
        )}
        {state === null && error === null && <Skeleton rows={20} />}
        {state !== null && state.total === 0 && (
          <Nothing base={base} database={database} collection={collection} where={list.ask.where} />
        )}
        {state !== null && state.total > 0 && (
          <Rows list={list} properties={properties} total={state.total} />
        )}
        {state !== null && list.hasSelected && (
          <Selection list={list} properties={properties} total={state.total} />
        )}
        <StatusLine list={list} />
      </div>
      {peeked !== null && (
        <Peek base={base} database={database} row={peeked} close={() => list.setPeeked(null)} />
      )}
    </div>
  );
}

/** State of the list and its selection. */
function useList({ base, database, collection, types }: Properties) {
  const { query } = address.value;
  const where = query.get("where") ?? "";
  const sort = readSort(query.get("order"));
  const chosen = readChosen(query.get("cols") ?? storedColumns(database, collection));
  const ask: ListAsk = {
    base,
    collection,
    where,
    sort,
    sortType: sort === undefined ? undefined : types[sort.key],
    paths: pathsOf(chosen ?? []),
  };
  const rows = useRows(ask);
  const { state, reload } = rows;
  const changes = useChanges(database, collection);
  const [failed, setFailed] = useState<Error | null>(null);
  const [peeked, setPeeked] = useState<ListRow | null>(null);
  const [isDeleting, setDeleting] = useState(false);
  const [landed, setLanded] = useState<Landed | null>(null);
  const row = (index: number) =>
    state?.blocks.get(Math.floor(index / blockRows))?.[index % blockRows];
  const { selected, setSelected, selection } = useSelection(state, row);
  const firstBlock = state?.blocks.values().next().value;
  const sample = useMemo(() => firstBlock ?? [], [firstBlock]);
  const isOfAll = collection === undefined;
  const shown = chosen ?? (isOfAll && where === "" ? [] : foundColumns(sample));
  const columns = useMemo(
    () =>
      columnsOf({ database, chosen: shown, sample, isOfAll, nowMs: Date.now(), peek: setPeeked }),
    [database, isOfAll, sample, writeChosen(shown)],
  );
  const fields = useMemo(
    () =>
      [...new Set([...fieldsIn(sample), ...Object.keys(types)])].filter(
        (name) => name !== "@metadata",
      ),
    [sample, types],
  );
  return {
    ...rows,
    ask,
    changes,
    failed,
    setFailed,
    peeked,
    setPeeked,
    isDeleting,
    setDeleting,
    landed,
    setLanded,
    row,
    selected,
    setSelected,
    selection,
    shown,
    columns,
    fields,
    rql: rqlOf(ask),
    example: exampleOf(sample, collection),
    noun: collection?.toLowerCase() ?? "documents",
    hasSelected: selected.isAll || selected.rows.size > 0,
    choose(next: readonly ChosenColumn[] | undefined) {
      const text = next === undefined ? undefined : writeChosen(next);
      storeColumns(database, collection, text);
      setQuery({ cols: text });
    },
    showNewest() {
      changes.clear();
      setLanded(null);
      setSelected(nothingSelected);
      reload();
    },
  };
}

interface PartProperties {
  list: List;
  properties: Properties;
}

function Tools({ list, properties: { base, database, collection, title } }: PartProperties) {
  const { state, ask, shown, fields, rql } = list;
  return (
    <div class="tools">
      <h1>{title}</h1>
      <span class="muted nowrap" role="status">
        {state === null ? "" : totalText(state)}
      </span>
      <Filter
        base={base}
        collection={collection}
        where={ask.where}
        example={list.example}
        apply={(now) => {
          list.setSelected(nothingSelected);
          setQuery({ where: now, at: undefined });
        }}
      />
      {state !== null && !isQuery(ask) && (
        <Jump ask={ask} total={state.total} landed={list.landed} land={list.setLanded} />
      )}
      {collection !== undefined && (
        <a class="btn quiet" href={href(["db", database, "docs", collection], { view: "schema" })}>
          Schema
        </a>
      )}
      <ColumnChoice
        chosen={shown.filter(({ path }) => !isFixed(path))}
        fields={fields}
        choose={(next) =>
          list.choose(next && [...next, ...shown.filter(({ path }) => isFixed(path))])
        }
      />
      <Export
        ask={{ base, ...rql, name: `${database}-${title}`, fields }}
        total={state?.total ?? 0}
      />
      {may("write") && (
        <a
          class="btn primary"
          data-new=""
          aria-label="New document"
          href={href(["db", database, "doc"], { new: collection ?? "@" })}
        >
          <Icon name="plus" />
          <span class="word">New document</span>
        </a>
      )}
    </div>
  );
}

/** Changes since the list was loaded. */
function Notes({ list: { changes, noun, state, showNewest, waitForIndex } }: { list: List }) {
  const text = changes.text(noun);
  return (
    <>
      {text !== "" && (
        <div class="note edge" role="status">
          <Icon name="run" />
          <span>{text}</span>
          <button type="button" class="link" onClick={showNewest}>
            {" "}
            Show{" "}
          </button>
        </div>
      )}
      {state?.isStale === true && (
        <div class="note edge warn">
          <Icon name="clock" />
          <span>The index is stale: results may miss the newest documents.</span>
          <button type="button" class="link" onClick={waitForIndex}>
            Wait for the index
          </button>
        </div>
      )}
    </>
  );
}

function Rows({
  list,
  properties: { database, title },
  total,
}: PartProperties & { total: number }) {
  const { ask, row, peeked, setPeeked, shown, choose, selected, landed } = list;
  const { sort } = ask;
  const moved = useMoved();
  const openRow = (found: ListRow) => open(href(["db", database, "doc", found.id]));
  const keyed = (event: KeyboardEvent, found: ListRow | undefined) => {
    if (event.ctrlKey || event.metaKey || event.altKey) return;
    if (event.key === " " && found !== undefined) setPeeked(peeked === null ? found : null);
    else if (event.key === "c" && found !== undefined)
      void navigator.clipboard?.writeText(found.id);
    else if (event.key === "r") list.showNewest();
    else if (event.key === "Delete" && selected !== nothingSelected && may("write"))
      list.setDeleting(true);
    else if (event.key === "Escape" && peeked !== null) setPeeked(null);
    else return;
    event.preventDefault();
  };
  return (
    <VirtualTable
      label={`Documents of ${title}`}
      columns={list.columns}
      total={total}
      row={row}
      need={list.need}
      key={landed?.round}
      open={openRow}
      start={landed?.index ?? moved.start}
      isFocused={landed !== null}
      moved={(index) => {
        moved.to(index);
        const found = row(index);
        if (peeked !== null && found !== undefined) setPeeked(found);
      }}
      keyed={keyed}
      selection={list.selection}
      {...(sort === undefined ? {} : { sort })}
      sortBy={(key) => setQuery({ order: nextOrder(sort, key), at: undefined })}
      resize={(key, width) => choose(widened(shown, key, width))}
      reorder={(key, before) => choose(reordered(shown, key, before))}
    />
  );
}

function Selection({ list, properties, total }: PartProperties & { total: number }) {
  const { selected, setSelected, changes } = list;
  return (
    <SelectionBar
      database={properties.database}
      base={properties.base}
      selected={selected}
      total={total}
      rql={list.rql}
      fields={list.fields}
      noun={list.noun}
      isDeleting={list.isDeleting}
      askToDelete={list.setDeleting}
      selectAll={() => setSelected({ rows: new Map(), isAll: true })}
      clear={() => setSelected(nothingSelected)}
      changed={(ids) => {
        changes.ignore(ids);
        list.reload();
      }}
      failed={list.setFailed}
    />
  );
}

function StatusLine({ list: { ask, state } }: { list: List }) {
  const order =
    ask.sort === undefined
      ? ask.where === "" && "newest change first"
      : `by ${ask.sort.key}${ask.sort.isDescending ? ", largest first" : ""}`;
  return (
    <div class="status">
      <span>{order}</span>
      {(state?.indexName ?? "") !== "" && <span>index {state?.indexName}</span>}
      <span class="grow" />
      {state !== null && <span>{milliseconds(state.ms)}</span>}
    </div>
  );
}

function totalText({ total, isTotalKnown }: ListState): string {
  return isTotalKnown ? counted(total, "document") : `more than ${counted(total - 1, "document")}`;
}

const exampleMax = 24;

/** Returns an example filter with names from the data: `orders/8 or Company = 'companies/1-A'`. */
function exampleOf([row]: readonly ListRow[], collection: string | undefined): string {
  if (row === undefined) return "";
  const { id, members } = row;
  const slash = id.search(/[/|]/);
  const start = id.slice(0, slash < 0 ? exampleMax : slash + 2).slice(0, exampleMax);
  const field = [...members].find(
    ([name, value]) =>
      typeof value === "string" && value.length < exampleMax && /^[A-Za-z]\w*$/.test(name),
  );
  return collection === undefined || field === undefined
    ? start
    : `${start} or ${field[0]} = ${quoted(String(field[1]))}`;
}

/** Parses a sort order: `Freight:desc`. */
function readSort(text: string | null): Sort | undefined {
  if (text === null || text === "") return undefined;
  const [key = "", order] = text.split(":");
  return { key: decodeURIComponent(key), isDescending: order === "desc" };
}

/** Cycles ascending, descending, unsorted. */
function nextOrder(sort: Sort | undefined, key: string): string | undefined {
  const name = encodeURIComponent(key);
  if (sort?.key !== key) return name;
  return sort.isDescending ? undefined : `${name}:desc`;
}

function reordered(
  shown: readonly ChosenColumn[],
  key: string,
  before: string | null,
): readonly ChosenColumn[] {
  const dragged = shown.find(({ path }) => path === key);
  if (dragged === undefined || isFixed(key)) return shown;
  const rest = shown.filter(({ path }) => path !== key && !isFixed(path));
  const at = rest.findIndex(({ path }) => path === before);
  const isFirst = before === "@id" || before === "@collection";
  rest.splice(at < 0 ? (isFirst ? 0 : rest.length) : at, 0, dragged);
  return [...rest, ...shown.filter(({ path }) => isFixed(path))];
}

/** Stores the current row in the address, so that "back" returns to it. */
function useMoved() {
  const start = useRef(Number(address.peek().query.get("at") ?? 0) || 0);
  const timer = useRef<ReturnType<typeof setTimeout> | undefined>(undefined);
  useEffect(() => () => clearTimeout(timer.current), []);
  const to = (index: number) => {
    clearTimeout(timer.current);
    timer.current = setTimeout(() => {
      setQuery({ at: index === 0 ? undefined : String(index) });
    }, 300);
  };
  return { start: start.current, to };
}

/** Tracks documents of the list that changed since it was loaded. */
function useChanges(database: string, collection: string | undefined) {
  const [changed, setChanged] = useState<ReadonlySet<string>>(new Set());
  const [hasMissed, setMissed] = useState(false);
  const ignored = useRef(new Set<string>());
  useEffect(() => {
    const command = collection === undefined ? "watch-docs" : "watch-collection";
    return watch(database, command, collection ?? null, (notices) => {
      const ids: string[] = [];
      for (const notice of notices) {
        if (notice.Type === "Missed") setMissed(true);
        if (notice.Type !== "DocumentChange") continue;
        const { Id } = notice.Value;
        if (!ignored.current.delete(Id)) ids.push(Id);
      }
      if (ids.length > 0) setChanged((before) => new Set([...before, ...ids]));
    });
  }, [database, collection]);
  return {
    text: (noun: string) => {
      if (changed.size === 1) return `1 document of this list changed.`;
      if (changed.size > 0) return `${count(changed.size)} ${noun} changed.`;
      return hasMissed ? "This list may have changed." : "";
    },
    clear: () => {
      setChanged(new Set());
      setMissed(false);
    },
    ignore: (ids: readonly string[]) => {
      for (const id of ids) ignored.current.add(id);
    },
  };
}

function useSelection(state: ListState | null, row: (index: number) => ListRow | undefined) {
  const [selected, setSelected] = useState<Selected>(nothingSelected);
  const lastToggled = useRef(0);
  const selection: TableSelection<ListRow> = {
    state: selected.isAll ? "all" : selected.rows.size > 0 ? "some" : "none",
    has: ({ id }) => selected.isAll || selected.rows.has(id),
    name: ({ id }) => id,
    toggle(index, isRange) {
      const rows = new Map(selected.rows);
      const found = row(index);
      if (found === undefined) return;
      const from = isRange ? Math.min(lastToggled.current, index) : index;
      const to = isRange ? Math.max(lastToggled.current, index) : index;
      const isOn = isRange || !rows.has(found.id);
      for (let at = from; at <= to && rows.size < selectedMax; at++) {
        const one = row(at);
        if (one === undefined) continue;
        if (isOn) rows.set(one.id, one);
        else rows.delete(one.id);
      }
      lastToggled.current = index;
      setSelected({ rows, isAll: false });
    },
    toggleAll() {
      if (selected.isAll || selected.rows.size > 0) setSelected(nothingSelected);
      else {
        const seen = [...(state?.blocks.values() ?? [])].flat();
        const rows = seen.slice(0, selectedMax).map((one) => [one.id, one] as const);
        setSelected({ rows: new Map(rows), isAll: false });
      }
    },
  };
  return { selected, setSelected, selection };
}

interface NothingProperties {
  base: string;
  database: string;
  collection: string | undefined;
  where: string;
}

const equals = /^([\w.]+)\s*==?\s*(?:'([^']*)'|"([^"]*)")$/;

function Nothing({ base, database, collection, where }: NothingProperties) {
  const [close, setClose] = useState<readonly string[]>([]);
  const [, field, single, double] = equals.exec(where) ?? [];
  const value = single ?? double;
  useEffect(() => {
    setClose([]);
    if (collection === undefined || field === undefined || value === undefined) return;
    const json = {
      Query: `from '${collection}' select suggest(${field}, $value)`,
      QueryParameters: { value },
    };
    send<{ Results: { Suggestions: string[] }[] }>("POST", `${base}/queries`, { json }).then(
      ({ body }) => setClose(body.Results[0]?.Suggestions.slice(0, 5) ?? []),
      // No suggestion is available.
      () => undefined,
    );
  }, [base, collection, field, value]);
  if (where === "") {
    return (
      <Empty icon="doc" title={`No documents in ${collection ?? "this list"}`}>
        <p>The collection of a document is the @collection in its metadata.</p>
        {may("write") && (
          <a class="btn" href={href(["db", database, "doc"], { new: collection ?? "" })}>
            New document
          </a>
        )}
      </Empty>
    );
  }
  return (
    <Empty icon="find" title={`Nothing found for ${where}`}>
      <p>
        {isIdStart(where)
          ? "Ids are matched by prefix."
          : "A filter is the where clause of a query, for example ShipTo.Country = 'France'."}
      </p>
      <div class="row">
        {close.map((term) => (
          <button
            key={term}
            type="button"
            class="btn"
            onClick={() => setQuery({ where: `${field} = '${term}'` })}
          >
            Search for {term}
          </button>
        ))}
        <button type="button" class="btn" onClick={() => setQuery({ where: undefined })}>
          No filter
        </button>
      </div>
    </Empty>
  );
}
