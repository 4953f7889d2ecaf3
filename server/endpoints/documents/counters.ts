/** Counters of documents. Values are 64-bit integers, sent as JSON numbers with all their digits. */
import { EngineError } from "../../../engine/base/errors.ts";
import { quoteString } from "../../../engine/base/json/escape.ts";
import { findMember, readValue, ValueSpan } from "../../../engine/base/json/field-access.ts";
import { JsonText } from "../../../engine/base/json/json-text.ts";
import { boundedDocumentId } from "../../../engine/base/names.ts";
import { pauseIfDue } from "../../../engine/base/scheduling/time-slices.ts";
import { type CounterSlot, checkedJsonInSlices, type Database } from "../../../engine/engine.ts";
import type { Exchange } from "../../http/exchange.ts";
import { forbidden } from "../../http/request-error.ts";
import type { DatabaseContext, Route } from "../../routing/route.ts";
import { isAllowed, refusalMessage, requirements } from "../../security/access.ts";

const path = "/databases/:database/counters";

export const counterRoutes: readonly Route[] = [
  { kind: "database", method: "GET", path, access: "read", handle: getCounters },
  { kind: "database", method: "POST", path, access: "read", handle: postCounters },
];

/** GET counters?docId=…&counter=…&full=…: all counters when no name is given, in byte order of their names */
function getCounters(exchange: Exchange, { database }: DatabaseContext): Promise<void> {
  const { query } = exchange;
  const documentId = boundedDocumentId(query.required("docId"));
  const names = query.all("counter");
  const isFull = query.bool("full", false);
  const slots =
    names.length === 0
      ? database.counters.all(documentId)
      : names.map((name) => database.counters.get(documentId, name));
  return reply(exchange, database, slots, isFull);
}

/**
 * POST counters, body `{"Documents":[{"DocumentId","Operations":[{"Type","CounterName","Delta"}]}]}`. It needs only
 * read access unless it changes counters: clients send long lists of names this way.
 */
async function postCounters(exchange: Exchange, context: DatabaseContext): Promise<void> {
  const { database } = context;
  const { counters } = database;
  const text = await checkedJsonInSlices(await exchange.body());
  const requests = await counters.parse(text);
  const isFull = isAsked(text, "ReplyWithAllNodesValues");
  if (counters.areChanges(requests)) requireWriteAccess(exchange, context);
  await reply(exchange, database, await counters.apply(requests), isFull);
}

/** @throws RequestError 403 when the caller may only read */
function requireWriteAccess(exchange: Exchange, { database }: DatabaseContext): void {
  if (isAllowed(exchange.identity, requirements.write, database.name)) return;
  throw forbidden(refusalMessage(exchange.identity, "write", database.name));
}

/** @throws EngineError invalid-format for something else than a boolean or null */
function isAsked(text: Buffer, key: string): boolean {
  const span = new ValueSpan();
  if (!findMember(text, 0, quoteString(key), span)) return false;
  const value = readValue(text, span.from, span.to) ?? false;
  if (typeof value === "boolean") return value;
  throw new EngineError("invalid-format", `'${key}' must be a boolean.`);
}

async function reply(
  exchange: Exchange,
  { partKey }: Database,
  slots: readonly (CounterSlot | null)[],
  isFull: boolean,
): Promise<void> {
  const text = new JsonText().addText('{"Counters":[');
  for (const [at, slot] of slots.entries()) {
    const pause = pauseIfDue();
    if (pause !== undefined) await pause;
    if (at > 0) text.addText(",");
    text.addText(rowText(slot, isFull ? partKey : null));
  }
  exchange.replyJson(200, text.addText("]}").bytes);
}

/** `partKey`: key of the node's own part of the value; null leaves parts out. */
function rowText(slot: CounterSlot | null, partKey: string | null): string {
  // RavenDB 7.2.7 lists a counter without a name, but does not return it.
  if (slot === null || slot.name === "") return "null";
  const { documentId, name, value } = slot;
  const parts = partKey === null ? "null" : `{"${partKey}":${value}}`;
  return `{"DocumentId":${JSON.stringify(documentId)},"CounterName":${JSON.stringify(name)},"TotalValue":${value},"CounterValues":${parts}}`;
}
