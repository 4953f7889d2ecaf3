/** Generates classes of C# for documents and indexes, for RavenDB's Studio, in the shapes of RavenDB 7.2.7. */
import type { JsonObject } from "../http/json-body.ts";

interface ClrClass {
  readonly name: string;
  /** Type by property, sorted by name. */
  readonly properties: readonly (readonly [name: string, type: string])[];
}

/** Returns the classes of documents, each after the classes that it contains. */
export function documentClasses(space: string, examples: ReadonlyMap<string, JsonObject>): string {
  const known: ClrClass[] = [];
  for (const [name, document] of examples) {
    const { "@metadata": _, ...members } = document;
    addClass(name, members, known);
  }
  // RavenDB 7.2.7 ends only the lines around the classes as Windows does.
  return `${[...usings, "", `namespace ${space}`, "{", known.map(classText).join("\n\n")].join("\r\n")}\r\n}`;
}

/** Derives the class name: `Orders` becomes `Order`; documents of .NET programs contain the class name. */
export function classNameOf(metadata: JsonObject): {
  readonly space: string;
  readonly name: string;
} {
  const clrType = metadata["Raven-Clr-Type"];
  const parts = typeof clrType === "string" ? (clrType.split(",")[0] as string).split(".") : [];
  const name = parts.pop();
  if (name !== undefined && name !== "") return { space: parts.join(".") || defaultSpace, name };
  const collection = metadata["@collection"];
  return {
    space: defaultSpace,
    name: typeof collection === "string" ? singular(collection) : "Item",
  };
}

const defaultSpace = "My.RavenDB";

const usings = [
  "using System;",
  "using System.Collections.Generic;",
  "using System.Linq;",
  "using System.Text;",
  "using System.Threading.Tasks;",
];

export function singular(collection: string): string {
  if (/ies$/i.test(collection)) return collection.replace(/ies$/i, "y");
  if (/(x|ss|ch|sh)es$/i.test(collection)) return collection.slice(0, -2);
  return collection.replace(/([^s])s$/i, "$1");
}

/** Adds a class, or reuses one with the same shape. @returns its name */
function addClass(wanted: string, value: JsonObject, known: ClrClass[]): string {
  const names = Object.keys(value).sort((a, b) => (a < b ? -1 : 1));
  const properties = names.map((name) => [name, typeOf(name, value[name], known)] as const);
  const shape = JSON.stringify(properties);
  const same = known.find((one) => JSON.stringify(one.properties) === shape);
  if (same !== undefined) return same.name;
  let name = wanted;
  for (let number = 1; known.some((one) => one.name === name); number++) name = wanted + number;
  known.push({ name, properties });
  return name;
}

function typeOf(name: string, value: unknown, known: ClrClass[]): string {
  if (Array.isArray(value)) {
    return `List<${value.length === 0 ? "object" : typeOf(name, value[0], known)}>`;
  }
  if (typeof value === "object" && value !== null) {
    return addClass(name, value as JsonObject, known);
  }
  if (typeof value === "boolean") return "bool";
  if (typeof value === "number") return Number.isInteger(value) ? integerType(value) : "float";
  return typeof value === "string" ? typeOfText(value) : "object";
}

/** Tries more specific types before text. */
function typeOfText(text: string): string {
  if (/^(true|false)$/i.test(text)) return "bool";
  if (/^-?\d{1,19}$/.test(text)) return integerType(Number(text));
  if (/^-?\d+\.\d+$/.test(text)) return "float";
  if (/^\d{4}-\d\d-\d\d([T ]\d\d:\d\d(:\d\d(\.\d+)?)?(Z|[+-]\d\d:\d\d)?)?$/.test(text)) {
    return "DateTime";
  }
  if (/^-?(\d+\.)?\d\d:\d\d:\d\d(\.\d+)?$/.test(text)) return "TimeSpan";
  if (/^[\da-f]{8}(-[\da-f]{4}){3}-[\da-f]{12}$/i.test(text)) return "Guid";
  return "string";
}

function integerType(value: number): string {
  return Math.abs(value) < 2 ** 31 ? "int" : "long";
}

function classText({ name, properties }: ClrClass): string {
  const lines = properties.map(([one, type]) => `        public ${type} ${one} { get; set; } `);
  return `    public class ${name}\n    {\n${lines.join("\n")}\n    }`;
}

const importLines = [
  "System",
  "System.Collections",
  "System.Collections.Generic",
  "System.Text.RegularExpressions",
  "System.Globalization",
  "System.Linq",
  "Raven.Client.Documents.Indexes",
]
  .map((name) => `using ${name};`)
  .join("\r\n");

/** Returns a task that creates the index of this definition. Line ends and indentation are those of RavenDB 7.2.7. */
export function indexClass(definition: JsonObject): string {
  const name = String(definition["Name"]);
  const { Maps: maps = [], Reduce: reduce } = definition as {
    Maps?: readonly string[];
    Reduce?: string | null;
  };
  const members = [`Maps =\n{\n${maps.map(literal).join(",\n")}\n}`];
  if (typeof reduce === "string") members.push(`Reduce = ${literal(reduce)}`);
  const fields = Object.entries((definition["Fields"] ?? {}) as JsonObject);
  if (fields.length > 0) members.push(`Fields =\n{\n${fields.map(fieldText).join(",\n")}\n}`);
  for (const member of ["Configuration", "AdditionalSources"] as const) {
    const texts = Object.entries((definition[member] ?? {}) as JsonObject);
    if (texts.length > 0) members.push(`${member} = ${dictionaryText(member, texts)}`);
  }
  const body = indented(members.join(",\n"), 12);
  return `${importLines}

public class Index_${name.replace(/[^A-Za-z0-9_]/g, "_")} : AbstractIndexCreationTask
{
    public override string IndexName => ${JSON.stringify(name)};

    public override IndexDefinition CreateIndexDefinition()
    {
        return new IndexDefinition
        {
${body}
        };
    }
}`;
}

function fieldText([name, options]: readonly [string, unknown]): string {
  const { Indexing, Storage, TermVector, Analyzer, Suggestions } = options as JsonObject;
  const members: string[] = [];
  if (isChosen(Indexing, "Default")) members.push(`Indexing = FieldIndexing.${Indexing}`);
  if (isChosen(Storage, "No")) members.push(`Storage = FieldStorage.${Storage}`);
  if (isChosen(TermVector, "No")) members.push(`TermVector = FieldTermVector.${TermVector}`);
  if (typeof Analyzer === "string") members.push(`Analyzer = ${literal(Analyzer)}`);
  if (Suggestions === true) members.push("Suggestions = true");
  return `{ ${JSON.stringify(name)}, new IndexFieldOptions\n{\n${members.join(",\n")}\n} }`;
}

function isChosen(value: unknown, usual: string): value is string {
  return typeof value === "string" && value !== usual;
}

function dictionaryText(member: string, texts: readonly (readonly [string, unknown])[]): string {
  const type = member === "Configuration" ? "IndexConfiguration" : "Dictionary<string, string>";
  const entries = texts.map(([key, text]) => `[${JSON.stringify(key)}] = ${literal(String(text))}`);
  return `new ${type}\n{\n${entries.join(",\n")}\n}`;
}

/** Returns a verbatim string literal of C#. */
function literal(text: string): string {
  return `@"${text.replace(/\r\n/g, "\n").replaceAll('"', '""')}"`;
}

/** Indents lines by the braces around them; verbatim strings are unchanged. */
function indented(text: string, from: number): string {
  let depth = from;
  let isInText = false;
  const lines = text.split("\n").map((line) => {
    const startsInText = isInText;
    if (line.split('"').length % 2 === 0) isInText = !isInText;
    if (startsInText) return line;
    if (line.startsWith("}")) depth -= 4;
    const isMap = line.startsWith('@"');
    const shown = " ".repeat(isMap ? from : depth) + line;
    if (line === "{") depth += 4;
    return shown;
  });
  return lines.join("\n");
}
