/**
 * Generates the OpenAPI 3.1 description of the HTTP interface from the route table and from static analysis of the
 * handlers.
 *
 * Invariants:
 * - Every route is described: a handler without a descriptive comment is an error.
 * - The output depends on the source alone. Each operation is one line, so that diffs are readable.
 * - Methods that OpenAPI 3.1 does not define are under `x-additional-operations` of their path, as in OpenAPI 3.2.
 */
import { basename } from "node:path";
import type { Route } from "../server/routing/route.ts";
import type { HandlerReader, Reading, ReadParameter } from "./handler-reading.ts";
import { bodyTypes, headerTexts, parameterTexts, statusTexts } from "./parameter-texts.ts";

/** A file in `server/endpoints/` and its routes. */
export interface Resource {
  readonly file: string;
  readonly routes: readonly Route[];
}

type Json = Readonly<Record<string, unknown>>;

/** Findings collected while describing the routes. */
interface Notes {
  /** Keys of the text tables that some route uses. */
  readonly used: Set<string>;
  /** Items without a description. */
  readonly missing: Set<string>;
}

const knownMethods = ["GET", "PUT", "POST", "DELETE", "OPTIONS", "HEAD", "PATCH", "TRACE"];
const jsonType = "application/json";

const introduction =
  "The part of RavenDB's HTTP interface that this server implements. Names of query parameters are case-insensitive. Clients authenticate with a " +
  "client certificate; `x-access` is the access level that a route requires: open, valid-user (any registered certificate), read, write, database-admin (on the " +
  "database in the path), operator, cluster-admin.";

/** Returns the OpenAPI document as text. @throws Error when a route or a parameter is not described */
export function describeApi(
  resources: readonly Resource[],
  reader: Pick<HandlerReader, "read" | "fileComment">,
  version: string,
): string {
  const notes: Notes = { used: new Set(), missing: new Set() };
  const paths = new Map<string, Map<string, string>>();
  for (const { file, routes } of resources) {
    for (const route of routes) {
      const path = route.path.replace("/:database/", "/{database}/").replace(/\/\*$/, "/{rest}");
      const operations = paths.get(path) ?? new Map<string, string>();
      paths.set(path, operations);
      const reading = reader.read(file, handlerOf(route).name);
      operations.set(route.method, JSON.stringify(operationOf(file, route, path, reading, notes)));
    }
  }
  assertComplete(notes);
  const tags = resources
    .filter(({ routes }) => routes.length > 0)
    .map(({ file }) => ({ name: tagOf(file), description: reader.fileComment(file) }));
  return textOf({ version, tags }, paths);
}

function handlerOf(route: Route): { readonly name: string } {
  return route.kind === "websocket" ? route.connect : route.handle;
}

function tagOf(file: string): string {
  return basename(file, ".ts");
}

function textOf(
  { version, tags }: { readonly version: string; readonly tags: readonly Json[] },
  paths: ReadonlyMap<string, ReadonlyMap<string, string>>,
): string {
  const info = {
    title: "Jackdaw",
    version,
    summary: "A document database",
    description: introduction,
  };
  const rows = [...paths].sort(([one], [other]) => (one < other ? -1 : 1));
  const items = rows.map(([path, operations]) => {
    const known: string[] = [];
    const others: string[] = [];
    for (const [method, text] of operations) {
      if (knownMethods.includes(method)) known.push(`"${method.toLowerCase()}":${text}`);
      else others.push(`"${method}":${text}`);
    }
    if (others.length > 0) known.push(`"x-additional-operations":{${others.join(",")}}`);
    if (path.includes("{database}")) known.unshift(`"parameters":[${ref("parameters/database")}]`);
    return `${JSON.stringify(path)}:{\n${known.join(",\n")}}`;
  });
  return `{"openapi":"3.1.1",
"info":${JSON.stringify(info)},
"servers":[{"url":"/"}],
"security":[{"certificate":[]}],
"tags":[
${tags.map((tag) => JSON.stringify(tag)).join(",\n")}],
"components":${JSON.stringify(components)},
"paths":{
${items.join(",\n")}}}
`;
}

function ref(name: string): string {
  return JSON.stringify({ $ref: `#/components/${name}` });
}

function operationOf(
  file: string,
  route: Route,
  path: string,
  reading: Reading,
  notes: Notes,
): Json {
  const where = `${route.method} ${route.path}`;
  const parameters = [
    ...merged(reading.parameters).map((one) => parameterOf(file, one, notes)),
    ...headersOf(reading, notes),
  ];
  return {
    operationId: operationIdOf(route.method, path),
    summary: sentence(handlerOf(route).name),
    description: descriptionOf(where, reading.comment, notes),
    tags: [tagOf(file)],
    "x-access": route.access,
    ...(route.access === "open" ? { security: [] } : {}),
    ...(route.kind === "websocket" ? { "x-websocket": true } : {}),
    ...(parameters.length > 0 ? { parameters } : {}),
    ...bodyOf(where, reading, notes),
    responses: responsesOf(route, reading),
  };
}

/**
 * Returns an operation id such as `getDatabaseAdminRecord`, unique because it contains the method and the whole path.
 */
function operationIdOf(method: string, path: string): string {
  const words = path.replace("/databases/{database}/", "/database/").split(/[^A-Za-z0-9]+/);
  const capital = (word: string) => word.slice(0, 1).toUpperCase() + word.slice(1);
  return (
    method.toLowerCase() +
      words
        .filter((word) => word !== "")
        .map(capital)
        .join("") || "Root"
  );
}

/** Converts a handler name to a sentence: `getRestorePoints` to "Get restore points". */
function sentence(name: string): string {
  const words = name.replace(/[A-Z]/g, (letter) => ` ${letter.toLowerCase()}`);
  return words.slice(0, 1).toUpperCase() + words.slice(1);
}

/** Returns the comment of the handler. If it begins with the request, the description must follow a colon. */
function descriptionOf(where: string, comment: string, { missing }: Notes): string {
  const isRequest = /^(?:[A-Z]+ \S|changes\[)/.test(comment);
  const description = isRequest ? comment.slice(comment.indexOf(": ") + 1) : comment;
  if ((isRequest && !comment.includes(": ")) || description.trim() === "") {
    missing.add(`a descriptive comment above the handler of ${where}`);
  }
  return comment;
}

/** Reader methods in ascending order of precision; methods that are not listed are the most precise. */
const precision = ["has", "get", "required", "requiredFirst", "all"];

/**
 * Merges reads of the same parameter: the most precise reader wins, and the parameter is required if any read
 * requires it.
 */
function merged(parameters: readonly ReadParameter[]): ReadParameter[] {
  const byName = new Map<string, ReadParameter>();
  for (const one of parameters) {
    const key = one.name.toLowerCase();
    const known = byName.get(key) ?? one;
    const rank = ({ reader }: ReadParameter) => {
      const at = precision.indexOf(reader);
      return at < 0 ? precision.length : at;
    };
    const exact = rank(one) > rank(known) ? one : known;
    byName.set(key, { ...exact, isRequired: one.isRequired || known.isRequired });
  }
  return [...byName.values()];
}

/** A 32-bit default with this value means that no limit applies. */
const int32Max = 2_147_483_647;

function parameterOf(
  file: string,
  { name, reader, fallback, isRequired }: ReadParameter,
  notes: Notes,
): Json {
  const key = [`${name} of ${tagOf(file)}`, name].find((one) => one in parameterTexts);
  if (key === undefined) notes.missing.add(`a text of the parameter ${name} (${tagOf(file)})`);
  else notes.used.add(key);
  const schema = schemaOf(reader);
  return {
    name,
    in: "query",
    description: parameterTexts[key ?? ""],
    ...(isRequired ? { required: true } : {}),
    schema:
      fallback === undefined || fallback === int32Max ? schema : { ...schema, default: fallback },
  };
}

function schemaOf(reader: ReadParameter["reader"]): Json {
  switch (reader) {
    case "int":
      return { type: "integer", format: "int32" };
    case "long":
      return { type: "integer", format: "int64" };
    case "float":
      return { type: "number" };
    case "bool":
    case "strictBool":
      return { type: "boolean" };
    case "timeSpanMs":
      return { $ref: "#/components/schemas/TimeSpan" };
    case "dateMs":
      return { type: "string", format: "date-time" };
    case "all":
      return { type: "array", items: { type: "string" } };
    default:
      return { type: "string" };
  }
}

/**
 * Describes the headers that belong to the route. Headers that OpenAPI defines elsewhere have no text and are
 * skipped.
 */
function headersOf({ headers }: Reading, notes: Notes): Json[] {
  const known = [...new Set(headers)].filter((name) => name in headerTexts);
  return known.map((name) => {
    notes.used.add(name);
    return { name, in: "header", description: headerTexts[name], schema: { type: "string" } };
  });
}

function bodyOf(where: string, { body, members }: Reading, notes: Notes): Json {
  if (body === undefined) return {};
  const types = bodyTypes[where] ?? (body === "json" ? [jsonType] : []);
  if (types.length === 0) notes.missing.add(`the types of the body of ${where}`);
  notes.used.add(where);
  const names = [...new Set(members)].map((name) => [name, {}]);
  const object = {
    type: "object",
    ...(names.length > 0 ? { properties: Object.fromEntries(names) } : {}),
  };
  const content = types.map((type) => [type, type === jsonType ? { schema: object } : {}]);
  return { requestBody: { content: Object.fromEntries(content) } };
}

function responsesOf(route: Route, { replies }: Reading): Json {
  const types = new Map<number, Set<string>>();
  if (route.kind === "websocket") types.set(101, new Set());
  for (const { status, contentType } of replies) {
    const known = types.get(status) ?? new Set<string>();
    types.set(status, known);
    if (contentType !== undefined) known.add(contentType);
  }
  const rows = [...types].map(([status, known]): [string, Json] => {
    const description = statusTexts[status];
    if (description === undefined) throw new Error(`status ${status} has no text`);
    const hasBody = known.size > 0 && route.method !== "HEAD";
    const content = Object.fromEntries([...known].sort().map((type) => [type, {}]));
    return [String(status), { description, ...(hasBody ? { content } : {}) }];
  });
  return {
    ...Object.fromEntries(rows),
    default: { $ref: "#/components/responses/error" },
  };
}

const components = {
  securitySchemes: {
    certificate: { type: "mutualTLS", description: "A client certificate that is registered" },
  },
  parameters: {
    database: {
      name: "database",
      in: "path",
      required: true,
      description: "Name of the database, case-insensitive.",
      schema: { type: "string" },
    },
  },
  schemas: {
    Error: {
      type: "object",
      description:
        "`Type` is the name of a RavenDB exception, which clients map to their own error types.",
      properties: {
        Url: { type: "string" },
        Type: { type: "string" },
        Message: { type: "string" },
        Error: { type: "string" },
      },
      required: ["Type", "Message", "Error"],
    },
    TimeSpan: {
      type: "string",
      description: "`[d.]hh:mm[:ss[.fffffff]]`, or a number of milliseconds",
    },
  },
  responses: {
    error: {
      description:
        "400: invalid request, or the database does not exist. 403: the certificate has no access. 408, 413, 415: the body timed out, is " +
        "too large, or has an unknown encoding. 409: conflict with stored data. 503: the server or the database is temporarily unavailable.",
      content: { "application/json": { schema: { $ref: "#/components/schemas/Error" } } },
    },
  },
};

/** Throws if an item has no description, or a description belongs to no item. */
function assertComplete({ used, missing }: Notes): void {
  const all = [parameterTexts, headerTexts, bodyTypes].flatMap((table) => Object.keys(table));
  const unused = all.filter((key) => !used.has(key));
  const gaps = [
    ...[...missing].map((item) => `missing: ${item}`),
    ...unused.map((key) => `unused: ${key} (packaging/parameter-texts.ts)`),
  ];
  if (gaps.length > 0)
    throw new Error(`The description of the interface is incomplete:\n${gaps.join("\n")}`);
}
