/** Subscriptions as the server lists them. */
import { send } from "../../base/client.ts";

export interface Subscription {
  readonly SubscriptionId: number;
  readonly SubscriptionName: string;
  readonly Query: string;
  /** Last acknowledged change vector; null if none was acknowledged. */
  readonly ChangeVectorForNextBatchStartingPoint: string | null;
  readonly Disabled: boolean;
  readonly LastClientConnectionTime: string | null;
  readonly LastBatchAckTime: string | null;
  readonly ArchivedDataProcessingBehavior: string;
  readonly Connections: readonly Connection[];
  /** Workers that wait until the subscription is free. */
  readonly CurrentPendingConnections: readonly Connection[];
}

export interface Connection {
  readonly ClientUri: string;
  readonly Strategy: string;
  /** Absent in lists of subscriptions. */
  readonly WorkerId?: string | null;
}

/** Changes a subscription. A worker that is connected must reconnect. */
export async function updateSubscription(
  base: string,
  { SubscriptionId, SubscriptionName, Query }: Subscription,
  changes: {
    readonly Name?: string;
    readonly Query?: string;
    readonly ChangeVector?: string;
    readonly Disabled?: boolean;
  },
): Promise<void> {
  await send("POST", `${base}/subscriptions/update`, {
    json: { Id: SubscriptionId, Name: SubscriptionName, Query, ...changes },
  });
}

export async function deleteSubscription(base: string, name: string): Promise<void> {
  await send("DELETE", `${base}/subscriptions?taskName=${encodeURIComponent(name)}`);
}

/** Closes the connection of a worker, which may reconnect; null: of all workers. */
export async function disconnectWorker(
  base: string,
  name: string,
  workerId: string | null | undefined,
): Promise<void> {
  const query = new URLSearchParams({ name, ...(workerId == null ? {} : { workerId }) });
  await send("POST", `${base}/subscriptions/drop?${query}`);
}
