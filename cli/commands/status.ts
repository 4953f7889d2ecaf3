/** `jackdaw status`: shows the server and its databases. */
import type { CommandContext } from "../command.ts";
import { durationText, painter, sizeText, tableLines } from "../output.ts";

interface ListedDatabase {
  readonly Name: string;
  readonly DocumentsCount: number | null;
  readonly IndexesCount: number | null;
  readonly Disabled: boolean;
  readonly TotalSize: { readonly SizeInBytes: number } | null;
  /** Reason why the database cannot be opened. */
  readonly LoadError?: string | null;
}

interface HttpThread {
  /** The share of the last second in which the thread was not idle, between 0 and 1. */
  readonly BusyShare: number;
  readonly Connections: number;
}

export async function run(context: CommandContext): Promise<void> {
  const { client, options, print } = context;
  const build = (await client().json("/build/version")) as Record<string, unknown>;
  const { Databases } = (await client().json("/databases")) as { Databases: ListedDatabase[] };
  // Requires operator access.
  const figures = await client().send("/admin/stats", { accepts: [403] });
  const server = figures.status === 200 ? (JSON.parse(figures.text) as { UpTime?: string }) : {};
  const metrics = await client().send("/admin/metrics/history?range=5m", { accepts: [403, 404] });
  const { HttpThreads = [] } = (metrics.status === 200 ? JSON.parse(metrics.text) : {}) as {
    HttpThreads?: readonly HttpThread[];
  };
  if (options.is("json")) {
    const url = client().url.origin;
    print(JSON.stringify({ Url: url, Build: build, Server: server, HttpThreads, Databases }));
    return;
  }
  print(`Server     ${client().url.origin}`);
  print(`Version    ${versionOf(build)}`);
  const up = /^(?:(\d+)\.)?(\d+):(\d+):(\d+)/.exec(server.UpTime ?? "");
  if (up !== null) {
    const [, days = "0", hours, minutes, seconds] = up;
    const hourCount = Number(days) * 24 + Number(hours);
    print(
      `Up         ${durationText(((hourCount * 60 + Number(minutes)) * 60 + Number(seconds)) * 1000)}`,
    );
  }
  if (HttpThreads.length > 0) print(`HTTP       ${HttpThreads.map(threadText).join("; ")}`);
  print("");
  printDatabases(context, Databases);
}

/** Returns `thread 1: 3 % busy, 12 connections`. */
function threadText({ BusyShare, Connections }: HttpThread, at: number): string {
  return `thread ${at + 1}: ${Math.round(BusyShare * 100)} % busy, ${Connections} connections`;
}

/** Returns `0.1.0, compatible with RavenDB 7.2.7`, or the version of a RavenDB server. */
export function versionOf(build: Readonly<Record<string, unknown>>): string {
  const full = String(build["FullVersion"] ?? build["ProductVersion"] ?? "?");
  const own = /^jackdaw (\S+)$/.exec(String(build["CommitHash"]))?.[1];
  return own === undefined ? full : `${own}, compatible with RavenDB ${full}`;
}

/** Prints the table of databases. */
export function printDatabases(
  { streams, environment, print }: CommandContext,
  databases: readonly ListedDatabase[],
): void {
  const paint = painter(streams.output.isTTY === true, environment);
  const rows = databases.map((one) => [
    one.Name,
    one.DocumentsCount,
    one.IndexesCount,
    one.TotalSize && sizeText(one.TotalSize.SizeInBytes),
    one.LoadError ? "cannot be opened" : one.Disabled ? "disabled" : "online",
  ]);
  const header = ["database", "documents", "indexes", "size", "state"];
  for (const line of tableLines(header, rows, streams.output.columns, paint)) print(line);
  for (const { Name, LoadError } of databases)
    if (LoadError) print(`${paint("red", Name)}: ${LoadError}`);
}
