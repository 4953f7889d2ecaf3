/**
 * Traffic through the official client, which finds the nodes, fails over, and retries requests
 * without a reply. So an operation may be executed twice, and a rejection by change vector may be
 * caused by its own first attempt.
 */
import { setTimeout as pause } from "node:timers/promises";
import {
  DocumentStore,
  type IAuthOptions,
  PatchCommandData,
  PatchRequest,
  type SubscriptionWorker,
} from "ravendb";
import type { ClusterNodes } from "./cluster-nodes.ts";
import type { History, Outcome } from "./history.ts";
import type { Traffic } from "./workers.ts";

/** How long the client may retry before the outcome counts as unknown. */
const saveMs = 30_000;
const restMs = 50;
const subscriptionName = "events";

export function openStore(cluster: ClusterNodes, database: string): DocumentStore {
  const urls = cluster.nodes.map(({ url }) => url);
  const authentication: IAuthOptions | undefined =
    cluster.certificates === null
      ? undefined
      : {
          type: "pfx",
          certificate: cluster.certificates.pfx,
          password: "",
          ca: cluster.certificates.admin.ca,
        };
  const store = new DocumentStore(urls, database, authentication as IAuthOptions);
  store.conventions.requestTimeout = 10_000;
  store.initialize();
  return store;
}

/**
 * Sessions that write increasing numbers and append to lists, and a subscription that is read to
 * the end.
 */
export async function runClientWorkers(traffic: Traffic): Promise<void> {
  const store = openStore(traffic.cluster, traffic.database);
  try {
    const subscription = new EventReader(store, traffic.history);
    await traffic.cluster.eventually("the subscription is created", async () => {
      await subscription.create();
      return null;
    });
    subscription.start();
    await Promise.all([clientPutter(traffic, store), clientAppender(traffic, store)]);
    await subscription.finish(traffic);
  } finally {
    store.dispose();
  }
}

async function tried(work: () => Promise<unknown>, traffic: Traffic): Promise<Outcome> {
  const late = pause(saveMs, "late" as const, { ref: false });
  try {
    const done = await Promise.race([work(), late]);
    return done === "late" ? "unknown" : "ok";
  } catch (error) {
    const { name, message } = error as Error;
    const kind = `client ${name}: ${message.replaceAll(/\d+/g, "#").slice(0, 120)}`;
    traffic.problems.set(kind, (traffic.problems.get(kind) ?? 0) + 1);
    // This may have been the second attempt after a successful first one.
    return "unknown";
  }
}

async function clientPutter(traffic: Traffic, store: DocumentStore): Promise<void> {
  const { history } = traffic;
  let id = "";
  for (let n = 1; !traffic.isDone(); n++) {
    if (id === "") id = `puts/client-${n}`;
    const call = history.now();
    const outcome = await tried(async () => {
      const session = store.openSession();
      await session.store({ n, "@metadata": { "@collection": "Puts" } }, id);
      await session.saveChanges();
      session.dispose();
    }, traffic);
    history.add({ kind: "put", id, n, call, return: history.now(), outcome });
    if (outcome !== "ok") id = "";
    await pause(restMs);
  }
}

async function clientAppender(traffic: Traffic, store: DocumentStore): Promise<void> {
  const { history } = traffic;
  for (let n = 0; !traffic.isDone(); n++) {
    const item = `client-${n}`;
    const id = `lists/client-${Math.floor(n / 50)}`;
    const call = history.now();
    const outcome = await tried(async () => {
      const session = store.openSession();
      const add = PatchRequest.forScript(
        "this.items = this.items || []; this.items.push(args.item)",
      );
      add.values = { item };
      const create = PatchRequest.forScript("this.items = [args.item]");
      create.values = { item };
      session.advanced.defer(new PatchCommandData(id, null as never, add, create));
      await session.saveChanges();
      session.dispose();
    }, traffic);
    const end = history.now();
    history.add({ kind: "append", ids: [id], item, isRepeated: true, call, return: end, outcome });
    await pause(restMs);
  }
}

class EventReader {
  readonly #store: DocumentStore;
  readonly #history: History;
  readonly #seen = new Set<string>();
  #worker: SubscriptionWorker<object> | null = null;
  #isDone = false;

  constructor(store: DocumentStore, history: History) {
    this.#store = store;
    this.#history = history;
  }

  async create(): Promise<void> {
    const all = await this.#store.subscriptions.getSubscriptions(0, 10);
    if (all.some((one) => one.subscriptionName === subscriptionName)) return;
    await this.#store.subscriptions.create({ name: subscriptionName, query: "from Events" });
  }

  start(): void {
    const worker = this.#store.subscriptions.getSubscriptionWorker<object>({
      subscriptionName,
      timeToWaitBeforeConnectionRetry: 500,
      maxErroneousPeriod: 120_000,
    });
    this.#worker = worker;
    worker.on("batch", (batch, callback) => {
      for (const { id } of batch.items) {
        this.#seen.add(id);
        this.#history.add({ kind: "delivered", id });
      }
      callback();
    });
    // It stops after some errors; a program then opens another, as here.
    worker.on("error", () => {
      worker.dispose();
      if (this.#worker === worker && !this.#isDone) setTimeout(() => this.start(), 500).unref();
    });
  }

  /**
   * Resolves when all confirmed puts were delivered, or after a timeout; the checks report missing
   * ones.
   */
  async finish({ cluster, history }: Traffic): Promise<void> {
    const wanted = history.of("event").filter(({ outcome }) => outcome === "ok");
    await cluster
      .eventually("all events are delivered", async () => {
        const missing = wanted.filter(({ id }) => !this.#seen.has(id));
        return missing.length === 0 ? null : `${missing.length} are missing`;
      })
      .catch(() => undefined);
    // Puts with unknown outcome are delivered too, if they were executed.
    await pause(1_000);
    this.#isDone = true;
    this.#worker?.dispose();
  }
}
