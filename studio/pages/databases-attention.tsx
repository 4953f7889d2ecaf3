/** Problems that need attention, each with a link to the page that resolves it. */
import type { ComponentChildren } from "preact";
import { type Certificate, expiryOf } from "../base/certificates.ts";
import { problemsOf, type ServerStatus } from "../base/cluster.ts";
import { ago, bytes, counted, until } from "../base/format.ts";
import { identity, may } from "../base/identity.ts";
import { useResource } from "../base/resource.ts";
import { href } from "../base/router.ts";
import { Icon } from "../components/icon.tsx";
import { server, serverOrigin } from "../shell/server.ts";

/** Known facts of a database. */
export interface DatabaseFacts {
  readonly name: string;
  readonly documents: number;
  readonly indexErrors: number;
  /** Undefined if unknown. */
  readonly lastBackupMs: number | null | undefined;
}

interface Todo {
  readonly key: string;
  readonly icon: "bad" | "warn";
  readonly text: string;
  readonly to: string;
  readonly more: string;
}

export interface ServerFigures {
  readonly Disk: { readonly FreeBytes: number; readonly TotalBytes: number } | null;
  /** Undefined for servers with another format at this address. */
  readonly Columns?: Readonly<Record<string, readonly (number | null)[]>>;
}

/** Share of free disk space below which a warning is shown. */
const diskShareMin = 0.05;
const certificatesMs = 300_000;

export function Aside({
  databases,
  figures,
  cluster,
}: {
  databases: readonly DatabaseFacts[];
  figures: ServerFigures | undefined;
  cluster: ServerStatus | undefined;
}) {
  const certificates = useResource<{ Results: Certificate[] }>(
    may("operator") && identity.value?.clearance !== null
      ? "/admin/certificates?metadataOnly=true"
      : null,
    certificatesMs,
  );
  const todos = [
    ...diskTodos(figures),
    ...problemsOf(cluster).map(({ isBad, text, more }) => ({
      key: text,
      icon: isBad ? ("bad" as const) : ("warn" as const),
      text,
      to: href(["cluster"]),
      more,
    })),
    ...databases.flatMap(databaseTodos),
    ...(certificates.body?.Results ?? []).flatMap(certificateTodos),
  ];
  return (
    <div class="stack">
      {todos.length > 0 && (
        <aside class="panel" aria-label="Needs attention">
          <div class="cap">
            <h2 class="grow">Needs attention</h2>
            <span class="chip warn">{todos.length}</span>
          </div>
          <ul class="todo body">
            {todos.map(({ key, icon, text, to, more }) => (
              <li key={key}>
                <Icon name={icon} kind={icon} />
                <a href={to}>{text}</a>
                <p>{more}</p>
              </li>
            ))}
          </ul>
        </aside>
      )}
      <ThisServer figures={figures} />
    </div>
  );
}

function databaseTodos({ name, documents, indexErrors, lastBackupMs }: DatabaseFacts): Todo[] {
  const todos: Todo[] = [];
  if (indexErrors > 0)
    todos.push({
      key: `errors ${name}`,
      icon: "bad",
      text: `${name} has ${counted(indexErrors, "index error")}`,
      to: href(["db", name, "indexes"], { show: "errors" }),
      more: "Its indexes process all other documents.",
    });
  if (lastBackupMs === null && documents > 0)
    todos.push({
      key: `backup ${name}`,
      icon: "warn",
      text: `${name} has no scheduled backup`,
      to: href(["db", name, "backup"]),
      more: counted(documents, "document"),
    });
  return todos;
}

function certificateTodos(certificate: Certificate): Todo[] {
  const nowMs = Date.now();
  const { state, atMs } = expiryOf(certificate, nowMs);
  if (state === "good") return [];
  const { Name, Thumbprint } = certificate;
  return [
    {
      key: Thumbprint,
      icon: state === "over" ? "bad" : "warn",
      text: state === "over" ? `${Name} has expired` : `${Name} expires ${until(atMs, nowMs)}`,
      to: href(["certificates"], { select: Thumbprint }),
      more: state === "over" ? ago(atMs, nowMs) : "Renew it in time",
    },
  ];
}

function diskTodos(figures: ServerFigures | undefined): Todo[] {
  const disk = figures?.Disk;
  if (!disk || disk.FreeBytes > disk.TotalBytes * diskShareMin) return [];
  return [
    {
      key: "disk",
      icon: "bad",
      text: `${bytes(disk.FreeBytes)} free on the disk`,
      to: href(["performance"]),
      more: `Of ${bytes(disk.TotalBytes)}. When it is full, writes fail; reads succeed.`,
    },
  ];
}

function ThisServer({ figures }: { figures: ServerFigures | undefined }) {
  const memory = figures?.Columns?.["Memory"]?.findLast((one) => one !== null);
  const who = identity.value;
  return (
    <section class="panel" aria-label="This server">
      <div class="cap">
        <h2 class="grow">This server</h2>
        <a class="btn quiet" href={href(["performance"])}>
          Performance
        </a>
      </div>
      <dl class="facts body">
        <Fact name="Address">
          <code class="break">{serverOrigin()}</code>
        </Fact>
        {server.value !== null && (
          <Fact name="Version">Jackdaw, compatible with {server.value.version}</Fact>
        )}
        {memory != null && <Fact name="Memory">{bytes(memory)}</Fact>}
        {figures?.Disk && (
          <Fact name="Disk">
            {bytes(figures.Disk.FreeBytes)} free of {bytes(figures.Disk.TotalBytes)}
          </Fact>
        )}
        {who !== null && (
          <Fact name="You">
            <span class="break">{who.name}</span>
          </Fact>
        )}
      </dl>
    </section>
  );
}

function Fact({ name, children }: { name: string; children: ComponentChildren }) {
  return (
    <>
      <dt>{name}</dt>
      <dd>{children}</dd>
    </>
  );
}
