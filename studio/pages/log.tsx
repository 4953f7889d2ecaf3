/** The log of the server, live: its lines, and a line for each request. */
import { useState } from "preact/hooks";
import { moment } from "../base/format.ts";
import { identity, may } from "../base/identity.ts";
import { useLiveRows } from "../base/live-rows.ts";
import { address, setQuery } from "../base/router.ts";
import { AccessDenied } from "../components/access-denied.tsx";
import { Drawer } from "../components/drawer.tsx";
import { Facts } from "../components/facts.tsx";
import { Icon } from "../components/icon.tsx";
import { Table } from "../components/table.tsx";
import { SearchInput } from "../components/text-field.tsx";
import { usePage } from "../shell/page.ts";

interface LogLine {
  /** In UTC: `2026-11-24 16:00:00.0000`. */
  readonly Date: string;
  readonly Level: string;
  /** Name of the database, or "Server". */
  readonly Resource: string;
  readonly Logger: string;
  readonly Message: string;
}

/** Levels of the server, lowest first. */
const levels = ["Trace", "Debug", "Info", "Warn", "Error", "Fatal"];
/** The level of the lines for requests. */
const usualLevel = "Debug";
const linesMax = 1000;
const shownMax = 200;

function rankOf(level: string): number {
  return levels.findIndex((one) => one.toUpperCase() === level.toUpperCase());
}

export function LogPage() {
  usePage("log", [{ text: "Log" }]);
  const { query } = address.value;
  const level = query.get("level") ?? usualLevel;
  const filter = query.get("filter") ?? "";
  const [isHeld, setHeld] = useState(false);
  const [opened, setOpened] = useState<LogLine | null>(null);
  const mayWatch = may("operator");
  const isAtLevel = (one: LogLine) => rankOf(one.Level) >= rankOf(level);
  // Lines below the level are dropped on arrival, so that they do not displace others.
  const log = useLiveRows<LogLine>(
    mayWatch ? "/admin/logs/watch" : null,
    linesMax,
    (one) => !isHeld && isAtLevel(one),
  );
  const wanted = filter.toLowerCase();
  const shown = log.rows
    .map((line, at) => ({ line, key: log.count - at }))
    .filter(({ line }) => isAtLevel(line) && textOf(line).includes(wanted));
  return (
    <div class="beside">
      <div class="page">
        <div class="head">
          <h1>Log</h1>
          {mayWatch && <Tools level={level} filter={filter} isHeld={isHeld} hold={setHeld} />}
        </div>
        {identity.value !== null && !mayWatch && (
          <AccessDenied title="The log requires operator access" />
        )}
        {mayWatch && shown.length === 0 && (
          <p class="muted" role="status">
            {!log.isOpen
              ? "Connecting."
              : log.count === 0
                ? "No lines since this page was opened."
                : "No matching lines."}
          </p>
        )}
        {shown.length > 0 && (
          <div class="panel scroll log">
            <Table
              kind="data"
              label="Log"
              columns={["Time", "Level", { label: "Source", class: "wide-only" }, "Message"]}
            >
              {shown.slice(0, shownMax).map(({ line, key }) => (
                <Row key={key} line={line} isOpen={line === opened} open={setOpened} />
              ))}
            </Table>
          </div>
        )}
        {shown.length > shownMax && (
          <p class="muted">Only the newest {shownMax} matching lines are shown.</p>
        )}
      </div>
      {opened !== null && (
        <Drawer
          title={moment(timeOf(opened))}
          label="Line of the log"
          close={() => setOpened(null)}
        >
          <Facts
            of={[
              ["Level", <Level key="level" level={opened.Level} />],
              ["Source", opened.Resource],
              ["Event", opened.Logger],
            ]}
          />
          <pre class="peeked">{opened.Message}</pre>
        </Drawer>
      )}
    </div>
  );
}

function Tools({
  level,
  filter,
  isHeld,
  hold,
}: {
  level: string;
  filter: string;
  isHeld: boolean;
  hold: (isHeld: boolean) => void;
}) {
  return (
    <>
      <label class="row">
        <span class="wide-only">Level</span>
        <select
          class="field"
          aria-label="Level"
          value={level}
          onChange={({ currentTarget: { value } }) =>
            setQuery({ level: value === usualLevel ? undefined : value })
          }
        >
          {levels.map((one) => (
            <option key={one} value={one}>
              {one}
            </option>
          ))}
        </select>
      </label>
      <div class="field calm filter">
        <SearchInput label="Filter" value={filter} change={(text) => setQuery({ filter: text })} />
      </div>
      <span class="grow" />
      <button type="button" class="btn" aria-pressed={isHeld} onClick={() => hold(!isHeld)}>
        <Icon name={isHeld ? "play" : "pause"} />
        {isHeld ? "Resume updates" : "Pause updates"}
      </button>
    </>
  );
}

function Row({
  line,
  isOpen,
  open,
}: {
  line: LogLine;
  isOpen: boolean;
  open: (line: LogLine) => void;
}) {
  return (
    <tr aria-selected={isOpen}>
      <td class="mono">
        <button type="button" class="link" onClick={() => open(line)}>
          {timeOf(line).toLocaleTimeString()}
        </button>
      </td>
      <td>
        <Level level={line.Level} />
      </td>
      <td class="wide-only">{line.Resource}</td>
      <td class="mono" title={line.Message}>
        {line.Message}
      </td>
    </tr>
  );
}

function Level({ level }: { level: string }) {
  const rank = rankOf(level);
  const kind = rank >= rankOf("Error") ? "bad" : rank === rankOf("Warn") ? "warn" : null;
  return (
    <span class={kind === null ? "state soft" : `state ${kind}`}>
      {kind !== null && <Icon name={kind} />}
      {levels[rank] ?? level}
    </span>
  );
}

function textOf({ Level: level, Resource, Logger, Message }: LogLine): string {
  return `${level} ${Resource} ${Logger} ${Message}`.toLowerCase();
}

function timeOf({ Date: date }: LogLine): Date {
  return new Date(`${date.replace(" ", "T").slice(0, -1)}Z`);
}
