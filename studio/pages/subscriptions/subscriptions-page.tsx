/** Subscriptions of a database: their state and workers; a form creates and edits them. */
import { useState } from "preact/hooks";
import { ago, count, counted } from "../../base/format.ts";
import { may } from "../../base/identity.ts";
import { useResource } from "../../base/resource.ts";
import { address, href, setQuery } from "../../base/router.ts";
import { Confirmation } from "../../components/confirmation.tsx";
import { Icon } from "../../components/icon.tsx";
import { Menu } from "../../components/menu.tsx";
import { Empty, Failure, Skeleton } from "../../components/messages.tsx";
import { actionsColumn, numeric, Table } from "../../components/table.tsx";
import { usePage } from "../../shell/page.ts";
import { SubscriptionDrawer } from "./subscription-drawer.tsx";
import { SubscriptionForm } from "./subscription-form.tsx";
import { deleteSubscription, type Subscription, updateSubscription } from "./subscription-info.ts";
import { SubscriptionState } from "./subscription-state.tsx";

/** Poll interval, in milliseconds: no notice announces workers and acknowledgments. */
const pollMs = 3000;

export function SubscriptionsPage({ database }: { database: string }) {
  usePage("subscriptions", [
    { text: database, to: href(["db", database, "docs"]) },
    { text: "Subscriptions", to: href(["db", database, "subscriptions"]) },
  ]);
  const base = `/databases/${encodeURIComponent(database)}`;
  const list = useResource<{ Results: readonly Subscription[] }>(`${base}/subscriptions`, pollMs);
  const { query } = address.value;
  const all = list.body?.Results;
  const named = (name: string | null) => all?.find((one) => one.SubscriptionName === name);
  const edited = named(query.get("edit"));
  if (query.has("new") || edited !== undefined)
    return (
      <SubscriptionForm
        key={edited?.SubscriptionId}
        database={database}
        stored={edited ?? null}
        saved={list.reload}
      />
    );
  const chosen = named(query.get("select"));
  return (
    <div class="beside">
      <SubscriptionList database={database} base={base} list={list} all={all} chosen={chosen} />
      {chosen !== undefined && (
        <SubscriptionDrawer
          key={chosen.SubscriptionId}
          database={database}
          base={base}
          subscription={chosen}
          close={() => setQuery({ select: undefined })}
        />
      )}
    </div>
  );
}

function SubscriptionList({
  database,
  base,
  list,
  all,
  chosen,
}: {
  database: string;
  base: string;
  list: { readonly error: Error | undefined; readonly isLoading: boolean; reload(): void };
  all: readonly Subscription[] | undefined;
  chosen: Subscription | undefined;
}) {
  const [error, setError] = useState<Error | null>(null);
  const [deleting, setDeleting] = useState<Subscription | null>(null);
  const act = (work: Promise<unknown>) => {
    setError(null);
    work.then(list.reload, setError);
  };
  const add = href(["db", database, "subscriptions"], { new: "1" });
  return (
    <div class="page">
      <div class="head">
        <h1>Subscriptions</h1>
        <span class="muted cut">{all !== undefined && counted(all.length, "subscription")}</span>
        <span class="grow" />
        {may("write") && (
          <a class="btn primary" data-new="" href={add}>
            <Icon name="plus" />
            New subscription
          </a>
        )}
      </div>
      {error !== null && <Failure error={error} />}
      {list.error !== undefined && <Failure error={list.error} retry={list.reload} />}
      {list.isLoading && <Skeleton rows={4} />}
      {all?.length === 0 && (
        <Empty icon="feed" title={`No subscriptions in ${database} yet`}>
          <p>
            A subscription sends the documents that match a query to a worker, in batches, and later
            the changed ones. The worker acknowledges each batch.
          </p>
        </Empty>
      )}
      {all !== undefined && all.length > 0 && (
        <div class="panel scroll">
          <Table
            kind="lines"
            label="Subscriptions"
            columns={[
              "Name",
              "State",
              "Query",
              numeric("Workers"),
              "Last acknowledgment",
              actionsColumn,
            ]}
          >
            {all.map((one) => (
              <Row
                key={one.SubscriptionId}
                one={one}
                isChosen={one === chosen}
                toggle={() => act(updateSubscription(base, one, { Disabled: !one.Disabled }))}
                remove={() => setDeleting(one)}
              />
            ))}
          </Table>
        </div>
      )}
      {deleting !== null && (
        <Confirmation
          title={`Delete the subscription ${deleting.SubscriptionName}?`}
          yes={`Delete ${deleting.SubscriptionName}`}
          close={() => setDeleting(null)}
          act={async () => {
            await deleteSubscription(base, deleting.SubscriptionName);
            list.reload();
          }}
        >
          <p>
            Its {counted(deleting.Connections.length, "worker")} and its position in the changes are
            lost. Documents are unaffected.
          </p>
        </Confirmation>
      )}
    </div>
  );
}

function Row({
  one,
  isChosen,
  toggle,
  remove,
}: {
  one: Subscription;
  isChosen: boolean;
  toggle: () => void;
  remove: () => void;
}) {
  const { SubscriptionName: name, Query, Connections, LastBatchAckTime, Disabled } = one;
  return (
    <tr aria-selected={isChosen}>
      <td class="l1">
        <button type="button" class="link" onClick={() => setQuery({ select: name })}>
          {name}
        </button>
      </td>
      <td class="l2">
        <SubscriptionState subscription={one} />
      </td>
      <td class="l0 mono" title={Query}>
        {Query}
      </td>
      <td class="l0 num">{count(Connections.length)}</td>
      <td class="l3 soft">
        {LastBatchAckTime === null ? "none" : ago(LastBatchAckTime, Date.now())}
      </td>
      <td class="act">
        {may("write") && (
          <Menu
            label={`More about ${name}`}
            items={[
              {
                text: Disabled ? "Enable" : "Disable",
                icon: Disabled ? "play" : "pause",
                choose: toggle,
              },
              {
                text: "Edit",
                icon: "patch",
                choose: () => setQuery({ edit: name, select: undefined }),
              },
              {
                text: "Clone",
                icon: "copy",
                choose: () => setQuery({ new: "1", q: Query, select: undefined }),
              },
              { text: "Delete…", isDangerous: true, choose: remove },
            ]}
          />
        )}
      </td>
    </tr>
  );
}
