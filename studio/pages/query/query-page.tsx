/** Runs RQL queries, shows the result and the query plan. The text and its parameters are in the address. */
import { useEffect, useMemo, useRef, useState } from "preact/hooks";
import { send } from "../../base/client.ts";
import { address, href, setQuery } from "../../base/router.ts";
import { Icon } from "../../components/icon.tsx";
import { Menu } from "../../components/menu.tsx";
import { Failure } from "../../components/messages.tsx";
import { Separator } from "../../components/separator.tsx";
import { panel, Tabs } from "../../components/tabs.tsx";
import { useEditedText } from "../../editor/edited-text.ts";
import { CodeEditor } from "../../editor/editor.tsx";
import { errorMarks } from "../../editor/error-marks.ts";
import { usePage } from "../../shell/page.ts";
import { serverOrigin } from "../../shell/server.ts";
import { codeOf, type Language, languages } from "./query-code.ts";
import { complete, forgetFields } from "./query-completion.ts";
import { Examples } from "./query-examples.tsx";
import { HistoryDialog, SavedDialog } from "./query-lists.tsx";
import { placesIn } from "./query-map.tsx";
import { addressText, history, remember, textOfAddress } from "./query-memory.ts";
import { PlanPanel } from "./query-plan.tsx";
import { type Answer, type Asked, Results, type View, views } from "./query-results.tsx";
import { formatted, isUpdate, parametersOf } from "./query-text.ts";

type Values = Readonly<Record<string, string>>;

const pageSize = 1000;
/** Delay before a query can be cancelled, in milliseconds; most queries complete earlier. */
const cancelAfterMs = 150;
const waitForIndexMs = 120_000;

export function QueryPage({ database }: { database: string }) {
  const base = `/databases/${encodeURIComponent(database)}`;
  usePage("query", [{ text: database, to: href(["db", database, "docs"]) }, { text: "Query" }]);
  const page = useConsole(database, base);
  const { edited, values, names, changes, failure, asked, running, opened } = page;
  const { text } = edited;
  const dialog = { database, close: () => page.open(null), use: page.put };
  return (
    <div class="pane">
      <Tools page={page} database={database} />
      <div class={names.length > 0 ? "ask with-parameters" : "ask"}>
        <CodeEditor
          language="rql"
          label="RQL query"
          text={text}
          revision={edited.revision}
          changed={edited.typed}
          marks={page.marks}
          commands={{
            "Mod-Enter": () => page.ask(text),
            "Mod-Shift-Enter": () => page.ask(text, { plan: true }),
            "Shift-Alt-f": () => edited.replace(formatted(text)),
            "Alt-ArrowUp": () => page.goBack(1),
            "Alt-ArrowDown": () => page.goBack(-1),
          }}
          complete={(word, before) => complete(base, word, before)}
        />
        {names.length > 0 && <Parameters names={names} values={values} change={page.setValues} />}
      </div>
      <Separator name="query" label="Resize query and result" isRow />
      {page.isElsewhere && (
        <p class="note warn edge">
          <Icon name="warn" />
          The query of this address is too long for an address, and is stored in another browser.
        </p>
      )}
      {changes && (
        <p class="note warn edge">
          <Icon name="warn" />
          <span>
            This changes documents.{" "}
            <a href={href(["db", database, "patch"], { q: addressText(text) })}>
              Open on the patch page
            </a>
          </span>
        </p>
      )}
      {failure !== null && <Failure error={failure.error} retry={() => page.ask(text)} />}
      {asked === null && failure === null && running === null && (
        <Examples base={base} use={(example) => page.put(example)} />
      )}
      {asked !== null && <AnswerPane page={page} asked={asked} database={database} base={base} />}
      {opened === "history" && <HistoryDialog {...dialog} />}
      {opened === "saved" && <SavedDialog {...dialog} text={text} values={values} />}
    </div>
  );
}

/** State of the page, and the actions of its buttons. */
function useConsole(database: string, base: string) {
  const { query } = address.value;
  const [given] = useState(() => textOfAddress(query.get("q") ?? ""));
  const edited = useEditedText(given ?? "");
  const { text } = edited;
  const [values, setValues] = useState<Values>(() => valuesIn(query));
  const names = useMemo(() => parametersOf(text), [text]);
  const changes = useMemo(() => isUpdate(text), [text]);
  const { asked, failure, running, run, cancel } = useQuery(database, base);
  const [opened, open] = useState<"history" | "saved" | null>(null);
  const [said, announce] = useState("");
  const back = useRef(-1);

  useEffect(() => () => forgetFields(), []);
  const ask = (asking: string, options: { plan?: boolean; wait?: boolean } = {}) => {
    if (asking.trim() === "" || isUpdate(asking)) return;
    back.current = -1;
    announce("");
    const wanted = parametersOf(asking);
    const parameters = Object.fromEntries(wanted.map((name) => [`p.${name}`, values[name]]));
    const old = [...address.peek().query.keys()].filter((key) => key.startsWith("p."));
    setQuery({
      ...Object.fromEntries(old.map((key) => [key, undefined])),
      q: addressText(asking),
      ...parameters,
      ...(options.plan === true ? { how: "plan" } : {}),
    });
    void run(asking, wanted, values, options.wait === true);
  };
  // A shared address runs its query.
  const first = useRef(() => ask(text));
  useEffect(() => first.current(), []);
  const put = (next: string, nextValues: Values = values) => {
    edited.replace(next);
    setValues({ ...values, ...nextValues });
    open(null);
  };
  const goBack = (step: number) => {
    const all = history(database);
    const at = Math.min(all.length - 1, back.current + step);
    const found = all[at];
    if (at < 0 || found === undefined) return;
    back.current = at;
    put(found.text, found.values);
  };
  const marks = useMemo(() => {
    const { error } = failure?.text === text ? failure : { error: null };
    return errorMarks(error, text);
  }, [failure, text]);
  return {
    ...{ edited, values, setValues, names, changes, marks, isElsewhere: given === null },
    ...{ asked, failure, running, cancel, ask, put, goBack, opened, open, said, announce },
  };
}

type Console = ReturnType<typeof useConsole>;

function Tools({ page, database }: { page: Console; database: string }) {
  const { edited, values, names, changes, announce } = page;
  const { text } = edited;
  const copy = async (language: Language) => {
    const given = names.map((name) => [name, typedValue(values[name] ?? "")] as const);
    const source = { origin: serverOrigin(), database, text, values: given };
    await navigator.clipboard.writeText(codeOf(language, source));
    announce(`Copied as ${language}`);
  };
  const share = async () => {
    if (addressText(text) === text) {
      const { path, query } = address.peek();
      const to = href(path, { ...Object.fromEntries(query), q: text });
      await navigator.clipboard.writeText(new URL(to, window.location.href).href);
      announce("Address copied");
      return;
    }
    download(`${database}.rql`, text);
    announce("The query is too long for an address and was saved as a file");
  };
  const changing = changes ? "The query changes documents" : undefined;
  return (
    <div class="tools">
      <h1 class="hidden-label">Query</h1>
      <RunButton
        running={page.running}
        refusal={text.trim() === "" ? "The query is empty" : changing}
        run={() => page.ask(text)}
        cancel={page.cancel}
      />
      <button
        type="button"
        class="btn quiet"
        title="Shift Alt F"
        onClick={() => edited.replace(formatted(text))}
      >
        Format
      </button>
      <span class="soft" role="status">
        {page.said}
      </span>
      <span class="grow" />
      <button type="button" class="btn quiet" onClick={() => page.open("history")}>
        <Icon name="clock" />
        History
      </button>
      <button type="button" class="btn quiet" onClick={() => page.open("saved")}>
        Saved
      </button>
      <Menu
        label="Copy as"
        icon="copy"
        items={languages.map((language) => ({ text: language, choose: () => void copy(language) }))}
      >
        Copy as
      </Menu>
      <button type="button" class="btn quiet" onClick={() => void share()}>
        <Icon name="link" />
        Share
      </button>
    </div>
  );
}

function AnswerPane({
  page,
  asked,
  database,
  base,
}: {
  page: Console;
  asked: Asked;
  database: string;
  base: string;
}) {
  const { query } = address.value;
  const how = query.get("how") === "plan";
  const view = viewOf(query.get("view"));
  const includes = Object.keys(asked.answer.Includes ?? {}).length;
  const hasPlaces = useMemo(
    () => placesIn(asked.answer.Results, asked.answer).length > 0,
    [asked.answer],
  );
  const choose = (key: View | "how") =>
    setQuery(key === "how" ? { how: "plan" } : { how: undefined, view: key });
  const use = (better: string) => {
    page.put(better);
    page.ask(better, { wait: true });
    page.announce("Index is ready");
  };
  return (
    <div class="pane results" aria-busy={page.running?.isShown === true}>
      <Tabs
        label="Result"
        name="answer"
        tabs={[
          { key: "table", text: "Table" },
          { key: "chart", text: "Chart" },
          ...(hasPlaces || view === "map" ? [{ key: "map", text: "Map" } as const] : []),
          { key: "json", text: "JSON" },
          { key: "includes", text: "Includes", count: includes > 0 ? includes : undefined },
          { key: "how", text: "Query plan" },
        ]}
        chosen={how ? "how" : view}
        choose={choose}
      />
      <div class={how ? "answer with-plan" : "answer"} {...panel("answer", how ? "how" : view)}>
        <div class="pane">
          <Results
            asked={asked}
            view={view}
            database={database}
            waitForIndex={() => page.ask(page.edited.text, { wait: true })}
          />
        </div>
        {how && (
          <section class="scroll" aria-label="Query plan">
            <PlanPanel base={base} request={asked.request} use={use} />
          </section>
        )}
      </div>
    </div>
  );
}

interface Running {
  readonly abort: AbortController;
  /** True if the query takes long enough to be shown. */
  readonly isShown: boolean;
}

/** Runs one query at a time. The previous result remains until a newer one is available. */
function useQuery(database: string, base: string) {
  const [asked, setAsked] = useState<Asked | null>(null);
  const [failure, setFailure] = useState<{ readonly error: Error; readonly text: string } | null>(
    null,
  );
  const [running, setRunning] = useState<Running | null>(null);
  const present = useRef<AbortController | null>(null);
  useEffect(() => () => present.current?.abort(), []);
  const run = async (
    text: string,
    names: readonly string[],
    values: Values,
    isWaiting: boolean,
  ) => {
    present.current?.abort();
    const abort = new AbortController();
    present.current = abort;
    setRunning({ abort, isShown: false });
    const timer = setTimeout(() => setRunning({ abort, isShown: true }), cancelAfterMs);
    const parameters = names.map((name) => [name, typedValue(values[name] ?? "")]);
    const request = {
      Query: text,
      QueryParameters: Object.fromEntries(parameters) as object,
      PageSize: pageSize,
    };
    const json = isWaiting
      ? { ...request, WaitForNonStaleResults: true, WaitForNonStaleResultsTimeout: waitForIndexMs }
      : request;
    const startedMs = performance.now();
    try {
      // The reply contains the searched areas, for the map.
      const spatial = /\bspatial\.\w/.test(text) ? "?addSpatialProperties=true" : "";
      const { body } = await send<Answer>("POST", `${base}/queries${spatial}`, {
        json,
        signal: abort.signal,
      });
      const ms = performance.now() - startedMs;
      setAsked({ answer: body, ms, request });
      setFailure(null);
      remember(database, { text, values, atMs: Date.now(), ms, total: body.TotalResults });
    } catch (error) {
      if (!abort.signal.aborted) setFailure({ error: error as Error, text });
    } finally {
      clearTimeout(timer);
      if (present.current === abort) setRunning(null);
    }
  };
  return { asked, failure, running, run, cancel: () => present.current?.abort() };
}

function RunButton({
  running,
  refusal,
  run,
  cancel,
}: {
  running: Running | null;
  refusal: string | undefined;
  run: () => void;
  cancel: () => void;
}) {
  if (running?.isShown === true) {
    return (
      <button type="button" class="btn" onClick={cancel}>
        <Icon name="x" />
        Cancel
      </button>
    );
  }
  return (
    <button
      type="button"
      class="btn primary"
      onClick={run}
      disabled={refusal !== undefined}
      title={refusal}
    >
      <Icon name="play" />
      Run
    </button>
  );
}

function Parameters({
  names,
  values,
  change,
}: {
  names: readonly string[];
  values: Values;
  change: (values: Values) => void;
}) {
  return (
    <fieldset class="parameters" aria-label="Parameters">
      {names.map((name) => (
        <label key={name} class="form">
          <code>${name}</code>
          <div class="field">
            <input
              class="mono"
              aria-label={`Value of $${name}`}
              placeholder="text or JSON"
              value={values[name] ?? ""}
              onInput={(event) => change({ ...values, [name]: event.currentTarget.value })}
            />
          </div>
        </label>
      ))}
    </fieldset>
  );
}

function viewOf(given: string | null): View {
  return views.find((one) => one === given) ?? "table";
}

function valuesIn(query: URLSearchParams): Record<string, string> {
  const given = [...query].filter(([key]) => key.startsWith("p."));
  return Object.fromEntries(given.map(([key, value]) => [key.slice(2), value]));
}

/** Parses a parameter: JSON or plain text. */
function typedValue(typed: string): unknown {
  try {
    return JSON.parse(typed);
  } catch {
    return typed;
  }
}

function download(name: string, text: string): void {
  const link = document.createElement("a");
  link.href = URL.createObjectURL(new Blob([text], { type: "text/plain" }));
  link.download = name;
  link.click();
  setTimeout(() => URL.revokeObjectURL(link.href), 10_000);
}
