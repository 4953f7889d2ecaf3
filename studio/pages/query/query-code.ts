/** Generates program code for a query. */

interface CodeSource {
  readonly origin: string;
  readonly database: string;
  readonly text: string;
  readonly values: readonly (readonly [name: string, value: unknown])[];
}

export const languages = ["Node.js", "C#", "Python", "curl"] as const;
export type Language = (typeof languages)[number];

const writers: Readonly<Record<Language, (source: CodeSource) => string>> = {
  "Node.js": node,
  "C#": csharp,
  Python: python,
  curl,
};

export function codeOf(language: Language, source: CodeSource): string {
  return writers[language](source);
}

function node({ origin, database, text, values }: CodeSource): string {
  const given = values.map(
    ([name, value]) => `\n  .addParameter(${JSON.stringify(name)}, ${JSON.stringify(value)})`,
  );
  const isSecure = origin.startsWith("https");
  return `import { DocumentStore } from "ravendb";
${isSecure ? 'import { readFileSync } from "node:fs";\n' : ""}
const store = new DocumentStore(${JSON.stringify(origin)}, ${JSON.stringify(database)}${
    isSecure ? ', {\n  type: "pfx",\n  certificate: readFileSync("client.pfx"),\n}' : ""
  });
store.initialize();
const session = store.openSession();
const rows = await session.advanced
  .rawQuery(${templateLiteral(text)})${given.join("")}
  .all();
console.log(rows);
store.dispose();
`;
}

function csharp({ origin, database, text, values }: CodeSource): string {
  const given = values.map(
    ([name, value]) => `\n    .AddParameter(${JSON.stringify(name)}, ${csharpValue(value)})`,
  );
  const isSecure = origin.startsWith("https");
  return `using Raven.Client.Documents;
${isSecure ? "using System.Security.Cryptography.X509Certificates;\n" : ""}
using var store = new DocumentStore
{
    Urls = new[] { ${JSON.stringify(origin)} },
    Database = ${JSON.stringify(database)},${isSecure ? '\n    Certificate = new X509Certificate2("client.pfx"),' : ""}
};
store.Initialize();
using var session = store.OpenSession();
var rows = session.Advanced
    .RawQuery<dynamic>(@"${text.replaceAll('"', '""')}")${given.join("")}
    .ToList();
`;
}

function csharpValue(value: unknown): string {
  if (Array.isArray(value)) return `new object[] { ${value.map(csharpValue).join(", ")} }`;
  return typeof value === "object" && value !== null
    ? `Newtonsoft.Json.Linq.JObject.Parse(@"${JSON.stringify(value).replaceAll('"', '""')}")`
    : JSON.stringify(value);
}

function python({ origin, database, text, values }: CodeSource): string {
  const given = values.map(
    ([name, value]) => `    .add_parameter(${JSON.stringify(name)}, ${pythonValue(value)})\n`,
  );
  const isSecure = origin.startsWith("https");
  return `from ravendb import DocumentStore

store = DocumentStore(${JSON.stringify(origin)}, ${JSON.stringify(database)})
${isSecure ? 'store.certificate_pem_path = "client.pem"\nstore.trust_store_path = "ca.crt"\n' : ""}store.initialize()
with store.open_session() as session:
    rows = list(
        session.advanced.raw_query(${JSON.stringify(text)})
${given.map((line) => `    ${line}`).join("")}    )
`;
}

function pythonValue(value: unknown): string {
  if (value === null) return "None";
  if (typeof value === "boolean") return value ? "True" : "False";
  if (Array.isArray(value)) return `[${value.map(pythonValue).join(", ")}]`;
  if (typeof value !== "object") return JSON.stringify(value);
  const members = Object.entries(value).map(
    ([name, one]) => `${JSON.stringify(name)}: ${pythonValue(one)}`,
  );
  return `{${members.join(", ")}}`;
}

function curl({ origin, database, text, values }: CodeSource): string {
  const body = JSON.stringify({ Query: text, QueryParameters: Object.fromEntries(values) });
  const files = origin.startsWith("https")
    ? "--cert client.crt --key client.key --cacert ca.crt \\\n  "
    : "";
  return `curl ${files}'${origin}/databases/${encodeURIComponent(database)}/queries' \\
  -H 'Content-Type: application/json' \\
  -d '${body.replaceAll("'", `'\\''`)}'
`;
}

function templateLiteral(text: string): string {
  const safe = text.replaceAll("\\", "\\\\").replaceAll("`", "\\`").replaceAll("${", "\\${");
  return `\`${safe}\``;
}
