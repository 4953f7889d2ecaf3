/**
 * Request bodies that are JSON objects, regardless of Content-Type. Parsed strictly; errors are those of documents
 * (engine/state/documents/document-parser.ts).
 */
import { checkedJson, checkJson } from "../../engine/engine.ts";
import type { Exchange } from "./exchange.ts";

export type JsonObject = Record<string, unknown>;

/** Parses the body. @throws EngineError json-truncated when it is empty, json-invalid, json-not-object */
export async function jsonBody(exchange: Exchange): Promise<JsonObject> {
  return parseObject(await exchange.jsonBytes());
}

/**
 * Parses the body; also returns its minified text, which keeps the spelling of numbers. @throws EngineError as
 * `jsonBody`
 */
export async function jsonBodyWithText(
  exchange: Exchange,
): Promise<{ readonly object: JsonObject; readonly text: Buffer }> {
  const bytes = await exchange.jsonBytes();
  const text = checkedJson(bytes);
  return { object: parsed(bytes), text };
}

/** Parses `body`. @throws EngineError as `jsonBody` */
export function parseObject(body: Buffer): JsonObject {
  checkJson(body);
  return parsed(body);
}

function parsed(body: Buffer): JsonObject {
  return JSON.parse(body.toString("utf8").replace(/^\uFEFF/, "")) as JsonObject;
}
