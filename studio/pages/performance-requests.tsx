/** Completed requests, slow queries, and running queries. */

import { useState } from "preact/hooks";
import { send } from "../base/client.ts";
import { bytes, count, milliseconds, moment } from "../base/format.ts";
import { may } from "../base/identity.ts";
import { useResource } from "../base/resource.ts";
import { address, href, setQuery } from "../base/router.ts";
import { curlOf, type SeenRequest, useTraffic } from "../base/traffic.ts";
import { Failure } from "../components/messages.tsx";
import { actionsColumn, numeric, Table } from "../components/table.tsx";
import { panel, Tabs } from "../components/tabs.tsx";
import { SearchInput } from "../components/text-field.tsx";

type TabKey = "requests" | "slow" | "running";
const shownMax = 50;

/** A query that the server has logged as slow. */
export interface SlowQuery {
  readonly At: string;
  readonly Database: string;
  readonly Query: string;
  readonly IndexName: string | null;
  readonly DurationInMs: number;
}

export function Requests({
  database,
  isHeld,
  logged,
}: {
  database: string | null;
  isHeld: boolean;
  logged: readonly SlowQuery[];
}) {
  const wanted = address.value.query.get("tab");
  const chosen: TabKey =
    wanted === "slow" || (wanted === "running" && database !== null) ? wanted : "requests";
  const traffic = useTraffic(database, isHeld);
  const running = useRunning(chosen === "running" && !isHeld ? database : null);
  const [filter, setFilter] = useState("");
  const shown = traffic.rows.filter((one) => textOf(one).includes(filter.toLowerCase()));
  return (
    <section class="panel" aria-label="Requests">
      <Tabs
        label="Requests"
        name="requests"
        tabs={[
          { key: "requests", text: "Requests now", count: traffic.count },
          { key: "slow", text: "Slow queries" },
          ...(database === null ? [] : [{ key: "running" as const, text: "Running" }]),
        ]}
        chosen={chosen}
        choose={(tab) => setQuery({ tab })}
      >
        {chosen !== "running" && (
          <div class="field calm filter">
            <SearchInput label="Filter requests" value={filter} change={setFilter} />
          </div>
        )}
      </Tabs>
      <div class="scroll" {...panel("requests", chosen)}>
        {chosen === "requests" && <RequestTable requests={shown} isOpen={traffic.isOpen} />}
        {chosen === "slow" && (
          <>
            <LoggedTable
              queries={logged.filter(({ Query }) =>
                Query.toLowerCase().includes(filter.toLowerCase()),
              )}
            />
            <SlowTable requests={shown} />
          </>
        )}
        {chosen === "running" && database !== null && (
          <RunningTable database={database} running={running} />
        )}
      </div>
    </section>
  );
}

function textOf(one: SeenRequest): string {
  const parts = [one.HttpMethod, one.RequestUri, one.CustomInfo, one.CertificateName ?? ""];
  return `${parts.join(" ")} ${one.ResponseStatusCode}`.toLowerCase();
}

function RequestTable({ requests, isOpen }: { requests: readonly SeenRequest[]; isOpen: boolean }) {
  if (requests.length === 0)
    return (
      <p class="body muted">{isOpen ? "No requests since this page was opened." : "Connecting."}</p>
    );
  const longest = Math.max(1, ...requests.map((one) => one.ElapsedMilliseconds));
  return (
    <Table
      kind="data"
      label="Requests"
      columns={[
        "Time",
        { label: "User", class: "wide-only" },
        "Request",
        numeric("Status"),
        { label: "Size", class: "num wide-only" },
        numeric("ms"),
        { label: "Duration", class: "wide-only", isHidden: true },
        actionsColumn,
      ]}
    >
      {requests.slice(0, shownMax).map((one) => (
        <RequestRow key={one.RequestId} one={one} longest={longest} />
      ))}
    </Table>
  );
}

function RequestRow({ one, longest }: { one: SeenRequest; longest: number }) {
  const { pathname, search } = new URL(one.RequestUri);
  const what = pathname.replace(/^\/databases\/[^/]+\//, "");
  const isBad = one.ResponseStatusCode >= 400;
  return (
    <tr>
      <td class="mono">{new Date(one.TimeStamp).toLocaleTimeString()}</td>
      <td class="wide-only">{whoOf(one)}</td>
      <td title={one.RequestUri}>
        {one.HttpMethod} {what} <span class="obj">{infoOf(one) || search}</span>
      </td>
      <td class={isBad ? "num bad" : "num"}>{one.ResponseStatusCode}</td>
      <td class="num wide-only">{bytes(one.ResponseSizeInBytes)}</td>
      <td class="num">{count(one.ElapsedMilliseconds)}</td>
      <td class="wide-only">
        <div class="took">
          <i style={{ width: `${(one.ElapsedMilliseconds / longest) * 100}%` }} />
        </div>
      </td>
      <td class="act">
        <button
          type="button"
          class="btn quiet"
          onClick={() => void navigator.clipboard.writeText(curlOf(one))}
        >
          curl
        </button>
      </td>
    </tr>
  );
}

/** Returns the common name of a certificate's subject. */
function whoOf({ CertificateName, ClientIP }: SeenRequest): string {
  const name = /CN=([^,(]+)/.exec(CertificateName ?? "")?.[1];
  return name?.trim() ?? ClientIP ?? "";
}

const infoOf = ({ CustomInfo }: SeenRequest) => (CustomInfo === "N/A" ? "" : CustomInfo);

/** Queries since the start of the server that took longer than its limit. */
function LoggedTable({ queries }: { queries: readonly SlowQuery[] }) {
  return (
    <>
      <h3 class="inset">Logged as slow by the server</h3>
      {queries.length === 0 ? (
        <p class="body muted">None. The setting Logs.SlowQueryInMs is the limit.</p>
      ) : (
        <Table
          kind="data"
          label="Logged slow queries"
          columns={["Time", "Query", "Index", numeric("Duration"), actionsColumn]}
        >
          {queries.map(({ At, Database, Query, IndexName, DurationInMs }) => (
            <tr key={`${At} ${Query}`}>
              <td>{moment(At)}</td>
              <td class="mono" title={Query}>
                {Query}
              </td>
              <td>{IndexName}</td>
              <td class="num">{milliseconds(DurationInMs)}</td>
              <td class="act">
                <a class="btn quiet" href={href(["db", Database, "query"], { q: Query })}>
                  Open
                </a>
              </td>
            </tr>
          ))}
        </Table>
      )}
      <h3 class="inset">Since this page was opened</h3>
    </>
  );
}

function SlowTable({ requests }: { requests: readonly SeenRequest[] }) {
  const groups = new Map<string, { worst: number; all: number; times: number; of: SeenRequest }>();
  for (const one of requests) {
    if (one.Type !== "Queries" || infoOf(one) === "") continue;
    const key = `${one.DatabaseName}\n${infoOf(one)}`;
    const known = groups.get(key) ?? { worst: 0, all: 0, times: 0, of: one };
    known.worst = Math.max(known.worst, one.ElapsedMilliseconds);
    known.all += one.ElapsedMilliseconds;
    known.times++;
    groups.set(key, known);
  }
  const rows = [...groups].sort(([, a], [, b]) => b.worst - a.worst).slice(0, shownMax);
  if (rows.length === 0) return <p class="body muted">No queries among the last requests.</p>;
  return (
    <Table
      kind="data"
      label="Slow queries"
      columns={["Query", numeric("Count"), numeric("Maximum"), numeric("Mean"), actionsColumn]}
    >
      {rows.map(([key, { worst, all, times, of }]) => (
        <tr key={key}>
          <td class="mono" title={infoOf(of)}>
            {infoOf(of)}
          </td>
          <td class="num">{count(times)}</td>
          <td class="num">{milliseconds(worst)}</td>
          <td class="num">{milliseconds(all / times)}</td>
          <td class="act">
            <a class="btn quiet" href={href(["db", of.DatabaseName, "query"], { q: infoOf(of) })}>
              Open
            </a>
          </td>
        </tr>
      ))}
    </Table>
  );
}

interface RunningQuery {
  readonly QueryId: number;
  readonly IndexName: string;
  readonly DurationInMs: number;
  readonly QueryInfo: { readonly Query: string };
}

function useRunning(database: string | null) {
  const { body, error, reload } = useResource<Record<string, readonly RunningQuery[]>>(
    database === null ? null : `/databases/${encodeURIComponent(database)}/debug/queries/running`,
    1_000,
  );
  const queries = Object.entries(body ?? {}).flatMap(([name, rows]) =>
    name.startsWith("@") ? [] : rows,
  );
  return { queries, error, reload };
}

function RunningTable({
  database,
  running: { queries, error, reload },
}: {
  database: string;
  running: ReturnType<typeof useRunning>;
}) {
  const [failed, setFailed] = useState<Error | null>(null);
  const kill = ({ IndexName, QueryId }: RunningQuery) => {
    const query = `indexName=${encodeURIComponent(IndexName)}&id=${QueryId}`;
    send("POST", `/databases/${encodeURIComponent(database)}/debug/queries/kill?${query}`).then(
      reload,
      setFailed,
    );
  };
  const problem = error ?? failed;
  if (problem) return <Failure error={problem} retry={reload} />;
  if (queries.length === 0) return <p class="body muted">No queries are running.</p>;
  return (
    <Table
      kind="data"
      label="Running queries"
      columns={["Query", "Index", numeric("For"), actionsColumn]}
    >
      {queries.map((one) => (
        <tr key={`${one.IndexName} ${one.QueryId}`}>
          <td class="mono" title={one.QueryInfo.Query}>
            {one.QueryInfo.Query}
          </td>
          <td>{one.IndexName}</td>
          <td class="num">{milliseconds(one.DurationInMs)}</td>
          <td class="act">
            {may("write") && (
              <button type="button" class="btn quiet danger" onClick={() => kill(one)}>
                Kill
              </button>
            )}
          </td>
        </tr>
      ))}
    </Table>
  );
}
