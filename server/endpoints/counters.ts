/** Counters of documents. Values are 64-bit integers, sent as JSON numbers with all their digits. */

import { largeBuffer } from "../../engine/base/large-buffer.ts";
import { runInTurns } from "../../engine/base/turns.ts";
import type { Work } from "../../engine/base/work-budget.ts";
import type { Database } from "../../engine/database/database.ts";
import { nodeTag } from "../../engine/documents/change-vector.ts";
import { DocumentParser } from "../../engine/documents/document-parser.ts";
import { quoteString } from "../../engine/json/escape.ts";
import { findMember, readValue, ValueSpan } from "../../engine/json/field-access.ts";
import { counterKey } from "../../engine/keyspaces/counters.ts";
import {
  applyCounters,
  type CounterSlot,
  changesCounters,
  compareNames,
  type DocumentCounterOperations,
  parseCounterRequest,
} from "../../engine/writes/counter-operations.ts";
import type { Exchange } from "../http/exchange.ts";
import { forbidden } from "../http/request-error.ts";
import type { DatabaseContext, Route } from "../routing/route.ts";
import { isAllowed, refusalMessage, requirements } from "../security/access.ts";

const path = "/databases/:database/counters";

export const counterRoutes: readonly Route[] = [
  { kind: "database", method: "GET", path, access: "read", handle: getCounters },
  { kind: "database", method: "POST", path, access: "read", handle: postCounters },
];

/** GET counters?docId=…&counter=…&full=…: all counters when no name is given, in byte order of their names */
function getCounters(exchange: Exchange, { database }: DatabaseContext): void {
  const { query } = exchange;
  const documentId = query.required("docId");
  const names = query.all("counter");
  const isFull = query.bool("full", false);
  const slots =
    names.length === 0
      ? allOf(database, documentId)
      : names.map((name) => slotOf(database, documentId, name));
  reply(exchange, database, slots, isFull);
}

/**
 * POST counters, body `{"Documents":[{"DocumentId","Operations":[{"Type","CounterName","Delta"}]}]}`. It needs only
 * read access unless it changes counters: clients send long lists of names this way.
 */
async function postCounters(exchange: Exchange, context: DatabaseContext): Promise<void> {
  const { database } = context;
  const body = await exchange.body();
  const parser = new DocumentParser(null);
  const work = parser.parseInSlices(body, 0, body.length, largeBuffer(body.length));
  const text = (await runInTurns(work)).body;
  const requests = await runInTurns(parseCounterRequest(text));
  const isFull = isAsked(text, "ReplyWithAllNodesValues");
  let slots: readonly (CounterSlot | null)[];
  if (requests.some(changesCounters)) {
    requireWriteAccess(exchange, context);
    slots = await database.writeInTurns(function* apply(transaction) {
      const all: (CounterSlot | null)[] = [];
      for (const request of requests) {
        const applied = yield* applyCounters(transaction, request);
        for (const slot of applied.slots) all.push(slot);
      }
      return all;
    });
  } else slots = await runInTurns(readAll(database, requests));
  reply(exchange, database, slots, isFull);
}

/** @throws RequestError 403 when the caller may only read */
function requireWriteAccess(exchange: Exchange, { database }: DatabaseContext): void {
  if (isAllowed(exchange.identity, requirements.write, database.name)) return;
  throw forbidden(refusalMessage(exchange.identity, "write", database.name));
}

function isAsked(text: Buffer, key: string): boolean {
  const span = new ValueSpan();
  return (
    findMember(text, 0, quoteString(key), span) && readValue(text, span.from, span.to) === true
  );
}

/** Reads committed values only: nothing that a crash could undo. */
function* readAll(
  database: Database,
  requests: readonly DocumentCounterOperations[],
): Work<(CounterSlot | null)[]> {
  const slots: (CounterSlot | null)[] = [];
  for (const { documentId, operations } of requests) {
    for (const { type, name } of operations) {
      yield;
      if (type === "GetAll") for (const slot of allOf(database, documentId)) slots.push(slot);
      else if (type === "Get") {
        slots.push(name === null ? null : slotOf(database, documentId, name));
      }
    }
  }
  return slots;
}

function allOf(database: Database, documentId: string): CounterSlot[] {
  const { counters } = database.state.keyspaces;
  return [...counters.withPrefix(counterKey(documentId, ""))]
    .map(([, { name, value }]) => ({ documentId, name, value }))
    .sort(compareNames);
}

function slotOf(database: Database, documentId: string, name: string): CounterSlot | null {
  const counter = database.state.keyspaces.counters.get(counterKey(documentId, name));
  return counter === undefined ? null : { documentId, name, value: counter.value };
}

function reply(
  exchange: Exchange,
  { state }: Database,
  slots: readonly (CounterSlot | null)[],
  isFull: boolean,
): void {
  const rows = slots.map((slot) => {
    if (slot === null) return "null";
    const { documentId, name, value } = slot;
    const parts = isFull ? `{"${nodeTag}-${state.databaseHash}":${value}}` : "null";
    return `{"DocumentId":${JSON.stringify(documentId)},"CounterName":${JSON.stringify(name)},"TotalValue":${value},"CounterValues":${parts}}`;
  });
  exchange.replyJson(200, `{"Counters":[${rows.join(",")}]}`);
}
