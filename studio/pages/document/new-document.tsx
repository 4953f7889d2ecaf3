/** A document to be: with the fields that most of its collection have, or those of the one that it is a copy of. */

import { useEffect, useMemo, useRef, useState } from "preact/hooks";
import { get, send } from "../../base/client.ts";
import { may } from "../../base/identity.ts";
import { address, href, open } from "../../base/router.ts";
import { Icon } from "../../components/icon.tsx";
import { Failure } from "../../components/messages.tsx";
import { AccessDenied } from "../../components/access-denied.tsx";
import { useEditedText } from "../../editor/edited-text.ts";
import { CodeEditor } from "../../editor/editor.tsx";
import {
  type JsonMembers,
  type JsonNode,
  JsonNumber,
  printSource,
} from "../../json/json-source.ts";
import { usePage } from "../../shell/page.ts";
import { parsedText } from "./parsed-text.ts";
import { readVersion } from "./version.ts";

function usePlace(database: string, collection: string | undefined, from: string | null): string {
  const title = from === null ? "New document" : `Copy of ${from}`;
  usePage("docs", [
    { text: database, to: href(["db", database, "docs"]) },
    ...(collection === undefined
      ? []
      : [{ text: collection, to: href(["db", database, "docs", collection]) }]),
    { text: title },
  ]);
  return title;
}

/** @param collection "@": none is known */
export function NewDocument({ database, collection }: { database: string; collection: string }) {
  const base = `/databases/${encodeURIComponent(database)}`;
  const hasCollection = !collection.startsWith("@") && collection !== "";
  const from = address.value.query.get("from");
  const title = usePlace(database, hasCollection ? collection : undefined, from);
  const [id, setId] = useState(hasCollection ? `${collection.toLowerCase()}/` : "");
  const [name, setName] = useState(hasCollection ? collection : "");
  const edited = useEditedText("{\n}");
  const metadata = useRef<JsonMembers>(new Map());
  const [error, setError] = useState<Error | null>(null);
  const [isSaving, setSaving] = useState(false);
  const { content, mark } = useMemo(() => parsedText(edited.text), [edited.text]);
  useEffect(() => {
    const abort = new AbortController();
    const first = async () => {
      if (from !== null) {
        const copied = await readVersion(base, from, abort.signal);
        metadata.current = copied.metadata;
        return copied.content;
      }
      return hasCollection ? await usualFields(base, collection, abort.signal) : new Map();
    };
    first().then(
      (found) => !abort.signal.aborted && edited.replace(printSource(found as JsonMembers)),
      (failed: Error) => {
        if (!abort.signal.aborted) setError(failed);
      },
    );
    return () => abort.abort();
  }, [base, collection, from]);
  const save = async () => {
    if (content === null || isSaving) return;
    setSaving(true);
    setError(null);
    const own = new Map(metadata.current);
    if (name.trim() !== "") own.set("@collection", name.trim());
    try {
      const { body } = await send<{ Id: string }>(
        "PUT",
        `${base}/docs?id=${encodeURIComponent(id.trim())}`,
        // Nothing that is there is overwritten.
        {
          text: printSource(new Map(content).set("@metadata", own), 0),
          headers: { "If-Match": '""' },
        },
      );
      open(href(["db", database, "doc", body.Id]), { replace: true });
    } catch (failed) {
      setError(failed as Error);
      setSaving(false);
    }
  };
  if (!may("write")) return <AccessDenied title={`${database} may only be read`} />;
  return (
    <div class="pane fills">
      <div class="tools">
        <h1>{title}</h1>
        <label class="row">
          Id
          <span class="field">
            <input
              class="mono"
              value={id}
              placeholder="made by the server"
              onInput={(event) => setId(event.currentTarget.value)}
            />
          </span>
        </label>
        <label class="row">
          Collection
          <span class="field">
            <input value={name} onInput={(event) => setName(event.currentTarget.value)} />
          </span>
        </label>
        <span class="muted wide-only">
          {/[/|]$/.test(id) ? "The server makes the end of the id." : ""}
        </span>
        <span class="grow" />
        <button
          type="button"
          class="btn primary"
          disabled={content === null || isSaving}
          aria-describedby="problem"
          onClick={() => void save()}
        >
          Save
        </button>
      </div>
      {mark !== null && (
        <p id="problem" class="note bad edge">
          <Icon name="bad" />
          {mark.message}
        </p>
      )}
      {error !== null && <Failure error={error} />}
      <CodeEditor
        language="json"
        label="New document"
        text={edited.text}
        revision={edited.revision}
        marks={mark === null ? [] : [mark]}
        changed={edited.typed}
        commands={{ "Mod-s": () => void save() }}
      />
    </div>
  );
}

/** An object with the fields of the collection, empty. */
async function usualFields(
  base: string,
  collection: string,
  signal: AbortSignal,
): Promise<JsonMembers> {
  const { body } = await get<Record<string, string>>(
    `${base}/studio/collections/fields?${new URLSearchParams({ collection })}`,
    signal,
  );
  const fields = Object.entries(body).filter(([name]) => name !== "@metadata");
  return new Map(fields.map(([name, type]) => [name, emptyOf(type)]));
}

function emptyOf(type: string): JsonNode {
  if (type.startsWith("Array")) return [];
  if (type === "String") return "";
  if (type === "Number") return new JsonNumber("0");
  if (type === "Boolean") return false;
  return type === "Object" ? new Map() : null;
}
