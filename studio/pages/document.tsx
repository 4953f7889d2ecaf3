/** Page 3: a document, which is edited as text and saved with the change vector that it was read with. */
import { useEffect, useMemo, useState } from "preact/hooks";
import { getText, ServerError, send } from "../base/client.ts";
import { ago, bytes, counted } from "../base/format.ts";
import { href } from "../base/router.ts";
import { Icon } from "../components/icon.tsx";
import { Bones, Empty, Failure } from "../components/messages.tsx";
import type { Mark } from "../editor/code-mirror.ts";
import { useEditedText } from "../editor/edited-text.ts";
import { CodeEditor } from "../editor/editor.tsx";
import {
  JsonError,
  type JsonMembers,
  type JsonNode,
  memberOf,
  parseSource,
  printSource,
} from "../json/json-source.ts";
import { changesOf } from "../json/merge.ts";
import { usePage } from "../shell/page.ts";
import { Conflict } from "./document-conflict.tsx";

/** A document as the server has it. */
export interface Version {
  readonly content: JsonMembers;
  /** Its metadata without what the server makes. */
  readonly metadata: JsonMembers;
  readonly changeVector: string;
  readonly lastModified: string;
}

/** Members of the metadata that the server makes. */
const made = [
  "@id",
  "@change-vector",
  "@last-modified",
  "@flags",
  "@attachments",
  "@counters",
  "@timeseries",
  "@timeseries-snapshot",
  "@counters-snapshot",
];
const nothing: JsonMembers = new Map();

export async function readVersion(
  base: string,
  id: string,
  signal?: AbortSignal,
): Promise<Version> {
  const { body } = await getText(`${base}/docs?id=${encodeURIComponent(id)}`, signal);
  const [found] = memberOf(parseSource(body), "Results") as JsonNode[];
  const content = new Map(found as JsonMembers);
  const metadata = new Map((content.get("@metadata") as JsonMembers | undefined) ?? nothing);
  content.delete("@metadata");
  const text = (name: string) => String(metadata.get(name) ?? "");
  const [changeVector, lastModified] = [text("@change-vector"), text("@last-modified")];
  for (const name of made) metadata.delete(name);
  return { content, metadata, changeVector, lastModified };
}

export function DocumentPage({ database, id }: { database: string; id: string }) {
  const base = `/databases/${encodeURIComponent(database)}`;
  const [version, setVersion] = useState<Version | null>(null);
  const [error, setError] = useState<Error | null>(null);
  const [round, setRound] = useState(0);
  useEffect(() => {
    const abort = new AbortController();
    readVersion(base, id, abort.signal).then(
      (found) => {
        setVersion(found);
        setError(null);
      },
      (failed: Error) => {
        if (!abort.signal.aborted) setError(failed);
      },
    );
    return () => abort.abort();
  }, [base, id, round]);
  const collection = version?.metadata.get("@collection");
  usePage("docs", [
    { text: database, to: href(["db", database, "docs"]) },
    ...(typeof collection === "string"
      ? [{ text: collection, to: href(["db", database, "docs", collection]) }]
      : []),
    { text: id },
  ]);
  const isMissing = error instanceof ServerError && error.status === 404;
  if (version !== null) return <Opened base={base} id={id} version={version} reread={setVersion} />;
  return (
    <div class="pane">
      <div class="tools">
        <h1 class="mono">{id}</h1>
      </div>
      {isMissing && (
        <Empty icon="doc" title={`There is no document ${id}`}>
          <a href={href(["db", database, "docs"])}>All documents</a>
        </Empty>
      )}
      {error !== null && !isMissing && (
        <Failure error={error} retry={() => setRound((before) => before + 1)} />
      )}
      {error === null && <Bones rows={12} />}
    </div>
  );
}

interface OpenedProperties {
  base: string;
  id: string;
  version: Version;
  reread: (version: Version) => void;
}

function Opened({ base, id, version, reread }: OpenedProperties) {
  const stored = useMemo(() => printSource(version.content), [version]);
  const edited = useEditedText(stored);
  const { text, replace } = edited;
  const { isSaving, error, theirs, said, store, drop } = useSaving(base, id, reread);
  useEffect(() => replace(stored), [stored, replace]);
  const { content, mark } = useMemo(() => parsed(text), [text]);
  const changed =
    content === null ? null : changesOf(version.content, version.content, content).length;
  const canSave = content !== null && changed !== 0 && !isSaving;
  const save = () => {
    if (content !== null && canSave) void store(content, version);
  };
  const format = () => content !== null && replace(printSource(content));
  const state = isSaving
    ? "Saving"
    : changed === 0
      ? said
      : changed === null
        ? ""
        : fieldsChanged(changed);
  return (
    <div class="pane">
      <div class="tools">
        <h1 class="mono">{id}</h1>
        <span class="muted">{bytes(new Blob([text]).size)}</span>
        <span class="muted wide-only" title={version.lastModified}>
          changed {ago(version.lastModified, Date.now())}
        </span>
        <span class="grow" />
        <span class="muted" role="status">
          {state}
        </span>
        <button type="button" class="btn" onClick={format} disabled={content === null}>
          Format
        </button>
        <button
          type="button"
          class="btn"
          onClick={() => replace(stored)}
          disabled={text === stored}
        >
          Revert
        </button>
        <button
          type="button"
          class="btn primary"
          onClick={save}
          disabled={!canSave}
          aria-describedby="problem"
        >
          Save
        </button>
      </div>
      <Problem mark={mark} error={error} />
      <CodeEditor
        language="json"
        label={`Document ${id}`}
        text={text}
        revision={edited.revision}
        marks={mark === null ? [] : [mark]}
        changed={edited.typed}
        commands={{ "Mod-s": save, "Shift-Alt-f": format }}
      />
      {theirs !== null && content !== null && (
        <Conflict
          id={id}
          base={version}
          theirs={theirs}
          mine={content}
          close={drop}
          takeTheirs={() => {
            drop();
            reread(theirs);
          }}
          save={(both) => void store(both, theirs)}
        />
      )}
    </div>
  );
}

function fieldsChanged(fields: number): string {
  return counted(fields, "field changed", "fields changed");
}

function Problem({ mark, error }: { mark: Mark | null; error: Error | null }) {
  return (
    <>
      {mark !== null && (
        <p id="problem" class="note bad edge">
          <Icon name="bad" />
          {mark.message}
        </p>
      )}
      {error !== null && <Failure error={error} />}
    </>
  );
}

/** Saves over a version; when somebody else has saved another one meanwhile, that is `theirs`. */
function useSaving(base: string, id: string, reread: (version: Version) => void) {
  const [isSaving, setSaving] = useState(false);
  const [error, setError] = useState<Error | null>(null);
  const [theirs, setTheirs] = useState<Version | null>(null);
  const [said, setSaid] = useState("");
  const store = async (saved: JsonMembers, over: Version) => {
    setSaving(true);
    setError(null);
    try {
      await send("PUT", `${base}/docs?id=${encodeURIComponent(id)}`, {
        text: printSource(new Map(saved).set("@metadata", over.metadata), 0),
        headers: { "If-Match": `"${over.changeVector}"` },
      });
      setTheirs(null);
      reread(await readVersion(base, id));
      setSaid("Saved");
    } catch (failed) {
      const isConflict = failed instanceof ServerError && failed.status === 409;
      if (isConflict) readVersion(base, id).then(setTheirs, setError);
      else setError(failed as Error);
    } finally {
      setSaving(false);
    }
  };
  return { isSaving, error, theirs, said, store, drop: () => setTheirs(null) };
}

/** The content of the text; or what is wrong with it. */
function parsed(text: string) {
  try {
    const node = parseSource(text);
    if (!(node instanceof Map)) throw new JsonError("A document is an object: { … }", 0);
    return { content: node, mark: null };
  } catch (error) {
    if (!(error instanceof JsonError)) throw error;
    const line = text.slice(0, error.at).split("\n").length;
    return {
      content: null,
      mark: { from: error.at, to: error.at + 1, message: `Line ${line}: ${error.message}` },
    };
  }
}
