/** Creates or edits a subscription. The test shows the documents that a worker would receive, and changes nothing. */
import { useEffect, useMemo, useState } from "preact/hooks";
import { send, sendText } from "../../base/client.ts";
import { counted } from "../../base/format.ts";
import { may } from "../../base/identity.ts";
import { address, href, open } from "../../base/router.ts";
import { AccessDenied } from "../../components/access-denied.tsx";
import { Icon } from "../../components/icon.tsx";
import { Failure } from "../../components/messages.tsx";
import { TextField } from "../../components/text-field.tsx";
import { useEditedText } from "../../editor/edited-text.ts";
import { CodeEditor } from "../../editor/editor.tsx";
import { errorMarks } from "../../editor/error-marks.ts";
import { type JsonNode, memberOf, parseSource, printSource } from "../../json/json-source.ts";
import { complete } from "../query/query-completion.ts";
import { type Subscription, updateSubscription } from "./subscription-info.ts";

const testedMax = 10;
/** Values of a position that are not change vectors. */
const starts = {
  DoNotChange: "Continue after the last acknowledged change",
  BeginningOfTime: "The first document",
  LastDocument: "The next change",
} as const;

interface Form {
  readonly name: string;
  /** A key of `starts`, or "vector". */
  readonly start: string;
  readonly vector: string;
}

export function SubscriptionForm({
  database,
  stored,
  saved,
}: {
  database: string;
  /** Null for a new subscription. */
  stored: Subscription | null;
  saved: () => void;
}) {
  const base = `/databases/${encodeURIComponent(database)}`;
  const name = stored?.SubscriptionName;
  const edited = useEditedText(stored?.Query ?? address.value.query.get("q") ?? "from ");
  const [form, setForm] = useState<Form>({
    name: name ?? "",
    start: stored === null ? "BeginningOfTime" : "DoNotChange",
    vector: "",
  });
  const [error, setError] = useState<Error | null>(null);
  const [isBusy, setBusy] = useState(false);
  const list = href(["db", database, "subscriptions"], { select: name });
  const start = form.start === "vector" ? form.vector.trim() : form.start;
  const trial = useTrial(base, edited.text, start, stored);
  const save = async () => {
    setError(null);
    setBusy(true);
    // The position is unchanged unless it is given.
    const position = start === "DoNotChange" ? {} : { ChangeVector: start };
    const settings = { Name: form.name.trim(), Query: edited.text, ...position };
    try {
      if (stored !== null) await updateSubscription(base, stored, settings);
      else await send("PUT", `${base}/subscriptions`, { json: settings });
      saved();
      open(href(["db", database, "subscriptions"], { select: settings.Name }));
    } catch (failed) {
      setError(failed as Error);
      setBusy(false);
    }
  };
  const shown = error ?? trial.error;
  const marks = useMemo(() => errorMarks(shown, edited.text), [shown, edited.text]);
  if (!may("write")) return <AccessDenied title={`${database} is read-only for you`} />;
  return (
    <div class="page stack">
      <div class="head">
        <h1>{name === undefined ? "New subscription" : `Edit ${name}`}</h1>
        <span class="grow" />
        <a class="btn" href={list}>
          Cancel
        </a>
        <button type="button" class="btn primary" disabled={isBusy} onClick={() => void save()}>
          Save
        </button>
      </div>
      <section class="panel patch-text" aria-label="Query of the subscription">
        <CodeEditor
          language="rql"
          label="Query"
          text={edited.text}
          revision={edited.revision}
          changed={edited.typed}
          commands={{ "Mod-Enter": trial.run, "Mod-s": () => void save() }}
          complete={(word, before) => complete(base, word, before)}
          marks={marks}
        />
        <div class="tools">
          <span class="muted">A collection, with a condition and a projection.</span>
          <span class="grow" />
          <button type="button" class="btn" disabled={trial.isBusy} onClick={trial.run}>
            <Icon name="play" />
            Test
          </button>
        </div>
      </section>
      {shown !== null && <Failure error={shown} />}
      <Fields form={form} isNew={stored === null} change={setForm} />
      {stored !== null && stored.Connections.length > 0 && (
        <p class="note warn">
          <Icon name="warn" />
          Saving closes the connection of {counted(stored.Connections.length, "worker")}.
        </p>
      )}
      {trial.found !== null && <Found documents={trial.found} />}
    </div>
  );
}

function Fields({
  form,
  isNew,
  change,
}: {
  form: Form;
  isNew: boolean;
  change: (form: Form) => void;
}) {
  return (
    <div class="two-fields form-panel">
      <TextField
        label="Name"
        value={form.name}
        change={(text) => change({ ...form, name: text })}
        hint={isNew ? "Empty: a number." : undefined}
      />
      <label class="form">
        Start with
        <select
          class="field"
          value={form.start}
          onChange={(event) => change({ ...form, start: event.currentTarget.value })}
        >
          {Object.entries(starts).map(
            ([key, text]) =>
              (key !== "DoNotChange" || !isNew) && (
                <option key={key} value={key}>
                  {text}
                </option>
              ),
          )}
          <option value="vector">After a change vector</option>
        </select>
      </label>
      {form.start === "vector" && (
        <TextField
          label="Change vector"
          class="mono"
          value={form.vector}
          change={(text) => change({ ...form, vector: text })}
        />
      )}
    </div>
  );
}

/** Requests the first documents that a worker would receive. */
function useTrial(base: string, query: string, start: string, stored: Subscription | null) {
  const [found, setFound] = useState<readonly JsonNode[] | null>(null);
  const [error, setError] = useState<Error | null>(null);
  const [isBusy, setBusy] = useState(false);
  // Results are valid only for the settings that produced them.
  useEffect(() => {
    setFound(null);
    setError(null);
  }, [query, start]);
  const test = async () => {
    setBusy(true);
    setError(null);
    const ChangeVector =
      start === "DoNotChange" ? stored?.ChangeVectorForNextBatchStartingPoint : start;
    try {
      const path = `${base}/subscriptions/try?pageSize=${testedMax}&timeLimit=15`;
      const { body } = await sendText("POST", path, { json: { Query: query, ChangeVector } });
      setFound((memberOf(parseSource(body), "Results") as JsonNode[] | undefined) ?? []);
    } catch (failed) {
      setFound(null);
      setError(failed as Error);
    } finally {
      setBusy(false);
    }
  };
  return { found, error, isBusy, run: () => void test() };
}

function Found({ documents }: { documents: readonly JsonNode[] }) {
  const idOf = (node: JsonNode) => {
    const id = memberOf(memberOf(node, "@metadata"), "@id");
    return typeof id === "string" ? id : "A document";
  };
  return (
    <section class="panel" aria-label="Test">
      <div class="body stack">
        <p role="status">
          {documents.length === 0
            ? "A worker would receive no document now."
            : documents.length < testedMax
              ? `A worker would receive ${counted(documents.length, "document")}.`
              : `The first ${testedMax} documents that a worker would receive:`}
        </p>
        {documents.map((node, at) => (
          <details key={at} open={at === 0}>
            <summary class="mono">{idOf(node)}</summary>
            <pre class="source scroll">{printSource(node)}</pre>
          </details>
        ))}
      </div>
    </section>
  );
}
