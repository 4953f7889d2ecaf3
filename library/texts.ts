/** What a program passes, as the JSON text that the engine takes. */
import { EngineError } from "../engine/engine.ts";

/**
 * The text of a document in a collection; undefined: the one in its metadata.
 * @throws EngineError json-not-object, invalid-argument for a text with a collection
 */
export function textOf(document: object | string, collection: string | undefined): string {
  if (typeof document === "string") {
    if (collection === undefined) return document;
    const message = "The collection of a document given as text is in its '@metadata'.";
    throw new EngineError("invalid-argument", message);
  }
  const text = JSON.stringify(collection === undefined ? document : within(document, collection));
  // A function has no text.
  if (text !== undefined) return text;
  throw new EngineError("json-not-object", "A document is an object.");
}

function within(document: object, collection: string): object {
  const { "@metadata": metadata } = document as { "@metadata"?: object };
  return { ...document, "@metadata": { ...metadata, "@collection": collection } };
}

/** The engine's form of `expected`: "" for a document that must not exist. */
export function expectedText(expected: string | null | undefined): string | undefined {
  return expected === null ? "" : expected;
}

/** The text of an object of parameters or arguments, whose bigints are whole numbers. */
export function membersText(members: Readonly<Record<string, unknown>>): string {
  const texts = Object.entries(members).flatMap(([name, value]) => {
    const text = typeof value === "bigint" ? String(value) : JSON.stringify(value);
    return text === undefined ? [] : [`${JSON.stringify(name)}:${text}`];
  });
  return `{${texts.join(",")}}`;
}
