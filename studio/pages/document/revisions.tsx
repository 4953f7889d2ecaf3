/** The revisions of a document: compare any two, or restore one. */

import { useEffect, useState } from "preact/hooks";
import { get, getText, send } from "../../base/client.ts";
import { count, when } from "../../base/format.ts";
import { may } from "../../base/identity.ts";
import { address, setQuery } from "../../base/router.ts";
import { Diff } from "../../components/diff.tsx";
import { Empty, Failure, Skeleton } from "../../components/messages.tsx";
import { showToast } from "../../components/toast.tsx";
import {
  type JsonNode,
  JsonNumber,
  memberOf,
  parseSource,
  printSource,
} from "../../json/json-source.ts";
import { collectionOf, type Version, versionOf } from "./version.ts";

interface Properties {
  readonly base: string;
  readonly id: string;
  readonly version: Version;
  /** Text of the editor. */
  readonly text: string;
  readonly hasChanges: boolean;
  restored(): void;
  counted(revisions: number): void;
}

interface Revision {
  readonly changeVector: string;
  readonly lastModified: string;
  readonly isDeletion: boolean;
}

const pageSize = 100;
/** The text of the editor, as a side of the comparison. */
const yours = "yours";

export function Revisions(properties: Properties) {
  const { base, id, version, text, hasChanges } = properties;
  const { revisions, total, error, more } = useRevisions(properties);
  const { query } = address.value;
  const chosen = query.get("rev") ?? revisions?.[hasChanges ? 0 : 1]?.changeVector;
  const against = query.get("with") ?? yours;
  const before = useContent(base, chosen);
  const after = useContent(base, against === yours ? undefined : against);
  const [failed, setFailed] = useState<Error | null>(null);
  if (error !== null) return <Failure error={error} />;
  if (revisions === null) return <Skeleton rows={6} />;
  if (revisions.length === 0) return <NoRevisions base={base} version={version} />;
  const nameOf = (changeVector: string) => {
    const found = revisions.find((one) => one.changeVector === changeVector);
    return found === undefined ? "an older revision" : when(found.lastModified, true);
  };
  const restored = async () => {
    try {
      await send("POST", `${base}/revisions/revert/docs`, {
        json: { IdToChangeVector: { [id]: chosen } },
      });
      showToast(`Restored ${id}`);
      setQuery({ rev: undefined, with: undefined });
      properties.restored();
    } catch (thrown) {
      setFailed(thrown as Error);
    }
  };
  const isDeletion = revisions.some((one) => one.changeVector === chosen && one.isDeletion);
  const afterText = against === yours ? text : after;
  return (
    <>
      <div class="time" role="listbox" aria-label="Revisions">
        {revisions.map((one, n) => (
          <button
            key={one.changeVector}
            type="button"
            role="option"
            aria-selected={one.changeVector === chosen}
            onClick={() => setQuery({ rev: one.changeVector })}
          >
            <i />
            <span title={one.lastModified}>
              {when(one.lastModified, true)}
              {one.changeVector === version.changeVector || n === 0 ? ", current" : ""}
            </span>
            <span class="muted">{one.isDeletion ? "deleted" : ""}</span>
          </button>
        ))}
        {revisions.length < total && (
          <button type="button" onClick={more}>
            <i />
            <span>Older revisions ({count(total - revisions.length)})</span>
          </button>
        )}
      </div>
      {failed !== null && <Failure error={failed} />}
      {chosen !== undefined && before !== null && afterText !== null && (
        <Diff
          before={before}
          after={afterText}
          title={`${nameOf(chosen)} → ${against === yours ? "yours" : nameOf(against)}`}
        >
          <select
            aria-label="Compare with"
            value={against}
            onChange={({ currentTarget: { value } }) =>
              setQuery({ with: value === yours ? undefined : value })
            }
          >
            <option value={yours}>Yours</option>
            {revisions.map((one) => (
              <option key={one.changeVector} value={one.changeVector}>
                {when(one.lastModified, true)}
              </option>
            ))}
          </select>
          {may("write") && (
            <button
              type="button"
              class="btn"
              disabled={hasChanges || isDeletion}
              title={
                hasChanges
                  ? "Save or revert your changes first"
                  : "Stores the content of this revision as a new version"
              }
              onClick={() => void restored()}
            >
              Restore this revision
            </button>
          )}
        </Diff>
      )}
    </>
  );
}

function useRevisions({ base, id, version, counted }: Properties) {
  const [revisions, setRevisions] = useState<readonly Revision[] | null>(null);
  const [total, setTotal] = useState(0);
  const [error, setError] = useState<Error | null>(null);
  const [shown, setShown] = useState(pageSize);
  useEffect(() => {
    const abort = new AbortController();
    const query = `id=${encodeURIComponent(id)}&start=0&pageSize=${shown}&metadataOnly=true`;
    getText(`${base}/revisions?${query}`, abort.signal).then(
      ({ body }) => {
        const answer = parseSource(body);
        const all = memberOf(answer, "TotalResults");
        const number = all instanceof JsonNumber ? Number(all.digits) : 0;
        setRevisions(((memberOf(answer, "Results") ?? []) as JsonNode[]).map(revisionOf));
        setTotal(number);
        counted(number);
        setError(null);
      },
      (failed: Error) => {
        if (!abort.signal.aborted) setError(failed);
      },
    );
    return () => abort.abort();
  }, [base, id, version.changeVector, shown]);
  return { revisions, total, error, more: () => setShown(shown + pageSize) };
}

function revisionOf(row: JsonNode): Revision {
  const metadata = memberOf(row, "@metadata");
  const text = (name: string) => String(memberOf(metadata, name) ?? "");
  return {
    changeVector: text("@change-vector"),
    lastModified: text("@last-modified"),
    isDeletion: text("@flags").includes("DeleteRevision"),
  };
}

/** Loads the content of a revision; null until it is loaded. */
function useContent(base: string, changeVector: string | undefined): string | null {
  const [content, setContent] = useState<string | null>(null);
  useEffect(() => {
    setContent(null);
    if (changeVector === undefined) return undefined;
    const abort = new AbortController();
    getText(
      `${base}/revisions?changeVector=${encodeURIComponent(changeVector)}`,
      abort.signal,
    ).then(
      ({ body }) => {
        const [found] = (memberOf(parseSource(body), "Results") ?? []) as JsonNode[];
        setContent(found instanceof Map ? printSource(versionOf(found).content) : "");
      },
      // The revision was removed meanwhile.
      () => undefined,
    );
    return () => abort.abort();
  }, [base, changeVector]);
  return content;
}

interface RevisionsConfiguration {
  readonly Default: object | null;
  readonly Collections: Readonly<Record<string, { readonly Disabled: boolean }>> | null;
}

const kept = 10;

function NoRevisions({ base, version }: { base: string; version: Version }) {
  const [error, setError] = useState<Error | null>(null);
  const [isOn, setOn] = useState<boolean | null>(null);
  const collection = collectionOf(version) ?? "@empty";
  useEffect(() => {
    get<RevisionsConfiguration | null>(`${base}/revisions/config`).then(
      ({ body }) => {
        const own = body?.Collections?.[collection];
        setOn(own === undefined ? (body?.Default ?? null) !== null : !own.Disabled);
      },
      () => setOn(false),
    );
  }, [base, collection]);
  const keep = async () => {
    try {
      const { body } = await get<RevisionsConfiguration | null>(`${base}/revisions/config`);
      const own = { Disabled: false, MinimumRevisionsToKeep: kept };
      await send("POST", `${base}/admin/revisions/config`, {
        json: {
          Default: body?.Default ?? null,
          Collections: { ...body?.Collections, [collection]: own },
        },
      });
      showToast(`At most ${kept} revisions per document of ${collection} are kept from now on`);
      setOn(true);
    } catch (thrown) {
      setError(thrown as Error);
    }
  };
  if (isOn === null) return <Skeleton rows={3} />;
  return (
    <Empty
      icon="clock"
      title={isOn ? "No revisions yet" : `Revisions are disabled for ${collection}`}
    >
      <p>
        {isOn
          ? "Each save of this document stores a revision."
          : "With revisions, the server keeps previous versions of documents, and patches can be undone."}
      </p>
      {error !== null && <Failure error={error} />}
      {!isOn && may("database-admin") && (
        <button type="button" class="btn" onClick={() => void keep()}>
          Keep at most {kept} revisions
        </button>
      )}
    </Empty>
  );
}
