/**
 * The definition of an automatic index, and relations between two definitions. Plain data; knows nothing of documents,
 * nor of index names (queries/ derives those).
 *
 * Invariants:
 * - Fields are in ordinal order of their names, without duplicates.
 */
import { foldedName } from "../../base/case-folding.ts";
import type { VectorForm } from "../vectors/vector-form.ts";

/** One name of a path, with the number of `[]` after it. */
export interface DefinitionPart {
  readonly name: string;
  readonly arrays: number;
}

/** The fields of a document that shapes are made from: a latitude and a longitude, or well-known text. */
export interface SpatialSource {
  readonly method: "point" | "wkt";
  readonly paths: readonly (readonly DefinitionPart[])[];
}

/** The field of a document that vectors are made from. */
export interface VectorSource {
  readonly path: readonly DefinitionPart[];
  readonly form: VectorForm;
}

export interface DefinitionField {
  /** The name in the index: the path's text. */
  readonly name: string;
  readonly path: readonly DefinitionPart[];
  readonly isQuoted: boolean;
  /** Omitted: it has the values at its path. */
  readonly spatial?: SpatialSource;
  /** Omitted if the field has no vectors. */
  readonly vector?: VectorSource;
  readonly hasSearch: boolean;
  readonly hasExact: boolean;
  readonly hasHighlight: boolean;
  readonly hasSuggest: boolean;
  /**
   * Only the words are indexed: no query has used its values as a whole, which would require the memory of all texts.
   */
  readonly isWordsOnly?: true;
}

/** `isWholeArray`: an array is one key, not one for each element. */
interface DefinitionGroupKey extends DefinitionField {
  readonly isWholeArray: boolean;
}

export type DefinitionAggregate =
  | { readonly kind: "count"; readonly name: "Count" }
  | {
      readonly kind: "sum";
      readonly name: string;
      readonly path: readonly DefinitionPart[];
      readonly isQuoted: boolean;
    };

/** `collection`: `@all_docs` for all. `groupBy` null: a map index. */
export interface IndexDefinition {
  readonly collection: string;
  readonly fields: readonly DefinitionField[];
  readonly groupBy: {
    readonly keys: readonly DefinitionGroupKey[];
    readonly aggregates: readonly DefinitionAggregate[];
  } | null;
}

export const allDocuments = "@all_docs";

/** Returns the name of an index's kind on the wire. */
export function indexType(definition: IndexDefinition): "AutoMap" | "AutoMapReduce" {
  return definition.groupBy === null ? "AutoMap" : "AutoMapReduce";
}

/** Returns whether both have the same collection and group keys, so that they can be merged. */
export function isMergeable(left: IndexDefinition, right: IndexDefinition): boolean {
  if (foldedName(left.collection) !== foldedName(right.collection)) return false;
  const leftKeys = left.groupBy?.keys ?? [];
  const rightKeys = right.groupBy?.keys ?? [];
  if ((left.groupBy === null) !== (right.groupBy === null)) return false;
  if (leftKeys.length !== rightKeys.length) return false;
  return leftKeys.every((key) =>
    rightKeys.some((other) => other.name === key.name && other.isWholeArray === key.isWholeArray),
  );
}

/** Returns whether `existing` can answer every query that needs `needed`. */
export function covers(existing: IndexDefinition, needed: IndexDefinition): boolean {
  if (!isMergeable(existing, needed)) return false;
  const aggregates = new Set((existing.groupBy?.aggregates ?? []).map((one) => one.name));
  if (!(needed.groupBy?.aggregates ?? []).every((one) => aggregates.has(one.name))) return false;
  const keys = existing.groupBy?.keys ?? [];
  const fields = new Map([...existing.fields, ...keys].map((field) => [field.name, field]));
  return [...needed.fields, ...(needed.groupBy?.keys ?? [])].every((field) => {
    const other = fields.get(field.name);
    return other !== undefined && optionsCover(other, field);
  });
}

/**
 * Extends an index with the fields that a query needs; the definitions must be mergeable. A field that the query uses
 * with options retains only those options, as in RavenDB 7.2.7: the result then does not cover `left`. Collection and
 * keys are spelled as in `right`.
 */
export function merged(left: IndexDefinition, right: IndexDefinition): IndexDefinition {
  return {
    collection: right.collection,
    fields: mergedFields(left.fields, right.fields),
    groupBy: mergedGroup(left, right),
  };
}

function mergedGroup(left: IndexDefinition, right: IndexDefinition): IndexDefinition["groupBy"] {
  if (left.groupBy === null || right.groupBy === null) return null;
  const aggregates = new Map<string, DefinitionAggregate>();
  for (const one of [...left.groupBy.aggregates, ...right.groupBy.aggregates]) {
    aggregates.set(one.name, one);
  }
  const others = new Map(left.groupBy.keys.map((key) => [key.name, key]));
  const keys = right.groupBy.keys.map((key) => {
    const other = others.get(key.name);
    return other === undefined || hasOptions(key) ? key : other;
  });
  return { keys, aggregates: sortedByName([...aggregates.values()]) };
}

/** Returns the field with its values as a whole, besides whatever else is kept of it. */
export function withWholeValues(field: DefinitionField): DefinitionField {
  const { isWordsOnly: _, ...whole } = field;
  return whole;
}

function mergedFields(
  left: readonly DefinitionField[],
  right: readonly DefinitionField[],
): DefinitionField[] {
  const byName = new Map<string, DefinitionField>();
  for (const field of [...left, ...right]) {
    const other = byName.get(field.name);
    const kept = other === undefined || hasOptions(field) ? field : other;
    const isWhole = other !== undefined && !(other.isWordsOnly && field.isWordsOnly);
    byName.set(field.name, isWhole ? withWholeValues(kept) : kept);
  }
  return sortedByName([...byName.values()]);
}

/** Ordinal order: by UTF-16 units. */
function sortedByName<Named extends { readonly name: string }>(items: readonly Named[]): Named[] {
  return [...items].sort((a, b) => (a.name < b.name ? -1 : a.name > b.name ? 1 : 0));
}

function optionsCover(field: DefinitionField, needed: DefinitionField): boolean {
  return (
    (field.hasExact || !needed.hasExact) &&
    (field.hasSearch || !needed.hasSearch) &&
    (field.hasHighlight || !needed.hasHighlight) &&
    (field.hasSuggest || !needed.hasSuggest) &&
    (field.isWordsOnly !== true || needed.isWordsOnly === true)
  );
}

function hasOptions(field: DefinitionField): boolean {
  return field.hasExact || field.hasSearch || field.hasHighlight || field.hasSuggest;
}
