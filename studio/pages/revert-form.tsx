/** Reverts collections to a point in time, by revisions: a confirmation, then the progress and the result. */
import { useState } from "preact/hooks";
import { ServerError, send } from "../base/client.ts";
import { ago, count, counted, moment } from "../base/format.ts";
import { useOperation } from "../base/operation.ts";
import { useResource } from "../base/resource.ts";
import { address, href, setQuery } from "../base/router.ts";
import { Confirmation } from "../components/confirmation.tsx";
import { DateTime } from "../components/date-time.tsx";
import { Icon } from "../components/icon.tsx";
import { Failure } from "../components/messages.tsx";
import { Progress } from "../components/progress.tsx";

interface Figures {
  readonly ScannedRevisions: number;
  readonly ScannedDocuments?: number;
  readonly RevertedDocuments: number;
  /** Problems by id. */
  readonly Warnings?: Readonly<Record<string, string>>;
}

interface RevisionRules {
  readonly Default: { readonly Disabled: boolean } | null;
  readonly Collections: Readonly<Record<string, { readonly Disabled: boolean }>> | null;
}

const hourMs = 3_600_000;
/** RavenDB's window for revisions out of order, in seconds; the server examines all revisions. */
const windowSeconds = 96 * 3600;

export function RevertForm({ database }: { database: string }) {
  const base = `/databases/${encodeURIComponent(database)}`;
  const { query } = address.value;
  const running = query.get("revert");
  const [atMs, setTime] = useState<number | null>(() => Date.now() - hourMs);
  const collection = query.get("collection") ?? "";
  const [isAsking, setAsking] = useState(false);
  const stats = useResource<{ Collections: Readonly<Record<string, number>> }>(
    `${base}/collections/stats`,
  );
  const rules = useResource<RevisionRules>(`${base}/revisions/config`);
  const isUnset = rules.error instanceof ServerError && rules.error.status === 404;
  const lacksRevisions =
    isUnset || (rules.body !== undefined && !keepsRevisions(rules.body, collection));
  const names = Object.keys(stats.body?.Collections ?? {}).sort();
  const isPast = atMs !== null && atMs < Date.now();
  const what = collection === "" ? "all collections" : collection;
  const start = async (timeMs: number) => {
    const { body } = await send<{ OperationId: number }>("POST", `${base}/revisions/revert`, {
      json: {
        Time: new Date(timeMs).toISOString(),
        WindowInSec: windowSeconds,
        Collections: collection === "" ? null : [collection],
      },
    });
    setQuery({ revert: String(body.OperationId) });
  };
  if (running !== null)
    return <Reverting key={running} base={base} database={database} id={running} />;
  return (
    <section class="panel form-panel" aria-label="Revert">
      <form
        class="body stack"
        onSubmit={(event) => {
          event.preventDefault();
          if (isPast) setAsking(true);
        }}
      >
        <p class="soft">
          Restores documents from their revisions. Documents created after the point in time are
          deleted, deleted ones are stored again. Collections without revisions are unchanged.
        </p>
        <div class="two-fields">
          <DateTime
            label="Point in time"
            initial={atMs}
            hint={
              isPast || atMs === null
                ? `${atMs === null ? "" : `${ago(atMs, Date.now())}, `}in your local time.`
                : "Must be in the past."
            }
            change={setTime}
          />
          <label class="form">
            Collection
            <select
              class="field"
              value={collection}
              onChange={(event) => setQuery({ collection: event.currentTarget.value })}
            >
              <option value="">All collections</option>
              {names.map((name) => (
                <option key={name} value={name}>
                  {name}
                </option>
              ))}
            </select>
          </label>
        </div>
        {lacksRevisions && (
          <p class="note warn">
            <Icon name="warn" />
            Revisions are not enabled for {what}: only earlier revisions can be restored.
          </p>
        )}
        {stats.error !== undefined && <Failure error={stats.error} retry={stats.reload} />}
        <div>
          <button type="submit" class="btn danger" disabled={!isPast}>
            Revert…
          </button>
        </div>
      </form>
      {isAsking && atMs !== null && (
        <Confirmation
          title={`Revert ${what} to ${moment(atMs)}?`}
          yes={`Revert ${what}`}
          typed={collection === "" ? database : collection}
          act={() => start(atMs)}
          close={() => setAsking(false)}
        >
          <p>
            <b>All changes since then are reverted</b>, also those of other users. The current
            versions stay as revisions, so that you can revert again to a later time. New documents
            are deleted.
          </p>
        </Confirmation>
      )}
    </section>
  );
}

function Reverting({ base, database, id }: { base: string; database: string; id: string }) {
  const path = `${base}/operations/state?id=${encodeURIComponent(id)}`;
  const { operation, error } = useOperation<Figures, Figures>(path);
  const [failed, setFailed] = useState<Error | null>(null);
  const stop = () => {
    send("POST", `${base}/operations/kill?id=${encodeURIComponent(id)}`).catch(setFailed);
  };
  const problem = error ?? failed;
  const { result } = operation ?? {};
  const warnings = Object.entries(result?.Warnings ?? {});
  return (
    <section class="panel form-panel" aria-label="Revert">
      <div class="body stack">
        {problem != null && <Failure error={problem} />}
        {operation?.status === "running" && (
          <>
            <Progress
              label="Revert"
              done={operation.progress?.RevertedDocuments ?? 0}
              total={null}
              unit="documents reverted"
            />
            <div class="row muted">
              <span class="grow">
                {count(operation.progress?.ScannedRevisions ?? 0)} revisions read · operation {id}
              </span>
              <button type="button" class="btn" onClick={stop}>
                Stop
              </button>
            </div>
          </>
        )}
        {operation?.status === "completed" && result != null && (
          <div class="note" role="status">
            <Icon name="check" />
            <span class="grow">
              {counted(result.RevertedDocuments, "document")} reverted of{" "}
              {count(result.ScannedDocuments ?? 0)} with revisions.
            </span>
            <a class="btn" href={href(["db", database, "docs"])}>
              Show documents
            </a>
          </div>
        )}
        {operation?.status === "cancelled" && (
          <p class="note warn" role="status">
            <Icon name="warn" />
            Stopped. Documents that were already reverted stay reverted.
          </p>
        )}
        {operation?.error != null && <Failure error={new Error(operation.error.Message)} />}
        {warnings.length > 0 && (
          <details>
            <summary>{counted(warnings.length, "warning")}</summary>
            <ul>
              {warnings.slice(0, 100).map(([document, text]) => (
                <li key={document}>
                  <a class="idlink" href={href(["db", database, "doc", document])}>
                    {document}
                  </a>{" "}
                  {text}
                </li>
              ))}
            </ul>
          </details>
        )}
        {operation !== undefined && operation.status !== "running" && (
          <div>
            <button type="button" class="btn" onClick={() => setQuery({ revert: undefined })}>
              Revert to another time
            </button>
          </div>
        )}
      </div>
    </section>
  );
}

/** Returns whether revisions are kept for a collection; for all, "": for any. */
function keepsRevisions({ Default, Collections }: RevisionRules, collection: string): boolean {
  const own = Collections ?? {};
  const isOn = Default !== null && !Default.Disabled;
  if (collection === "") return isOn || Object.values(own).some(({ Disabled }) => !Disabled);
  const rule = own[collection];
  return rule === undefined ? isOn : !rule.Disabled;
}
