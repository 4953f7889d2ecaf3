/** Small JSON bodies of administrative requests. Documents are read by the engine, not here. */
import { EngineError } from "../engine/errors.ts";

/** The object in `body`. @throws EngineError json-truncated (empty), json-invalid, json-not-object */
export function parseObject(body: Buffer): Record<string, unknown> {
  const text = body.toString("utf8").replace(/^\uFEFF/, "");
  if (text.trim() === "") throw new EngineError("json-truncated", "The request's body is empty.");
  let value: unknown;
  try {
    value = JSON.parse(text);
  } catch (error) {
    throw new EngineError(
      "json-invalid",
      `The request's body is not JSON: ${(error as Error).message}`,
      { cause: error },
    );
  }
  if (typeof value !== "object" || value === null || Array.isArray(value)) {
    throw new EngineError("json-not-object", "The request's body must be a JSON object.");
  }
  return value as Record<string, unknown>;
}
