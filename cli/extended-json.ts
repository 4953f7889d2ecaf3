/**
 * Converts MongoDB extended JSON, as mongoexport writes it, to JSON: `{"$oid":"…"}` becomes a string, and
 * `{"$numberLong":"1"}` a number. Used by the command line and by the studio, so it does not depend on Node.
 *
 * Objects with an unknown type, such as `$ref` of a DBRef, stay objects. Numbers keep their text.
 */
import { jsonMember, jsonMembers, objectText } from "./json-text.ts";

const numberPattern = /^-?(0|[1-9]\d*)(\.\d+)?([eE][+-]?\d+)?$/;

/** Conversions of the JSON text of a value, by the first name of its object. */
const types: Readonly<Record<string, (text: string) => string>> = {
  $oid: unchanged,
  $uuid: unchanged,
  $symbol: unchanged,
  $code: unchanged,
  $numberInt: numberOf,
  $numberLong: numberOf,
  $numberDouble: numberOf,
  $numberDecimal: numberOf,
  $date: dateOf,
  // The old notation is {"$binary":"…","$type":"00"}.
  $binary: (text) => (text.startsWith("{") ? (jsonMember(text, "base64") ?? "null") : text),
  $timestamp: unchanged,
  $regularExpression: (text) => {
    const { pattern = "", options = "" } = JSON.parse(text) as Readonly<Record<string, string>>;
    return JSON.stringify(`/${pattern}/${options}`);
  },
  $undefined: () => "null",
  $minKey: () => "null",
  $maxKey: () => "null",
};

/** Returns a value as JSON. @param text valid JSON */
export function fromExtendedJson(text: string): string {
  if (text.startsWith("[")) {
    return `[${jsonMembers(text)
      .map((element) => fromExtendedJson(element.text))
      .join(",")}]`;
  }
  if (!text.startsWith("{")) return text;
  const members = jsonMembers(text);
  const [first] = members;
  if (first !== undefined && Object.hasOwn(types, first.name)) {
    return types[first.name]?.(first.text) ?? text;
  }
  return objectText(
    members.map(({ name, text: value }) => ({ name, text: fromExtendedJson(value) })),
  );
}

/**
 * Converts a document of MongoDB: an `_id` that is a string or a number is the id instead of a field.
 * @param text a valid JSON object
 */
export function fromMongoDocument(text: string): {
  readonly id: string | undefined;
  readonly text: string;
} {
  const document = fromExtendedJson(text);
  const id = jsonMember(document, "_id") ?? "";
  if (!/^["\d-]/.test(id)) return { id: undefined, text: document };
  const others = jsonMembers(document).filter(({ name }) => name !== "_id");
  // The digits of a number, which may be more than a double has.
  const name = id.startsWith('"') ? (JSON.parse(id) as string) : id;
  return { id: name, text: objectText(others) };
}

function unchanged(text: string): string {
  return text;
}

/** Returns the number in a string; a string such as `"NaN"`, which JSON cannot represent, unchanged. */
function numberOf(text: string): string {
  const number = text.startsWith('"') ? (JSON.parse(text) as string) : text;
  return numberPattern.test(number) ? number : text;
}

/** Returns a time as a string: from a string, or from milliseconds since 1970. */
function dateOf(text: string): string {
  const value = fromExtendedJson(text);
  if (value.startsWith('"')) return value;
  const date = new Date(Number(value));
  return Number.isNaN(date.getTime()) ? value : JSON.stringify(date.toISOString());
}
