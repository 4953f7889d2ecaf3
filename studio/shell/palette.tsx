/** The command palette: pages, databases, collections, indexes, ids, commands, and a search of document contents. */

import { useEffect, useMemo, useRef, useState } from "preact/hooks";
import { get } from "../base/client.ts";
import { may } from "../base/identity.ts";
import { address, href, open } from "../base/router.ts";
import { switchTheme } from "../base/theme.ts";
import { Icon, type IconName } from "../components/icon.tsx";
import { databaseNames } from "./databases.ts";
import { hasLetterKeys, keyList, palette, setLetterKeys } from "./keys.ts";

interface PaletteEntry {
  readonly group: "Go to" | "Documents whose id begins with it" | "Do" | "Search";
  readonly text: string;
  readonly icon: IconName;
  /** Note after the text, in grey: its type, or its key. */
  readonly note: string;
  /** Address, or action. */
  readonly to: string | (() => void);
}

interface Properties {
  readonly database: string | null;
  /** Pages of the shell. */
  readonly pages: readonly PaletteEntry[];
}

const shownMax = 30;
const idsMax = 5;
const waitMs = 120;

export function Palette({ database, pages }: Properties) {
  const [typed, setTyped] = useState(palette.peek() ?? "");
  const [chosen, setChosen] = useState(0);
  const dialog = useRef<HTMLDialogElement>(null);
  const known = useKnown(database, pages);
  const ids = useIds(database, typed.startsWith("/") ? typed.slice(1) : typed);
  const shown = useMemo(
    () => [...matching(typed, known, ids), ...contentSearches(database, typed)],
    [typed, known, ids, database],
  );
  useEffect(() => {
    const before = document.activeElement;
    dialog.current?.showModal();
    return () => (before as HTMLElement | null)?.focus();
  }, []);
  const close = () => {
    palette.value = null;
  };
  const run = ({ to }: PaletteEntry, inTab: boolean) => {
    close();
    if (typeof to !== "string") to();
    else if (inTab) window.open(to, "_blank", "noopener");
    // Focus returns to the opener first, then moves to the page.
    else setTimeout(() => open(to));
  };
  const onKeyDown = (event: KeyboardEvent) => {
    const entry = shown[Math.min(chosen, shown.length - 1)];
    if (event.key === "ArrowDown") setChosen((chosen + 1) % Math.max(1, shown.length));
    else if (event.key === "ArrowUp")
      setChosen((chosen + shown.length - 1) % Math.max(1, shown.length));
    else if (event.key === "Enter" && entry !== undefined)
      run(entry, event.ctrlKey || event.metaKey);
    else return;
    event.preventDefault();
  };
  return (
    // biome-ignore lint/a11y/useKeyWithClickEvents: Esc does the same as a click outside
    <dialog
      ref={dialog}
      class="dialog palette"
      aria-label="Search or run a command"
      onCancel={(event) => {
        event.preventDefault();
        close();
      }}
      onClick={(event) => event.target === dialog.current && close()}
    >
      <div class="ask-line">
        <Icon name="find" />
        <input
          role="combobox"
          aria-label="Search or run a command"
          aria-expanded={shown.length > 0}
          aria-controls="hits"
          aria-activedescendant={shown.length > 0 ? `hit-${chosen}` : undefined}
          aria-autocomplete="list"
          autocomplete="off"
          spellcheck={false}
          value={typed}
          onInput={(event) => {
            setTyped(event.currentTarget.value);
            setChosen(0);
          }}
          onKeyDown={onKeyDown}
        />
        <kbd>Esc</kbd>
      </div>
      {typed.startsWith("?") ? (
        <Keys />
      ) : (
        <Hits shown={shown} chosen={chosen} choose={setChosen} run={run} />
      )}
      <footer class="wide-only">
        <span>
          <kbd>↑</kbd> <kbd>↓</kbd> choose
        </span>
        <span>
          <kbd>Enter</kbd> go
        </span>
        <span>
          <kbd>Ctrl Enter</kbd> new tab
        </span>
        <span class="grow" />
        <span>/ ids, &gt; commands, ? keys</span>
      </footer>
    </dialog>
  );
}

interface HitsProperties {
  shown: readonly PaletteEntry[];
  chosen: number;
  choose: (n: number) => void;
  run: (entry: PaletteEntry, inTab: boolean) => void;
}

function Hits({ shown, chosen, choose, run }: HitsProperties) {
  const list = useRef<HTMLDivElement>(null);
  useEffect(() => {
    list.current?.querySelector('[aria-selected="true"]')?.scrollIntoView({ block: "nearest" });
  }, [chosen]);
  return (
    <div ref={list} id="hits" class="hits" role="listbox" aria-label="Found">
      {shown.map((entry, n) => (
        <>
          {shown[n - 1]?.group !== entry.group && (
            <div key={entry.group} class="group" role="presentation">
              {entry.group}
            </div>
          )}
          {/* biome-ignore lint/a11y/useKeyWithClickEvents: the keys are those of the input */}
          <div
            key={`${entry.group} ${entry.text} ${entry.note}`}
            id={`hit-${n}`}
            class="hit"
            role="option"
            tabIndex={-1}
            aria-selected={n === chosen}
            onMouseMove={() => choose(n)}
            onClick={(event) => run(entry, event.ctrlKey || event.metaKey)}
          >
            <Icon name={entry.icon} />
            <span class="cut">{entry.text}</span>
            <span class="to">{entry.note}</span>
          </div>
        </>
      ))}
      {shown.length === 0 && <p class="empty">No matches.</p>}
    </div>
  );
}

function Keys() {
  return (
    <div class="hits">
      <dl class="keys">
        {keyList.map(([key, text]) => (
          <div key={key}>
            <dt>
              <kbd>{key}</kbd>
            </dt>
            <dd>{text}</dd>
          </div>
        ))}
      </dl>
      <label class="row">
        <input
          type="checkbox"
          checked={hasLetterKeys.value}
          onChange={(event) => setLetterKeys(event.currentTarget.checked)}
        />
        Enable single-letter shortcuts
      </label>
    </div>
  );
}

/** Returns the entries that are matched in memory. */
function useKnown(database: string | null, pages: readonly PaletteEntry[]) {
  const [more, setMore] = useState<readonly PaletteEntry[]>([]);
  useEffect(() => {
    if (database === null) return;
    const base = `/databases/${encodeURIComponent(database)}`;
    const collections = get<{ Collections: Record<string, number> }>(`${base}/collections/stats`);
    const indexes = get<{ Results: readonly string[] }>(`${base}/indexes?namesOnly=true`);
    Promise.all([collections, indexes]).then(
      ([{ body: stats }, { body: names }]) =>
        setMore([
          ...Object.keys(stats.Collections).map(
            (name): PaletteEntry => ({
              group: "Go to",
              text: name,
              icon: "doc",
              note: "collection",
              to: href(["db", database, "docs", name]),
            }),
          ),
          ...names.Results.map(
            (name): PaletteEntry => ({
              group: "Go to",
              text: name,
              icon: "index",
              note: "index",
              to: href(["db", database, "index", name]),
            }),
          ),
        ]),
      // Pages and commands are available without them.
      () => undefined,
    );
  }, [database]);
  return useMemo(
    () => [
      ...pages,
      ...more,
      ...(databaseNames.value ?? []).map(
        (name): PaletteEntry => ({
          group: "Go to",
          text: name,
          icon: "dbs",
          note: "database",
          to: href(["db", name, "docs"]),
        }),
      ),
      ...commands(database),
    ],
    [pages, more, database, databaseNames.value],
  );
}

function commands(database: string | null): PaletteEntry[] {
  const own: PaletteEntry[] =
    database === null || !may("write", database)
      ? []
      : [
          {
            group: "Do",
            text: "New document",
            icon: "plus",
            note: database,
            to: href(["db", database, "doc"], { new: "@" }),
          },
        ];
  return [
    ...own,
    { group: "Do", text: "Light or dark", icon: "moon", note: "Ctrl .", to: switchTheme },
    {
      group: "Do",
      text: "Delete all data stored in this browser",
      icon: "x",
      note: "drafts, history, columns",
      to: () => {
        localStorage.clear();
        sessionStorage.removeItem("jackdaw-database");
        window.location.reload();
      },
    },
    {
      group: "Do",
      text: "Keys",
      icon: "menu",
      note: "?",
      to: () => setTimeout(() => (palette.value = "?")),
    },
  ];
}

/** Returns ids of documents with the typed prefix. */
function useIds(database: string | null, typed: string): readonly PaletteEntry[] {
  const [ids, setIds] = useState<readonly PaletteEntry[]>([]);
  useEffect(() => {
    setIds([]);
    if (database === null || typed.length < 2 || /^[>?]/.test(typed)) return undefined;
    const abort = new AbortController();
    const timer = setTimeout(() => {
      const query = new URLSearchParams({
        startsWith: typed,
        pageSize: String(idsMax),
        metadataOnly: "true",
      });
      get<{ Results: readonly { "@metadata": { "@id": string; "@collection"?: string } }[] }>(
        `/databases/${encodeURIComponent(database)}/docs?${query}`,
        abort.signal,
      ).then(
        ({ body }) =>
          setIds(
            body.Results.map(({ "@metadata": meta }) => ({
              group: "Documents whose id begins with it",
              text: meta["@id"],
              icon: "doc",
              note: meta["@collection"] ?? "",
              to: href(["db", database, "doc", meta["@id"]]),
            })),
          ),
        () => undefined,
      );
    }, waitMs);
    return () => {
      clearTimeout(timer);
      abort.abort();
    };
  }, [database, typed]);
  return ids;
}

/** Returns searches of the contents of documents: they read every document, so they run only when chosen. */
function contentSearches(database: string | null, typed: string): readonly PaletteEntry[] {
  const text = typed.trim();
  if (database === null || text.length < 2 || /^[>?/]/.test(text)) return [];
  const [, , page, collection] = address.peek().path;
  const search = (source: string, what: string): PaletteEntry => ({
    group: "Search",
    text: `Contents of ${what}: ${text}`,
    icon: "find",
    note: "reads each document",
    to: href(["db", database, "query"], {
      q: contentQuery(source),
      "p.text": JSON.stringify(text),
    }),
  });
  const isOfOne = page === "docs" && collection !== undefined && !collection.startsWith("@");
  return [
    ...(isOfOne ? [search(`'${collection.replaceAll("'", "\\'")}'`, collection)] : []),
    search("@all_docs", `all documents in ${database}`),
  ];
}

/** Returns a query for documents that contain the parameter $text in a name or a value, in any letter case. */
function contentQuery(source: string): string {
  return `declare function contains(document, text) {
    const content = JSON.stringify({ ...document, "@metadata": undefined });
    return content.toLowerCase().includes(JSON.stringify(text).slice(1, -1).toLowerCase());
}
from ${source} as document
filter contains(document, $text)
limit 100`;
}

function matching(
  typed: string,
  known: readonly PaletteEntry[],
  ids: readonly PaletteEntry[],
): readonly PaletteEntry[] {
  if (typed.startsWith("/")) return ids;
  const isCommand = typed.startsWith(">");
  const wanted = (isCommand ? typed.slice(1) : typed).trim().toLowerCase();
  const rank = ({ text }: PaletteEntry) => {
    const at = text.toLowerCase().indexOf(wanted);
    return at < 0 ? Number.POSITIVE_INFINITY : at === 0 ? 0 : 1;
  };
  const found = known
    .filter(({ group }) => !isCommand || group === "Do")
    .filter((entry) => rank(entry) < 2)
    .sort((a, b) => rank(a) - rank(b));
  const goTo = found.filter(({ group }) => group === "Go to");
  const toDo = found.filter(({ group }) => group === "Do");
  return [...goTo.slice(0, shownMax), ...ids, ...toDo];
}
