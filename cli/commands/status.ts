/** `jackdaw status`: is there a server, which one, and how are its databases? */
import type { Surroundings } from "../command.ts";
import { durationText, painter, sizeText, tableLines } from "../output.ts";

interface ListedDatabase {
  readonly Name: string;
  readonly DocumentsCount: number;
  readonly IndexesCount: number;
  readonly Disabled: boolean;
  readonly TotalSize: { readonly SizeInBytes: number };
}

export async function run(surroundings: Surroundings): Promise<void> {
  const { client, options, print } = surroundings;
  const build = (await client().json("/build/version")) as Record<string, unknown>;
  const { Databases } = (await client().json("/databases")) as { Databases: ListedDatabase[] };
  // Only operators may see these.
  const figures = await client().send("/admin/stats", { accepts: [403] });
  const server = figures.status === 200 ? (JSON.parse(figures.text) as { UpTime?: string }) : {};
  if (options.is("json")) {
    print(JSON.stringify({ Url: client().url.origin, Build: build, Server: server, Databases }));
    return;
  }
  print(`Server     ${client().url.origin}`);
  print(`Version    ${String(build["FullVersion"] ?? build["ProductVersion"] ?? "?")}`);
  const up = /^(?:(\d+)\.)?(\d+):(\d+):(\d+)/.exec(server.UpTime ?? "");
  if (up !== null) {
    const [, days = "0", hours, minutes, seconds] = up;
    const hourCount = Number(days) * 24 + Number(hours);
    print(
      `Up         ${durationText(((hourCount * 60 + Number(minutes)) * 60 + Number(seconds)) * 1000)}`,
    );
  }
  print("");
  printDatabases(surroundings, Databases);
}

/** The table of databases. */
export function printDatabases(
  { streams, environment, print }: Surroundings,
  databases: readonly ListedDatabase[],
): void {
  const paint = painter(streams.output.isTTY === true, environment);
  const rows = databases.map(({ Name, DocumentsCount, IndexesCount, Disabled, TotalSize }) => [
    Name,
    DocumentsCount,
    IndexesCount,
    sizeText(TotalSize.SizeInBytes),
    Disabled ? "disabled" : "online",
  ]);
  const header = ["database", "documents", "indexes", "size", "state"];
  for (const line of tableLines(header, rows, streams.output.columns, paint)) print(line);
}
