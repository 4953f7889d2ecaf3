/** Encodes arguments of the program as the JSON text that the engine accepts. */
import { EngineError } from "../engine/engine.ts";

/**
 * Returns the text of a document with the given collection, or with the collection in its metadata.
 * @throws EngineError json-not-object, invalid-argument for a text with a collection
 */
export function textOf(document: object | string, collection: string | undefined): string {
  if (typeof document === "string") {
    if (collection === undefined) return document;
    const message = "A document given as text must name its collection in '@metadata'.";
    throw new EngineError("invalid-argument", message);
  }
  const text = JSON.stringify(collection === undefined ? document : within(document, collection));
  // A function has no JSON text.
  if (text !== undefined) return text;
  throw new EngineError("json-not-object", "A document must be an object.");
}

function within(document: object, collection: string): object {
  const { "@metadata": metadata } = document as { "@metadata"?: object };
  return { ...document, "@metadata": { ...metadata, "@collection": collection } };
}

/** Converts `expected` for the engine: "" for a document that must not exist. */
export function expectedText(expected: string | null | undefined): string | undefined {
  return expected === null ? "" : expected;
}

/** Returns the JSON text of parameters or arguments; bigints become integers. */
export function membersText(members: Readonly<Record<string, unknown>>): string {
  const texts = Object.entries(members).flatMap(([name, value]) => {
    const text = typeof value === "bigint" ? String(value) : JSON.stringify(value);
    return text === undefined ? [] : [`${JSON.stringify(name)}:${text}`];
  });
  return `{${texts.join(",")}}`;
}
