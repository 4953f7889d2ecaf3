/** The errors of an index, grouped by message and position, with the affected documents. */

import { send } from "../../base/client.ts";
import { counted } from "../../base/format.ts";
import { may } from "../../base/identity.ts";
import { useResource } from "../../base/resource.ts";
import { href } from "../../base/router.ts";
import { Icon } from "../../components/icon.tsx";
import { Empty, Failure, Skeleton } from "../../components/messages.tsx";
import { Separator } from "../../components/separator.tsx";
import { CodeEditor } from "../../editor/editor.tsx";
import type { Act } from "./index-actions.tsx";
import {
  type Definition,
  type ErrorGroup,
  errorGroups,
  type IndexErrorRow,
  type IndexStats,
} from "./index-info.ts";

const shownDocuments = 6;
const shownGroups = 50;
/** Maximum number of ids in a query. */
const queriedDocumentsMax = 200;
const pollMs = 5000;

export function ErrorsTab({
  database,
  index,
  definition,
  act,
}: {
  database: string;
  index: IndexStats;
  definition: Definition;
  act: Act;
}) {
  const base = `/databases/${encodeURIComponent(database)}`;
  const query = `name=${encodeURIComponent(index.Name)}`;
  const list = useResource<{ Results: readonly { readonly Errors: readonly IndexErrorRow[] }[] }>(
    `${base}/indexes/errors?${query}`,
    pollMs,
  );
  if (list.error !== undefined) return <Failure error={list.error} retry={list.reload} />;
  if (list.body === undefined) return <Skeleton rows={4} />;
  const groups = errorGroups(list.body.Results[0]?.Errors ?? []);
  if (groups.length === 0) {
    return (
      <Empty icon="check" title="No errors">
        <p>{counted(index.MapAttempts, "document")} mapped without errors.</p>
      </Empty>
    );
  }
  return (
    <div class="split">
      <div class="scroll inset stack">
        {index.IsInvalidIndex && (
          <p class="note bad">
            <Icon name="bad" />
            <span>
              <b>{index.Name} failed</b>: {counted(index.MapErrors, "map")} of{" "}
              {counted(index.MapAttempts, "document")} failed. Queries on this index are rejected.
            </span>
            {may("write") && (
              <button
                type="button"
                class="btn"
                onClick={() => act(() => send("RESET", `${base}/indexes?${query}`))}
              >
                Reset
              </button>
            )}
          </p>
        )}
        {groups.slice(0, shownGroups).map((group) => (
          <Group
            key={`${group.message} ${group.line}`}
            group={group}
            database={database}
            index={index}
          />
        ))}
        {groups.length > shownGroups && (
          <p class="soft">and {counted(groups.length - shownGroups, "more message")}</p>
        )}
        <p class="soft row">
          {may("write") && (
            <button
              type="button"
              class="btn quiet"
              onClick={() => act(() => send("DELETE", `${base}/indexes/errors?${query}`))}
            >
              Clear errors
            </button>
          )}
          {!index.IsInvalidIndex && "The index processes all other documents."}
        </p>
      </div>
      <Separator name="index-errors" label="Resize errors and map" />
      <section class="pane" aria-label="Position in the map">
        <h3 class="inset">Position in the map</h3>
        <CodeEditor
          language="javascript"
          label="Map of the index"
          text={definition.Maps[0] ?? ""}
          revision={0}
          isReadOnly
          changed={() => undefined}
          commands={{}}
          marks={marksOf(definition.Maps[0] ?? "", groups)}
        />
      </section>
    </div>
  );
}

function Group({
  group,
  database,
  index,
}: {
  group: ErrorGroup;
  database: string;
  index: IndexStats;
}) {
  const { message, messages, action, line, documents, firstMs, lastMs } = group;
  const [first] = documents;
  const rest = documents.length - shownDocuments;
  const ids = documents.slice(0, queriedDocumentsMax).map((id) => `'${id.replaceAll("'", "\\'")}'`);
  const isOfDocuments = action === "Map";
  return (
    <section class="panel" aria-label={message}>
      <div class="body stack">
        <div class="row">
          <Icon name="bad" kind="bad" />
          <b class="grow">{message}</b>
          <span class="soft">{timesOf(firstMs, lastMs)}</span>
        </div>
        <span class="soft">
          {action.toLowerCase()}
          {line !== null && `, line ${line}`} ·{" "}
          {isOfDocuments ? counted(documents.length, "document") : counted(documents.length, "key")}
          {messages > 1 && `, and ${counted(messages - 1, "similar message")}`}
        </span>
        <p class="note hint">
          <Icon name="hint" />
          <span>
            Skip such documents (<code>if (…) return null;</code> at the start of the map), or
            correct them. Changed documents are indexed again.
          </span>
        </p>
        <p>
          {documents.slice(0, shownDocuments).map((id) =>
            isOfDocuments ? (
              <a key={id} class="idlink" href={href(["db", database, "doc", id])}>
                {id}{" "}
              </a>
            ) : (
              <code key={id}>{id} </code>
            ),
          )}
          {rest > 0 && <span class="soft">and {rest} more</span>}
        </p>
        {isOfDocuments && first !== undefined && (
          <div class="row">
            <a
              class="btn"
              href={href(["db", database, "index", index.Name], { tab: "test", doc: first })}
            >
              Test with {first}
            </a>
            <a
              class="btn quiet"
              href={href(["db", database, "query"], {
                q: `from @all_docs where id() in (${ids.join(", ")})`,
              })}
            >
              Query these {documents.length}
            </a>
          </div>
        )}
      </div>
    </section>
  );
}

function timesOf(firstMs: number, lastMs: number): string {
  const text = (ms: number) =>
    new Date(ms).toLocaleTimeString(undefined, { hour: "2-digit", minute: "2-digit" });
  const [first, last] = [text(firstMs), text(lastMs)];
  return first === last ? first : `${first} – ${last}`;
}

/** Returns marks for the lines where maps failed. */
function marksOf(text: string, groups: readonly ErrorGroup[]) {
  const lines = text.split("\n");
  return groups.flatMap(({ action, line, message }) => {
    const found = line === null || action !== "Map" ? undefined : lines[line - 1];
    if (found === undefined || line === null) return [];
    const from = lines.slice(0, line - 1).reduce((sum, one) => sum + one.length + 1, 0);
    const indent = found.length - found.trimStart().length;
    return [{ from: from + indent, to: from + found.length, message }];
  });
}
