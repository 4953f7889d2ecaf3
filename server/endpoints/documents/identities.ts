/** Numbers for ids: HiLo ranges that clients reserve, and identities that the server increments. */

import { EngineError } from "../../../engine/base/errors.ts";
import { formatTimestamp, parseTimestamp } from "../../../engine/base/timestamp.ts";
import type { Exchange } from "../../http/exchange.ts";
import { int32Max } from "../../replies/document-listing.ts";
import type { DatabaseContext, Route } from "../../routing/route.ts";

const prefix = "/databases/:database";

export const identityRoutes: readonly Route[] = [
  {
    kind: "database",
    method: "GET",
    path: `${prefix}/hilo/next`,
    access: "write",
    copies: "leader",
    handle: getNextRange,
  },
  {
    kind: "database",
    method: "PUT",
    path: `${prefix}/hilo/return`,
    access: "write",
    handle: putBackRange,
  },
  {
    kind: "database",
    method: "POST",
    path: `${prefix}/identity/next`,
    access: "write",
    handle: postNextIdentity,
  },
  {
    kind: "database",
    method: "POST",
    path: `${prefix}/identity/seed`,
    access: "write",
    handle: postSeed,
  },
  {
    kind: "database",
    method: "GET",
    path: `${prefix}/debug/identities`,
    access: "read",
    inPackage: true,
    copies: "confirmed",
    handle: getIdentities,
  },
];

/** GET hilo/next?tag=…&lastBatchSize=…&lastRangeAt=…&lastMax=…: 201 with the range */
async function getNextRange(exchange: Exchange, { database }: DatabaseContext): Promise<void> {
  const { query } = exchange;
  const tag = query.required("tag");
  const lastSize = query.long("lastBatchSize", 0);
  const lastMax = Math.max(0, query.long("lastMax", 0));
  const separator = query.get("identityPartsSeparator") || "/";
  if (separator.length > 1) {
    throw new EngineError(
      "invalid-operation",
      `Query string identityPartsSeparator is expecting single character, but got '${separator}'.`,
    );
  }
  const lastAt = parseTimestamp(query.get("lastRangeAt") ?? "");
  const { low, high, size, at } = await database.identities.nextRange(tag, {
    size: lastSize,
    // Clients without an earlier range send a time long ago.
    at: Number.isNaN(lastAt) || lastAt <= 0 ? 0 : lastAt,
    max: lastMax,
  });
  exchange.replyJson(201, {
    Prefix: tag + separator,
    Low: low,
    High: high,
    LastSize: size,
    ServerTag: database.nodeTag,
    LastRangeAt: formatTimestamp(at),
  });
}

/** PUT hilo/return?tag=…&end=…&last=…: 200, whether or not anything was returned */
async function putBackRange(exchange: Exchange, { database }: DatabaseContext): Promise<void> {
  const tag = exchange.query.required("tag");
  const end = requiredLong(exchange, "end");
  const last = requiredLong(exchange, "last");
  await database.identities.returnRange(tag, end, last);
  exchange.reply(200);
}

/** POST identity/next?name=…: `{"NewIdentityValue":n}` */
async function postNextIdentity(exchange: Exchange, { database }: DatabaseContext): Promise<void> {
  const name = exchange.query.required("name");
  const value = await database.identities.next(name, exchange.query.get("raft-request-id"));
  exchange.replyJson(200, { NewIdentityValue: value });
}

/** POST identity/seed?name=…&value=…&force=…: `{"NewSeedValue":n}`; without force the value can only grow */
async function postSeed(exchange: Exchange, { database }: DatabaseContext): Promise<void> {
  const name = exchange.query.required("name");
  const wanted = requiredLong(exchange, "value");
  const isForced = exchange.query.bool("force", false);
  const value = await database.identities.seed(name, wanted, isForced);
  // RavenDB 7.2.7 returns no value below zero, but continues from it.
  exchange.replyJson(200, { NewSeedValue: Math.max(0, value) });
}

/** GET debug/identities?pageSize=…: `{"users|":2}` */
function getIdentities(exchange: Exchange, { database }: DatabaseContext): void {
  const pageSize = Math.max(0, exchange.query.int("pageSize", int32Max));
  const members = [...database.identities.list()]
    .slice(0, pageSize)
    .map(([name, value]) => `${JSON.stringify(name)}:${value}`);
  exchange.replyJson(200, `{${members.join(",")}}`);
}

function requiredLong({ query }: Exchange, name: string): number {
  if (!query.has(name)) {
    throw new EngineError(
      "invalid-argument",
      `Query string ${name} is mandatory, but wasn't specified.`,
    );
  }
  const text = query.required(name).trim();
  const value = query.long(name, 0);
  if (BigInt(text) === BigInt(value)) return value;
  throw new EngineError(
    "out-of-range",
    `Query string ${name} is ${text}: numbers of ids are from -${Number.MAX_SAFE_INTEGER} to ${Number.MAX_SAFE_INTEGER}.`,
  );
}
