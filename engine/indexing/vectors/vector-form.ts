/**
 * Vectors as stored in an index: 32-bit floats, bytes with their scaling magnitude, or bits, and the conversion of
 * values of documents and queries to them. The forms, roundings and messages are RavenDB 7.2.7's (measured).
 *
 *   Single   d floats, little-endian
 *   Int8     d signed bytes, the largest of them 127, then the magnitude as a float
 *   Binary   d bits, the first one highest; 1: the number is not negative
 *
 * A value is a list of numbers, base64 of the source's form, `{"@vector": …}`, or a list of such values.
 */
import { EngineError } from "../../base/errors.ts";
import { vectorBytesMax } from "../../base/limits.ts";

export const embeddingTypes = ["Single", "Int8", "Binary", "Text"] as const;
export type EmbeddingType = (typeof embeddingTypes)[number];
export type StoredType = Exclude<EmbeddingType, "Text">;

/** The form of source vectors and of stored vectors. */
export interface VectorForm {
  readonly source: StoredType;
  readonly stored: StoredType;
}

export const plainForm: VectorForm = { source: "Single", stored: "Single" };

const magnitudeBytes = 4;

/**
 * Returns the vectors of a JSON value; none for null.
 * @throws EngineError json-invalid for a value that is not a vector
 */
export function vectorsOf(value: unknown, form: VectorForm): Buffer[] {
  if (value === null || value === undefined) return [];
  if (typeof value === "string") return [storedOf(givenOf(value, form), form)];
  if (Array.isArray(value)) {
    const [first] = value as unknown[];
    if (first === undefined) throw noVector("BlittableJsonReaderArray");
    const isList =
      typeof first === "string" || Array.isArray(first) || (isObject(first) && first !== null);
    if (!isList) return [storedOf(numbersOf(value, form), form)];
    return value.flatMap((item: unknown) => {
      // Lists are not nested deeper.
      if (Array.isArray(item) && (Array.isArray(item[0]) || isObject(item[0]))) {
        throw noVector("BlittableJsonReaderArray");
      }
      return vectorsOf(item, form);
    });
  }
  if (isObject(value)) {
    const inner = (value as { readonly "@vector"?: unknown })["@vector"];
    if (inner === undefined || (isObject(inner) && inner !== null && !Array.isArray(inner))) {
      throw invalidVector("Cannot find vector property in the object.");
    }
    return vectorsOf(inner, form);
  }
  throw noVector(typeName(value));
}

/** As `vectorsOf`; invalid values are skipped. */
export function acceptedVectors(value: unknown, form: VectorForm): Buffer[] {
  try {
    return vectorsOf(value, form);
  } catch (error) {
    if (error instanceof EngineError && error.code === "json-invalid") return [];
    throw error;
  }
}

/** Dimensions as messages count them: bytes of bits. */
export function dimensionsOf(length: number, stored: StoredType): number {
  if (stored === "Single") return length >>> 2;
  return stored === "Int8" ? Math.max(0, length - magnitudeBytes) : length;
}

function isObject(value: unknown): boolean {
  return typeof value === "object";
}

function typeName(value: unknown): string {
  if (typeof value === "boolean") return "Boolean";
  return Number.isInteger(value) ? "Int64" : "LazyNumberValue";
}

function noVector(type: string): EngineError {
  return invalidVector(`We expected to get vector(s), however got: ${type}`);
}

function invalidVector(message: string): EngineError {
  return new EngineError("json-invalid", message);
}

/** Returns the bytes of base64 text. */
function givenOf(text: string, { source }: VectorForm): Buffer {
  if (!/^[A-Za-z0-9+/]*={0,2}$/.test(text) || text.length % 4 !== 0) {
    const shown = text.length > 64 ? `${text.slice(0, 64)}…` : text;
    throw invalidVector(`Expected array encoded with base64, however got: '${shown}'. `);
  }
  const bytes = Buffer.from(text, "base64");
  checkLength(bytes.length);
  if (source !== "Single") return bytes;
  const whole = bytes.subarray(0, bytes.length & ~3);
  for (let at = 0; at < whole.length; at += 4) {
    if (!Number.isFinite(whole.readFloatLE(at))) throw notFinite();
  }
  return whole;
}

/** Returns the bytes of a list of numbers; true counts as 1, everything else as 0. */
function numbersOf(list: readonly unknown[], { source }: VectorForm): Buffer {
  checkLength(source === "Single" ? list.length * 4 : list.length);
  const numbers = list.map((item) => (typeof item === "number" ? item : item === true ? 1 : 0));
  if (source !== "Single") return Buffer.from(numbers);
  const bytes = Buffer.alloc(numbers.length * 4);
  for (const [i, one] of numbers.entries()) {
    const single = Math.fround(one);
    if (!Number.isFinite(single)) throw notFinite();
    bytes.writeFloatLE(single, i * 4);
  }
  return bytes;
}

function notFinite(): EngineError {
  return invalidVector("A vector has a number that is not finite, or too large for 32 bits.");
}

function checkLength(length: number): void {
  if (length <= vectorBytesMax) return;
  throw invalidVector(`A vector has ${length} bytes; at most ${vectorBytesMax} are allowed.`);
}

function storedOf(given: Buffer, { source, stored }: VectorForm): Buffer {
  if (source !== "Single" || stored === "Single") return given;
  return stored === "Int8" ? scaled(given) : signs(given);
}

function scaled(floats: Buffer): Buffer {
  const count = floats.length >>> 2;
  let magnitude = 0;
  for (let i = 0; i < count; i++) {
    magnitude = Math.max(magnitude, Math.abs(floats.readFloatLE(i * 4)));
  }
  const factor = magnitude === 0 ? 0 : 127 / magnitude;
  const bytes = Buffer.alloc(count + magnitudeBytes);
  for (let i = 0; i < count; i++) {
    const number = floats.readFloatLE(i * 4) * factor;
    // Halves go away from zero.
    bytes.writeInt8(Math.sign(number) * Math.round(Math.abs(number)), i);
  }
  bytes.writeFloatLE(magnitude, count);
  return bytes;
}

function signs(floats: Buffer): Buffer {
  const count = floats.length >>> 2;
  const bytes = Buffer.alloc((count + 7) >>> 3);
  for (let i = 0; i < count; i++) {
    if (floats.readFloatLE(i * 4) < 0) continue;
    bytes[i >>> 3] = (bytes[i >>> 3] as number) | (0x80 >>> (i & 7));
  }
  return bytes;
}
