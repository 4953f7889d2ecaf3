/**
 * Traffic over plain HTTP: each worker repeats operations on nodes of its choice, and records the
 * replies. Workers do not retry operations.
 */
import { createHash } from "node:crypto";
import { setTimeout as pause } from "node:timers/promises";
import { SeededRandom } from "../support/random.ts";
import type { ClusterNode, ClusterNodes } from "./cluster-nodes.ts";
import { type History, type Outcome, type RegisterEvent, sendRequest } from "./history.ts";

/** Delay after an error, to limit the history while there is no leader. */
const troubleMs = 150;
/** Delay between two operations of a worker: three nodes and their clients share two processors. */
const restMs = 20;
/** Maximum number of unknown outcomes per group of registers: each makes checking much harder. */
const unknownCountMax = 3;
const operationCountMax = 150;

export interface Traffic {
  readonly cluster: ClusterNodes;
  readonly database: string;
  readonly history: History;
  readonly isDone: () => boolean;
  /** Increases when the contents of nodes may have gone back because one was wiped. */
  readonly sessionEpoch: () => number;
  readonly problems: Map<string, number>;
}

type Worker = (traffic: Traffic, random: SeededRandom, number: number) => Promise<void>;

/** Runs all workers until the traffic ends. */
export async function runWorkers(traffic: Traffic, seed: number): Promise<void> {
  const all: Worker[] = [
    registers("values", valueRegister),
    registers("documents", documentRegister),
    putter,
    putter,
    putter,
    appender,
    appender,
    queryPatcher,
    counting,
    counting,
    attaching,
    deleting,
    eventPutter,
  ];
  await Promise.all(
    all.map((worker, number) => worker(traffic, new SeededRandom(seed + number), number)),
  );
}

function pick(traffic: Traffic, random: SeededRandom): ClusterNode {
  const { nodes } = traffic.cluster;
  return nodes[random.below(nodes.length)] as ClusterNode;
}

async function rest(traffic: Traffic, outcome: Outcome, problem: string | null): Promise<void> {
  if (problem !== null) {
    // Ports and numbers would make each problem different.
    const kind = `${outcome}: ${problem.replaceAll(/\d+/g, "#").slice(0, 160)}`;
    traffic.problems.set(kind, (traffic.problems.get(kind) ?? 0) + 1);
  }
  await pause(outcome === "ok" ? restMs : troubleMs);
}

const documentPath = (database: string, id: string) =>
  `/databases/${database}/docs?id=${encodeURIComponent(id)}`;

/** Writes increasing numbers and reads them at the same node, which changes from time to time. */
const putter: Worker = async (traffic, random, worker) => {
  const { history, database } = traffic;
  let node = pick(traffic, random);
  let session = 0;
  let epoch = traffic.sessionEpoch();
  let id = "";
  for (let n = 1; !traffic.isDone(); n++) {
    // A document is abandoned after an unknown outcome, so that the outcomes for the next one are
    // exact.
    if (id === "") id = `puts/${worker}-${n}`;
    if (n % 40 === 0 || epoch !== traffic.sessionEpoch()) {
      node = pick(traffic, random);
      epoch = traffic.sessionEpoch();
      session++;
    }
    const isLeading = await leads(traffic, node);
    const requested = await sendRequest(history, () =>
      node.send.put(documentPath(database, id), { n, "@metadata": { "@collection": "Puts" } }),
    );
    const { call, return: end, outcome } = requested;
    history.add({ kind: "put", id, n, call, return: end, outcome });
    const isAtLeader = outcome === "ok" && isLeading && (await leads(traffic, node));
    await readPut(traffic, node, `${worker}/${session}/${node.tag}`, id, isAtLeader);
    if (outcome === "unknown") id = "";
    await rest(traffic, outcome, requested.problem);
  }
};

/**
 * Whether this node reports itself as the leader. Topologies list nodes in an order even without a
 * leader.
 */
async function leads({ database }: Traffic, node: ClusterNode): Promise<boolean> {
  try {
    const { status, text } = await node.send.get("/cluster/status", { timeoutMs: 3_000 });
    if (status !== 200) return false;
    const { Databases } = JSON.parse(text) as {
      Databases: { Name: string; Leader: string | null }[];
    };
    return Databases.find(({ Name }) => Name === database)?.Leader === node.tag;
  } catch {
    return false;
  }
}

async function readPut(
  { history, database, sessionEpoch }: Traffic,
  { send }: ClusterNode,
  session: string,
  id: string,
  isAtLeader: boolean,
): Promise<void> {
  const epoch = sessionEpoch();
  const requested = await sendRequest(history, () => send.get(documentPath(database, id)));
  const { call, return: end, reply } = requested;
  if (reply === null || (reply.status !== 200 && reply.status !== 404)) return;
  if (epoch !== sessionEpoch()) return;
  const n = reply.status === 404 ? 0 : (firstResult(reply.text)?.["n"] as number);
  history.add({ kind: "read", session, id, n, isAtLeader, call, return: end, outcome: "ok" });
}

function firstResult(text: string): Record<string, unknown> | undefined {
  return (
    (JSON.parse(text) as { Results: (Record<string, unknown> | null)[] }).Results[0] ?? undefined
  );
}

const pushScript = "this.items = this.items || []; this.items.push(args.item)";

/** Appends items to the lists of one or two documents by patches, in one transaction. */
const appender: Worker = async (traffic, random, worker) => {
  const { history, database } = traffic;
  for (let n = 0; !traffic.isDone(); n++) {
    const item = `${worker}-${n}`;
    const list = Math.floor(n / 50);
    const ids = [`lists/${worker}-${list}`, ...(n % 2 === 0 ? [`lists/${worker}-${list}-b`] : [])];
    const patch = { Script: pushScript, Values: { item } };
    const create = { Script: "this.items = [args.item]", Values: { item } };
    const Commands = ids.map((Id) => ({ Id, Type: "PATCH", Patch: patch, PatchIfMissing: create }));
    const requested = await sendRequest(history, () =>
      pick(traffic, random).send.post(`/databases/${database}/bulk_docs`, { Commands }),
    );
    const { call, return: end, outcome } = requested;
    history.add({ kind: "append", ids, item, isRepeated: false, call, return: end, outcome });
    await rest(traffic, outcome, requested.problem);
  }
};

/**
 * Appends items to the lists of all documents of a collection by one query. A query skips documents
 * written after it began. After an unknown outcome the query may still be running, so another
 * collection is used.
 */
const queryPatcher: Worker = async (traffic, random, worker) => {
  const { history, database } = traffic;
  let collection = "";
  let ids: string[] = [];
  for (let n = 0; !traffic.isDone(); n++) {
    if (collection === "") {
      collection = `Sets${n}`;
      ids = Array.from({ length: 4 }, (_, at) => `sets/${n}/${at}`);
      for (const id of ids) await putSet(traffic, random, id, collection);
    }
    const item = `${worker}-${n}`;
    const query = {
      Query: {
        Query: `from ${collection} update { this.items.push(args.item) }`,
        QueryParameters: { item },
      },
    };
    const node = pick(traffic, random);
    const requested = await sendRequest(history, () =>
      node.send.request("PATCH", `/databases/${database}/queries?allowStale=true`, query),
    );
    let { outcome } = requested;
    if (requested.reply !== null && outcome === "ok") {
      outcome = await operationOutcome(traffic, node, requested.reply.text);
    }
    const end = history.now();
    history.add({
      kind: "append",
      ids,
      item,
      isRepeated: false,
      call: requested.call,
      return: end,
      outcome,
    });
    if (outcome === "unknown") collection = "";
    await rest(traffic, outcome, requested.problem);
    await pause(200);
  }
};

async function putSet(
  traffic: Traffic,
  random: SeededRandom,
  id: string,
  collection: string,
): Promise<void> {
  await traffic.cluster.eventually("a document exists", async () => {
    const document = { items: [], "@metadata": { "@collection": collection } };
    const path = documentPath(traffic.database, id);
    const { status } = await pick(traffic, random).send.put(path, document);
    return status === 201 ? null : `${status}`;
  });
}

/** The outcome of an operation; unknown if the node that runs it does not answer. */
async function operationOutcome(
  { database, cluster }: Traffic,
  requested: ClusterNode,
  text: string,
): Promise<Outcome> {
  const { OperationId, OperationNodeTag } = JSON.parse(text) as {
    OperationId: number;
    OperationNodeTag?: string;
  };
  const node = cluster.nodes.find(({ tag }) => tag === OperationNodeTag) ?? requested;
  for (let tries = 0; tries < 40; tries++) {
    const reply = await node.send
      .get(`/databases/${database}/operations/state?id=${OperationId}`, { timeoutMs: 3_000 })
      .catch(() => null);
    if (reply === null || reply.status !== 200) return "unknown";
    const { Status } = JSON.parse(reply.text) as { Status: string };
    if (Status === "Completed") return "ok";
    // A part of it may have been executed.
    if (Status !== "InProgress") return "unknown";
    await pause(50);
  }
  return "unknown";
}

const counting: Worker = async (traffic, random, worker) => {
  const { history, database } = traffic;
  const document = `counted/${worker}`;
  await traffic.cluster.eventually("a document exists", async () => {
    const reply = await pick(traffic, random).send.put(documentPath(database, document), {});
    return reply.status === 201 ? null : `${reply.status}`;
  });
  let name = 0;
  while (!traffic.isDone()) {
    const delta = 1 + random.below(3);
    const CounterName = `c${name}`;
    const body = {
      Documents: [
        {
          DocumentId: document,
          Operations: [{ Type: "Increment", CounterName, Delta: delta }],
        },
      ],
    };
    const requested = await sendRequest(history, () =>
      pick(traffic, random).send.post(`/databases/${database}/counters`, body),
    );
    const { call, return: end, outcome } = requested;
    history.add({
      kind: "count",
      id: `${document}/${CounterName}`,
      delta,
      call,
      return: end,
      outcome,
    });
    if (outcome === "unknown") name++;
    await rest(traffic, outcome, requested.problem);
  }
};

/** From a few bytes to more than fits into one message of the stream. */
const attachmentBytes = [10, 1_000, 100_000, 1_500_000];

const attaching: Worker = async (traffic, random, worker) => {
  const { history, database } = traffic;
  const id = `attached/${worker}`;
  await traffic.cluster.eventually("a document exists", async () => {
    const reply = await pick(traffic, random).send.put(documentPath(database, id), {});
    return reply.status === 201 ? null : `${reply.status}`;
  });
  for (let n = 0; !traffic.isDone(); n++) {
    const name = `file ${n}`;
    const size = attachmentBytes[n % attachmentBytes.length] as number;
    const content = Buffer.alloc(size, `${worker}-${n} `);
    const hash = createHash("sha256").update(content).digest("hex");
    const path = `/databases/${database}/attachments?id=${id}&name=${encodeURIComponent(name)}&contentType=x/y`;
    const requested = await sendRequest(history, () =>
      pick(traffic, random).send.put(path, content),
    );
    const { call, return: end, outcome } = requested;
    history.add({ kind: "attach", id, name, hash, call, return: end, outcome });
    await rest(traffic, outcome, requested.problem);
    await pause(300);
  }
};

/** Puts and deletes a document: after an acknowledged deletion it never reappears. */
const deleting: Worker = async (traffic, random, worker) => {
  const { history, database } = traffic;
  for (let n = 0; !traffic.isDone(); n++) {
    const id = `deleted/${worker}-${n}`;
    const put = await sendRequest(history, () =>
      pick(traffic, random).send.put(documentPath(database, id), { n }),
    );
    await rest(traffic, put.outcome, put.problem);
    if (put.outcome !== "ok") continue;
    const requested = await sendRequest(history, () =>
      pick(traffic, random).send.request("DELETE", documentPath(database, id)),
    );
    const { call, return: end, outcome } = requested;
    history.add({ kind: "delete", id, call, return: end, outcome });
    await rest(traffic, outcome, requested.problem);
  }
};

const eventPutter: Worker = async (traffic, random, worker) => {
  const { history, database } = traffic;
  for (let n = 0; !traffic.isDone(); n++) {
    const id = `events/${worker}-${n}`;
    const requested = await sendRequest(history, () =>
      pick(traffic, random).send.put(documentPath(database, id), {
        n,
        "@metadata": { "@collection": "Events" },
      }),
    );
    const { call, return: end, outcome } = requested;
    history.add({ kind: "event", id, call, return: end, outcome });
    await rest(traffic, outcome, requested.problem);
  }
};

/** The last known state of a register; the next write expects its version. */
interface Seen {
  version: string;
  value: string;
}

type RegisterStep = Omit<RegisterEvent, "kind" | "group" | "client" | "call" | "return"> & {
  readonly problem: string | null;
};

/** One operation on registers, chosen at random. */
type Register = (
  traffic: Traffic,
  random: SeededRandom,
  keys: readonly string[],
  seen: Map<string, Seen>,
  value: string,
) => Promise<{ readonly event: RegisterStep; readonly call: number; readonly return: number }>;

/**
 * Three clients that share registers, which are replaced when their history becomes hard to check.
 */
function registers(name: string, operate: Register): Worker {
  return async (traffic, random) => {
    let group = 0;
    let unknown = 0;
    let operations = 0;
    const client = async (number: number, own: SeededRandom) => {
      let last = -1;
      const seen = new Map<string, Seen>();
      for (let n = 0; !traffic.isDone(); n++) {
        if (unknown >= unknownCountMax || operations >= operationCountMax) {
          group++;
          unknown = 0;
          operations = 0;
        }
        if (group !== last) seen.clear();
        last = group;
        const started = `${name}-${group}`;
        const keys = [0, 1, 2].map((at) => `${started}-${at}`);
        operations++;
        const done = await operate(traffic, own, keys, seen, `${number}-${n}`);
        const { problem, ...event } = done.event;
        traffic.history.add({
          kind: "register",
          group: started,
          client: number,
          call: done.call,
          return: done.return,
          ...event,
        });
        if (event.outcome === "unknown" && started === `${name}-${group}`) unknown++;
        const isOpen = event.outcome === "unknown";
        await rest(traffic, problem === null ? "ok" : isOpen ? "unknown" : "failed", problem);
      }
    };
    const seeds = [1, 2, 3].map(() => random.below(2 ** 30));
    await Promise.all(seeds.map((seed, at) => client(at, new SeededRandom(seed))));
  };
}

const absent: Seen = { version: "", value: "" };

/** Compare-exchange values, alone or two in a cluster-wide transaction. */
const valueRegister: Register = async (traffic, random, keys, seen, value) => {
  const { history, database } = traffic;
  const { send } = pick(traffic, random);
  const key = keys[random.below(keys.length)] as string;
  const path = `/databases/${database}/cmpxchg?key=${key}`;
  const chosen = random.below(10);
  if (chosen < 4 || !seen.has(key)) {
    const requested = await sendRequest(history, () => send.get(path));
    const { reply } = requested;
    if (reply === null || (reply.status !== 200 && reply.status !== 404))
      return { ...requested, event: none(requested.problem) };
    const row =
      reply.status === 404 ? undefined : (firstResult(reply.text) as ValueRow | undefined);
    const now = seenOf(row);
    seen.set(key, now);
    return { ...requested, event: { outcome: "read", reads: { [key]: now }, problem: null } };
  }
  if (chosen < 8) return putValue(traffic, send, path, key, seen, value);
  const two = keys.filter((one) => seen.has(one)).slice(0, 2);
  const before = new Map(two.map((one) => [one, seen.get(one) ?? absent]));
  const Commands = [
    ...two.map((Id) => ({
      Id,
      Type: "CompareExchangePUT",
      Document: { Object: value },
      Index: Number(before.get(Id)?.version || 0),
    })),
    { Id: `together/${keys[0]}-${value}`, Type: "PUT", Document: { value } },
  ];
  const body = { Commands, TransactionMode: "ClusterWide" };
  const requested = await sendRequest(history, () =>
    send.post(`/databases/${database}/bulk_docs`, body),
  );
  const writes = Object.fromEntries(
    two.map((one) => [one, { expected: before.get(one)?.version ?? "", version: "", value }]),
  );
  for (const one of two) seen.delete(one);
  const { outcome, reply } = requested;
  if (outcome === "ok")
    return { ...requested, event: { outcome: "written", writes, problem: null } };
  if (reply?.status === 409)
    return { ...requested, event: { outcome: "refused", writes, problem: null } };
  if (outcome === "failed") return { ...requested, event: none(requested.problem) };
  return { ...requested, event: { outcome, writes, problem: requested.problem } };
};

interface ValueRow {
  readonly Index: number;
  readonly Value: { readonly Object: string } | null;
}

function seenOf(row: ValueRow | undefined): Seen {
  if (row === undefined || row.Value === null || row.Index < 0) return absent;
  return { version: String(row.Index), value: row.Value.Object };
}

const none = (problem: string | null): RegisterStep => ({ outcome: "none", problem });

async function putValue(
  { history }: Traffic,
  send: ClusterNode["send"],
  path: string,
  key: string,
  seen: Map<string, Seen>,
  value: string,
): ReturnType<Register> {
  const expected = seen.get(key)?.version ?? "";
  const requested = await sendRequest(history, () =>
    send.put(`${path}&index=${expected || 0}`, { Object: value }),
  );
  const { outcome, reply } = requested;
  seen.delete(key);
  const writes = { [key]: { expected, version: "", value } };
  if (outcome === "failed") return { ...requested, event: none(requested.problem) };
  if (outcome === "unknown" || reply === null) {
    return { ...requested, event: { outcome: "unknown", writes, problem: requested.problem } };
  }
  const row = JSON.parse(reply.text) as ValueRow & { readonly Successful: boolean };
  if (!row.Successful) {
    return {
      ...requested,
      event: { outcome: "refused", writes, reads: { [key]: seenOf(row) }, problem: null },
    };
  }
  const version = String(row.Index);
  seen.set(key, { version, value });
  return {
    ...requested,
    event: { outcome: "written", writes: { [key]: { expected, version, value } }, problem: null },
  };
}

/** Documents replaced by change vector, and read like cluster-wide transactions read. */
const documentRegister: Register = async (traffic, random, keys, seen, value) => {
  const { history, database } = traffic;
  const { send } = pick(traffic, random);
  const key = keys[random.below(keys.length)] as string;
  const path = documentPath(database, key);
  if (random.below(10) < 4 || !seen.has(key)) {
    const requested = await sendRequest(history, () => send.get(`${path}&txMode=ClusterWide`));
    const { reply } = requested;
    if (reply === null || (reply.status !== 200 && reply.status !== 404))
      return { ...requested, event: none(requested.problem) };
    const document = reply.status === 404 ? undefined : firstResult(reply.text);
    const metadata = document?.["@metadata"] as { "@change-vector": string } | undefined;
    const now =
      document === undefined
        ? absent
        : { version: metadata?.["@change-vector"] ?? "", value: document["value"] as string };
    seen.set(key, now);
    return { ...requested, event: { outcome: "read", reads: { [key]: now }, problem: null } };
  }
  const expected = seen.get(key)?.version ?? "";
  seen.delete(key);
  const headers = { "if-match": `"${expected}"` };
  const requested = await sendRequest(history, () => send.put(path, { value }, { headers }));
  const { outcome, reply } = requested;
  const writes = { [key]: { expected, version: "", value } };
  // A leader that does not know of its successor may reject a request that the successor would
  // accept: nothing was executed.
  if (outcome === "failed")
    return { ...requested, event: none(reply?.status === 409 ? null : requested.problem) };
  if (outcome === "unknown" || reply === null) {
    return { ...requested, event: { outcome: "unknown", writes, problem: requested.problem } };
  }
  const { ChangeVector: version } = JSON.parse(reply.text) as { ChangeVector: string };
  seen.set(key, { version, value });
  return {
    ...requested,
    event: { outcome: "written", writes: { [key]: { expected, version, value } }, problem: null },
  };
};
