/**
 * Compiles the C# texts of an index to scripts, and checks the definition as a whole: all its functions must return the
 * same fields.
 *
 * Invariants:
 * - Errors are reported in RavenDB 7.2.7's own words where it has any, else with line and column.
 */
import { EngineError } from "../../base/errors.ts";
import { isCSharp, type StaticDefinition } from "../definitions/static-definition.ts";
import { type CSharpScript, csharpMap, csharpReduce } from "./csharp-script.ts";

export type { CSharpScript } from "./csharp-script.ts";

interface CSharpTexts {
  readonly maps: readonly CSharpScript[];
  readonly reduce: CSharpScript | null;
  readonly isDynamic: boolean;
  readonly loads: ReadonlySet<string | null>;
}

/** @throws EngineError index-compilation, not-supported */
export function compileCSharp(definition: StaticDefinition): CSharpTexts {
  const { name, additionalSources } = definition;
  const [source] = Object.entries(additionalSources);
  if (source !== undefined) {
    throw mistake(
      name,
      "AdditionalSources",
      source[1],
      `AdditionalSources of C# indexes are not supported ('${source[0]}')`,
    );
  }
  const maps = definition.maps.map((text) => explained(name, "Maps", text, mapOf));
  const reduce =
    definition.reduce === null ? null : explained(name, "Reduce", definition.reduce, csharpReduce);
  requireSameFields(definition, maps, reduce);
  const all = reduce === null ? maps : [...maps, reduce];
  return {
    maps,
    reduce,
    isDynamic: all.some(({ isDynamic }) => isDynamic),
    loads: new Set(all.flatMap(({ loads }) => loads)),
  };
}

function mapOf(text: string): CSharpScript {
  if (isCSharp(text)) return csharpMap(text);
  throw new EngineError(
    "index-compilation",
    "An index map must start its enumeration from 'docs', e.g. 'from item in docs.CollectionName' or " +
      "'docs.CollectionName.Select(...)'. The maps of one index are all C# or all JavaScript.",
  );
}

function mistake(
  name: string,
  property: string | null,
  text: string | null,
  reason: string,
  cause?: unknown,
): EngineError {
  return new EngineError("index-compilation", `Failed to compile index '${name}': ${reason}`, {
    cause,
    details: { IndexDefinitionProperty: property, ProblematicText: text },
  });
}

function explained(
  name: string,
  property: "Maps" | "Reduce",
  text: string,
  work: (text: string) => CSharpScript,
): CSharpScript {
  try {
    return work(text);
  } catch (error) {
    if (!(error instanceof EngineError) || error.code !== "index-compilation") throw error;
    // RavenDB names neither for errors found by its compiler.
    if (error.details?.["line"] !== undefined)
      throw mistake(name, null, null, error.message, error);
    throw mistake(name, property, text, error.message, error);
  }
}

function requireSameFields(
  { name, maps: texts, reduce: reduceText }: StaticDefinition,
  maps: readonly CSharpScript[],
  reduce: CSharpScript | null,
): void {
  const baseline = maps[0]?.names ?? [];
  const others = maps.map((map, i) => ({ names: map.names, property: "Maps", text: texts[i] }));
  if (reduce !== null) {
    others.push({ names: reduce.names, property: "Reduce", text: reduceText ?? "" });
  }
  for (const { names, property, text = "" } of others) {
    const missing = baseline.filter((one) => !names.includes(one));
    const additional = names.filter((one) => !baseline.includes(one));
    if (missing.length === 0 && additional.length === 0) continue;
    const common = baseline.filter((one) => names.includes(one));
    const reason = [
      "Map and Reduce functions of a index must return identical types.",
      `Baseline function\t\t: ${texts[0]}`,
      `Non matching function\t: ${text}`,
      "",
      `Common fields\t\t\t: ${common.join(", ")}`,
      `Missing fields\t\t\t: ${missing.join(", ")}`,
      `Additional fields\t\t: ${additional.join(", ")}`,
    ].join("\r\n");
    throw mistake(name, property, text, reason);
  }
}
