/** Compare-exchange values: read by key or prefix, replaced and deleted by version. */
import { lowerCased } from "../../../engine/base/case-folding.ts";
import { EngineError } from "../../../engine/base/errors.ts";
import type {
  CompareExchangeResult,
  CompareExchangeValue,
  Database,
} from "../../../engine/engine.ts";
import type { Exchange } from "../../http/exchange.ts";
import { jsonContentType } from "../../http/response.ts";
import { StreamedReply } from "../../http/streamed-reply.ts";
import { confirmLeading } from "../../routing/barriers.ts";
import type { DatabaseContext, Route } from "../../routing/route.ts";

const path = "/databases/:database/cmpxchg";
const int32Max = 2_147_483_647;

export const compareExchangeRoutes: readonly Route[] = [
  { kind: "database", method: "GET", path, access: "read", copies: "confirmed", handle: getValues },
  { kind: "database", method: "PUT", path, access: "write", handle: putValue },
  { kind: "database", method: "DELETE", path, access: "write", handle: deleteValue },
];

/** GET cmpxchg?key=…&key=…  |  ?startsWith=…&start=…&pageSize=…  |  neither: all. RavenDB 7.2.7 lists keys in lower case */
async function getValues(exchange: Exchange, { database }: DatabaseContext): Promise<void> {
  const { query } = exchange;
  const { compareExchange } = database;
  const keys = query.all("key");
  if (keys.length > 0) {
    const rows = keys.map((key) => rowOf(key, compareExchange.get(key)));
    const isMissing = keys.length === 1 && compareExchange.get(keys[0] ?? "") === undefined;
    if (isMissing) exchange.reply(404, { "content-type": jsonContentType });
    else exchange.replyJson(200, `{"Results":[${rows.join(",")}]}`);
    return;
  }
  const start = query.int("start", 0);
  const pageSize = query.int("pageSize", int32Max);
  const values = compareExchange.list(query.get("startsWith") ?? "", start, pageSize);
  const reply = new StreamedReply(exchange, 200);
  reply.text.addText('{"Results":[');
  for (const [at, value] of values.entries()) {
    if (at > 0) reply.text.addText(",");
    reply.text.addText(rowOf(lowerCased(value.key), value));
    await reply.flush();
  }
  reply.text.addText("]}");
  await reply.end();
}

/** PUT cmpxchg?key=…&index=…, body `{"Object":…,"@metadata"?:{…}}`: 200, `Successful` is true if it was stored */
async function putValue(exchange: Exchange, { database }: DatabaseContext): Promise<void> {
  const key = requiredText(exchange, "key");
  const expected = requiredIndex(exchange);
  const body = await exchange.body();
  await replyResult(
    exchange,
    database,
    await database.compareExchange.put(key, expected, body, exchange.query.get("raft-request-id")),
  );
}

/** DELETE cmpxchg?key=…&index=…: 200, `Successful` is true if it was deleted */
async function deleteValue(exchange: Exchange, { database }: DatabaseContext): Promise<void> {
  const key = requiredText(exchange, "key");
  const expected = requiredIndex(exchange);
  await replyResult(
    exchange,
    database,
    await database.compareExchange.delete(key, expected, exchange.query.get("raft-request-id")),
  );
}

function rowOf(key: string, value: CompareExchangeValue | undefined): string {
  return `{"Key":${JSON.stringify(key)},"Value":${value?.text ?? "null"},"Index":${value?.index ?? -1}}`;
}

async function replyResult(
  exchange: Exchange,
  database: Database,
  { isSuccessful, index, text }: CompareExchangeResult,
): Promise<void> {
  // Nothing was written. The returned value was read here, and another node may have led by then.
  if (!isSuccessful) await confirmLeading(database);
  exchange.replyJson(200, `{"Index":${index},"Value":${text},"Successful":${isSuccessful}}`);
}

function requiredText({ query }: Exchange, name: string): string {
  const text = query.get(name);
  if (text === undefined || text.trim() === "") {
    throw new EngineError(
      "invalid-argument",
      `Query string ${name} is mandatory, but wasn't specified.`,
    );
  }
  return text;
}

function requiredIndex(exchange: Exchange): number {
  requiredText(exchange, "index");
  return exchange.query.long("index", 0);
}
