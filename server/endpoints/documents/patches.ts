/**
 * Patches of one document, by a script (`PATCH docs?id=…`) or by JSON Patch (`PATCH json-patch?id=…`). Replies are
 * those of RavenDB 7.2.7.
 */
import { assert } from "../../../engine/base/assert.ts";
import { quoteString } from "../../../engine/base/json/escape.ts";
import { findMember, skipValue, ValueSpan } from "../../../engine/base/json/field-access.ts";
import { readTree } from "../../../engine/base/json/text-tree.ts";
import { formatTimestamp, neverText } from "../../../engine/base/timestamp.ts";
import { EngineError, type PatchResult, type PatchScript } from "../../../engine/engine.ts";
import { expectedVector } from "../../http/conditional.ts";
import type { Exchange } from "../../http/exchange.ts";
import { type JsonObject, jsonBodyWithText } from "../../http/json-body.ts";
import { jsonContentType } from "../../http/response.ts";
import type { DatabaseContext, Route } from "../../routing/route.ts";

export const patchRoutes: readonly Route[] = [
  {
    kind: "database",
    method: "PATCH",
    path: "/databases/:database/docs",
    access: "write",
    handle: patchOne,
  },
  {
    kind: "database",
    method: "PATCH",
    path: "/databases/:database/json-patch",
    access: "write",
    handle: patchOneByJson,
  },
];

/** PATCH docs?id=…[&test][&debug][&skipPatchIfChangeVectorMismatch], If-Match: changes one document by a script */
async function patchOne(exchange: Exchange, { database }: DatabaseContext): Promise<void> {
  const { query } = exchange;
  const id = query.required("id");
  const isTest = query.bool("test", false);
  const isDebug = query.bool("debug", false) || isTest;
  const skipsMismatch = query.bool("skipPatchIfChangeVectorMismatch", false);
  const expectedChangeVector = expectedVector(exchange);
  const { object: body, text } = await jsonBodyWithText(exchange);
  const patch = patchScriptOf(body, text, "Patch");
  if (patch === undefined) {
    throw new EngineError("invalid-argument", "The 'Patch' field in the body request is mandatory");
  }
  const ifMissing = patchScriptOf(body, text, "PatchIfMissing");
  const create = body["CreateIfMissing"];
  const createIfMissing = isObject(create) ? JSON.stringify(create) : undefined;
  const result = await database.patches.run(
    { id, patch, ifMissing, createIfMissing, expectedChangeVector, skipsMismatch },
    isTest,
  );
  const headers = { "content-type": jsonContentType };
  if (result.status === "DocumentDoesNotExist") exchange.reply(404, headers);
  else if (result.status === "Skipped") exchange.reply(304, headers);
  else {
    const status = result.status === "Created" ? 201 : 200;
    exchange.replyJson(status, replyText(result, isDebug, isTest));
  }
}

/** PATCH json-patch?id=…, body `{"Operations":[…]}`, If-Match: changes one document by operations of RFC 6902 */
async function patchOneByJson(exchange: Exchange, { database }: DatabaseContext): Promise<void> {
  const id = exchange.query.required("id");
  const expected = expectedVector(exchange);
  const { text } = await jsonBodyWithText(exchange);
  const request = readTree(text, 0);
  const operations = request instanceof Map ? request.get("Operations") : undefined;
  const result = await database.patches.runJson(id, operations, expected);
  const { status, modified, lastModified, changeVector, collection } = result;
  if (status === "DocumentDoesNotExist") {
    throw new EngineError(
      "document-missing",
      `Cannot apply json patch because the document ${id} does not exist`,
    );
  }
  if (status === "NotModified") {
    exchange.replyJson(200, '{"Status":"NotModified"}');
    return;
  }
  exchange.replyJson(
    200,
    `{"Status":"Patched","ModifiedDocument":${modified},"LastModified":"${formatTimestamp(lastModified)}","ChangeVector":${JSON.stringify(changeVector)},"Collection":${JSON.stringify(collection)}}`,
  );
}

function replyText(result: PatchResult, isDebug: boolean, isTest: boolean): string {
  let text = `{"Status":"${result.status}","ModifiedDocument":${result.modified}`;
  if (isDebug) {
    const original = isTest ? result.original : null;
    const output = JSON.stringify(result.actions?.output ?? []);
    text += `,"OriginalDocument":${original},"Debug":{"Info":${output},"Actions":${result.actions?.text ?? "{}"}}`;
  }
  if (result.status === "NotModified") return `${text}}`;
  // RavenDB 7.2.7 reports what a test would have written only when the script wrote other documents.
  const { puts, deletes } = result.actions ?? { puts: [], deletes: [] };
  if (isTest && (result.status === "Created" || puts.length + deletes.length === 0)) {
    return `${text},"LastModified":"${neverText}","ChangeVector":null,"Collection":null}`;
  }
  return `${text},"LastModified":"${formatTimestamp(result.lastModified)}","ChangeVector":${JSON.stringify(result.changeVector)},"Collection":${JSON.stringify(result.collection)}}`;
}

/** Parses `{"Script":…,"Values":…}`; undefined when it is missing. @throws EngineError json-invalid without a script */
function patchScriptOf(body: JsonObject, text: Buffer, name: string): PatchScript | undefined {
  const value = body[name];
  if (value === undefined || value === null) return undefined;
  if (!isObject(value)) throw new EngineError("invalid-format", `'${name}' must be an object`);
  const script = value["Script"];
  if (typeof script !== "string") {
    throw new EngineError("json-invalid", `Missing 'Script' property on '${name}'`);
  }
  const values = value["Values"];
  if (values !== undefined && values !== null && !isObject(values)) {
    throw new EngineError("invalid-format", `'Values' of '${name}' must be an object`);
  }
  return { script, values: isObject(values) ? memberText(text, [name, "Values"]) : "{}" };
}

/** The text of an existing nested member. */
function memberText(text: Buffer, path: readonly string[]): string {
  const span = new ValueSpan();
  let at = 0;
  for (const name of path) {
    assert(findMember(text, at, quoteString(name), span), "the parsed object has the member");
    at = span.from;
  }
  return text.toString("utf8", at, skipValue(text, at));
}

function isObject(value: unknown): value is JsonObject {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}
