/**
 * Derives the name of an automatic index from its fields and options.
 *
 * Names equal those of RavenDB 7.2.7, because clients show them and applications look indexes up by name:
 * `Auto/Users/ByAgeAndSearch(Name)`, `Auto/Users/ByCountReducedByCity`.
 *
 * Invariants:
 * - Fields are sorted by their names with options, ordinally.
 * - Two definitions with the same name cover the same fields.
 */
import type {
  DefinitionField,
  IndexDefinition,
} from "../../indexing/definitions/index-definition.ts";

/** Characters of a name beyond which the rest is replaced by a hash. */
const nameLengthMax = 256;

/** Returns the name of an automatic index. Pure. Cost: O(length). */
export function automaticIndexName(definition: IndexDefinition): string {
  const isAllDocuments = definition.collection.toLowerCase() === "@all_docs";
  const prefix = `Auto/${isAllDocuments ? "AllDocs" : definition.collection}`;
  const name = prefix + suffixOf(definition);
  if (name.length <= nameLengthMax) return name;
  return `${name.slice(0, nameLengthMax)}...${xxHash64(Buffer.from(name, "utf8"))}`;
}

function suffixOf(definition: IndexDefinition): string {
  if (definition.groupBy === null) {
    const fields = joined(definition.fields.map(wrappedName));
    return fields === "" ? "/ById()" : `/By${fields}`;
  }
  const keys = joined(
    definition.groupBy.keys.map((key) =>
      key.isWholeArray ? `Array(${key.name})` : wrappedName(key),
    ),
  );
  const aggregates = joined(
    definition.groupBy.aggregates.map((aggregate) =>
      aggregate.kind === "sum" && aggregate.isQuoted ? `'${aggregate.name}'` : aggregate.name,
    ),
  );
  return `${aggregates === "" ? "" : `/By${aggregates}`}ReducedBy${keys}`;
}

/** Ordinal order of the names as written: `B` before `Search(A)`. */
function joined(names: string[]): string {
  return names.sort().join("And");
}

/** A field is listed once per option; the field without options is then omitted. */
function wrappedName(field: DefinitionField): string {
  if (field.spatial !== undefined) {
    const paths = field.spatial.paths.map((path) =>
      path.map(({ name, arrays }) => name + "[]".repeat(arrays)).join("."),
    );
    return `Spatial.${field.spatial.method}(${paths.join("|")})`;
  }
  if (field.vector !== undefined) return `V${field.name.slice(1)}`;
  const name = field.isQuoted ? `'${field.name}'` : field.name;
  const names: string[] = [];
  if (field.hasSearch) names.push(`Search(${name})`);
  if (field.hasHighlight) names.push(`Highlight(${name})`);
  if (field.hasExact) names.push(`Exact(${name})`);
  if (field.hasSuggest) names.push(`Suggest(${name})`);
  return names.length === 0 ? name : names.join("And");
}

const mask = 0xffff_ffff_ffff_ffffn;
const prime1 = 0x9e37_79b1_85eb_ca87n;
const prime2 = 0xc2b2_ae3d_27d4_eb4fn;
const prime3 = 0x1656_67b1_9e37_79f9n;
const prime4 = 0x85eb_ca77_c2b2_ae63n;
const prime5 = 0x27d4_eb2f_1656_67c5n;

/**
 * XXHash64 with seed 0, following the public specification.
 *
 * Implemented here because packages compute it asynchronously; names are short.
 */
export function xxHash64(bytes: Buffer): bigint {
  let position = 0;
  let hash: bigint;
  if (bytes.length >= 32) {
    let lanes = [prime1 + prime2, prime2, 0n, -prime1].map((lane) => lane & mask);
    for (; position + 32 <= bytes.length; position += 32) {
      const stripe = position;
      lanes = lanes.map((lane, i) => round(lane, bytes.readBigUInt64LE(stripe + 8 * i)));
    }
    hash = lanes.reduce((sum, lane, i) => sum + rotate(lane, [1n, 7n, 12n, 18n][i] ?? 0n), 0n);
    hash &= mask;
    for (const lane of lanes) hash = ((hash ^ round(0n, lane)) * prime1 + prime4) & mask;
  } else {
    hash = prime5;
  }
  hash = (hash + BigInt(bytes.length)) & mask;
  for (; position + 8 <= bytes.length; position += 8) {
    hash ^= round(0n, bytes.readBigUInt64LE(position));
    hash = (rotate(hash, 27n) * prime1 + prime4) & mask;
  }
  if (position + 4 <= bytes.length) {
    hash ^= (BigInt(bytes.readUInt32LE(position)) * prime1) & mask;
    hash = (rotate(hash, 23n) * prime2 + prime3) & mask;
    position += 4;
  }
  for (; position < bytes.length; position += 1) {
    hash ^= (BigInt(bytes.readUInt8(position)) * prime5) & mask;
    hash = (rotate(hash, 11n) * prime1) & mask;
  }
  hash = ((hash ^ (hash >> 33n)) * prime2) & mask;
  hash = ((hash ^ (hash >> 29n)) * prime3) & mask;
  return hash ^ (hash >> 32n);
}

function round(lane: bigint, input: bigint): bigint {
  return (rotate((lane + input * prime2) & mask, 31n) * prime1) & mask;
}

function rotate(value: bigint, bits: bigint): bigint {
  return ((value << bits) | (value >> (64n - bits))) & mask;
}
