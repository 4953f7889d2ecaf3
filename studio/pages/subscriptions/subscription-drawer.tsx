/** Details of a subscription: its position, and its workers, which can be disconnected. */
import { useState } from "preact/hooks";
import { ago, moment } from "../../base/format.ts";
import { may } from "../../base/identity.ts";
import { useResource } from "../../base/resource.ts";
import { href } from "../../base/router.ts";
import { Drawer } from "../../components/drawer.tsx";
import { Failure } from "../../components/messages.tsx";
import { actionsColumn, Table } from "../../components/table.tsx";
import { type Connection, disconnectWorker, type Subscription } from "./subscription-info.ts";
import { SubscriptionState } from "./subscription-state.tsx";

const pollMs = 3000;

export function SubscriptionDrawer({
  database,
  base,
  subscription,
  close,
}: {
  database: string;
  base: string;
  subscription: Subscription;
  close: () => void;
}) {
  const { SubscriptionName: name, ArchivedDataProcessingBehavior: archived } = subscription;
  return (
    <Drawer title={name} label={`Subscription ${name}`} close={close}>
      <div class="row">
        <SubscriptionState subscription={subscription} />
        <span class="grow" />
        {may("write") && (
          <a class="btn" href={href(["db", database, "subscriptions"], { edit: name })}>
            Edit
          </a>
        )}
      </div>
      <pre class="peeked">{subscription.Query}</pre>
      <dl class="facts">
        <dt>Id</dt>
        <dd>{subscription.SubscriptionId}</dd>
        <dt>Acknowledged</dt>
        <dd class="mono break">
          {subscription.ChangeVectorForNextBatchStartingPoint ?? "nothing yet"}
        </dd>
        <dt>Last acknowledgment</dt>
        <dd>
          <Time at={subscription.LastBatchAckTime} />
        </dd>
        <dt>Last connection</dt>
        <dd>
          <Time at={subscription.LastClientConnectionTime} />
        </dd>
        <dt>Archived documents</dt>
        <dd>{archived === "ExcludeArchived" ? "not sent" : "sent"}</dd>
      </dl>
      <Workers base={base} subscription={subscription} />
    </Drawer>
  );
}

function Time({ at }: { at: string | null }) {
  if (at === null) return <>none</>;
  return <span title={moment(at)}>{ago(at, Date.now())}</span>;
}

function Workers({ base, subscription }: { base: string; subscription: Subscription }) {
  const { SubscriptionName: name, CurrentPendingConnections: pending } = subscription;
  const { body, error, reload } = useResource<{ Results: readonly Connection[] }>(
    `${base}/subscriptions/connection-details?name=${encodeURIComponent(name)}`,
    pollMs,
  );
  const [failed, setFailed] = useState<Error | null>(null);
  const disconnect = ({ WorkerId }: Connection) => {
    disconnectWorker(base, name, WorkerId).then(reload, setFailed);
  };
  const problem = error ?? failed;
  const workers = body?.Results ?? [];
  return (
    <section class="stack" aria-label="Workers">
      <h3>Workers</h3>
      {problem != null && <Failure error={problem} retry={reload} />}
      {workers.length === 0 && pending.length === 0 && <p class="soft">No worker is connected.</p>}
      {workers.length + pending.length > 0 && (
        <div class="scroll">
          <Table kind="data" label="Workers" columns={["Client", "Strategy", actionsColumn]}>
            {workers.map((one) => (
              <tr key={one.WorkerId ?? one.ClientUri}>
                <td class="mono" title={one.WorkerId ?? ""}>
                  {one.ClientUri}
                </td>
                <td>{one.Strategy}</td>
                <td class="act">
                  {may("write") && (
                    <button type="button" class="btn quiet danger" onClick={() => disconnect(one)}>
                      Disconnect
                    </button>
                  )}
                </td>
              </tr>
            ))}
            {pending.map((one) => (
              <tr key={`waiting ${one.ClientUri}`}>
                <td class="mono">{one.ClientUri}</td>
                <td>{one.Strategy}</td>
                <td class="muted">waits</td>
              </tr>
            ))}
          </Table>
        </div>
      )}
      {workers.length > 0 && (
        <p class="muted">
          Most clients reconnect a worker that was disconnected. Disable the subscription to prevent
          that.
        </p>
      )}
    </section>
  );
}
