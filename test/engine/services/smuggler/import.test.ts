/**
 * Imports of dumps from old versions, of wrong types, and with revisions: expected values are those
 * of RavenDB 7.2.7.
 */
import { afterAll, beforeEach, describe, expect, test } from "vitest";
import { dumpedMetadata } from "../../../../engine/services/smuggler/import-items.ts";
import {
  type EndpointClient,
  multipart,
  startEndpointClient,
} from "../../../support/endpoint-client.ts";
import { type Reply, stopTestServers } from "../../../support/start-test-server.ts";

let client: EndpointClient;
beforeEach(async () => {
  client = await startEndpointClient();
});
afterAll(stopTestServers);

async function importing(dump: object | string, options: object = {}): Promise<Reply> {
  const text = typeof dump === "string" ? dump : JSON.stringify(dump);
  const body = multipart("xyz", [JSON.stringify(options), text]);
  const type = "multipart/form-data; boundary=xyz";
  return await client.send("POST smuggler/import", body, { "content-type": type });
}

interface Stored {
  readonly "@metadata": Readonly<Record<string, unknown>>;
}

async function metadataOf(id: string): Promise<Record<string, unknown> | null> {
  const reply = await client.send(`GET docs?id=${encodeURIComponent(id)}`);
  if (reply.status === 404) return null;
  const [found] = (reply.json as { Results: readonly [Stored] }).Results;
  const { "@change-vector": _, "@last-modified": __, ...metadata } = found["@metadata"];
  return metadata;
}

function doc(id: string, metadata: object = {}, body: object = { a: 1 }): object {
  return { ...body, "@metadata": { "@id": id, "@collection": "O", ...metadata } };
}

const build = { BuildVersion: 72_051 };

describe("a dump of version 3.5", () => {
  const old = (id: string, metadata: object = {}) => ({
    a: 1,
    "@metadata": { "Raven-Entity-Name": "Orders", "@etag": "01", ...metadata, "@id": id },
  });
  const map = "from o in docs.Orders select new { o.a }";
  const dump = {
    Indexes: [
      { name: "Orders/A", definition: { Maps: [map], Stores: { a: "Yes" } } },
      { name: "Auto/Orders/ByA", definition: { Maps: [map] } },
      { name: "Raven/DocumentsByEntityName", definition: { Maps: [map] } },
      { name: "Side", definition: { Maps: [map], LockMode: "SideBySide" } },
      { name: "Broken", definition: { Maps: ["from o in docs.Orders selec"] } },
    ],
    Docs: [
      old("orders/1", { "Raven-Last-Modified": "2016-01-02T03:04:05.1234560Z" }),
      old("orders/2", { "Raven-Expiration-Date": "2099-01-01T00:00:00.0000000Z" }),
      old("orders/3"),
      old("orders/3/revisions/1", { "Raven-Document-Revision-Status": "Historical" }),
      old("Raven/Replication/Destinations"),
      old("Raven/Hilo/orders"),
    ],
    Attachments: [
      { Key: "pics/a", Data: Buffer.from("hello").toString("base64"), Metadata: { X: 1 } },
      { Key: "pics/b", Data: "", Metadata: {} },
    ],
    Transformers: [{ name: "T", definition: {} }],
    Identities: [{ Key: "orders/", Value: "7" }],
    DocsDeletions: [{ Key: "orders/3" }, { Key: null }, {}],
    AttachmentsDeletions: [{ Key: "pics/b" }],
  };

  test.each([{}, { BuildVersion: 35_168 }])("is imported with the contents %j", async (version) => {
    const { status, json } = await importing({ ...version, ...dump });
    expect([status, json]).toMatchObject([
      200,
      {
        Documents: {
          ReadCount: 7,
          SkippedCount: 1,
          ErroredCount: 1,
          Attachments: { ReadCount: 2, Skipped: false },
        },
        Indexes: { ReadCount: 4, ErroredCount: 2 },
        Identities: { ReadCount: 1, ErroredCount: 0 },
      },
    ]);
    expect(await metadataOf("orders/2")).toEqual({
      "@id": "orders/2",
      "@collection": "Orders",
      "@expires": "2099-01-01T00:00:00.0000000Z",
    });
    expect(await metadataOf("orders/3")).toBeNull();
    expect(await metadataOf("orders/3/revisions/1")).toBeNull();
    expect(await metadataOf("files/pics/b")).toBeNull();
    expect(await metadataOf("files/pics/a")).toMatchObject({
      "@collection": "@files",
      "@flags": "HasAttachments",
      "@legacy-attachment-metadata": { X: 1 },
      "@attachments": [{ Name: "pics/a", ContentType: "", Size: 5 }],
    });
    expect(await metadataOf("Raven/Hilo/orders")).toMatchObject({ "@collection": "@hilo" });
    const content = await client.send("GET attachments?id=files%2Fpics%2Fa&name=pics%2Fa");
    expect(content.text).toBe("hello");
    const names = (await client.json("GET indexes?namesOnly=true")) as { Results: string[] };
    expect(names.Results.sort()).toEqual(["Legacy/Auto/Orders/ByA", "Orders/A"]);
    expect(await client.json("GET debug/identities")).toEqual({ "orders|": 7 });
    const first = (await client.json("GET docs?id=orders/1")) as { Results: Stored[] };
    expect(first.Results[0]?.["@metadata"]["@last-modified"]).toBe("2016-01-02T03:04:05.1234560Z");
  });

  test("imports its attachments and deletions with any options", async () => {
    const options = { OperateOnTypes: "Indexes", Collections: ["Others"] };
    const { Attachments, DocsDeletions } = dump;
    await importing({ Docs: [old("orders/3")], Attachments, DocsDeletions }, options);
    expect(await metadataOf("files/pics/a")).not.toBeNull();
  });

  test("of 4.0 has another name for compare-exchange values, and names in any letter case", async () => {
    const CmpXchg = [{ Key: "k", Value: '{"Object":5}' }];
    await importing({ buildversion: 40_000, docs: [doc("o/1")], CmpXchg });
    expect(await metadataOf("o/1")).toEqual({ "@id": "o/1", "@collection": "O" });
    expect(await client.json("GET cmpxchg?key=k")).toMatchObject({
      Results: [{ Key: "k", Value: { Object: 5 } }],
    });
  });
});

test("the metadata of an old document is converted to the current format", async () => {
  const text = '{"@metadata":{"@id":"o/1","Raven-Entity-Name":"Os","@etag":"01"}}';
  const [old, present] = [true, false].map((isOld) => dumpedMetadata(Buffer.from(text), isOld));
  expect(await old).toMatchObject({ collection: "Os", kind: "document" });
  expect(await present).toMatchObject({ collection: "@empty", kind: "document" });
});

describe("a dump with wrong types", () => {
  const sections = [
    ...["Docs", "RevisionDocuments", "Tombstones", "Conflicts", "Indexes", "Identities"],
    ...["CompareExchange", "CompareExchangeTombstones", "CounterGroups", "Subscriptions"],
    ...["TimeSeries", "TimeSeriesDeletedRanges", "ReplicationHubCertificates", "Counters"],
    ...["Attachments", "DocsDeletions", "AttachmentsDeletions", "Transformers", "Unknown"],
  ];

  test("requires objects in each section, and a section to be a list", async () => {
    for (const section of sections) {
      for (const item of [null, 5, "x", [], true]) {
        const { status, json } = await importing({ ...build, [section]: [item] });
        const Type = "Sparrow.Exceptions.InvalidStartOfObjectException";
        expect([section, item, status, json]).toMatchObject([section, item, 400, { Type }]);
      }
      for (const value of [null, 5, "x", {}, true]) {
        const { status, json } = await importing({ ...build, [section]: value });
        const Type = "System.InvalidOperationException";
        expect([section, value, status, json]).toMatchObject([section, value, 400, { Type }]);
      }
    }
  });

  const text = `{"BuildVersion":72051,"Docs":[${JSON.stringify(doc("o/1"))}`;
  test.each([
    ["", "System.InvalidOperationException"],
    ["[]", "System.InvalidOperationException"],
    ['"x"', "System.InvalidOperationException"],
    ['{"BuildVersion"', "System.IO.EndOfStreamException"],
    ['{"BuildVersion":72051', "System.IO.EndOfStreamException"],
    ['{"BuildVersion":72051,"Docs":[', "System.IO.EndOfStreamException"],
    [text, "System.InvalidOperationException"],
    [`${text},`, "System.IO.EndOfStreamException"],
    [`${text}]`, "System.IO.EndOfStreamException"],
    [`${text},{"a":1`, "System.IO.EndOfStreamException"],
    ['{"BuildVersion":"72051"}', "System.InvalidOperationException"],
    ['{"BuildVersion":null}', "System.InvalidOperationException"],
    ['{"BuildVersion":1e3}', "System.InvalidOperationException"],
    ['{"BuildVersion":72051,"BuildVersion":72051}', "System.InvalidOperationException"],
    [`${text}],"BuildVersion":72051}`, "System.InvalidOperationException"],
    ['{"BuildVersion":72051,"DatabaseRecord":null}', "System.InvalidOperationException"],
    ['{"BuildVersion":72051,"DatabaseRecord":[]}', "System.InvalidOperationException"],
    ['{"BuildVersion":72051,"TimeSeries":[{}]}', "System.InvalidOperationException"],
    ['{"BuildVersion":72051,"Attachments":[{}]}', "System.ArgumentException"],
  ])("%s is rejected as %s", async (sent, type) => {
    const { status, json } = await importing(sent);
    expect([status, json]).toMatchObject([400, { Type: type }]);
    // The document that was read completely is stored.
    if (sent.startsWith(text)) expect(await metadataOf("o/1")).not.toBeNull();
  });

  test.each([
    [{}, "System.IO.InvalidDataException"],
    [{ "@id": null }, "System.IO.InvalidDataException"],
    [{ "@id": 5 }, "System.IO.InvalidDataException"],
    [{ "@id": "" }, "System.ArgumentException"],
    [5, "System.FormatException"],
    [[], "System.FormatException"],
    [{ "@id": "z", "@flags": 5 }, "System.IO.InvalidDataException"],
    [{ "@id": "z", "@change-vector": 5 }, "System.IO.InvalidDataException"],
    [{ "@id": "z", "@last-modified": null }, "System.IO.InvalidDataException"],
    [{ "@id": "z", "@last-modified": "x" }, "System.IO.InvalidDataException"],
    [{ "@id": "z", "@attachments": 5 }, "System.FormatException"],
    [{ "@id": "z", "@counters": 5 }, "System.IO.InvalidDataException"],
    [{ "@id": "z", "@timeseries": null }, "System.IO.InvalidDataException"],
    [{ "@id": "z", "@archived": "x" }, "System.FormatException"],
    [{ "@export-type": "Attachment" }, "System.ArgumentException"],
  ])("a document with the metadata %j is rejected as %s", async (metadata, type) => {
    const { status, json } = await importing({ ...build, Docs: [{ a: 1, "@metadata": metadata }] });
    expect([status, json]).toMatchObject([400, { Type: type }]);
  });

  test.each([
    ["Identities", { Key: "a|", Value: 1 }],
    ["Identities", { Key: "a|", Value: "x" }],
    ["CompareExchange", {}],
    ["CompareExchange", { Key: "a" }],
    ["Tombstones", { Key: "k" }],
    ["Tombstones", { Key: null, Type: "Document" }],
    ["Indexes", {}],
    ["Indexes", { Type: "Zzz", IndexDefinition: {} }],
    ["Indexes", { Type: "Map", IndexDefinition: 5 }],
    [
      "Indexes",
      { Type: "Map", IndexDefinition: { Name: "V", Maps: ["map('O', x => x)"], LockMode: "Zz" } },
    ],
    ["CounterGroups", { DocId: "k" }],
    ["CounterGroups", { DocId: "k", Values: {} }],
    ["Subscriptions", { SubscriptionName: "s" }],
    ["TimeSeriesDeletedRanges", { DocId: "k" }],
  ])(
    "an unreadable item of %s is counted as such, and the rest is imported: %j",
    async (key, item) => {
      const options = { OperateOnTypes: `Documents,Tombstones,${key}` };
      const { json } = await importing({ ...build, [key]: [item], Docs: [doc("o/1")] }, options);
      const kind = key === "CounterGroups" ? "Counters" : key;
      expect(json).toMatchObject({ [kind]: { ReadCount: 0, ErroredCount: 1 } });
      expect(await metadataOf("o/1")).not.toBeNull();
    },
  );

  test("only documents count skipped items, and not the contents of attachments", async () => {
    const content = { "@metadata": { "@export-type": "Attachment" }, Hash: "x", Size: 3, Tag: "t" };
    const docs = `"Docs":[${JSON.stringify(content)}abc,${JSON.stringify(doc("o/1"))}]`;
    const revisions = `"RevisionDocuments":[${JSON.stringify(doc("o/1"))}]`;
    const sent = `{"BuildVersion":72051,${docs},${revisions}}`;
    const { json } = await importing(sent, { OperateOnTypes: "Indexes" });
    expect(json).toMatchObject({
      Documents: { ReadCount: 1, SkippedCount: 1 },
      RevisionDocuments: { ReadCount: 1, SkippedCount: 0 },
    });
  });
});

describe("revisions", () => {
  const Revisions = { Default: null, Collections: { O: { Disabled: false } } };
  const vector = "A:1-AAAAAAAAAAAAAAAAAAAAAA";
  const CounterGroups = [
    { DocId: "o/1", ChangeVector: vector, Values: { "@dbIds": [], "@vals": { likes: [5, 1] } } },
  ];
  const revisionsOf = async (id: string): Promise<Stored[]> =>
    ((await client.json(`GET revisions?id=${id}`)) as { Results: Stored[] }).Results;

  test("are one per document, also if counters follow", async () => {
    const record = { DatabaseRecord: { DatabaseName: "x", Revisions } };
    await importing({
      ...build,
      ...record,
      Docs: [doc("o/1"), doc("p/1", { "@collection": "P" })],
      CounterGroups,
    });
    expect(await metadataOf("o/1")).toMatchObject({
      "@flags": "HasRevisions, HasCounters",
      "@counters": ["likes"],
    });
    const [revision, ...others] = await revisionsOf("o/1");
    expect(revision?.["@metadata"]).toMatchObject({ "@flags": "HasRevisions, Revision" });
    expect(others).toEqual([]);
    expect(await revisionsOf("p/1")).toEqual([]);
    // An increment by a client creates one.
    const Operations = [{ Type: "Increment", CounterName: "other", Delta: 1 }];
    await client.send("POST counters", { Documents: [{ DocumentId: "o/1", Operations }] });
    expect(await revisionsOf("o/1")).toHaveLength(2);
  });

  test("of a database record have all members, and unlock the database", async () => {
    const { json } = await importing({
      ...build,
      DatabaseRecord: { DatabaseName: "x", Revisions },
    });
    expect(json).toMatchObject({
      DatabaseRecord: { ReadCount: 1, LockModeUpdated: true, RevisionsConfigurationUpdated: true },
    });
    expect(await client.json("GET revisions/config")).toMatchObject({
      Collections: {
        O: {
          Disabled: false,
          MinimumRevisionsToKeep: null,
          MinimumRevisionAgeToKeep: null,
          PurgeOnDelete: false,
          MaximumRevisionsToDeleteUponDocumentUpdate: null,
        },
      },
    });
  });
});
