/**
 * A patch is written, tested on one document, tested on all documents without storing, and run. Below are the
 * operations of the database, each with its own page.
 */

import { useEffect, useMemo, useState } from "preact/hooks";
import { get, ServerError, send } from "../base/client.ts";
import { count } from "../base/format.ts";
import { may } from "../base/identity.ts";
import { useOperation } from "../base/operation.ts";
import { address, href, open, setQuery } from "../base/router.ts";
import { sentenceOf } from "../base/server-message.ts";
import { AccessDenied } from "../components/access-denied.tsx";
import { Diff } from "../components/diff.tsx";
import { Icon } from "../components/icon.tsx";
import { Failure } from "../components/messages.tsx";
import { Progress } from "../components/progress.tsx";
import { useEditedText } from "../editor/edited-text.ts";
import { CodeEditor } from "../editor/editor.tsx";
import { errorMarks } from "../editor/error-marks.ts";
import { usePage } from "../shell/page.ts";
import { collectionOf, documentsText, type PatchCounts } from "./operation-facts.ts";
import { OperationList } from "./operation-list.tsx";
import { completePatch } from "./patch-completion.ts";
import { RunningPatch } from "./running-patch.tsx";

const steps = ["write", "try", "dry", "run"] as const;
type Step = (typeof steps)[number];
const stepTexts: Readonly<Record<Step, string>> = {
  write: "Write",
  try: "Test on one",
  dry: "Dry run",
  run: "Run",
};

export function PatchPage({ database, operation }: { database: string; operation?: string }) {
  usePage("patch", [{ text: database, to: href(["db", database, "docs"]) }, { text: "Patch" }]);
  const asked = address.value.query.get("step") as Step | null;
  const step: Step = operation !== undefined ? "run" : (asked ?? "write");
  return (
    <div class="page stack">
      <div class="head">
        <h1>Patch</h1>
        <ol class="flow" aria-label="Steps">
          {steps.map((one, at) => (
            <li
              key={one}
              class={one === step ? "now" : at < steps.indexOf(step) ? "done" : ""}
              aria-current={one === step ? "step" : undefined}
            >
              {at < steps.indexOf(step) && <Icon name="check" />}
              {stepTexts[one]}
            </li>
          ))}
        </ol>
        <span class="grow" />
        {operation !== undefined && may("write") && (
          <a class="btn" href={href(["db", database, "patch"])}>
            <Icon name="plus" />
            New patch
          </a>
        )}
      </div>
      {operation !== undefined ? (
        <RunningPatch key={operation} database={database} id={operation} />
      ) : may("write") ? (
        <NewPatch database={database} />
      ) : (
        <AccessDenied title={`${database} is read-only for you`} />
      )}
      <OperationList database={database} />
    </div>
  );
}

interface Request {
  readonly Query: { readonly Query: string; readonly QueryParameters?: object };
}

interface Tried {
  readonly Status: string;
  readonly OriginalDocument: unknown;
  readonly ModifiedDocument: unknown;
  readonly Debug?: { readonly Output?: readonly string[] };
}

interface TriedDocument {
  readonly id: string;
  readonly reply: Tried;
}

interface DryResult {
  readonly Total: number;
  readonly WouldChange: number;
  readonly Unchanged: number;
  readonly WouldFail: number;
  readonly Errors: readonly { readonly Id: string; readonly Message: string }[];
  readonly Samples: readonly {
    readonly Id: string;
    readonly Before: string | null;
    readonly After: string | null;
  }[];
}

const startText = (collection: string) => `from ${collection} as o
update {
    // Change o here. "Test" shows the result for one document without storing it.
    
}`;

function NewPatch({ database }: { database: string }) {
  const base = `/databases/${encodeURIComponent(database)}`;
  const edited = useEditedText(address.value.query.get("q") ?? "");
  const { text } = edited;
  const steps = usePatchSteps(database, base, text);
  const { tried, result, error, dry } = steps;
  const [failed, setFailed] = useState<Error | null>(null);
  // Suggest a text with a collection of this database.
  useEffect(() => {
    if (text !== "") return;
    get<{ Collections: Record<string, number> }>(`${base}/collections/stats`).then(({ body }) => {
      const found = Object.entries(body.Collections).filter(([name]) => !name.startsWith("@"));
      const [name = "@all_docs"] = found.sort(([, a], [, b]) => b - a)[0] ?? [];
      edited.replace(startText(name));
    }, setFailed);
  }, [base]);
  const collection = collectionOf(text);
  const dryError = dry?.error;
  const shownError = useMemo(
    () => error ?? failed ?? (dryError == null ? null : new ServerError(500, dryError)),
    [error, failed, dryError],
  );
  const marks = useMemo(() => errorMarks(shownError, text), [shownError, text]);
  return (
    <>
      <section class="panel patch-text" aria-label="Patch text">
        <CodeEditor
          language="rql"
          label="Patch"
          text={text}
          revision={edited.revision}
          changed={edited.typed}
          commands={{ "Mod-Enter": steps.next }}
          complete={(word, before) => completePatch(base, word, before)}
          marks={marks}
        />
        <Tools steps={steps} />
      </section>
      {!steps.isWritten && text !== "" && (
        <p class="note warn">
          <Icon name="warn" />
          {"A patch requires an update clause: from Orders as o update { o.Total = 1 }"}
        </p>
      )}
      {shownError !== null && <Failure error={shownError} />}
      {dry?.status === "running" && <DryRunning state={dry.progress} stop={steps.stopDry} />}
      {dry?.status === "cancelled" && (
        <p class="note" role="status">
          The dry run was stopped. Nothing was written.
        </p>
      )}
      {result !== null && result.WouldChange > 0 && (
        <RunQuestion what={documentsText(result.WouldChange, collection)} steps={steps} />
      )}
      {result !== null && (
        <DryFound result={result} collection={collection} tryOn={(one) => void steps.tryOn(one)} />
      )}
      {tried !== null && <TestResult tried={tried} />}
    </>
  );
}

type PatchSteps = ReturnType<typeof usePatchSteps>;

/** Results of the steps for the current text, and the actions for the next step. */
function usePatchSteps(database: string, base: string, text: string) {
  const { query } = address.value;
  const [id, setId] = useState(query.get("doc") ?? "");
  const [tried, setTried] = useState<TriedDocument | null>(null);
  const [error, setError] = useState<Error | null>(null);
  const [isBusy, setBusy] = useState(false);
  const [dryRun, setDryRun] = useState<number | null>(null);
  const [keepsUndo, setKeepsUndo] = useState(true);
  const dry = useOperation<PatchCounts, DryResult>(
    dryRun === null ? null : `${base}/operations/state?id=${dryRun}`,
  ).operation;
  // Results are valid only for the text that produced them.
  useEffect(() => {
    setTried(null);
    setDryRun(null);
    setError(null);
  }, [text]);
  const parameters = parametersIn(query);
  const request: Request = {
    Query: { Query: text, ...(parameters === null ? {} : { QueryParameters: parameters }) },
  };
  const isWritten = /\bupdate\s*\{/i.test(text);

  const during = async (step: Step, work: () => Promise<void>) => {
    setBusy(true);
    setError(null);
    setQuery({ q: text, step, doc: id });
    try {
      await work();
    } catch (failed) {
      setError(failed as Error);
    } finally {
      setBusy(false);
    }
  };
  const tryOn = (given: string) =>
    during("try", async () => {
      setTried(null);
      const wanted = given === "" ? await firstMatch(base, request) : given;
      setId(wanted);
      const path = `${base}/queries/test?id=${encodeURIComponent(wanted)}`;
      const { body } = await send<Tried>("PATCH", path, { json: request });
      setTried({ id: wanted, reply: body });
    });
  const start = async (path: string) => {
    const { body } = await send<{ OperationId: number }>("PATCH", `${base}/queries${path}`, {
      json: request,
    });
    return body.OperationId;
  };
  const runDry = () => during("dry", async () => setDryRun(await start("/dry-run?sample=5")));
  const stopDry = () => {
    send("POST", `${base}/operations/kill?id=${dryRun}`).catch(setError);
  };
  const run = () =>
    during("run", async () => {
      const operation = await start(`?undo=${keepsUndo}`);
      open(href(["db", database, "patch", String(operation)]));
    });
  const next = () => {
    if (isBusy || !isWritten) return;
    if (tried === null) void tryOn(id);
    else if (dryRun === null) void runDry();
  };
  const result = dry?.status === "completed" ? dry.result : null;
  return {
    id,
    setId,
    tried,
    error,
    isBusy: isBusy || dry?.status === "running",
    isWritten,
    dry,
    result,
    keepsUndo,
    setKeepsUndo,
    tryOn,
    runDry,
    stopDry,
    run,
    next,
  };
}

function Tools({ steps }: { steps: PatchSteps }) {
  const { id, setId, tried, result, isBusy, isWritten, tryOn, runDry } = steps;
  return (
    <form
      class="tools"
      onSubmit={(event) => {
        event.preventDefault();
        void tryOn(id);
      }}
    >
      <label class="field grow">
        <input
          class="mono"
          aria-label="Document to test"
          placeholder="id; empty for the first match"
          value={id}
          onInput={(event) => setId(event.currentTarget.value)}
        />
      </label>
      <button
        type="submit"
        class={tried === null ? "btn primary" : "btn"}
        disabled={!isWritten || isBusy}
      >
        {" "}
        Test{" "}
      </button>
      <button
        type="button"
        class={tried !== null && result === null ? "btn primary" : "btn"}
        disabled={!isWritten || isBusy}
        onClick={() => void runDry()}
      >
        Dry run
      </button>
    </form>
  );
}

function RunQuestion({ what, steps }: { what: string; steps: PatchSteps }) {
  const { keepsUndo, setKeepsUndo, isBusy, run } = steps;
  return (
    <section class="panel" aria-label="Run">
      <div class="body stack">
        <h2>Patch {what}?</h2>
        <label class="row">
          <input
            type="checkbox"
            checked={keepsUndo}
            onChange={(event) => setKeepsUndo(event.currentTarget.checked)}
          />
          Keep the previous versions as revisions
        </label>
        <p class="soft">
          {keepsUndo ? (
            "The patch can be undone for seven days. The previous versions take disk space."
          ) : (
            <b>It cannot be undone.</b>
          )}
        </p>
        <div class="row">
          <button type="button" class="btn primary" disabled={isBusy} onClick={() => void run()}>
            Patch {what}
          </button>
        </div>
      </div>
    </section>
  );
}

function TestResult({ tried: { id, reply } }: { tried: TriedDocument }) {
  const output = reply.Debug?.Output ?? [];
  return (
    <section class="panel" aria-label={`Test on ${id}`}>
      {reply.Status === "Patched" ? (
        <Diff
          before={JSON.stringify(reply.OriginalDocument, null, 4)}
          after={JSON.stringify(reply.ModifiedDocument, null, 4)}
          title={`Tested on ${id}. Nothing was written.`}
        />
      ) : (
        <p class="body" role="status">
          The script leaves {id} unchanged.
        </p>
      )}
      {output.length > 0 && <pre class="source scroll">{output.join("\n")}</pre>}
    </section>
  );
}

function DryRunning({ state, stop }: { state: PatchCounts | null; stop: () => void }) {
  const { Processed = 0, Total = 0 } = state ?? {};
  return (
    <section class="panel body stack" aria-label="Dry run">
      <div class="row">
        <b class="grow">Dry run</b>
        <button type="button" class="btn" onClick={stop}>
          Stop
        </button>
      </div>
      <Progress label="Dry run" done={Processed} total={Total} unit="documents" />
    </section>
  );
}

function DryFound({
  result,
  collection,
  tryOn,
}: {
  result: DryResult;
  collection: string;
  tryOn: (id: string) => void;
}) {
  const { Total, WouldChange, Unchanged, WouldFail, Errors, Samples } = result;
  const [shown, setShown] = useState<string | null>(null);
  const sample = Samples.find(({ Id }) => Id === shown);
  const [first] = Errors;
  return (
    <section class="panel" aria-label="Dry run">
      <div class="body stack">
        <p role="status">
          <b>
            {count(WouldChange)} of {documentsText(Total, collection)} would change.
          </b>{" "}
          {count(Unchanged)} would be unchanged. {WouldFail === 0 && "None fails. "}Nothing was
          written.
        </p>
        {first !== undefined && (
          <div class="note bad">
            <Icon name="bad" />
            <div class="stack grow">
              <span>
                <b>{count(WouldFail)} would fail</b>, the first at <code>{first.Id}</code>:{" "}
                {sentenceOf(first.Message)}
              </span>
              <span class="soft">A run stops at the first failure.</span>
            </div>
            <button type="button" class="btn" onClick={() => tryOn(first.Id)}>
              Test on this document
            </button>
          </div>
        )}
        {Samples.length > 0 && (
          <fieldset class="seg scroll">
            <legend class="hidden-label">Examples</legend>
            {Samples.map(({ Id }) => (
              <button
                key={Id}
                type="button"
                aria-pressed={Id === shown}
                onClick={() => setShown(Id === shown ? null : Id)}
              >
                {Id}
              </button>
            ))}
          </fieldset>
        )}
      </div>
      {sample?.Before != null && sample.After !== null && (
        <Diff before={sample.Before} after={sample.After} title={sample.Id} />
      )}
      {sample !== undefined && sample.Before === null && (
        <p class="body">The document is large: test the patch on it to see the changes.</p>
      )}
    </section>
  );
}

/** Returns the id of the first matching document. @throws Error when no document matches */
async function firstMatch(base: string, { Query }: Request): Promise<string> {
  const found = Query.Query.replace(/\bupdate\s*\{[\s\S]*$/i, "");
  const json = { ...Query, Query: found, PageSize: 1 };
  const { body } = await send<{ Results: { "@metadata"?: { "@id"?: string } }[] }>(
    "POST",
    `${base}/queries`,
    { json },
  );
  const id = body.Results[0]?.["@metadata"]?.["@id"];
  if (id === undefined) throw new Error("The query matches no document.");
  return id;
}

/** Returns the parameters `p.name=…` of the address, as JSON or plain text, or null. */
function parametersIn(query: URLSearchParams): object | null {
  const given = [...query].filter(([key]) => key.startsWith("p."));
  if (given.length === 0) return null;
  return Object.fromEntries(
    given.map(([key, value]) => {
      try {
        return [key.slice(2), JSON.parse(value)];
      } catch {
        return [key.slice(2), value];
      }
    }),
  );
}
