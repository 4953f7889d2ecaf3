/** The operations of a database: type, state, documents, duration, user and start time. */
import { useState } from "preact/hooks";
import { ago, count } from "../base/format.ts";
import { identity } from "../base/identity.ts";
import { useResource } from "../base/resource.ts";
import { href } from "../base/router.ts";
import { Icon, type IconName } from "../components/icon.tsx";
import { Failure } from "../components/messages.tsx";
import { numeric, Table } from "../components/table.tsx";
import { countsOf, type ListedOperation, titleOf, tookText } from "./operation-facts.ts";

const everyMs = 2000;
const shownMax = 100;
const views = ["All", "Mine", "Failed"] as const;

export function OperationList({ database }: { database: string }) {
  const path = `/databases/${encodeURIComponent(database)}/operations`;
  const { body, error } = useResource<{ Results: readonly ListedOperation[] }>(path, everyMs);
  const [view, setView] = useState<(typeof views)[number]>("All");
  if (error !== undefined && body === undefined) return <Failure error={error} />;
  const isShown = ({ Description, State }: ListedOperation) =>
    view === "All" ||
    (view === "Mine" && Description.StartedBy === identity.value?.name) ||
    (view === "Failed" && State.Status === "Faulted");
  const found = [...(body?.Results ?? [])].reverse().filter(isShown);
  return (
    <section class="panel" aria-label="Operations">
      <div class="cap">
        <h2 class="grow">Operations</h2>
        <fieldset class="seg">
          <legend class="hidden-label">Which operations</legend>
          {views.map((one) => (
            <button
              key={one}
              type="button"
              aria-pressed={view === one}
              onClick={() => setView(one)}
            >
              {one}
            </button>
          ))}
        </fieldset>
      </div>
      {found.length === 0 ? (
        <p class="body muted">
          {view === "All" ? "None yet: patches, imports and backups are listed here." : "None."}
        </p>
      ) : (
        <Table
          kind="lines"
          label="Operations"
          columns={[
            numeric("No."),
            "Operation",
            "State",
            numeric("Documents"),
            numeric("Duration"),
            "User",
            "Started",
          ]}
        >
          {found.slice(0, shownMax).map((one) => (
            <Row key={one.Id} operation={one} database={database} />
          ))}
        </Table>
      )}
    </section>
  );
}

function Row({ operation, database }: { operation: ListedOperation; database: string }) {
  const { Id, Description } = operation;
  const started = Date.parse(Description.StartTime);
  const ended = Description.EndTime === null ? Date.now() : Date.parse(Description.EndTime);
  const counts = countsOf(operation);
  return (
    <tr>
      <td class="num l0">{Id}</td>
      <td class="l1">
        <a href={href(["db", database, "patch", String(Id)])}>{titleOf(operation)}</a>
      </td>
      <td class="l2">
        <StateOf operation={operation} />
      </td>
      <td class="num l3">{counts === undefined ? "" : count(counts.Changed ?? 0)}</td>
      <td class="num l0">{tookText(Math.max(0, ended - started))}</td>
      <td class="l0">{Description.StartedBy ?? ""}</td>
      <td class="l0" title={Description.StartTime}>
        {ago(started, Date.now())}
      </td>
    </tr>
  );
}

function StateOf({ operation }: { operation: ListedOperation }) {
  const [kind, icon, text] = shownState(operation);
  return (
    <span class={`state ${kind}`}>
      <Icon name={icon} />
      {text}
    </span>
  );
}

function shownState(operation: ListedOperation): readonly [string, IconName, string] {
  const { State } = operation;
  if (State.UndoneBy !== undefined) return ["ok", "check", `Undone by ${State.UndoneBy}`];
  if (State.Status === "Completed") return ["ok", "check", "Done"];
  if (State.Status === "Canceled") return ["muted", "x", "Stopped"];
  if (State.CanResume === true) return ["warn", "pause", "Interrupted"];
  if (State.Status === "Faulted") return ["bad", "bad", "Failed"];
  const counts = countsOf(operation);
  const part = counts === undefined || counts.Total === 0 ? null : counts.Processed / counts.Total;
  if (State.IsPaused === true) return ["warn", "pause", "Paused"];
  return ["run", "run", part === null ? "Running" : `${Math.floor(part * 100)} %`];
}
