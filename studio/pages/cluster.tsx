/** The cluster: its nodes, who leads which database, how far each copy is; handed over, added and taken out here. */
import { useState } from "preact/hooks";
import {
  addCopy,
  addNode,
  type ClusterDatabase,
  type ClusterNode,
  type ClusterStatus,
  type Copy,
  transferLeaderships,
  lead,
  removeCopy,
  removeNode,
  type ServerStatus,
  statusPath,
  problemsOf,
} from "../base/cluster.ts";
import { count, counted, took } from "../base/format.ts";
import { may } from "../base/identity.ts";
import { useResource } from "../base/resource.ts";
import { href } from "../base/router.ts";
import { Confirmation } from "../components/confirmation.tsx";
import { Icon } from "../components/icon.tsx";
import { Menu, type MenuItem } from "../components/menu.tsx";
import { Skeleton, Empty, Failure } from "../components/messages.tsx";
import { say } from "../components/toast.tsx";
import { usePage } from "../shell/page.ts";

const pollMs = 1_000;

/** What is asked before it is done. */
interface Question {
  readonly title: string;
  readonly text: string;
  readonly yes: string;
  readonly typed: string;
  act(): Promise<void>;
}

interface Doings {
  ask(question: Question): void;
  /** Does what needs no question: `what` is under way, and then `done`. */
  start(what: string, done: string, act: () => Promise<void>): void;
}

export function ClusterPage() {
  usePage("cluster", [{ text: "Cluster" }]);
  const { body, error, isLoading, reload } = useResource<ServerStatus>(statusPath, pollMs);
  const [asked, ask] = useState<Question | null>(null);
  const [doing, setDoing] = useState("");
  const [failed, setFailed] = useState<Error | null>(null);
  const start: Doings["start"] = (what, done, act) => {
    setFailed(null);
    setDoing(what);
    act()
      .then(() => say(done), setFailed)
      .finally(() => setDoing(""));
  };
  return (
    <div class="page">
      <div class="head">
        <h1>Cluster</h1>
        {body?.IsClustered === true && (
          <span class="muted">
            {counted(body.Nodes.length, "node")}, seen from {body.NodeTag}
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
      <Empty icon="nodes" title="This is one server">
        <p class="prose">
          Three can hold the same databases: no acknowledged write is lost when one of them dies,
          and the others go on within seconds. Each needs nats-server beside it. To try it on one
          machine:
        </p>
      </Empty>
      {/* biome-ignore lint/a11y/noNoninteractiveTabindex: it scrolls */}
      <pre class="source scroll panel" tabIndex={0}>
        {steps}
      </pre>
      <p class="muted">
        The databases of this server stay on it: export them, and import them into the cluster.{" "}
        <code>docs/cluster.md</code> of the package tells the rest: several machines, certificates,
        restarts, backups.
      </p>
    </>
  );
}

function Cluster({ status, ...doings }: { status: ClusterStatus } & Doings) {
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
      <dl class="four" aria-label="What is below">
        <div>
          <dt>Orders the changes of the cluster</dt>
          <dd>{Leader === null ? "Nobody" : `${Leader}, epoch ${Epoch}`}</dd>
        </div>
        {Nats != null && (
          <>
            <div>
              <dt>NATS of this node</dt>
              <dd>
                {Nats.IsConnected ? `${Nats.Server ?? ""} ${Nats.Version ?? ""}` : "Not reached"}
              </dd>
            </div>
            <div>
              <dt>Copies of each stream</dt>
              <dd>{Nats.Replicas}</dd>
            </div>
            <div>
              <dt>Its replicas</dt>
              <dd>{soundnessOf(Nats)}</dd>
            </div>
          </>
        )}
      </dl>
    </>
  );
}

function soundnessOf({ Scrub }: NonNullable<ClusterStatus["Nats"]>): string {
  if (Scrub === null) return "Not looked at yet";
  if (Scrub.Failure !== null) return "Could not be looked at";
  return Scrub.Problems.length === 0 ? "Sound" : counted(Scrub.Problems.length, "problem");
}

function NodeTable({ status, ask, start }: { status: ClusterStatus } & Doings) {
  const hasActions = may("operator");
  return (
    <div class="panel scroll">
      <table class="lines" aria-label="Nodes">
        <thead>
          <tr>
            <th>Node</th>
            <th>State</th>
            <th class="num">Leads</th>
            <th>Address</th>
            <th>Version</th>
            {hasActions && (
              <th>
                <span class="hidden-label">Actions</span>
              </th>
            )}
          </tr>
        </thead>
        <tbody>
          {status.Nodes.map((node) => (
            <tr key={node.Tag}>
              <td class="l1">
                <b>{node.Tag}</b> {node.IsHere && <span class="chip">Here</span>}
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
                    label={`What to do with node ${node.Tag}`}
                    items={nodeActions(status, node, { ask, start })}
                  />
                </td>
              )}
            </tr>
          ))}
        </tbody>
      </table>
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
        Not of the cluster
      </span>
    );
  if (!IsHeard)
    return (
      <span class="state bad">
        <Icon name="bad" />
        {LastHeardInMs === null ? "Never heard" : `Silent for ${took(LastHeardInMs)}`}
      </span>
    );
  return (
    <span class="state ok">
      <Icon name="check" />
      Heard
    </span>
  );
}

function nodeActions(status: ClusterStatus, node: ClusterNode, { ask, start }: Doings): MenuItem[] {
  const { Tag, IsRegistered, IsHere } = node;
  const mayNodes = may("cluster-admin");
  if (!IsRegistered)
    return [
      {
        text: `Add ${Tag}`,
        icon: "plus",
        refusal: mayNodes ? undefined : "This is for cluster administrators",
        choose: () =>
          start(`Adding ${Tag}…`, `${Tag} is a node of the cluster`, () => addNode(node)),
      },
    ];
  const led = ledBy(status, Tag);
  const copies = status.Databases.filter(({ Members }) => Members.some((one) => one.Tag === Tag));
  return [
    {
      text: "Hand over what it leads",
      icon: "run",
      refusal: led === 0 ? "It leads nothing" : undefined,
      choose: () =>
        start(`Handing over what ${Tag} leads…`, `${Tag} leads nothing now`, () => transferLeaderships(Tag)),
    },
    {
      text: "Take out…",
      icon: "x",
      isDangerous: true,
      refusal: mayNodes ? undefined : "This is for cluster administrators",
      choose: () =>
        ask({
          title: `Take node ${Tag} out of the cluster?`,
          text: `What it leads is handed over first. Its copies of ${counted(copies.length, "database")} are copies no more, and what it holds may be deleted.${IsHere ? " It is the node that shows this page." : ""} It does not come back by itself.`,
          yes: `Take ${Tag} out`,
          typed: Tag,
          act: async () => {
            await removeNode(node);
            say(`${Tag} is out of the cluster`);
          },
        }),
    },
  ];
}

function DatabaseTable({ status, ask, start }: { status: ClusterStatus } & Doings) {
  const hasActions = may("operator");
  if (status.Databases.length === 0)
    return (
      <Empty icon="dbs" title="There is no database yet">
        <p>
          One that is <a href={href(["databases"])}>made</a> gets a copy on three nodes.
        </p>
      </Empty>
    );
  return (
    <div class="panel scroll">
      <table class="lines" aria-label="Copies of databases">
        <thead>
          <tr>
            <th>Database</th>
            <th>State</th>
            <th>Copies</th>
            <th class="num">Epoch</th>
            {hasActions && (
              <th>
                <span class="hidden-label">Actions</span>
              </th>
            )}
          </tr>
        </thead>
        <tbody>
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
                    label={`What to do with ${database.Name}`}
                    items={databaseActions(status, database, { ask, start })}
                  />
                </td>
              )}
            </tr>
          ))}
        </tbody>
      </table>
    </div>
  );
}

function DatabaseState({ database: { Leader, Members } }: { database: ClusterDatabase }) {
  const ill = Members.filter(({ Role }) => Role === null || Role === "stopped").length;
  if (Leader !== null && ill === 0)
    return (
      <span class="state ok">
        <Icon name="check" />
        {Members.length === 1 ? "One copy only" : "Well"}
      </span>
    );
  return (
    <span class={Leader === null ? "state bad" : "state warn"}>
      <Icon name={Leader === null ? "bad" : "warn"} />
      {Leader === null ? "Not written" : `${Members.length - ill} of ${Members.length} copies`}
    </span>
  );
}

function CopyState({ copy: { Tag, Role, Behind }, leads }: { copy: Copy; leads: boolean }) {
  const state =
    Role === null
      ? "not heard"
      : Role === "stopped"
        ? "stopped"
        : Behind === null
          ? "not known"
          : Behind > 0
            ? `${count(Behind)} behind`
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
  { ask, start }: Doings,
): MenuItem[] {
  const has = (tag: string) => Members.some(({ Tag }) => Tag === tag);
  return [
    ...Members.filter(({ Tag }) => Tag !== Leader).map(({ Tag, Role }) => ({
      text: `Let ${Tag} lead`,
      refusal: Role === "follower" ? undefined : "This copy cannot lead now",
      choose: () =>
        start(`Handing ${Name} over to ${Tag}…`, `${Name} is led by ${Tag}`, () => lead(Name, Tag)),
    })),
    ...Nodes.filter(({ Tag, IsRegistered }) => IsRegistered && !has(Tag)).map(
      ({ Tag, IsHeard }) => ({
        text: `Add a copy on ${Tag}`,
        refusal: IsHeard ? undefined : "This node is not heard",
        choose: () =>
          start(`Adding a copy of ${Name} on ${Tag}…`, `${Tag} gets a copy of ${Name}`, () =>
            addCopy(Name, Tag),
          ),
      }),
    ),
    ...Members.map(({ Tag }) => ({
      text: `Remove the copy on ${Tag}…`,
      isDangerous: true,
      refusal: Members.length === 1 ? "It is the only one" : undefined,
      choose: () =>
        ask({
          title: `Remove the copy of ${Name} on ${Tag}?`,
          text: `${counted(Members.length - 1, "copy stays", "copies stay")}.${Members.length <= 2 ? " When that one is lost, the database is." : ""} The files on ${Tag} are deleted.`,
          yes: `Remove it from ${Tag}`,
          typed: "",
          act: async () => {
            await removeCopy(Name, Tag);
            say(`${Tag} has no copy of ${Name} any more`);
          },
        }),
    })),
  ];
}
