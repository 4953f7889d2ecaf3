/**
 * An existing document: its text, which is saved with the change vector of the loaded version, and its related data.
 */

import { useMemo, useState } from "preact/hooks";
import { send } from "../../base/client.ts";
import { ago, bytes, when } from "../../base/format.ts";
import { may } from "../../base/identity.ts";
import { address, href, open, setQuery } from "../../base/router.ts";
import { Confirmation } from "../../components/confirmation.tsx";
import { Dialog } from "../../components/dialog.tsx";
import { Diff } from "../../components/diff.tsx";
import { Icon } from "../../components/icon.tsx";
import { JsonTree } from "../../components/json-tree.tsx";
import { Failure } from "../../components/messages.tsx";
import { Separator } from "../../components/separator.tsx";
import { panel, Tabs } from "../../components/tabs.tsx";
import { useEditedText } from "../../editor/edited-text.ts";
import { CodeEditor } from "../../editor/editor.tsx";
import {
  type JsonMembers,
  type JsonNode,
  printSource,
  replacedAt,
} from "../../json/json-source.ts";
import { changesOf } from "../../json/merge.ts";
import { Conflict } from "./conflict.tsx";
import { draftKey, dropDraft, useDraft } from "./draft.ts";
import { Metadata, noTimes, type Times, withTimes } from "./metadata.tsx";
import { useNewer } from "./newest.ts";
import { fieldsChanged, parsedText } from "./parsed-text.ts";
import { useSaving } from "./saving.ts";
import { Side } from "./side.tsx";
import { collectionOf, readVersion, type Version } from "./version.ts";

interface Properties {
  database: string;
  base: string;
  id: string;
  version: Version;
  setVersion: (version: Version) => void;
}

type Opened = ReturnType<typeof useOpened>;

export function OpenedDocument(properties: Properties) {
  const opened = useOpened(properties);
  const { database, base, id, version } = properties;
  const { edited, parsed, saving, newer } = opened;
  const shownPane = address.value.query.get("pane") === "side" ? "side" : undefined;
  return (
    // biome-ignore lint/a11y/noStaticElementInteractions: handles keys that bubble from the content
    <div
      class="pane fills"
      onKeyDown={(event) =>
        commandKey(event, { s: opened.save, d: () => open(cloneAddress(database, id, version)) })
      }
    >
      <Tools opened={opened} properties={properties} />
      <Notes opened={opened} properties={properties} />
      <PaneChoice shown={shownPane} />
      <div class="split paned" data-pane={shownPane}>
        <View opened={opened} properties={properties} />
        <Separator name="document" label="Resize document and related data" />
        <Side
          database={database}
          base={base}
          id={id}
          version={version}
          text={edited.text}
          hasChanges={opened.hasChanges}
          reread={opened.reread}
        />
      </div>
      {saving.theirs !== null && parsed.content !== null && (
        <Conflict
          id={id}
          base={version}
          theirs={saving.theirs}
          mine={parsed.content}
          close={saving.drop}
          takeTheirs={() => {
            const { theirs } = saving;
            saving.drop();
            if (theirs !== null) opened.take(theirs);
          }}
          save={(both) => saving.theirs !== null && opened.store(both, saving.theirs)}
        />
      )}
      {opened.isComparing && newer !== null && newer !== "deleted" && (
        <Compare
          id={id}
          theirs={newer}
          mine={edited.text}
          close={() => opened.setComparing(false)}
          take={() => opened.take(newer)}
        />
      )}
      {opened.isDeleting && (
        <DeleteDialog properties={properties} close={() => opened.setDeleting(false)} />
      )}
    </div>
  );
}

/** The document as text or tree, or its metadata. */
function View({ opened, properties: { database, base, id, version } }: PartProperties) {
  const { edited, parsed } = opened;
  const view = address.value.query.get("view") ?? "json";
  return (
    <div class="pane">
      <Tabs
        label="Document view"
        name="view"
        tabs={[
          { key: "json", text: "JSON" },
          { key: "tree", text: "Tree" },
          { key: "meta", text: "Metadata", count: version.wholeMetadata.size },
        ]}
        chosen={view}
        choose={(key) => setQuery({ view: key === "json" ? undefined : key })}
      />
      <div class="pane grow" {...panel("view", view)}>
        {view === "tree" && parsed.content !== null && (
          <JsonTree
            label={`Values of ${id}`}
            node={parsed.content}
            change={may("write") ? opened.editValue : undefined}
          />
        )}
        {view === "meta" && (
          <Metadata
            id={id}
            base={base}
            version={version}
            times={opened.times}
            round={edited.revision}
            change={opened.changeTimes}
          />
        )}
        {(view === "json" || (view === "tree" && parsed.content === null)) && (
          <CodeEditor
            language="json"
            label={`Document ${id}`}
            text={edited.text}
            revision={edited.revision}
            marks={parsed.mark === null ? [] : [parsed.mark]}
            isReadOnly={!may("write")}
            changed={opened.typed}
            commands={{
              "Mod-s": opened.save,
              "Mod-d": () => open(cloneAddress(database, id, version)),
              "Shift-Alt-f": opened.format,
            }}
          />
        )}
      </div>
    </div>
  );
}

/** Selects the pane on narrow screens, which show one of the two. */
function PaneChoice({ shown }: { shown: string | undefined }) {
  return (
    <fieldset class="seg phone-only" aria-label="Shown">
      {[undefined, "side"].map((pane) => (
        <button
          key={pane}
          type="button"
          aria-pressed={shown === pane}
          onClick={() => setQuery({ pane })}
        >
          {pane === undefined ? "Document" : "Related data"}
        </button>
      ))}
    </fieldset>
  );
}

/** State of the edited document and of the version on the server. */
function useOpened({ database, base, id, version, setVersion }: Properties) {
  const stored = useMemo(() => printSource(version.content), [version]);
  const edited = useEditedText(stored);
  const { text, replace } = edited;
  const key = draftKey(database, id);
  const [times, setTimes] = useState<Times>(noTimes);
  const draft = useDraft(key, text, times, stored, version);
  const [isComparing, setComparing] = useState(false);
  const [isDeleting, setDeleting] = useState(false);
  const take = (found: Version) => {
    draft.drop();
    setTimes(noTimes);
    setComparing(false);
    setVersion(found);
    replace(printSource(found.content));
  };
  const saving = useSaving(base, id, take);
  const newer = useNewer(database, base, id, version, saving.isSaving, setVersion);
  const parsed = useMemo(() => parsedText(text), [text]);
  const { content } = parsed;
  const changed =
    content === null
      ? null
      : changesOf(version.content, version.content, content).length + times.size;
  const isGone = newer === "deleted";
  const canSave = content !== null && (changed !== 0 || isGone) && !saving.isSaving;
  const hasChanges = text !== stored || times.size > 0;
  const store = (members: JsonMembers, over: Version, isDeleted = false) =>
    void saving.store(members, withTimes(over, times), isDeleted);
  const save = () => {
    if (content !== null && canSave) store(content, version, isGone);
  };
  const typed = (now: string) => {
    edited.typed(now);
    draft.changed();
  };
  return {
    edited,
    typed,
    parsed,
    saving,
    newer,
    changed,
    canSave,
    hasChanges,
    save,
    take,
    draft: draft.found,
    isComparing,
    setComparing,
    isDeleting,
    setDeleting,
    times,
    changeTimes(changed: Times) {
      setTimes(changed);
      draft.changed();
    },
    store,
    /** Replaces a value of the tree. */
    editValue(path: readonly string[], value: JsonNode) {
      if (content !== null) typed(printSource(replacedAt(content, path, value)));
    },
    format: () => content !== null && replace(printSource(content)),
    revert: () => {
      draft.drop();
      setTimes(noTimes);
      replace(stored);
    },
    openDraft: () => {
      if (draft.found === null) return;
      setVersion(draft.found.base);
      setTimes(draft.found.times);
      replace(draft.found.text);
      draft.opened();
    },
    dropDraft: draft.drop,
    /** Reloads the version after a change of related data. */
    reread: () => void readVersion(base, id).then(setVersion, () => undefined),
  };
}

/** Runs the command of Ctrl (⌘ on a Mac) and a letter. */
function commandKey(event: KeyboardEvent, commands: Readonly<Record<string, () => void>>): void {
  if (!(event.ctrlKey || event.metaKey) || event.altKey || event.defaultPrevented) return;
  const run = commands[event.key];
  if (run === undefined) return;
  event.preventDefault();
  run();
}

function cloneAddress(database: string, id: string, version: Version): string {
  return href(["db", database, "doc"], { new: collectionOf(version) ?? "@", from: id });
}

interface PartProperties {
  opened: Opened;
  properties: Properties;
}

function Tools({ opened, properties: { database, id, version } }: PartProperties) {
  const { edited, parsed, saving, changed, canSave, hasChanges } = opened;
  const collection = collectionOf(version);
  const state = saving.isSaving
    ? "Saving"
    : changed === 0
      ? hasChanges
        ? ""
        : saving.said
      : changed === null
        ? ""
        : fieldsChanged(changed);
  return (
    <div class="tools">
      <h1 class="mono cut">{id}</h1>
      <button
        type="button"
        class="btn quiet icon"
        aria-label="Copy id"
        onClick={() => void navigator.clipboard?.writeText(id)}
      >
        <Icon name="copy" />
      </button>
      {collection !== undefined && (
        <a class="chip wide-only" href={href(["db", database, "docs", collection])}>
          {collection}
        </a>
      )}
      <span class="muted nowrap">{bytes(new Blob([edited.text]).size)}</span>
      <span class="muted wide-only nowrap" title={version.lastModified}>
        changed {ago(version.lastModified, Date.now())}
      </span>
      <span class="grow" />
      <span class="muted" role="status">
        {state}
      </span>
      {may("write") ? (
        <>
          <a class="btn quiet" href={cloneAddress(database, id, version)} title="Ctrl D">
            Clone
          </a>
          <button type="button" class="btn quiet danger" onClick={() => opened.setDeleting(true)}>
            Delete
          </button>
          <button
            type="button"
            class="btn quiet"
            onClick={opened.format}
            disabled={parsed.content === null}
          >
            Format
          </button>
          <button type="button" class="btn quiet" onClick={opened.revert} disabled={!hasChanges}>
            Revert
          </button>
          <button
            type="button"
            class="btn primary"
            onClick={opened.save}
            disabled={!canSave}
            aria-describedby="problem"
          >
            Save
            <kbd class="wide-only">Ctrl S</kbd>
          </button>
        </>
      ) : (
        <span class="chip">Read only</span>
      )}
    </div>
  );
}

/** Syntax errors of the text, and changes on the server. */
function Notes({ opened, properties: { id } }: PartProperties) {
  const { parsed, saving, newer, draft } = opened;
  return (
    <>
      {parsed.mark !== null && (
        <p id="problem" class="note bad edge">
          <Icon name="bad" />
          {parsed.mark.message}
        </p>
      )}
      {saving.error !== null && <Failure error={saving.error} />}
      {newer === "deleted" && (
        <p class="note warn edge" role="status">
          <Icon name="warn" />
          {id} was deleted on the server. Saving recreates it.
        </p>
      )}
      {newer !== null && newer !== "deleted" && (
        <div class="note warn edge" role="status">
          <Icon name="warn" />
          <span class="grow">
            This document changed on the server {ago(newer.lastModified, Date.now())}.
          </span>
          <button type="button" class="link" onClick={() => opened.setComparing(true)}>
            Compare
          </button>
        </div>
      )}
      {draft !== null && (
        <div class="note edge" role="status">
          <Icon name="clock" />
          <span class="grow">You have a draft of {when(draft.atMs)}.</span>
          <button type="button" class="link" onClick={opened.openDraft}>
            {" "}
            Open{" "}
          </button>
          <button type="button" class="link" onClick={opened.dropDraft}>
            Discard
          </button>
        </div>
      )}
    </>
  );
}

interface CompareProperties {
  id: string;
  theirs: Version;
  mine: string;
  close: () => void;
  take: () => void;
}

function Compare({ id, theirs, mine, close, take }: CompareProperties) {
  return (
    <Dialog title={`${id}: your version and the server's version`} close={close} isBig>
      <Diff before={mine} after={printSource(theirs.content)} title="Yours → server" />
      <div class="row">
        <span class="grow" />
        <button type="button" class="btn" onClick={close}>
          Keep mine
        </button>
        <button type="button" class="btn primary" onClick={take}>
          Take theirs
        </button>
      </div>
    </Dialog>
  );
}

interface DeleteProperties {
  properties: Properties;
  close: () => void;
}

function DeleteDialog({ properties: { database, base, id, version }, close }: DeleteProperties) {
  const remove = async () => {
    await send("DELETE", `${base}/docs?id=${encodeURIComponent(id)}`, {
      headers: { "If-Match": `"${version.changeVector}"` },
    });
    dropDraft(draftKey(database, id));
    const collection = collectionOf(version);
    open(href(["db", database, "docs", ...(collection === undefined ? [] : [collection])]));
  };
  const keepsRevisions = String(version.wholeMetadata.get("@flags") ?? "").includes("HasRevisions");
  return (
    <Confirmation title={`Delete ${id}?`} yes={`Delete ${id}`} close={close} act={remove}>
      <p>
        {keepsRevisions
          ? "Its revisions are kept: it can be restored from the list Deleted, kept."
          : "Its attachments, counters and time series are deleted, too. This cannot be undone."}
      </p>
    </Confirmation>
  );
}
