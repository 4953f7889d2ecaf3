/** The definition of an index: view, edit, compare with the deployed definition, test, and deploy. */
import { useMemo, useState } from "preact/hooks";
import { ServerError, send } from "../../base/client.ts";
import { counted } from "../../base/format.ts";
import { address, href, open, setQuery } from "../../base/router.ts";
import { Dialog } from "../../components/dialog.tsx";
import { Diff } from "../../components/diff.tsx";
import { Facts } from "../../components/facts.tsx";
import { Icon } from "../../components/icon.tsx";
import { Failure } from "../../components/messages.tsx";
import { CodeEditor } from "../../editor/editor.tsx";
import { errorMarks } from "../../editor/error-marks.ts";
import type { Mark } from "../../editor/marks.ts";
import { type Definition, hasCSharp, type IndexStats, isAuto, lagOf } from "./index-info.ts";
import { Trial } from "./index-test.tsx";

const noMarks: readonly Mark[] = [];

interface Properties {
  readonly database: string;
  /** Null for a new index. */
  readonly deployed: Definition | null;
  /** Initial definition. */
  readonly draft: Definition;
  readonly index: IndexStats | null;
}

/** The edited parts, as text. */
interface Texts {
  readonly name: string;
  readonly maps: readonly string[];
  readonly reduce: string | null;
  readonly fields: string;
}

export function DefinitionTab({ database, deployed, draft, index }: Properties) {
  const base = `/databases/${encodeURIComponent(database)}`;
  const isEdited = deployed === null || address.value.query.get("edit") === "1";
  const [texts, setTexts] = useState<Texts>(() => textsOf(draft));
  const [revision, setRevision] = useState(0);
  const [comparing, setComparing] = useState(false);
  const [error, setError] = useState<Error | null>(null);
  const problem = problemOf(texts);
  const made = problem === null ? definitionOf(draft, texts) : null;
  const put = (next: Texts) => {
    setTexts(next);
    setRevision(revision + 1);
  };
  const deploy = async () => {
    if (made === null) return;
    setComparing(false);
    setError(null);
    try {
      const path = hasCSharp(made) ? "admin/indexes" : "indexes";
      const place = address.peek().path.join("/");
      await send("PUT", `${base}/${path}`, { json: { Indexes: [made] } });
      // Stay on the current page if the user has left this one.
      if (address.peek().path.join("/") !== place) return;
      if (deployed === null) open(href(["db", database, "index", made.Name]));
      else setQuery({ edit: undefined });
    } catch (failed) {
      setError(failed as Error);
    }
  };
  return (
    <>
      {index !== null && <BesideNote index={index} />}
      {isEdited && (
        <EditTools
          texts={texts}
          isNew={deployed === null}
          problem={problem}
          rename={(name) => setTexts({ ...texts, name })}
          addMap={() => put({ ...texts, maps: [...texts.maps, ""] })}
          deploy={() => (deployed === null ? void deploy() : setComparing(true))}
          leave={() => {
            put(textsOf(draft));
            setQuery({ edit: undefined });
          }}
        />
      )}
      {error !== null && <Failure error={error} />}
      <div class="scroll grow stack inset definition">
        <Codes
          texts={texts}
          revision={revision}
          isReadOnly={!isEdited}
          change={setTexts}
          put={put}
          error={error}
        />
        {deployed !== null && !isEdited && <DefinitionFacts definition={deployed} index={index} />}
        {isEdited && made !== null && (
          <section class="panel" aria-label="Test with a document">
            <Trial database={database} definition={made} first="" />
          </section>
        )}
      </div>
      {comparing && deployed !== null && made !== null && (
        <Dialog title={`Deploy ${made.Name}?`} close={() => setComparing(false)} isBig>
          <p>Old results are served until the new index is ready.</p>
          <Diff
            before={codeOf(deployed)}
            after={codeOf(made)}
            language="text"
            title="Deployed → yours"
          />
          <div class="row">
            <span class="grow" />
            <button type="button" class="btn" onClick={() => setComparing(false)}>
              Continue editing
            </button>
            <button type="button" class="btn primary" onClick={() => void deploy()}>
              Deploy
            </button>
          </div>
        </Dialog>
      )}
    </>
  );
}

function BesideNote({ index }: { index: IndexStats }) {
  if (!index.IsStale || index.Status !== "Running") return null;
  return (
    <p class="note edge" role="status">
      <Icon name="run" />
      <span>
        {lagOf(index) > 0
          ? `${counted(lagOf(index), "document")} left to index.`
          : "Indexing is in progress."}
      </span>
    </p>
  );
}

function EditTools({
  texts,
  isNew,
  problem,
  rename,
  addMap,
  deploy,
  leave,
}: {
  texts: Texts;
  isNew: boolean;
  problem: string | null;
  rename: (name: string) => void;
  addMap: () => void;
  deploy: () => void;
  leave: () => void;
}) {
  return (
    <div class="tools">
      {isNew && (
        <div class="field">
          <input
            class="mono"
            aria-label="Name of the index"
            placeholder="Orders/ByCity"
            value={texts.name}
            onInput={(event) => rename(event.currentTarget.value)}
          />
        </div>
      )}
      <button type="button" class="btn quiet" onClick={addMap}>
        Add a map
      </button>
      <span class="grow" />
      {problem !== null && <span class="soft">{problem}</span>}
      {!isNew && (
        <button type="button" class="btn" onClick={leave}>
          Discard changes
        </button>
      )}
      <button type="button" class="btn primary" disabled={problem !== null} onClick={deploy}>
        Deploy
      </button>
    </div>
  );
}

function Codes({
  texts,
  revision,
  isReadOnly,
  change,
  put,
  error,
}: {
  texts: Texts;
  revision: number;
  isReadOnly: boolean;
  change: (texts: Texts) => void;
  put: (texts: Texts) => void;
  error: Error | null;
}) {
  const { maps, reduce, fields } = texts;
  const marks = useMemo(() => {
    const about = error instanceof ServerError ? error.text : undefined;
    const marked = about === undefined ? [] : errorMarks(error, about);
    return (text: string) => (text === about ? marked : noMarks);
  }, [error]);
  const withMap = (at: number, map: string) => ({
    ...texts,
    maps: maps.map((one, n) => (n === at ? map : one)),
  });
  const shown = { revision, isReadOnly, commands: {} } as const;
  return (
    <>
      {maps.map((map, at) => (
        <section key={at} class="code-part" aria-label={maps.length > 1 ? `Map ${at + 1}` : "Map"}>
          <h3>
            {maps.length > 1 ? `Map ${at + 1}` : "Map"}
            {!isReadOnly && maps.length > 1 && (
              <button
                type="button"
                class="btn quiet icon"
                aria-label={`Remove map ${at + 1}`}
                onClick={() => put({ ...texts, maps: maps.filter((_, n) => n !== at) })}
              >
                <Icon name="x" />
              </button>
            )}
          </h3>
          <CodeEditor
            {...shown}
            language="javascript"
            label={maps.length > 1 ? `Map ${at + 1} of the index` : "Map of the index"}
            text={map}
            marks={marks(map)}
            changed={(text) => change(withMap(at, text))}
          />
        </section>
      ))}
      {reduce !== null && (
        <section class="code-part" aria-label="Reduce">
          <h3>Reduce</h3>
          <CodeEditor
            {...shown}
            language="javascript"
            label="Reduce of the index"
            text={reduce}
            marks={marks(reduce)}
            changed={(text) => change({ ...texts, reduce: text })}
          />
        </section>
      )}
      {(!isReadOnly || fields !== "{}") && (
        <section class="code-part small" aria-label="Field options">
          <h3>
            Field options{" "}
            <small>
              as <code>{'{ "Name": { "Indexing": "Search" } }'}</code>
            </small>
          </h3>
          <CodeEditor
            {...shown}
            language="json"
            label="Field options"
            text={fields}
            changed={(text) => change({ ...texts, fields: text })}
          />
        </section>
      )}
    </>
  );
}

function DefinitionFacts({
  definition,
  index,
}: {
  definition: Definition;
  index: IndexStats | null;
}) {
  if (index === null) return null;
  const facts: [string, string][] = [
    ["Collections", Object.keys(index.Collections).join(", ")],
    [
      "Language",
      isAuto(index) ? "created by a query" : hasCSharp(definition) ? "C#" : "JavaScript",
    ],
    ["Priority", index.Priority],
    ["Lock", index.LockMode === "Unlock" ? "none" : "Locked. Unlock to change"],
  ];
  if (index.ReferencedCollections.length > 0)
    facts.splice(1, 0, ["Loads", index.ReferencedCollections.join(", ")]);
  return <Facts of={facts} />;
}

function textsOf({ Name, Maps, Reduce, Fields }: Definition): Texts {
  return {
    name: Name,
    maps: Maps,
    reduce: Reduce,
    fields: JSON.stringify(Fields ?? {}, null, 4),
  };
}

/** Returns the reason why the definition cannot be deployed, or null. */
function problemOf({ name, maps, fields }: Texts): string | null {
  if (name.trim() === "") return "The name is missing";
  if (maps.every((map) => map.trim() === "")) return "The map is missing";
  try {
    JSON.parse(fields);
    return null;
  } catch {
    return "The field options are not valid JSON";
  }
}

function definitionOf(draft: Definition, { name, maps, reduce, fields }: Texts): Definition {
  return {
    ...draft,
    Name: name.trim(),
    Maps: maps.filter((map) => map.trim() !== ""),
    Reduce: reduce === null || reduce.trim() === "" ? null : reduce,
    Fields: JSON.parse(fields) as Definition["Fields"],
  };
}

/** Concatenates the parts for comparison. */
export function codeOf({ Maps, Reduce, Fields }: Definition): string {
  const parts = [...Maps];
  if (Reduce !== null) parts.push(Reduce);
  const options = JSON.stringify(Fields ?? {}, null, 4);
  if (options !== "{}") parts.push(`// field options\n${options}`);
  return `${parts.join("\n\n")}\n`;
}
