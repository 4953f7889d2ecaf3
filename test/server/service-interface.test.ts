/**
 * The specified interface, statement by statement: a row has the section of the service
 * description, the statement, an exchange that shows it, and the expected reply. Every row is sent
 * over HTTP/2 and HTTP/1.1.
 *
 * `otherwise` gives the reason if a reply differs from the description: a requirement of RavenDB
 * 7.2.7 or its official client.
 *
 * Rows follow the order of the description and are executed in it: each protocol has its own
 * database, filled by `fixtures`.
 */
import { X509Certificate } from "node:crypto";
import type { ClientHttp2Session } from "node:http2";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import type { CertificatePair } from "../../certs/authority.ts";
import { routes } from "../../server/endpoints/route-table.ts";
import { multipart } from "../support/endpoint-client.ts";
import {
  noCertificate,
  type Reply,
  type RequestOptions,
  requestHttp1,
  requestHttp2,
  startTestServer,
  stopTestServers,
  type TestServer,
} from "../support/start-test-server.ts";
import { unzip } from "../support/unzip.ts";

interface Exchange {
  /**
   * `METHOD path`, relative to the database unless it begins with `/`. `{name}` is replaced by the
   * value stored under that name.
   */
  readonly send: string;
  /** Objects are sent as JSON. */
  readonly body?: object | string | Buffer;
  readonly headers?: Readonly<Record<string, string>>;
  /** The client; the first admin by default. "in the clear": on a server without TLS. */
  readonly as?: "nobody" | "operator" | "stranger" | "in the clear";
  /** Stores a header, or the JSON value at a dotted path, under a name. */
  readonly store?: Readonly<Record<string, string>>;
  /** The exchange is repeated until the JSON of the reply matches. */
  readonly until?: object;
}

interface Row {
  readonly at: string;
  readonly statement: string;
  readonly deviation?: string;
  /** Exchanges that are sent first. */
  readonly given?: readonly Exchange[];
  readonly exchange: Exchange;
  readonly status: number;
  /** By name; undefined: the reply lacks this header. A string may contain `{name}`. */
  readonly headers?: Readonly<Record<string, string | RegExp | undefined>>;
  /** The expected JSON, which may contain matchers. "": no body at all. */
  readonly body?: unknown;
  readonly check?: (reply: Reply) => void;
}

const json = "application/json; charset=utf-8";
const timestamp: unknown = expect.stringMatching(/^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{7}Z$/);
const changeVector: unknown = expect.stringMatching(/^A:\d+-[\w+/]{22}$/);
const anything = expect.anything() as unknown;
const like = (value: object): unknown => expect.objectContaining(value);
const user = { Name: "Ann", Age: 30, "@metadata": { "@collection": "Users" } };
const count = (id: string, name: string, type = "Increment", delta = 1) => ({
  DocumentId: id,
  Operations: [{ Type: type, CounterName: name, Delta: delta }],
});
const patch = (Query: string, QueryParameters?: object) => ({ Query: { Query, QueryParameters } });
const started = {
  OperationId: expect.any(Number) as unknown,
  OperationNodeTag: expect.stringMatching(/^[A-Z]$/) as unknown,
};
const finished = { send: "GET operations/state?id={operation}", until: { Status: "Completed" } };
const start = (send: string, body: object): Exchange => ({
  send,
  body,
  store: { operation: "OperationId" },
});
const patchIt = (body: object): Exchange => start("PATCH queries", body);
/** Text of a document in which every character is significant. */
const exact =
  '{"z":1.0,"a":"caf\u00e9 \u{1F600} \\" \\\\ \\n","e":1E5,"big":123456789012345678901234567890,"n":null,"t":true,"f":false,"list":[1,[],{}],"deep":{"b":{"a":[{"k":-0.5}]}}}';

const fixtures: readonly Exchange[] = [
  { send: "POST admin/revisions/config", body: { Collections: { Albums: { Disabled: false } } } },
  { send: "PUT docs?id=companies/1", body: { Name: "Acme", Owner: "users/2" } },
  {
    send: "PUT docs?id=users/1",
    body: { ...user, Company: "companies/1", Friends: [{ Id: "users/2" }, { Id: "users/none" }] },
  },
  { send: "PUT docs?id=users/2", body: { ...user, Name: "Bob" } },
  { send: "PUT docs?id=albums/1", body: { "@metadata": { "@collection": "Albums" } } },
  { send: "PUT docs?id=albums/1", body: { n: 2, "@metadata": { "@collection": "Albums" } } },
  { send: "PUT attachments?id=albums/1&name=b.txt&contentType=text/plain", body: "hello" },
  { send: "PUT attachments?id=albums/1&name=A.png&contentType=image/png", body: "hello" },
  { send: "POST counters", body: { Documents: [count("albums/1", "likes", "Increment", 5)] } },
  { send: "POST counters", body: { Documents: [count("albums/1", "Downloads")] } },
  { send: "POST counters", body: { Documents: [count("companies/1", "visits")] } },
  { send: "PUT docs?id=exact/1", body: exact },
];

const service: readonly Row[] = [
  {
    at: "1",
    statement: "documents are JSON objects in named databases",
    exchange: { send: "PUT /databases/{db}/docs?id=service/1", body: { a: 1 } },
    status: 201,
  },
  {
    at: "1",
    statement: "JSON that is not an object is not a document",
    exchange: { send: "PUT docs?id=service/2", body: "[1]" },
    status: 400,
    body: like({ Type: "Sparrow.Exceptions.InvalidStartOfObjectException" }),
  },
  {
    at: "1",
    statement: "values are strings, numbers, booleans, null, arrays, nested objects",
    exchange: { send: "GET docs?id=exact/1" },
    status: 200,
    body: like({
      Results: [
        like({
          a: 'caf\u00e9 \u{1F600} " \\ \n',
          z: 1,
          t: true,
          f: false,
          n: null,
          list: [1, [], {}],
          deep: { b: { a: [{ k: -0.5 }] } },
        }),
      ],
    }),
  },
  {
    at: "1",
    statement: "an attachment is tied to a document that exists",
    exchange: { send: "PUT attachments?id=service/none&name=a", body: "x" },
    status: 400,
    body: like({ Type: "Raven.Client.Exceptions.Documents.DocumentDoesNotExistException" }),
  },
  {
    at: "1",
    statement: "a counter is an integer with a name, tied to a document that exists",
    exchange: { send: "POST counters", body: { Documents: [count("service/none", "n")] } },
    status: 400,
    body: like({ Type: "Raven.Client.Exceptions.Documents.DocumentDoesNotExistException" }),
  },
  {
    at: "1",
    statement: "documents are loaded by id, with related ones and counters in the same response",
    exchange: { send: "GET docs?id=users/1&include=Company&counter=likes" },
    status: 200,
    body: {
      Results: [like({ Name: "Ann" })],
      Includes: { "companies/1": like({ Name: "Acme" }) },
      CounterIncludes: { "users/1": [null] },
    },
  },
  {
    at: "1",
    statement: "documents that match a query are changed on the server, by an operation with an id",
    given: [patchIt(patch("from Users where Name = 'Bob' update { this.Age = 31 }")), finished],
    exchange: { send: "GET docs?id=users/1&id=users/2" },
    status: 200,
    body: like({ Results: [like({ Age: 30 }), like({ Age: 31 })] }),
  },
  {
    at: "1",
    statement: "a node of the cluster has a tag of one letter",
    exchange: { send: "GET /cluster/node-info" },
    status: 200,
    body: like({ NodeTag: expect.stringMatching(/^[A-Z]$/) as unknown }),
  },
];

const resources: readonly Row[] = [
  {
    at: "2.1",
    statement: "every returned document has @metadata: by id",
    exchange: { send: "GET docs?id=users/1&id=exact/1" },
    status: 200,
    body: like({ Results: [like({ "@metadata": anything }), like({ "@metadata": anything })] }),
  },
  {
    at: "2.1",
    statement: "every returned document has @metadata: in lists",
    exchange: { send: "GET docs" },
    status: 200,
    check: ({ json: reply }) => {
      const { Results } = reply as { Results: object[] };
      expect(Results.length).toBeGreaterThan(5);
      for (const result of Results) expect(result).toHaveProperty(["@metadata", "@id"]);
    },
  },
  {
    at: "2.1",
    statement: "every returned document has @metadata: by query",
    exchange: { send: "POST queries", body: { Query: "from Users where id() = 'users/1'" } },
    status: 200,
    body: like({ Results: [like({ "@metadata": like({ "@id": "users/1" }) })] }),
  },
  {
    at: "2.1",
    statement: "a returned document equals the stored one, in content and format",
    exchange: { send: "GET docs?id=exact/1" },
    status: 200,
    check: ({ text }) => expect(text).toContain(exact.slice(0, -1)),
  },
  {
    at: "2.1",
    statement: "metadataOnly is the exception: only @metadata is returned",
    exchange: { send: "GET docs?id=users/1&metadataOnly=true" },
    status: 200,
    body: like({ Results: [{ "@metadata": like({ "@id": "users/1", "@collection": "Users" }) }] }),
  },
  {
    at: "2.2",
    statement:
      "@metadata has id, collection, change vector and time, and only other members that apply",
    exchange: { send: "GET docs?id=users/1" },
    status: 200,
    check: ({ json: reply }) => {
      const [document] = (reply as { Results: Record<string, unknown>[] }).Results;
      expect(document?.["@metadata"]).toEqual({
        "@id": "users/1",
        "@collection": "Users",
        "@change-vector": changeVector,
        "@last-modified": timestamp,
      });
    },
  },
  {
    at: "2.2",
    statement: "@collection contains the collection of the document",
    deviation:
      "a document stored without @collection is returned without it, as by RavenDB and its clients",
    exchange: { send: "GET docs?id=exact/1&metadataOnly=true" },
    status: 200,
    body: like({
      Results: [
        {
          "@metadata": {
            "@id": "exact/1",
            "@change-vector": changeVector,
            "@last-modified": timestamp,
          },
        },
      ],
    }),
  },
  {
    at: "2.2",
    statement: "@change-vector identifies the current version: it changes with a write",
    given: [
      { send: "PUT docs?id=service/1", body: {}, store: { first: "ChangeVector" } },
      { send: "PUT docs?id=service/1", body: {}, store: { second: "ChangeVector" } },
    ],
    exchange: { send: "GET docs?id=service/1", headers: { "if-none-match": '"{first}"' } },
    status: 200,
    headers: { etag: '"{second}"' },
  },
  {
    at: "2.2",
    statement:
      "@flags has HasRevisions, HasAttachments and HasCounters, separated by comma and space",
    exchange: { send: "GET docs?id=albums/1" },
    status: 200,
    body: like({
      Results: [
        like({
          "@metadata": like({ "@flags": "HasRevisions, HasAttachments, HasCounters" }),
        }),
      ],
    }),
  },
  {
    at: "2.2, 2.3",
    statement: "@attachments has Name, Hash, ContentType and Size of each; @counters has the names",
    exchange: { send: "GET docs?id=albums/1&metadataOnly=true" },
    status: 200,
    body: like({
      Results: [
        {
          "@metadata": like({
            "@attachments": [
              {
                Name: "A.png",
                Hash: "Mk3PAn3UowqTLEQfNlol6GsXPe+kuOWJSCU0cbgbcs8=",
                ContentType: "image/png",
                Size: 5,
              },
              like({ Name: "b.txt", ContentType: "text/plain" }),
            ],
            "@counters": ["Downloads", "likes"],
          }),
        },
      ],
    }),
  },
  {
    at: "2.2",
    statement: "@attachments, @counters and flags are removed with the last of them",
    given: [
      { send: "PUT docs?id=service/3", body: {} },
      { send: "PUT attachments?id=service/3&name=a", body: "x" },
      { send: "POST counters", body: { Documents: [count("service/3", "c")] } },
      { send: "DELETE attachments?id=service/3&name=a" },
      { send: "POST counters", body: { Documents: [count("service/3", "c", "Delete")] } },
    ],
    exchange: { send: "GET docs?id=service/3" },
    status: 200,
    check: ({ text }) => expect(text).not.toMatch(/@flags|@attachments|@counters/),
  },
  {
    at: "2.4",
    statement: "a counter entry has DocumentId, CounterName and TotalValue, an integer",
    exchange: { send: "GET docs?id=albums/1&counter=likes" },
    status: 200,
    body: like({
      CounterIncludes: {
        "albums/1": [{ DocumentId: "albums/1", CounterName: "likes", TotalValue: 5 }],
      },
    }),
  },
  {
    at: "2.4",
    statement: "DocumentId has the document's own spelling, in any case of the request",
    exchange: { send: "GET docs?id=ALBUMS/1&counter=LIKES" },
    status: 200,
    body: like({
      CounterIncludes: {
        "albums/1": [{ DocumentId: "albums/1", CounterName: "LIKES", TotalValue: 5 }],
      },
    }),
  },
  {
    at: "2.5",
    statement: "Results has an element for each id, in their order; null is not found",
    exchange: { send: "GET docs?id=users/2&id=users/none&id=users/1&id=users/2" },
    status: 200,
    body: {
      Results: [like({ Name: "Bob" }), null, like({ Name: "Ann" }), like({ Name: "Bob" })],
      Includes: {},
    },
  },
  {
    at: "2.5",
    statement: "Includes maps ids to whole documents, and is {} if nothing is included",
    exchange: { send: "GET docs?id=users/1&include=Age&include=Nothing" },
    status: 200,
    body: { Results: [like({ Name: "Ann" })], Includes: {} },
  },
  {
    at: "2.5",
    statement: "Includes is in every reply",
    deviation: "a list lacks it: RavenDB's reply contains only Results",
    exchange: { send: "GET docs?startsWith=users/&include=Company" },
    status: 200,
    body: { Results: [like({ Name: "Ann" }), like({ Name: "Bob" })] },
  },
  {
    at: "2.5",
    statement: "CounterIncludes exists if counters were requested",
    exchange: { send: "GET docs?id=users/1&id=albums/1&counter=LIKES" },
    status: 200,
    body: {
      Results: [like({ Name: "Ann" }), like({ n: 2 })],
      Includes: {},
      CounterIncludes: {
        "users/1": [null],
        "albums/1": [{ DocumentId: "albums/1", CounterName: "LIKES", TotalValue: 5 }],
      },
    },
  },
  {
    at: "2.6",
    statement: "OperationId increases with each new operation of any type",
    given: [patchIt(patch("from Nobody update { this.a = 1 }")), finished],
    exchange: { send: "DELETE queries", body: { Query: "from Nobody" } },
    status: 200,
    check: ({ json: reply }) => {
      const { OperationId } = reply as { OperationId: number };
      expect(OperationId).toBe(Number(stored.get("operation")) + 1);
    },
  },
  {
    at: "2.6",
    statement: "an operation stores its request",
    given: [patchIt(patch("from Nobody where a = $n update { this.a = 1 }", { n: 1 })), finished],
    exchange: { send: "GET operations?id={operation}" },
    status: 200,
    body: like({
      Results: expect.arrayContaining([
        like({
          Description: like({
            TaskType: "UpdateByQuery",
            DetailedDescription: like({
              Query: 'from Nobody where a = $n update { this.a = 1 }\n{"n":1}',
            }),
          }),
        }),
      ]) as unknown,
    }),
  },
  {
    at: "2.6",
    statement: "OperationNodeTag is the tag of the node, a letter",
    exchange: { send: "PATCH queries", body: patch("from Nobody update { this.a = 1 }") },
    status: 200,
    body: started,
  },
  {
    at: "2.7",
    statement: "a database is addressed by its name in the path",
    exchange: { send: "GET /databases/{db}-none/docs?id=users/1" },
    status: 400,
    body: like({ Type: "Raven.Client.Exceptions.Database.DatabaseDoesNotExistException" }),
  },
];

const getDocuments: readonly Row[] = [
  {
    at: "4.1 id",
    statement: "without an id, all documents are returned, the newest change first",
    given: [
      { send: "PUT docs?id=order/1", body: {} },
      { send: "PUT docs?id=order/2", body: {} },
      { send: "PUT docs?id=order/1", body: { again: true } },
    ],
    exchange: { send: "GET docs" },
    status: 200,
    check: ({ json: reply }) => {
      const { Results } = reply as { Results: { "@metadata": Record<string, string> }[] };
      const etags = Results.map(({ "@metadata": metadata }) =>
        Number(/^A:(\d+)/.exec(metadata["@change-vector"] as string)?.[1]),
      );
      expect(etags).toEqual([...etags].sort((one, other) => other - one));
      expect(Results.slice(0, 2).map((row) => row["@metadata"]["@id"])).toEqual([
        "order/1",
        "order/2",
      ]);
    },
  },
  {
    at: "4.1 id",
    statement: "an id finds its document in any letter case",
    exchange: { send: "GET docs?id=USERS%2F1" },
    status: 200,
    body: like({ Results: [like({ "@metadata": like({ "@id": "users/1" }) })] }),
  },
  {
    at: "4.1 include",
    statement: "a path may lead into arrays, and be repeated",
    exchange: { send: "GET docs?id=users/1&include=Friends[].Id&include=Company" },
    status: 200,
    body: {
      Results: [like({ Name: "Ann" })],
      Includes: { "users/2": like({ Name: "Bob" }), "companies/1": like({ Name: "Acme" }) },
    },
  },
  {
    at: "4.1 include",
    statement: "included documents are complete, with their metadata",
    exchange: { send: "GET docs?id=users/1&include=Company&metadataOnly=true" },
    status: 200,
    body: {
      Results: [{ "@metadata": anything }],
      Includes: {
        "companies/1": {
          Name: "Acme",
          Owner: "users/2",
          "@metadata": like({ "@id": "companies/1", "@flags": "HasCounters" }),
        },
      },
    },
  },
  {
    at: "4.1 counter",
    statement: "a counter may be repeated, and counters are in request order",
    exchange: { send: "GET docs?id=albums/1&counter=likes&counter=none&counter=Downloads" },
    status: 200,
    body: like({
      CounterIncludes: {
        "albums/1": [
          like({ CounterName: "likes", TotalValue: 5 }),
          null,
          like({ CounterName: "Downloads", TotalValue: 1 }),
        ],
      },
    }),
  },
  {
    at: "4.1 counter",
    statement: "@all_counters returns all counters of the requested documents",
    exchange: { send: "GET docs?id=albums/1&id=users/1&counter=@all_counters" },
    status: 200,
    body: like({
      CounterIncludes: {
        "albums/1": [like({ CounterName: "Downloads" }), like({ CounterName: "likes" })],
        "users/1": [],
      },
    }),
  },
  {
    at: "4.1 counter",
    statement: "counters of included documents are not returned",
    exchange: { send: "GET docs?id=users/1&include=Company&counter=@all_counters" },
    status: 200,
    body: like({
      Includes: { "companies/1": anything },
      CounterIncludes: { "users/1": [] },
    }),
  },
  {
    at: "4.1 metadataOnly",
    statement: "it is a boolean: false returns whole documents",
    exchange: { send: "GET docs?id=users/1&metadataOnly=false" },
    status: 200,
    body: like({ Results: [like({ Name: "Ann" })] }),
  },
  {
    at: "4.1 metadataOnly",
    statement: "it is a boolean: other values are rejected",
    exchange: { send: "GET docs?id=users/1&metadataOnly=maybe" },
    status: 400,
    body: like({ Type: "System.ArgumentException" }),
  },
  {
    at: "4.1 pagesize",
    statement: "returns at most this number of documents",
    exchange: { send: "GET docs?pagesize=1" },
    status: 200,
    body: { Results: [anything] },
  },
  {
    at: "4.1 pagesize",
    statement: "names of parameters are read in any letter case",
    exchange: { send: "GET docs?STARTSWITH=users/&PageSize=1&Start=1" },
    status: 200,
    body: { Results: [like({ Name: "Bob" })] },
  },
  {
    at: "4.1 pagesize",
    statement: "it is an integer",
    exchange: { send: "GET docs?pagesize=many" },
    status: 400,
    body: like({ Type: "System.ArgumentException" }),
  },
  {
    at: "4.1 headers",
    statement: "Content-Type, ETag and the version are present",
    exchange: { send: "GET docs?id=users/1" },
    status: 200,
    headers: { "content-type": json, etag: /^"A:\d+-[\w+/]{22}"$/, "service-server-version": /^7/ },
  },
  {
    at: "4.1 ETag",
    statement: "it is a hash of the state of these results: of several documents",
    exchange: { send: "GET docs?id=users/1&id=users/2" },
    status: 200,
    headers: { etag: /^"Hash-[\w+/=]{44}"$/ },
  },
  {
    at: "4.1 ETag",
    statement: "it is a hash of the state of these results",
    deviation:
      "for a single document, it is the change vector, on which the official client relies",
    given: [{ send: "PUT docs?id=service/4", body: {}, store: { vector: "ChangeVector" } }],
    exchange: { send: "GET docs?id=service/4" },
    status: 200,
    headers: { etag: '"{vector}"' },
  },
  {
    at: "4.1 If-None-Match",
    statement: "accepts the ETag of an earlier identical request, which is then not answered again",
    given: [{ send: "GET docs?id=users/1", store: { etag: "etag" } }],
    exchange: { send: "GET docs?id=users/1", headers: { "if-none-match": "{etag}" } },
    status: 304,
    body: "",
  },
  {
    at: "4.1 If-None-Match",
    statement: "applies also to several documents with includes",
    given: [
      { send: "GET docs?id=users/1&id=users/2&include=Company&counter=c", store: { etag: "etag" } },
    ],
    exchange: {
      send: "GET docs?id=users/1&id=users/2&include=Company&counter=c",
      headers: { "if-none-match": "{etag}" },
    },
    status: 304,
    body: "",
  },
  {
    at: "4.1 If-None-Match",
    statement: "applies also to lists",
    given: [{ send: "GET docs?pagesize=2", store: { etag: "etag" } }],
    exchange: { send: "GET docs?pagesize=2", headers: { "if-none-match": "{etag}" } },
    status: 304,
    body: "",
  },
  {
    at: "4.1 If-None-Match",
    statement: "if one of the documents has changed, the full reply is returned",
    given: [
      { send: "PUT docs?id=service/5", body: {} },
      { send: "GET docs?id=users/1&id=service/5", store: { etag: "etag" } },
      { send: "PUT docs?id=service/5", body: { n: 1 } },
    ],
    exchange: {
      send: "GET docs?id=users/1&id=service/5",
      headers: { "if-none-match": "{etag}" },
    },
    status: 200,
    body: like({ Results: [anything, like({ n: 1 })] }),
  },
  {
    at: "4.1 If-None-Match",
    statement: "if only an included document has changed, the full reply is returned, too",
    given: [
      { send: "PUT docs?id=service/6", body: { Other: "service/5" } },
      { send: "GET docs?id=service/6&include=Other", store: { etag: "etag" } },
      { send: "PUT docs?id=service/5", body: { n: 2 } },
    ],
    exchange: {
      send: "GET docs?id=service/6&include=Other",
      headers: { "if-none-match": "{etag}" },
    },
    status: 200,
    body: like({ Includes: { "service/5": like({ n: 2 }) } }),
  },
  {
    at: "4.1 If-None-Match",
    statement: "if only a counter has changed, the full reply is returned, too",
    given: [
      { send: "POST counters", body: { Documents: [count("service/6", "c")] } },
      { send: "GET docs?id=service/6&counter=c", store: { etag: "etag" } },
      { send: "POST counters", body: { Documents: [count("service/6", "c")] } },
    ],
    exchange: { send: "GET docs?id=service/6&counter=c", headers: { "if-none-match": "{etag}" } },
    status: 200,
    body: like({ CounterIncludes: { "service/6": [like({ TotalValue: 2 })] } }),
  },
  {
    at: "4.1 statuses",
    statement: "200: a missing document is null among several",
    exchange: { send: "GET docs?id=none/1&id=none/2" },
    status: 200,
    body: { Results: [null, null], Includes: {} },
  },
  {
    at: "4.1 statuses",
    statement: "404: exactly one document was requested, and it does not exist",
    exchange: { send: "GET docs?id=none/1" },
    status: 404,
    headers: { etag: undefined, "content-type": json, "content-length": "0" },
    body: "",
  },
  {
    at: "4.1 statuses",
    statement: "404: also with includes",
    exchange: { send: "GET docs?id=none/1&include=Company&counter=likes" },
    status: 404,
    body: "",
  },
];

const putDocument: readonly Row[] = [
  {
    at: "4.2",
    statement: "the status is 201",
    deviation: "the reply has the id and version of the document, as RavenDB's has",
    exchange: { send: "PUT docs?id=put/1", body: { n: 1 } },
    status: 201,
    headers: { "content-type": json },
    body: { Id: "put/1", ChangeVector: changeVector },
  },
  {
    at: "4.2",
    statement: "the document is available immediately, and replaces the previous version",
    given: [{ send: "PUT docs?id=put/1", body: { m: 2 } }],
    exchange: { send: "GET docs?id=put/1" },
    status: 200,
    check: ({ text }) => expect(text).toMatch(/^\{"Results":\[\{"m":2,"@metadata"/),
  },
  {
    at: "4.2",
    statement: "id is the id of the document, and is required",
    exchange: { send: "PUT docs", body: {} },
    status: 400,
    body: like({ Type: "System.ArgumentException" }),
  },
  {
    at: "4.2",
    statement: "the body is one object, without trailing text",
    exchange: { send: "PUT docs?id=put/2", body: '{"a":1}{"b":2}' },
    status: 400,
    body: like({ Type: "System.IO.InvalidDataException" }),
  },
  {
    at: "4.2",
    statement: "the body may be raw, with any content type",
    given: [
      {
        send: "PUT docs?id=put/3",
        body: '{"raw":1.50}',
        headers: { "content-type": "application/x-www-form-urlencoded" },
      },
    ],
    exchange: { send: "GET docs?id=put/3" },
    status: 200,
    check: ({ text }) => expect(text).toContain('{"raw":1.50,'),
  },
  {
    at: "4.2",
    statement: "the body may be an uploaded file",
    given: [
      {
        send: "PUT docs?id=put/4",
        body: multipart("XyZ", ['{"uploaded":1.50}']),
        headers: { "content-type": "multipart/form-data; boundary=XyZ" },
      },
    ],
    exchange: { send: "GET docs?id=put/4" },
    status: 200,
    check: ({ text }) => expect(text).toContain('{"uploaded":1.50,'),
  },
  {
    at: "4.2",
    statement: "one document, so one file",
    exchange: {
      send: "PUT docs?id=put/5",
      body: multipart("XyZ", ["{}", "{}"]),
      headers: { "content-type": "multipart/form-data; boundary=XyZ" },
    },
    status: 400,
    body: like({ Type: "Raven.Client.Exceptions.BadRequestException" }),
  },
];

/** Documents of a separate collection, for a row that changes them. */
const three = (collection: string): Exchange[] =>
  [1, 2, 3].map((n) => ({
    send: `PUT docs?id=${collection}/${n}`,
    body: { n, "@metadata": { "@collection": collection } },
  }));
const fromStale = patch("from index 'Stale' update { this.Touched = true }");
const faulted = like({
  Status: "Faulted",
  Result: like({ Type: "System.InvalidOperationException", StatusCode: 500 }),
});

const patchByQuery: readonly Row[] = [
  {
    at: "4.3",
    statement: "every document selected by the query is changed, and no other",
    given: [
      ...three("many"),
      patchIt(patch("from many where n > 1 update { this.n *= 10 }")),
      finished,
    ],
    exchange: { send: "GET docs?startsWith=many/" },
    status: 200,
    body: { Results: [like({ n: 1 }), like({ n: 20 }), like({ n: 30 })] },
  },
  {
    at: "4.3",
    statement: "the reply has only the operation id, and the headers",
    exchange: { send: "PATCH queries", body: patch("from Nobody update { this.a = 1 }") },
    status: 200,
    headers: {
      "content-type": json,
      "service-server-version": /^7\.\d/,
      "request-time": /^\d+$/,
    },
    body: started,
  },
  {
    at: "4.3 Query",
    statement: "the wrapper is required",
    exchange: { send: "PATCH queries", body: { Text: "from Users" } },
    status: 400,
    body: like({ Type: "Raven.Client.Exceptions.BadRequestException" }),
  },
  {
    at: "4.3 Query.Query",
    statement: "the text is required",
    exchange: { send: "PATCH queries", body: { Query: {} } },
    status: 400,
    body: like({ Type: "System.InvalidOperationException" }),
  },
  {
    at: "4.3 Query.Query",
    statement: "the text has an update clause",
    exchange: { send: "PATCH queries", body: patch("from Users") },
    status: 400,
    headers: { "request-time": /^\d+$/ },
    body: like({ Type: expect.stringContaining("ParseException") as unknown }),
  },
  {
    at: "4.3 Query.Query",
    statement: "the text is RQL",
    exchange: { send: "PATCH queries", body: patch("update everything") },
    status: 400,
    body: like({ Type: expect.stringContaining("ParseException") as unknown }),
  },
  {
    at: "4.3 QueryParameters",
    statement: "the query and the script may refer to parameters: strings, integers, ids",
    given: [
      ...three("given"),
      patchIt(
        patch("from given where id() = $id and n = $n update { this.text = $text }", {
          id: "given/2",
          n: 2,
          text: 'it\'s "quoted"',
        }),
      ),
      finished,
    ],
    exchange: { send: "GET docs?id=given/2&id=given/1" },
    status: 200,
    check: ({ json: reply }) => {
      const { Results } = reply as { Results: { text?: string }[] };
      expect(Results.map(({ text }) => text)).toEqual(['it\'s "quoted"', undefined]);
    },
  },
  {
    at: "4.3 allowStale, 7",
    statement: "false is the default: an operation on a stale index fails",
    given: [
      // The index is created while indexing is paused, and stays stale until it resumes.
      { send: "POST admin/indexes/stop" },
      {
        send: "PUT indexes",
        body: { Indexes: [{ Name: "Stale", Maps: ["map('Users', u => ({ Name: u.Name }))"] }] },
      },
      start("PATCH queries", fromStale),
    ],
    exchange: { ...finished, until: { Status: "Faulted" } },
    status: 200,
    body: faulted,
  },
  {
    at: "4.3 allowStale",
    statement: "it is a boolean",
    exchange: { send: "PATCH queries?allowStale=maybe", body: fromStale },
    status: 400,
    body: like({ Type: "System.ArgumentException" }),
  },
  {
    at: "4.3 staleTimeout, 7",
    statement: "if the timeout expires and the index is still stale, the operation fails",
    given: [start("PATCH queries?staleTimeout=00:00:00.050", fromStale)],
    exchange: { ...finished, until: { Status: "Faulted" } },
    status: 200,
    body: faulted,
  },
  {
    at: "4.3 staleTimeout",
    statement: "it is a time span",
    exchange: { send: "PATCH queries?staleTimeout=soon", body: fromStale },
    status: 400,
    body: like({ Type: "System.ArgumentException" }),
  },
  {
    at: "4.3 allowStale",
    statement: "true patches only the indexed documents, here none",
    given: [start("PATCH queries?allowStale=true", fromStale)],
    exchange: finished,
    status: 200,
    body: like({ Status: "Completed", Result: like({ Total: 0 }) }),
  },
  {
    at: "4.3 allowStale",
    statement: "it applies to indexes: a patch of a collection ignores it",
    given: [patchIt(patch("from Users update { this.Seen = 1 }"))],
    exchange: finished,
    status: 200,
    body: like({ Status: "Completed", Result: like({ Total: 2 }) }),
  },
  {
    at: "4.3 staleTimeout",
    statement:
      "it is the time to wait for the index: once it is not stale, all documents are patched",
    given: [
      start("PATCH queries?staleTimeout=00:00:20", fromStale),
      { send: "POST admin/indexes/start" },
    ],
    exchange: finished,
    status: 200,
    body: like({ Status: "Completed", Result: like({ Total: 2 }) }),
  },
  {
    at: "4.3 maxOpsPerSec, 8",
    statement:
      "the operation is limited to this number per second: one without a limit overtakes it",
    given: [
      ...three("slow"),
      {
        send: "PATCH queries?maxOpsPerSec=1",
        body: patch("from slow update { this.a = 1 }"),
        store: { slow: "OperationId" },
      },
      patchIt(patch("from many update { this.b = 1 }")),
      finished,
    ],
    exchange: { send: "GET operations/state?id={slow}" },
    status: 200,
    body: like({ Status: "InProgress" }),
  },
  {
    at: "4.3 maxOpsPerSec",
    statement: "it is an integer",
    given: [{ send: "POST operations/kill?id={slow}" }],
    exchange: { send: "PATCH queries?maxOpsPerSec=few", body: patch("from slow update { }") },
    status: 400,
    body: like({ Type: "System.ArgumentException" }),
  },
];

const adminName = "admin.client.certificate.localhost";

const security: readonly Row[] = [
  {
    at: "4.4, 5",
    statement: "the package is a Zip, with certificate and key of the administrator at its root",
    exchange: { send: "GET /admin/debug/cluster-info-package" },
    status: 200,
    headers: { "content-type": "application/zip", "content-disposition": /^attachment; .*\.zip/ },
    check: ({ body }) => {
      const files = unzip(body);
      const pair = {
        certificate: String(files[`${adminName}.crt`]),
        key: String(files[`${adminName}.key`]),
      };
      expect(pair).toEqual(server.admin);
      expect(new X509Certificate(pair.certificate).subject).toBe(`CN=${adminName}`);
    },
  },
  {
    at: "4.4",
    statement: "keys are restricted: only cluster administrators get them",
    exchange: { send: "GET /admin/debug/cluster-info-package", as: "operator" },
    status: 403,
  },
  {
    at: "4.4",
    statement: "a server without TLS has no keys",
    exchange: { send: "GET /admin/debug/cluster-info-package", as: "in the clear" },
    status: 200,
    check: ({ body }) => {
      const names = Object.keys(unzip(body));
      expect(names).toContain("Node - [A]/server-wide/build.version.json");
      expect(names.filter((name) => /\.(crt|key|pfx)$/.test(name))).toEqual([]);
    },
  },
  {
    at: "4.5",
    statement: "an attachment is stored as raw bytes",
    exchange: {
      send: "PUT attachments?id=put/1&name=raw.bin&contentType=application/x-raw",
      body: Buffer.from([0, 255, 10, 13, 45, 45]),
    },
    status: 201,
    body: like({
      Name: "raw.bin",
      DocumentId: "put/1",
      ContentType: "application/x-raw",
      Size: 6,
      Hash: expect.stringMatching(/^[\w+/]{43}=$/) as unknown,
      ChangeVector: changeVector,
    }),
  },
  {
    at: "4.5",
    statement: "and is returned unchanged",
    exchange: { send: "GET attachments?id=put/1&name=raw.bin" },
    status: 200,
    headers: { "content-type": "application/x-raw", "content-length": "6" },
    check: ({ body }) => expect([...body]).toEqual([0, 255, 10, 13, 45, 45]),
  },
  {
    at: "5",
    statement: "the service can be reached over HTTPS",
    exchange: { send: "GET /build/version" },
    status: 200,
    headers: { "content-type": json },
  },
  {
    at: "5",
    statement: "the service can be reached over plain HTTP",
    exchange: { send: "GET /build/version", as: "in the clear" },
    status: 200,
    headers: { "content-type": json },
  },
  {
    at: "5",
    statement: "over HTTPS, a client must present a certificate",
    exchange: { send: "GET docs?id=users/1", as: "nobody" },
    status: 403,
    body: like({
      Type: "InvalidAuth",
      Message: expect.stringContaining("requires client certificate") as unknown,
    }),
  },
  {
    at: "5",
    statement: "and it must be registered at the server",
    exchange: { send: "GET docs?id=users/1", as: "stranger" },
    status: 403,
    body: like({
      Type: "InvalidAuth",
      Message: expect.stringContaining("unknown to the server") as unknown,
    }),
  },
];

const errors: readonly Row[] = [
  {
    at: "7 200",
    statement: "a query with no results is valid",
    exchange: { send: "POST queries", body: { Query: "from Users where Name = 'Nobody'" } },
    status: 200,
    headers: { "request-time": /^\d+$/ },
    body: like({ Results: [], TotalResults: 0 }),
  },
  {
    at: "7 200",
    statement: "a body may be empty because nothing was found",
    exchange: { send: "GET streams/docs?format=jsonl&startsWith=none/" },
    status: 200,
    body: "",
  },
  {
    at: "7 200",
    statement: "a patch by query without matches is valid",
    given: [patchIt(patch("from Nobody update { this.a = 1 }"))],
    exchange: finished,
    status: 200,
    body: like({ Status: "Completed", Result: like({ Total: 0 }) }),
  },
  {
    at: "7 200",
    statement: "a patch by query of a missing index is started, and reports this in its state",
    given: [start("PATCH queries", patch("from index 'None' update { this.a = 1 }"))],
    exchange: { ...finished, until: { Status: "Faulted" } },
    status: 200,
    body: like({
      Result: like({
        Type: "Raven.Client.Exceptions.Documents.Indexes.IndexDoesNotExistException",
      }),
    }),
  },
  {
    at: "7 404",
    statement: "valid requests whose data is missing: an attachment",
    exchange: { send: "GET attachments?id=users/1&name=none" },
    status: 404,
    body: "",
  },
  {
    at: "7 409",
    statement: "conflicting commands: another version was expected",
    given: [{ send: "PUT docs?id=put/6", body: {}, store: { vector: "ChangeVector" } }],
    exchange: { send: "PUT docs?id=put/6", body: {}, headers: { "if-match": '"A:1-x"' } },
    status: 409,
    body: like({
      Type: "Raven.Client.Exceptions.ConcurrencyException",
      Id: "put/6",
      ExpectedChangeVector: "A:1-x",
      ActualChangeVector: changeVector,
    }),
  },
  {
    at: "7 409",
    statement: "the expected version exists: no conflict",
    exchange: { send: "PUT docs?id=put/6", body: {}, headers: { "if-match": '"{vector}"' } },
    status: 201,
  },
  {
    at: "7 500",
    statement: "server errors are distinguished from client errors",
    exchange: { send: "GET /test/failure" },
    status: 500,
    check: ({ text }) => expect(text).not.toMatch(/secret|service-interface\.test|at /),
  },
  {
    at: "7 400",
    statement: "client errors are distinguished from server errors",
    deviation: "RavenDB answers 500 to most; its clients check only the Type, which is the same",
    exchange: { send: "GET counters" },
    status: 400,
    body: like({ Type: "System.ArgumentException" }),
  },
  {
    at: "7",
    statement: "an error has the URL, the type and a message",
    exchange: { send: "GET no-such-route?a=1" },
    status: 400,
    headers: { "content-type": json },
    check: ({ json: reply }) => {
      const error = reply as Record<string, string>;
      expect(Object.keys(error)).toEqual(["Url", "Type", "Message", "Error"]);
      expect(error["Url"]).toMatch(/no-such-route\?a=1$/);
      expect(error["Type"]).toBe("Raven.Client.Exceptions.Routing.RouteNotFoundException");
      expect(error["Error"]?.startsWith(`${error["Type"]}: ${error["Message"]}`)).toBe(true);
    },
  },
];

const rows = [
  ...service,
  ...resources,
  ...getDocuments,
  ...putDocument,
  ...patchByQuery,
  ...security,
  ...errors,
];

/** Values stored by exchanges of the current and earlier rows. */
const stored = new Map<string, string>();
const withValues = (text: string) =>
  text.replaceAll(/\{(\w+)\}/g, (whole, name: string) => stored.get(name) ?? whole);

type Protocol = "HTTP/2" | "HTTP/1.1";
const clients = new Map<NonNullable<Exchange["as"]>, CertificatePair>([["nobody", noCertificate]]);
const sessions = new Map<string, ClientHttp2Session>();
let server: TestServer;
let clear: TestServer;

beforeAll(async () => {
  const failure = (): void => {
    throw new Error("secret");
  };
  server = await startTestServer({
    databases: [{ name: "HTTP2" }, { name: "HTTP1" }],
    routes: [
      ...routes,
      {
        kind: "server",
        method: "GET",
        path: "/test/failure",
        access: "valid-user",
        handle: failure,
      },
    ],
  });
  clear = await startTestServer({ unsecured: true });
  clients.set("operator", await server.client({ clearance: "Operator" }, "operator"));
  const stranger = await server.client({}, "stranger");
  const { certificates } = server.running.services;
  await certificates.delete(
    new X509Certificate(stranger.certificate).fingerprint.replaceAll(":", ""),
  );
  clients.set("stranger", stranger);
});
afterAll(stopTestServers);

async function once(protocol: Protocol, exchange: Exchange): Promise<Reply> {
  const { send, body, as, headers = {} } = exchange;
  const space = send.indexOf(" ");
  const target = withValues(send.slice(space + 1));
  const path = target.startsWith("/") ? target : withValues(`/databases/{db}/${target}`);
  const isRaw = body === undefined || typeof body === "string" || Buffer.isBuffer(body);
  const bytes = isRaw ? body : JSON.stringify(body);
  const options: RequestOptions = {
    method: send.slice(0, space),
    headers: Object.fromEntries(
      Object.entries(headers).map(([name, text]) => [name, withValues(text)]),
    ),
    ...(bytes === undefined ? {} : { body: bytes }),
  };
  if (as === "in the clear" && protocol === "HTTP/1.1") {
    return requestHttp1(clear.url + path, options);
  }
  const pair = as === undefined ? server.admin : clients.get(as);
  if (protocol === "HTTP/1.1") return server.request(path, options, pair);
  let session = sessions.get(as ?? "");
  if (session === undefined) {
    session = as === "in the clear" ? clear.session(undefined) : server.session(pair);
    sessions.set(as ?? "", session);
  }
  return requestHttp2(session, path, options);
}

/**
 * Sends an exchange, repeated if required, stores its values, and checks the properties of every
 * reply.
 */
async function run(protocol: Protocol, exchange: Exchange): Promise<Reply> {
  let reply = await once(protocol, exchange);
  for (let tries = 0; exchange.until !== undefined && tries < 300; tries++) {
    if (expect.objectContaining(exchange.until).asymmetricMatch(reply.json)) break;
    await new Promise((resolve) => setTimeout(resolve, 10));
    reply = await once(protocol, exchange);
  }
  // 9: every response has the server's version; 1: a JSON body is UTF-8.
  expect(reply.headers["service-server-version"], exchange.send).toMatch(/^7\.\d+\./);
  expect(reply.headers["raven-server-version"]).toBe(reply.headers["service-server-version"]);
  if (/^[{[]/.test(reply.text)) expect(reply.headers["content-type"]).toBe(json);
  for (const [name, from] of Object.entries(exchange.store ?? {})) {
    const found = reply.headers[from] ?? (reply.json as Record<string, unknown>)[from];
    expect(found, `${from} of ${exchange.send}`).toBeDefined();
    stored.set(name, String(found));
  }
  return reply;
}

describe.each(["HTTP/2", "HTTP/1.1"] as const)("over %s", (protocol) => {
  beforeAll(async () => {
    stored.clear();
    stored.set("db", protocol === "HTTP/2" ? "HTTP2" : "HTTP1");
    for (const exchange of fixtures) {
      const reply = await run(protocol, exchange);
      expect(reply.status, `${exchange.send} ${reply.text}`).toBeLessThan(300);
    }
  });

  test.each(rows.map((row) => [row.at, row.statement, row] as const))(
    "%s: %s",
    async (_at, _says, row) => {
      for (const exchange of row.given ?? []) {
        const { status, text } = await run(protocol, exchange);
        expect(status, `${exchange.send} ${text}`).toBeLessThan(300);
      }
      const reply = await run(protocol, row.exchange);
      expect(reply.status, reply.text).toBe(row.status);
      for (const [name, value] of Object.entries(row.headers ?? {})) {
        if (value instanceof RegExp) expect(reply.headers[name]).toMatch(value);
        else
          expect(reply.headers[name], name).toBe(
            value === undefined ? undefined : withValues(value),
          );
      }
      if (row.body === "") expect(reply.text).toBe("");
      else if (row.body !== undefined) expect(reply.json).toEqual(row.body);
      row.check?.(reply);
    },
  );
});

test("every section of the description with statements on the service has rows", () => {
  const parts = new Set(rows.flatMap(({ at }) => at.split(", ").map((one) => one.split(" ")[0])));
  for (const part of ["1", "2.1", "2.2", "2.3", "2.4", "2.5", "2.6", "2.7", "4.1", "4.2", "4.3"]) {
    expect(parts).toContain(part);
  }
  for (const part of ["4.4", "4.5", "5", "7", "8"]) expect(parts).toContain(part);
});
