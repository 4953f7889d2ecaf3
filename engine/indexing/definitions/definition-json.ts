/**
 * The definition of an index in the JSON form of the HTTP interface, for replies, database records and dumps. Keys are
 * in the order of RavenDB 7.2.7.
 */
import type { JsonObject } from "../../base/json/json-object.ts";
import { AutomaticIndex } from "../automatic-index.ts";
import type { MapSource } from "../index-program.ts";
import type { OpenIndex } from "../open-index.ts";
import { globe, type Space } from "../spatial/space.ts";
import { StaticIndex } from "../static-index.ts";
import type { VectorForm } from "../vectors/vector-form.ts";
import type { DefinitionField, IndexDefinition } from "./index-definition.ts";
import {
  type FieldOptions,
  type SentOptions,
  type StaticDefinition,
  sourceOfDefinition,
  typeOfDefinition,
  type VectorOptions,
} from "./static-definition.ts";

/** Returns a definition, with unset options as `null`. */
export function definitionJson(index: OpenIndex): JsonObject {
  const { type, source, lockMode, priority, state } = index.statistics();
  const texts = textsOf(index);
  const output = index instanceof StaticIndex ? (index.definition.output ?? null) : null;
  return {
    Name: index.name,
    SourceType: source,
    Type: type,
    LockMode: lockMode,
    ArchivedDataProcessingBehavior: archivedBehaviorOf(source),
    SchemaDefinitions: null,
    Priority: priority,
    // State changes after the deployment are not part of the definition.
    State: index.isStatic ? "Normal" : state,
    OutputReduceToCollection: output?.collection ?? null,
    DeploymentMode: null,
    ReduceOutputIndex: output?.number ?? null,
    PatternForOutputReduceToCollectionReferences: output?.pattern ?? null,
    PatternReferencesCollectionName: output?.references ?? null,
    Configuration: texts.configuration,
    AdditionalSources: texts.additionalSources,
    AdditionalAssemblies: [],
    Reduce: texts.reduce,
    Maps: texts.maps,
    Fields: texts.fields,
  };
}

/** Returns how an index handles archived documents; indexes over documents have no such setting. */
function archivedBehaviorOf(source: MapSource): string | null {
  return source === "Documents" ? null : "IncludeArchived";
}

/**
 * Returns a definition as in a database record: with the options as sent. `commandIndex`: index of the command that
 * deployed it.
 */
export function recordedDefinitionJson(
  definition: StaticDefinition,
  options: SentOptions,
  commandIndex: number,
): JsonObject {
  const source = sourceOfDefinition(definition);
  const { output = null } = definition;
  return {
    ClusterState: { LastIndex: commandIndex, LastStateIndex: 0, LastRollingDeploymentIndex: 0 },
    LockMode: options.lockMode,
    AdditionalSources: definition.additionalSources,
    CompoundFields: [],
    AdditionalAssemblies: [],
    Maps: definition.maps,
    Reduce: definition.reduce,
    Fields: fieldsJson(definition),
    Configuration: definition.configuration,
    SchemaDefinitions: null,
    SourceType: source,
    ArchivedDataProcessingBehavior: archivedBehaviorOf(source),
    Type: typeOfDefinition(definition),
    OutputReduceToCollection: output?.collection ?? null,
    ReduceOutputIndex: output?.number ?? null,
    PatternForOutputReduceToCollectionReferences: output?.pattern ?? null,
    PatternReferencesCollectionName: output?.references ?? null,
    DeploymentMode: null,
    Name: definition.name,
    Priority: options.priority,
    State: options.state,
  };
}

interface DefinitionTexts {
  readonly maps: readonly string[];
  readonly reduce: string | null;
  readonly fields: object;
  readonly configuration: object;
  readonly additionalSources: object;
}

function textsOf(index: OpenIndex): DefinitionTexts {
  if (index instanceof StaticIndex) {
    return { ...index.definition, fields: fieldsJson(index.definition) };
  }
  const definition = index instanceof AutomaticIndex ? index.definition : emptyDefinition;
  const { groupBy } = definition;
  const fields = groupBy === null ? definition.fields : groupBy.keys;
  const sums = (groupBy?.aggregates ?? []).map(({ name }) => [name, plainRow("Default")]);
  return {
    maps: [mapText(definition)],
    reduce: groupBy === null ? null : reduceText(definition.collection, groupBy.keys),
    fields: Object.fromEntries([...sums, ...byName(fields).flatMap(fieldRow)].sort(isAnalyzed)),
    configuration: {},
    additionalSources: {},
  };
}

function fieldsJson({ fields }: StaticDefinition): object {
  const rows = Object.entries(fields).map(([name, options]) => [name, optionsRow(options)]);
  return Object.fromEntries(rows) as object;
}

const emptyDefinition: IndexDefinition = { collection: "", fields: [], groupBy: null };

function mapText({ collection, fields, groupBy }: IndexDefinition): string {
  const names =
    groupBy === null
      ? byName(fields).map(({ name }) => name)
      : byName(groupBy.aggregates).map(
          ({ name, kind }) => `${name}#Operation:${kind === "count" ? "Count" : "Sum"}`,
        );
  return `${collection}:[${names.map((name) => `<Name:${name}>`).join(";")}]`;
}

function reduceText(collection: string, keys: readonly { readonly name: string }[]): string {
  const names = byName(keys).map(({ name }) => `<Name:${name}>`);
  return `${collection}:[${names.join(";")}]`;
}

function byName<Row extends { readonly name: string }>(rows: readonly Row[]): Row[] {
  return rows.toSorted((a, b) => (a.name < b.name ? -1 : 1));
}

/** Returns the forms of a field for search() and exact() are sorted after all others. */
function isAnalyzed([left]: readonly unknown[], [right]: readonly unknown[]): number {
  const rank = (name: unknown) =>
    /^exact\(/.test(String(name)) ? 1 : /^search\(/.test(String(name)) ? 2 : 0;
  return rank(left) - rank(right);
}

function fieldRow(field: DefinitionField): [string, object][] {
  const rows: [string, object][] = [[field.name, plainRow("Default", field)]];
  if (field.hasExact) rows.push([`exact(${field.name})`, plainRow("Exact")]);
  if (field.hasSearch) rows.push([`search(${field.name})`, plainRow("Search")]);
  return rows;
}

function plainRow(indexing: string, options: Partial<DefinitionField> = {}): object {
  const { hasSuggest = false, hasHighlight = false, spatial, vector } = options;
  return {
    Analyzer: null,
    Indexing: indexing,
    Storage: "No",
    Suggestions: hasSuggest,
    TermVector: hasHighlight ? "WithPositionsAndOffsets" : "No",
    Spatial: spatial === undefined ? null : spatialRow(globe),
    Vector: vector === undefined ? null : formRow(vector.form),
  };
}

function optionsRow(options: FieldOptions): object {
  const { isStored } = options;
  return {
    Analyzer: options.analyzer,
    Indexing: options.indexing,
    Storage: isStored === null ? null : isStored ? "Yes" : "No",
    Suggestions: options.hasSuggestions,
    TermVector: options.termVector,
    Spatial: options.spatial === undefined ? null : spatialRow(options.spatial),
    Vector: options.vector === undefined ? null : vectorRow(options.vector),
  };
}

function formRow({ source, stored }: VectorForm): object {
  return vectorRow({
    dimensions: null,
    source,
    destination: stored,
    edges: null,
    candidates: null,
  });
}

/** RavenDB 7.2.7 reports the last two as texts. */
function vectorRow(options: VectorOptions): object {
  const textOf = (number: number | null) => (number === null ? null : String(number));
  return {
    Dimensions: options.dimensions,
    SourceEmbeddingType: options.source,
    DestinationEmbeddingType: options.destination,
    NumberOfEdges: textOf(options.edges),
    NumberOfCandidatesForIndexing: textOf(options.candidates),
  };
}

function spatialRow(space: Space): object {
  return {
    Type: space.type,
    MaxTreeLevel: space.maxTreeLevel,
    MaxX: space.maxX,
    MaxY: space.maxY,
    MinX: space.minX,
    MinY: space.minY,
    Strategy: space.strategy,
    Units: space.units,
  };
}

/** Returns a definition whose fields use only this server's default analyzers. */
export function withoutAnalyzers(definition: JsonObject): JsonObject {
  const fields = Object.entries((definition["Fields"] ?? {}) as Record<string, object>);
  const rows = fields.map(([name, options]) => [name, { ...options, Analyzer: null }]);
  return { ...definition, Fields: Object.fromEntries(rows) as object };
}
