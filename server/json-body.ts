/**
 * Bodies of requests that are JSON objects. Parsed strictly, whatever the Content-Type says; errors are those of
 * documents (engine/json/json-parser.ts).
 */
import { DocumentParser } from "../engine/json/json-parser.ts";
import type { Exchange } from "./exchange.ts";

export type JsonObject = Record<string, unknown>;

const parser = new DocumentParser(null);

/** The body as an object. @throws EngineError json-truncated when it is empty, json-invalid, json-not-object */
export async function jsonBody(exchange: Exchange): Promise<JsonObject> {
  return parseJsonObject(await exchange.body());
}

/** @throws EngineError as `jsonBody` */
export function parseJsonObject(bytes: Buffer): JsonObject {
  parser.parse(bytes, 0, bytes.length);
  return JSON.parse(bytes.toString("utf8")) as JsonObject;
}
