/** Batches: many commands in one transaction, with the contents of attachments as further parts of the body. */
import { EngineError } from "../../../engine/base/errors.ts";
import { countDropped } from "../../../engine/base/memory/gc-hints.ts";
import { grownBuffer } from "../../../engine/base/memory/large-buffer.ts";
import type { Database, PreparedBatch } from "../../../engine/engine.ts";
import type { ClusterView } from "../../cluster/cluster-view.ts";
import { BodyRoom, memoryOfBody } from "../../http/body-room.ts";
import { timeSpanText } from "../../http/dates.ts";
import type { Exchange } from "../../http/exchange.ts";
import { multipartBoundary, multipartContents } from "../../http/multipart.ts";
import { bodyTooLarge } from "../../http/request-error.ts";
import { confirmLeading } from "../../routing/barriers.ts";
import type { DatabaseContext, Route } from "../../routing/route.ts";
import type { HttpLimits } from "../../settings/config.ts";
import { copyCount } from "../databases/database-nodes.ts";

export const batchRoutes: readonly Route[] = [
  {
    kind: "database",
    method: "POST",
    path: "/databases/:database/bulk_docs",
    access: "write",
    handle: postBatch,
  },
];

const resultsOpen = Buffer.from('{"Results":[');
const resultsClose = Buffer.from("]}");
const noRows = Buffer.alloc(0);

/** POST bulk_docs: 201 `{"Results":[row, …]}`. */
async function postBatch(exchange: Exchange, { database, server }: DatabaseContext): Promise<void> {
  const wait = waitOf(exchange, copyCount(server, database.name));
  const indexWait = indexWaitOf(exchange);
  const boundary = multipartBoundary(exchange.header("content-type"));
  const { limits } = server.config;
  const batch =
    boundary === undefined
      ? await readBatch(exchange, database, limits)
      : await readParts(exchange, database, boundary, limits);
  if (batch.isClusterWide) {
    await runClusterWide(exchange, batch).catch(async (error: unknown) => {
      // Nothing was written. The values compared were read here, and another node may have led by then.
      const isRefused = error instanceof EngineError && error.code === "cluster-concurrency";
      if (isRefused) await confirmLeading(database);
      throw error;
    });
    return;
  }
  const rows = await batch.run();
  if (wait !== undefined) await waitForReplicas(wait, database, server.cluster);
  if (indexWait !== undefined) await waitForIndexes(indexWait, database);
  const isQuiet = exchange.query.bool("noreply", false);
  exchange.replyJson(201, Buffer.concat([resultsOpen, isQuiet ? noRows : rows, resultsClose]));
}

/** Not awaited in parts, because the caller would hold the body in addition to its commands. */
function readBatch(
  exchange: Exchange,
  { batches }: Database,
  { batchCommandsMax }: HttpLimits,
): Promise<PreparedBatch> {
  const options = { commandsMax: batchCommandsMax };
  return exchange.body().then((bytes) => batches.prepare(bytes, options));
}

/** Atomic guards are only for official clients that have not disabled them. */
async function runClusterWide(exchange: Exchange, batch: PreparedBatch): Promise<void> {
  const hasGuards =
    exchange.header("raven-client-version") !== undefined &&
    !exchange.query.bool("disableAtomicDocumentWrites", false);
  const { rows, index } = await batch.runClusterWide(
    hasGuards,
    exchange.query.get("raft-request-id"),
  );
  exchange.replyJson(201, `{"Results":[${rows}],"TransactionIndex":${index}}`);
}

/** Reads the first part as JSON, and the others as contents of attachments, in the order of the commands. */
async function readParts(
  exchange: Exchange,
  database: Database,
  boundary: string,
  { bodyBytesMax, batchCommandsMax }: HttpLimits,
): Promise<PreparedBatch> {
  const parts = multipartContents(exchange.bodyStream(), boundary, true);
  const main = await parts.next();
  if (main.done) throw new EngineError("json-truncated", "The multipart body has no parts.");
  const room = new BodyRoom();
  exchange.whenClosed(() => room.release());
  const grow = (length: number) => room.grow(memoryOfBody(length), false, exchange);
  return await collect(main.value, bodyBytesMax, grow).then((bytes) =>
    database.batches.prepare(bytes, { commandsMax: batchCommandsMax, contents: parts }),
  );
}

/** Reads the whole part; `grow` waits until memory for the given number of bytes is available. */
async function collect(
  content: AsyncIterable<Buffer>,
  bytesMax: number,
  grow: (length: number) => Promise<void> | undefined,
): Promise<Buffer> {
  let whole: Buffer = Buffer.alloc(0);
  let length = 0;
  for await (const chunk of content) {
    const needed = length + chunk.length;
    if (needed > bytesMax) throw bodyTooLarge(bytesMax);
    await grow(needed);
    if (needed > whole.length) {
      const larger = grownBuffer(needed, bytesMax);
      whole.copy(larger, 0, 0, length);
      countDropped(length);
      whole = larger;
    }
    chunk.copy(whole, length);
    length = needed;
  }
  return whole.subarray(0, length);
}

/** The replication that the caller waits for. */
interface ReplicaWait {
  /** Number of nodes besides the one that writes. */
  readonly replicas: number;
  readonly timeoutMs: number;
  readonly isThrowing: boolean;
}

/**
 * Returns undefined unless there is replication to wait for, or a value to refuse: the majority of one node is this node.
 * @param copies number of nodes with the database, including this one
 * @throws EngineError invalid-argument
 */
function waitOf({ query }: Exchange, copies: number): ReplicaWait | undefined {
  const timeoutMs = query.timeSpanMs("waitForReplicasTimeout", undefined);
  const isThrowing = query.bool("throwOnTimeoutInWaitForReplicas", true);
  const isMajority = query.get("numberOfReplicasToWaitFor") === "majority";
  const replicas = isMajority ? Math.floor(copies / 2) : query.int("numberOfReplicasToWaitFor", 1);
  if (timeoutMs === undefined || replicas <= 0) return undefined;
  if (copies === 1 && !isThrowing) return undefined;
  return { replicas, timeoutMs, isThrowing };
}

/** Waiting for more nodes than exist cannot succeed. The write is kept in any case. @throws EngineError timeout */
async function waitForReplicas(
  { replicas, timeoutMs, isThrowing }: ReplicaWait,
  database: Database,
  cluster: ClusterView | undefined,
): Promise<void> {
  const others = (cluster?.find(database.name)?.registered.members.length ?? 1) - 1;
  const possible = Math.min(replicas, others);
  const reached =
    cluster === undefined || possible === 0
      ? 0
      : await cluster.waitForCopies(database.name, possible, timeoutMs);
  if (reached >= replicas || !isThrowing) return;
  throw new EngineError(
    "timeout",
    `Could not verify that the change vector '${database.changeVector}' was replicated to ${replicas} servers in ${timeSpanText(timeoutMs)}. So far, it only replicated to ${reached}`,
  );
}

/** The indexes that must have processed the batch before the reply. */
interface IndexWait {
  /** Empty for all. */
  readonly names: readonly string[];
  readonly timeoutMs: number;
  readonly isThrowing: boolean;
}

/** @throws EngineError invalid-argument */
function indexWaitOf({ query }: Exchange): IndexWait | undefined {
  const timeoutMs = query.timeSpanMs("waitForIndexesTimeout", undefined);
  const isThrowing = query.bool("waitForIndexThrow", true);
  if (timeoutMs === undefined) return undefined;
  return { names: query.all("waitForSpecificIndex"), timeoutMs, isThrowing };
}

/** Waits for the indexes; unknown names are ignored, as in RavenDB 7.2.7. @throws EngineError timeout */
async function waitForIndexes(
  { names, timeoutMs, isThrowing }: IndexWait,
  database: Database,
): Promise<void> {
  const { count, stale, paused } = await database.indexes.waitForNonStale(names, timeoutMs);
  if (stale.length === 0 || !isThrowing) return;
  const listed = (names: readonly string[]) =>
    names.length === 0 ? "0" : `${names.length} (${names.join(", ")})`;
  throw new EngineError(
    "timeout",
    `After waiting for ${timeSpanText(timeoutMs)}, could not verify that all indexes has caught up with the changes as of etag: ${database.lastEtag}. ` +
      `Total relevant indexes: ${count}, total stale indexes: ${listed(stale)}, total paused indexes: ${listed(paused)}. The batch itself is stored.`,
  );
}
