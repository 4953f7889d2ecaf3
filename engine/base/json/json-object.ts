/** A JSON object as a JavaScript object of unknown content. */
export type JsonObject = Readonly<Record<string, unknown>>;

/** Returns whether the value is a JSON object: neither null nor an array. */
export function isObject(value: unknown): value is JsonObject {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}
