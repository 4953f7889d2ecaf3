/** The cluster page: nodes, leaders and copies of databases; transfer leaderships, add and remove nodes and copies. */
import { useState } from "preact/hooks";
import {
  addCopy,
  addNode,
  type ClusterDatabase,
  type ClusterNode,
  type ClusterStatus,
  type Copy,
  lead,
  problemsOf,
  removeCopy,
  removeNode,
  type ServerStatus,
  statusPath,
  transferLeaderships,
} from "../base/cluster.ts";
import { count, counted, took } from "../base/format.ts";
import { may } from "../base/identity.ts";
import { useResource } from "../base/resource.ts";
import { href } from "../base/router.ts";
import { Confirmation } from "../components/confirmation.tsx";
import { Icon } from "../components/icon.tsx";
import { Menu, type MenuItem } from "../components/menu.tsx";
import { Empty, Failure, Skeleton } from "../components/messages.tsx";
import { actionsColumn, numeric, Table } from "../components/table.tsx";
import { showToast } from "../components/toast.tsx";
import { usePage } from "../shell/page.ts";

const pollMs = 1_000;

/** A confirmation before an action. */
interface Question {
  readonly title: string;
  readonly text: string;
  readonly yes: string;
  readonly typed: string;
  act(): Promise<void>;
}

interface Actions {
  ask(question: Question): void;
  /** Runs an action without confirmation: shows `what` while it runs, then `done`. */
  start(what: string, done: string, act: () => Promise<void>): void;
}

export function ClusterPage() {
  usePage("cluster", [{ text: "Cluster" }]);
  const { body, error, isLoading, reload } = useResource<ServerStatus>(statusPath, pollMs);
  const [asked, ask] = useState<Question | null>(null);
  const [doing, setDoing] = useState("");
  const [failed, setFailed] = useState<Error | null>(null);
  const start: Actions["start"] = (what, done, act) => {
    setFailed(null);
    setDoing(what);
    act()
      .then(() => showToast(done), setFailed)
      .finally(() => setDoing(""));
  };
  return (
    <div class="page">
      <div class="head">
        <h1>Cluster</h1>
        {body?.IsClustered === true && (
          <span class="muted">
            {counted(body.Nodes.length, "node")}, reported by {body.NodeTag}
          </span>
        )}
        <span role="status">{doing}</span>
      </div>
      {error !== undefined && <Failure error={error} retry={reload} />}
      {failed !== null && <Failure error={failed} />}
      {isLoading && <Skeleton rows={5} />}
      {body?.IsClustered === false && <OneServer />}
      {body?.IsClustered === true && <Cluster status={body} ask={ask} start={start} />}
      {asked !== null && (
        <Confirmation
          title={asked.title}
          yes={asked.yes}
          typed={asked.typed}
          act={asked.act}
          close={() => ask(null)}
        >
          <p>{asked.text}</p>
        </Confirmation>
      )}
    </div>
  );
}

const steps = `export ROUTES=127.0.0.1:6201,127.0.0.1:6202,127.0.0.1:6203
${["A", "B", "C"]
  .map(
    (tag, n) =>
      `jackdaw --Cluster.NodeTag=${tag} --Cluster.Routes=$ROUTES --Cluster.Nats.Route=127.0.0.1:620${n + 1} --ServerUrl=http://127.0.0.1:808${n + 1} --DataDir=${tag.toLowerCase()} &`,
  )
  .join("\n")}
jackdaw cluster status --url http://127.0.0.1:8081`;

function OneServer() {
  return (
    <>
      <Empty icon="nodes" title="This is a single server">
        <p class="prose">
          Three servers can replicate the same databases: if one fails, no acknowledged write is
          lost, and the others continue within seconds. Each needs a nats-server. To try it on one
          machine:
        </p>
      </Empty>
      {/* biome-ignore lint/a11y/noNoninteractiveTabindex: it scrolls */}
      <pre class="source scroll panel" tabIndex={0}>
        {steps}
      </pre>
      <p class="muted">
        To keep the databases of this server, restart it with its data folder and the cluster
        settings, together with two new servers: it becomes the first node, with its databases,
        settings and certificates. Then add copies on the other nodes. <code>docs/cluster.md</code>{" "}
        in the package describes this, several machines, restarts and backups.
      </p>
    </>
  );
}

function Cluster({ status, ...doings }: { status: ClusterStatus } & Actions) {
  const { Leader, Epoch, Nats } = status;
  const troubles = problemsOf(status);
  return (
    <>
      {troubles.map(({ isBad, text, more }) => (
        <div key={text} class={isBad ? "note bad" : "note warn"} role="status">
          <Icon name={isBad ? "bad" : "warn"} />
          <span>
            <b>{text}.</b> {more}
          </span>
        </div>
      ))}
      <NodeTable status={status} {...doings} />
      <DatabaseTable status={status} {...doings} />
      <dl class="four" aria-label="Overview">
        <div>
          <dt>Cluster leader</dt>
          <dd>{Leader === null ? "None" : `${Leader}, epoch ${Epoch}`}</dd>
        </div>
        {Nats != null && (
          <>
            <div>
              <dt>NATS of this node</dt>
              <dd>
                {Nats.IsConnected ? `${Nats.Server ?? ""} ${Nats.Version ?? ""}` : "Not connected"}
              </dd>
            </div>
            <div>
              <dt>Copies of each stream</dt>
              <dd>{Nats.Replicas}</dd>
            </div>
            <div>
              <dt>State of the replicas</dt>
              <dd>{replicaState(Nats)}</dd>
            </div>
          </>
        )}
      </dl>
    </>
  );
}

function replicaState({ Scrub }: NonNullable<ClusterStatus["Nats"]>): string {
  if (Scrub === null) return "Not checked yet";
  if (Scrub.Failure !== null) return "Check failed";
  return Scrub.Problems.length === 0 ? "OK" : counted(Scrub.Problems.length, "problem");
}

function NodeTable({ status, ask, start }: { status: ClusterStatus } & Actions) {
  const hasActions = may("operator");
  return (
    <div class="panel scroll">
      <Table
        kind="lines"
        label="Nodes"
        columns={[
          "Node",
          "State",
          numeric("Leads"),
          "Address",
          "Version",
          hasActions && actionsColumn,
        ]}
      >
        {status.Nodes.map((node) => (
          <tr key={node.Tag}>
            <td class="l1">
              <b>{node.Tag}</b> {node.IsHere && <span class="chip">This node</span>}
            </td>
            <td class="l2">
              <NodeState node={node} />
            </td>
            <td class="num l3">
              {node.IsRegistered && counted(ledBy(status, node.Tag), "database")}
            </td>
            <td class="l0 mono">{node.Url}</td>
            <td class="l0">{node.Version}</td>
            {hasActions && (
              <td class="act">
                <Menu
                  label={`Actions for node ${node.Tag}`}
                  items={nodeActions(status, node, { ask, start })}
                />
              </td>
            )}
          </tr>
        ))}
      </Table>
    </div>
  );
}

function ledBy({ Databases }: ClusterStatus, tag: string): number {
  return Databases.filter(({ Leader }) => Leader === tag).length;
}

function NodeState({ node }: { node: ClusterNode }) {
  const { IsRegistered, IsHeard, LastHeardInMs } = node;
  if (!IsRegistered)
    return (
      <span class="state warn">
        <Icon name="pause" />
        Not a member
      </span>
    );
  if (!IsHeard)
    return (
      <span class="state bad">
        <Icon name="bad" />
        {LastHeardInMs === null ? "Never reachable" : `Unreachable for ${took(LastHeardInMs)}`}
      </span>
    );
  return (
    <span class="state ok">
      <Icon name="check" />
      Reachable{" "}
    </span>
  );
}

function nodeActions(
  status: ClusterStatus,
  node: ClusterNode,
  { ask, start }: Actions,
): MenuItem[] {
  const { Tag, IsRegistered, IsHere } = node;
  const mayNodes = may("cluster-admin");
  if (!IsRegistered)
    return [
      {
        text: `Add ${Tag}`,
        icon: "plus",
        refusal: mayNodes ? undefined : "Requires cluster administrator access",
        choose: () =>
          start(`Adding ${Tag}…`, `${Tag} was added to the cluster`, () => addNode(node)),
      },
    ];
  const led = ledBy(status, Tag);
  const copies = status.Databases.filter(({ Members }) => Members.some((one) => one.Tag === Tag));
  return [
    {
      text: "Transfer its leaderships",
      icon: "run",
      refusal: led === 0 ? "It leads no database" : undefined,
      choose: () =>
        start(`Transferring the leaderships of ${Tag}…`, `${Tag} leads no database now`, () =>
          transferLeaderships(Tag),
        ),
    },
    {
      text: "Remove…",
      icon: "x",
      isDangerous: true,
      refusal: mayNodes ? undefined : "Requires cluster administrator access",
      choose: () =>
        ask({
          title: `Remove node ${Tag} from the cluster?`,
          text: `Its leaderships are transferred first. Its copies of ${counted(copies.length, "database")} no longer count, and its data may be deleted.${IsHere ? " This page is served by this node." : ""} The node does not rejoin automatically.`,
          yes: `Remove ${Tag}`,
          typed: Tag,
          act: async () => {
            await removeNode(node);
            showToast(`${Tag} was removed from the cluster`);
          },
        }),
    },
  ];
}

function DatabaseTable({ status, ask, start }: { status: ClusterStatus } & Actions) {
  const hasActions = may("operator");
  if (status.Databases.length === 0)
    return (
      <Empty icon="dbs" title="No databases yet">
        <p>
          A <a href={href(["databases"])}>new database</a> has copies on three nodes.
        </p>
      </Empty>
    );
  return (
    <div class="panel scroll">
      <Table
        kind="lines"
        label="Copies of databases"
        columns={["Database", "State", "Copies", numeric("Epoch"), hasActions && actionsColumn]}
      >
        {status.Databases.map((database) => (
          <tr key={database.Name}>
            <td class="l1">
              <a href={href(["db", database.Name, "docs"])}>{database.Name}</a>
            </td>
            <td class="l3">
              <DatabaseState database={database} />
            </td>
            <td class="l2">
              <span class="row">
                {database.Members.map((copy) => (
                  <CopyState key={copy.Tag} copy={copy} leads={copy.Tag === database.Leader} />
                ))}
              </span>
            </td>
            <td class="num l0">{count(database.Epoch)}</td>
            {hasActions && (
              <td class="act">
                <Menu
                  label={`Actions for ${database.Name}`}
                  items={databaseActions(status, database, { ask, start })}
                />
              </td>
            )}
          </tr>
        ))}
      </Table>
    </div>
  );
}

function DatabaseState({ database: { Leader, Members } }: { database: ClusterDatabase }) {
  const ill = Members.filter(({ Role }) => Role === null || Role === "stopped").length;
  if (Leader !== null && ill === 0)
    return (
      <span class="state ok">
        <Icon name="check" />
        {Members.length === 1 ? "One copy only" : "OK"}
      </span>
    );
  return (
    <span class={Leader === null ? "state bad" : "state warn"}>
      <Icon name={Leader === null ? "bad" : "warn"} />
      {Leader === null ? "Not writable" : `${Members.length - ill} of ${Members.length} copies`}
    </span>
  );
}

function CopyState({ copy: { Tag, Role, Behind }, leads }: { copy: Copy; leads: boolean }) {
  const state =
    Role === null
      ? "unreachable"
      : Role === "stopped"
        ? "stopped"
        : Behind === null
          ? "unknown"
          : Behind > 0
            ? `lag ${count(Behind)}`
            : leads
              ? "leads"
              : "";
  return (
    <span class={Role === null || Role === "stopped" ? "chip bad" : "chip"}>
      {Tag} {state}
    </span>
  );
}

function databaseActions(
  { Nodes }: ClusterStatus,
  { Name, Leader, Members }: ClusterDatabase,
  { ask, start }: Actions,
): MenuItem[] {
  const has = (tag: string) => Members.some(({ Tag }) => Tag === tag);
  return [
    ...Members.filter(({ Tag }) => Tag !== Leader).map(({ Tag, Role }) => ({
      text: `Transfer leadership to ${Tag}`,
      refusal: Role === "follower" ? undefined : "This copy cannot lead at the moment",
      choose: () =>
        start(`Transferring ${Name} to ${Tag}…`, `${Name} is led by ${Tag}`, () => lead(Name, Tag)),
    })),
    ...Nodes.filter(({ Tag, IsRegistered }) => IsRegistered && !has(Tag)).map(
      ({ Tag, IsHeard }) => ({
        text: `Add a copy on ${Tag}`,
        refusal: IsHeard ? undefined : "This node is unreachable",
        choose: () =>
          start(
            `Adding a copy of ${Name} on ${Tag}…`,
            `A copy of ${Name} was added on ${Tag}`,
            () => addCopy(Name, Tag),
          ),
      }),
    ),
    ...Members.map(({ Tag }) => ({
      text: `Remove the copy on ${Tag}…`,
      isDangerous: true,
      refusal: Members.length === 1 ? "It is the only copy" : undefined,
      choose: () =>
        ask({
          title: `Remove the copy of ${Name} on ${Tag}?`,
          text: `${counted(Members.length - 1, "copy remains", "copies remain")}.${Members.length <= 2 ? " If it is lost, the database is lost." : ""} The files on ${Tag} are deleted.`,
          yes: `Remove from ${Tag}`,
          typed: "",
          act: async () => {
            await removeCopy(Name, Tag);
            showToast(`The copy of ${Name} on ${Tag} was removed`);
          },
        }),
    })),
  ];
}
