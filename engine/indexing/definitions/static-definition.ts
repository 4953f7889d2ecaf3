/**
 * A deployed index definition: the texts of its maps and reduce, and the indexing options of its fields. Plain data;
 * the texts are interpreted by their compilers.
 *
 * Invariants:
 * - A definition from `parseStaticDefinition` has a permitted name, at least one map, and known options only.
 */
import { EngineError } from "../../base/errors.ts";
import { indexFieldsMax, indexTextLengthMax } from "../../base/limits.ts";
import { checkIndexName } from "../../base/names.ts";
import type { FieldMode } from "../fields/document-fields.ts";
import type { MapSource } from "../index-program.ts";
import type { IndexLockMode, IndexPriority, StaticIndexType } from "../open-index.ts";
import { isSameOutput, parseReduceOutput, type ReduceOutput } from "../reduce/reduce-output.ts";
import {
  globe,
  type Space,
  spatialStrategies,
  spatialTypes,
  spatialUnits,
} from "../spatial/space.ts";
import { type Analyzer, findAnalyzer, standardAnalyzer } from "../text/analyzer.ts";
import {
  type EmbeddingType,
  embeddingTypes,
  plainForm,
  type VectorForm,
} from "../vectors/vector-form.ts";
import { checkedSettings } from "./index-settings.ts";

/** Characters of an index's name. */
const indexNameLengthMax = 206;
/** Characters of a name in messages. */
const shownNameLength = 64;

export const fieldIndexings = ["No", "Search", "Exact", "Highlighting", "Default"] as const;
const termVectors = [
  "No",
  "Yes",
  "WithPositions",
  "WithOffsets",
  "WithPositionsAndOffsets",
] as const;
export const lockModes = ["Unlock", "LockedIgnore", "LockedError"] as const;
export const priorities = ["Low", "Normal", "High"] as const;
const states = ["Normal", "Disabled", "Idle", "Error"] as const;

export type FieldIndexing = (typeof fieldIndexings)[number];

/** The options of one field; null: not set. */
export interface FieldOptions {
  readonly analyzer: string | null;
  readonly indexing: FieldIndexing | null;
  readonly isStored: boolean | null;
  readonly hasSuggestions: boolean | null;
  readonly termVector: (typeof termVectors)[number] | null;
  /** Of fields with shapes; omitted: RavenDB's defaults. */
  readonly spatial?: Space;
  /** Of fields with vectors. */
  readonly vector?: VectorOptions;
}

/** The options of a field with vectors; null: not set. The numbers of edges and candidates are kept, without effect. */
export interface VectorOptions {
  readonly dimensions: number | null;
  readonly source: EmbeddingType;
  readonly destination: EmbeddingType;
  readonly edges: number | null;
  readonly candidates: number | null;
}

/** The name whose options apply to all fields. */
export const allFields = "__all_fields";

export interface StaticDefinition {
  readonly name: string;
  readonly maps: readonly string[];
  readonly reduce: string | null;
  readonly fields: Readonly<Record<string, FieldOptions>>;
  readonly additionalSources: Readonly<Record<string, string>>;
  readonly configuration: Readonly<Record<string, string>>;
  /** Where reduced objects are stored as documents; null or omitted: nowhere. */
  readonly output?: ReduceOutput | null;
}

/** Returns whether its texts are C#. One C# map is enough: all texts are then parsed as C#. */
export function isCSharpIndex({ maps }: StaticDefinition): boolean {
  return maps.some(isCSharp);
}

/** Returns the index type on the wire, from its language and stages. */
export function typeOfDefinition(definition: StaticDefinition): StaticIndexType {
  const isReduce = definition.reduce !== null;
  if (isCSharpIndex(definition)) return isReduce ? "MapReduce" : "Map";
  return isReduce ? "JavaScriptMapReduce" : "JavaScriptMap";
}

/** The deployment options besides the definition. */
export interface DeploymentOptions {
  readonly lockMode: IndexLockMode;
  readonly priority: IndexPriority;
  readonly isDisabled: boolean;
}

/** Options as sent; null: not set. */
export interface SentOptions {
  readonly lockMode: IndexLockMode | null;
  readonly priority: IndexPriority | null;
  readonly state: (typeof states)[number] | null;
}

type Json = Readonly<Record<string, unknown>>;

/** Returns whether both would produce the same entries. */
export function isSameIndex(left: StaticDefinition, right: StaticDefinition): boolean {
  if (!isSameOutput(left.output ?? null, right.output ?? null)) return false;
  return fingerprint(left) === fingerprint(right);
}

function fingerprint(definition: StaticDefinition): string {
  const sorted = (object: object) => Object.entries(object).sort(([a], [b]) => (a < b ? -1 : 1));
  const fields = sorted(definition.fields).map(([name, options]) => [name, sorted(options)]);
  return JSON.stringify([
    definition.maps,
    definition.reduce,
    fields,
    sorted(definition.additionalSources),
    sorted(definition.configuration),
  ]);
}

/** Returns whether a map is C#: its text begins with a source, after any comments. Any other map is JavaScript. */
export function isCSharp(map: string): boolean {
  const text = map.replace(/^(?:\s+|\/\/[^\n]*\n|\/\*[\s\S]*?\*\/)+/, "");
  return /^(?:from\s|docs\b|(?:[Tt]ime[Ss]eries|[Cc]ounters)\b(?!\s*\.\s*map\s*\())/.test(text);
}

/** Returns the source of an index's maps, from the beginning of their texts; the definition must have been compiled. */
export function sourceOfDefinition({ maps }: StaticDefinition): MapSource {
  const source = /^(?:from\s+\w+\s+in\s+)?\(*\s*(timeSeries|counters)\b/i.exec(
    (maps[0] ?? "").trim(),
  )?.[1];
  if (source === undefined) return "Documents";
  return source.toLowerCase() === "counters" ? "Counters" : "TimeSeries";
}

/** Returns how a field's values become terms; null: not indexed. The field's own options take precedence. */
export function modeOf(definition: StaticDefinition, name: string): FieldMode | null {
  const own = definition.fields[name];
  const all = definition.fields[allFields];
  return modeOfOptions(
    own?.indexing ?? all?.indexing ?? "Default",
    own?.analyzer ?? all?.analyzer ?? null,
  );
}

export function modeOfOptions(indexing: FieldIndexing, analyzer: string | null): FieldMode | null {
  switch (indexing) {
    case "No":
      return null;
    case "Exact":
      return "exact";
    case "Default":
      return analyzer === null ? "lower" : analyzerNamed(analyzer);
    case "Search":
    case "Highlighting":
      return analyzer === null ? standardAnalyzer : analyzerNamed(analyzer);
  }
}

function analyzerNamed(name: string): Analyzer {
  return findAnalyzer(name) ?? standardAnalyzer;
}

/** Returns the space of a field's shapes. The globe has its own bounds. */
export function spaceOf({ fields }: StaticDefinition, name: string): Space {
  const spatial = fields[name]?.spatial ?? fields[allFields]?.spatial ?? globe;
  if (spatial.type === "Cartesian") return spatial;
  const { minX, minY, maxX, maxY } = globe;
  return { ...spatial, minX, minY, maxX, maxY };
}

/** Returns the form of a field's vectors. Only floats are converted. */
export function vectorFormOf({ fields }: StaticDefinition, name: string): VectorForm {
  const vector = fields[name]?.vector ?? fields[allFields]?.vector;
  if (vector === undefined) return plainForm;
  const { source, destination } = vector;
  if (source === "Text" || destination === "Text") return plainForm; // not deployable
  return { source, stored: source === "Single" ? destination : source };
}

export function isStored(definition: StaticDefinition, name: string): boolean {
  const { fields } = definition;
  return fields[name]?.isStored ?? fields[allFields]?.isStored ?? false;
}

export function hasSuggestions({ fields }: StaticDefinition, name: string): boolean {
  return fields[name]?.hasSuggestions ?? fields[allFields]?.hasSuggestions ?? false;
}

/**
 * Parses a definition as clients send it.
 * @throws EngineError invalid-argument, invalid-format, index-compilation, index-invalid, not-supported
 */
export function parseStaticDefinition(json: Json): StaticDefinition {
  const name = nameOf(json["Name"]);
  for (const [key, isList] of Object.entries(nestedMembers)) requireNested(json[key], isList);
  for (const [key, words] of Object.entries(unusedOptions))
    optionOf(json[key], words, `Index${key}`);
  refuseUnsupported(name, json);
  const definition: StaticDefinition = {
    name,
    maps: mapsOf(json["Maps"]),
    reduce: textOrNull(json["Reduce"]),
    fields: fieldsOf(name, json["Fields"]),
    additionalSources: textsOf(json["AdditionalSources"]),
    configuration: checkedSettings(name, textsOf(json["Configuration"])),
    output: parseReduceOutput(json),
  };
  const length = [...definition.maps, definition.reduce ?? ""].reduce(
    (sum, text) => sum + text.length,
    Object.values(definition.additionalSources).reduce((sum, text) => sum + text.length, 0),
  );
  if (length > indexTextLengthMax) {
    throw new EngineError(
      "too-large",
      `The texts of index '${name}' have ${length} characters; at most ${indexTextLengthMax} are allowed.`,
    );
  }
  return definition;
}

/** @throws EngineError invalid-format */
export function parseSentOptions(json: Json): SentOptions {
  return {
    lockMode: optionOf(json["LockMode"], lockModes, "IndexLockMode"),
    priority: optionOf(json["Priority"], priorities, "IndexPriority"),
    state: optionOf(json["State"], states, "IndexState"),
  };
}

/** @throws EngineError invalid-format */
export function parseDeploymentOptions(json: Json): DeploymentOptions {
  const { lockMode, priority, state } = parseSentOptions(json);
  return {
    lockMode: lockMode ?? "Unlock",
    priority: priority ?? "Normal",
    isDisabled: state === "Disabled",
  };
}

function nameOf(value: unknown): string {
  const name = typeof value === "string" ? value.trim() : "";
  checkStaticIndexName(name);
  return name;
}

/** @throws EngineError invalid-argument */
export function checkStaticIndexName(name: string): void {
  if (name === "") {
    throw new EngineError("invalid-argument", "Index name cannot be empty!");
  }
  if (/^Auto\//i.test(name)) {
    throw new EngineError(
      "invalid-argument",
      `Index name '${name}' is not permitted. Static index name cannot start with 'Auto/'`,
    );
  }
  if (/[^\p{L}\p{N}_\-./]/u.test(name)) {
    throw new EngineError(
      "invalid-argument",
      `Index name '${name}' is not permitted. Only letters, digits and characters ('_', '-', '.', '/') are allowed.`,
    );
  }
  if (/^\.+$/.test(name)) {
    throw new EngineError(
      "invalid-argument",
      `Index name '${name}' is not permitted. If a name contains '.' character then it must be surrounded by other allowed characters.`,
    );
  }
  if (name.includes("//")) {
    throw new EngineError(
      "invalid-argument",
      `Index name '${name}' is not permitted. Index name cannot contain // (double slashes)`,
    );
  }
  if (name.length > indexNameLengthMax) {
    throw new EngineError(
      "invalid-argument",
      `Index name '${name.slice(0, shownNameLength)}…' is not permitted. Index name cannot exceed ${indexNameLengthMax} characters.`,
    );
  }
  checkIndexName(name);
}

function mapsOf(value: unknown): string[] {
  if (value !== undefined && value !== null && !Array.isArray(value)) {
    throw unconvertible(value, "BlittableJsonReaderArray");
  }
  const maps = value ?? [];
  if (maps.length === 0) {
    throw new EngineError("invalid-argument", "Index must have a 'Maps' fields");
  }
  return maps.map((map) => {
    if (typeof map === "string" && map.trim() !== "") return map;
    throw new EngineError(
      "invalid-argument",
      "Value cannot be null or whitespace. (Parameter 'map')",
    );
  });
}

/** Refuses unsupported features instead of ignoring them. */
function refuseUnsupported(name: string, json: Json): void {
  const compound = json["CompoundFields"];
  if (Array.isArray(compound) && compound.length > 0) {
    throw new EngineError("not-supported", `Index '${name}': CompoundFields are not supported.`);
  }
  const assemblies = json["AdditionalAssemblies"];
  if (Array.isArray(assemblies) && assemblies.length > 0) throw notLoaded(name, assemblies[0]);
}

/** Returns RavenDB's error for an assembly that is not found: no assembly can be loaded here. */
function notLoaded(name: string, assembly: Json | null): EngineError {
  const text = (member: string) => {
    const value = assembly?.[member];
    return typeof value === "string" ? value : undefined;
  };
  const reason = "this server runs no .NET code.";
  const [file, path, nuGet] = [text("AssemblyName"), text("AssemblyPath"), text("PackageName")];
  let complaint = "AdditionalAssemblies are not supported:";
  if (file !== undefined) {
    complaint = `Cannot load assembly '${file}'. Could not load file or assembly '${file}':`;
  } else if (path !== undefined) {
    complaint = `Cannot load assembly from path '${path}':`;
  } else if (nuGet !== undefined) {
    const source = text("PackageSourceUrl");
    const from = source === undefined ? "" : ` from '${source}'`;
    complaint = `Cannot load NuGet package '${nuGet}' version '${text("PackageVersion") ?? ""}'${from}:`;
  }
  return new EngineError(
    "index-compilation",
    `Failed to compile index '${name}': ${complaint} ${reason}`,
  );
}

function fieldsOf(index: string, value: unknown): Record<string, FieldOptions> {
  if (value === undefined || value === null) return {};
  if (typeof value !== "object" || Array.isArray(value)) {
    throw unconvertible(value, "BlittableJsonReaderObject");
  }
  const names = Object.keys(value);
  if (names.length > indexFieldsMax) {
    throw new EngineError("too-large", `Index '${index}' has more than ${indexFieldsMax} fields.`);
  }
  const set = Object.entries(value).filter(([, options]) => options !== null);
  const entries = set.map(([name, options]) => [name, fieldOptions(index, name, options as Json)]);
  return Object.fromEntries(entries) as Record<string, FieldOptions>;
}

function fieldOptions(index: string, field: string, json: Json): FieldOptions {
  if (typeof json !== "object") throw unconvertible(json, "IndexFieldOptions");
  if (Array.isArray(json)) {
    throw new EngineError(
      "invalid-argument",
      `Not supported BlittableJsonReaderArray, property name: ${field}`,
    );
  }
  requireNested(json["Vector"], false);
  requireNested(json["Spatial"], false);
  const vector = (json["Vector"] ?? null) as Json | null;
  const spatial = (json["Spatial"] ?? null) as Json | null;
  const analyzer = textOrNull(json["Analyzer"]);
  if (analyzer !== null && findAnalyzer(analyzer) === undefined) {
    throw new EngineError(
      "index-compilation",
      `Failed to compile index '${index}': Cannot find analyzer type '${analyzer}' for field: ${field}`,
    );
  }
  const storage = optionOf(json["Storage"], ["Yes", "No"], "FieldStorage");
  return {
    analyzer,
    indexing: optionOf(json["Indexing"], fieldIndexings, "FieldIndexing"),
    isStored: storage === null ? null : storage === "Yes",
    hasSuggestions: booleanOf(json["Suggestions"]),
    termVector: optionOf(json["TermVector"], termVectors, "FieldTermVector"),
    ...(spatial === null ? {} : { spatial: spatialOptions(index, field, spatial) }),
    ...(vector === null ? {} : { vector: vectorOptions(index, field, vector) }),
  };
}

/** @throws EngineError invalid-format, not-supported */
function vectorOptions(index: string, field: string, json: Json): VectorOptions {
  const numberOf = (name: string) => {
    const number = Number(json[name] ?? Number.NaN);
    return Number.isSafeInteger(number) ? number : null;
  };
  const type = "Vector.VectorEmbeddingType";
  const source = optionOf(json["SourceEmbeddingType"], embeddingTypes, type) ?? "Single";
  const destination = optionOf(json["DestinationEmbeddingType"], embeddingTypes, type) ?? "Single";
  if (source === "Text" || destination === "Text") {
    throw new EngineError(
      "not-supported",
      `Index '${index}', field '${field}': this server has no model that makes embeddings of text. Store the embeddings in ` +
        "documents, and index those.",
    );
  }
  return {
    dimensions: numberOf("Dimensions"),
    source,
    destination,
    edges: numberOf("NumberOfEdges"),
    candidates: numberOf("NumberOfCandidatesForIndexing"),
  };
}

/** @throws EngineError invalid-format, invalid-argument */
function spatialOptions(index: string, field: string, json: Json): Space {
  const numberOf = (name: string, fallback: number) =>
    typeof json[name] === "number" ? json[name] : fallback;
  const space: Space = {
    type: optionOf(json["Type"], spatialTypes, "Spatial.SpatialFieldType") ?? globe.type,
    maxTreeLevel: numberOf("MaxTreeLevel", globe.maxTreeLevel),
    maxX: numberOf("MaxX", globe.maxX),
    maxY: numberOf("MaxY", globe.maxY),
    minX: numberOf("MinX", globe.minX),
    minY: numberOf("MinY", globe.minY),
    strategy:
      optionOf(json["Strategy"], spatialStrategies, "Spatial.SpatialSearchStrategy") ??
      globe.strategy,
    units: optionOf(json["Units"], spatialUnits, "Spatial.SpatialUnits") ?? globe.units,
  };
  if (space.minX < space.maxX && space.minY < space.maxY) return space;
  throw new EngineError(
    "invalid-argument",
    `Index '${index}', field '${field}': the bounds of Spatial are empty.`,
  );
}

/** The members that are objects or, if true, lists. */
const nestedMembers = {
  AdditionalAssemblies: true,
  CompoundFields: true,
  AdditionalSources: false,
  Configuration: false,
} as const;

/** @throws EngineError invalid-format */
function requireNested(value: unknown, isList: boolean): void {
  if (value === undefined || value === null) return;
  if (typeof value === "object" && Array.isArray(value) === isList) return;
  throw unconvertible(value, isList ? "BlittableJsonReaderArray" : "BlittableJsonReaderObject");
}

/** Options without effect here, whose values are checked. */
const unusedOptions = {
  Type: [
    ...["None", "AutoMap", "AutoMapReduce", "Map", "MapReduce", "Faulty"],
    ...["JavaScriptMap", "JavaScriptMapReduce"],
  ],
  SourceType: ["None", "Documents", "TimeSeries", "Counters"],
  DeploymentMode: ["Parallel", "Rolling"],
  ArchivedDataProcessingBehavior: ["ExcludeArchived", "IncludeArchived", "ArchivedOnly"],
} as const;

function unconvertible(value: unknown, type: string): EngineError {
  const shown = typeof value === "string" ? value : JSON.stringify(value);
  return new EngineError("invalid-format", `Could not convert '${shown}' to ${type}`);
}

/** Null when not set. @throws EngineError invalid-format */
function booleanOf(value: unknown): boolean | null {
  if (value === undefined || value === null || typeof value === "boolean") return value ?? null;
  if (typeof value === "number") return value !== 0;
  const lower = String(value).toLowerCase();
  if (lower !== "true" && lower !== "false") throw unconvertible(value, "System.Boolean");
  return lower === "true";
}

function textOrNull(value: unknown): string | null {
  return typeof value === "string" && value.trim() !== "" ? value : null;
}

function textsOf(value: unknown): Record<string, string> {
  if (typeof value !== "object" || value === null) return {};
  const texts = Object.entries(value).filter(([, text]) => text !== null);
  return Object.fromEntries(texts.map(([name, text]) => [name, String(text)]));
}

/** One of the allowed words, null when not set. @throws EngineError invalid-format */
function optionOf<Option extends string>(
  value: unknown,
  allowed: readonly Option[],
  type: string,
): Option | null {
  if (value === undefined || value === null) return null;
  const found = allowed.find((option) => option === value);
  if (found !== undefined) return found;
  throw new EngineError(
    "invalid-format",
    `Could not convert Sparrow.Json.LazyStringValue ('${String(value)}') to Raven.Client.Documents.Indexes.${type}`,
  );
}
