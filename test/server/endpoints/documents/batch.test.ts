import { gzipSync } from "node:zlib";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import {
  type EndpointClient,
  multipart,
  startEndpointClient,
} from "../../../support/endpoint-client.ts";
import { stopTestServers } from "../../../support/start-test-server.ts";

let client: EndpointClient;
beforeAll(async () => {
  client = await startEndpointClient();
});
afterAll(stopTestServers);

const batch = (...Commands: object[]) => client.send("POST bulk_docs", { Commands });
const typeOf = (reply: { json: unknown }) => (reply.json as { Type: string }).Type;

describe("POST bulk_docs", () => {
  test("returns a row for each command, with its members in order", async () => {
    const reply = await batch(
      { Type: "PUT", Id: "users/1", Document: { N: 1, "@metadata": { "@collection": "Users" } } },
      { Document: {}, Id: "auto/", Type: "PUT" },
      { Type: "DELETE", Id: "nobody" },
      { Type: "DELETE", Id: "users/1" },
    );
    expect(reply.status).toBe(201);
    const { Results } = reply.json as { Results: Record<string, unknown>[] };
    expect(Results.map((row) => Object.keys(row))).toEqual([
      ["Type", "@id", "@collection", "@change-vector", "@last-modified"],
      ["Type", "@id", "@collection", "@change-vector", "@last-modified"],
      ["Id", "Type", "Deleted"],
      ["Id", "Type", "Deleted", "ChangeVector"],
    ]);
    expect(Results[1]).toMatchObject({ "@collection": "@empty" });
    expect(Results[1]?.["@id"]).toMatch(/^auto\/\d{19}-A$/);
    expect(Results.slice(2)).toEqual([
      { Id: "nobody", Type: "DELETE", Deleted: false },
      { Id: "users/1", Type: "DELETE", Deleted: true, ChangeVector: null },
    ]);
  });

  test("creates a GUID for a document without an id, and an identity for an id that ends in |", async () => {
    const reply = await batch(
      { Type: "PUT", Id: null, Document: {} },
      { Type: "PUT", Id: " ", Document: {} },
      { Type: "PUT", Id: "ident|", Document: {} },
    );
    const ids = (reply.json as { Results: { "@id": string }[] }).Results.map((row) => row["@id"]);
    expect(ids[0]).toMatch(/^[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-[0-9a-f]{4}-[0-9a-f]{12}$/);
    expect(ids[1]).not.toBe(ids[0]);
    expect(ids[2]).toBe("ident/1");
  });

  test("reports errors in a script even if the document does not exist", async () => {
    const broken = { Script: "this.a =" };
    for (const scripts of [{ Patch: broken }, { Patch: { Script: "" }, PatchIfMissing: broken }]) {
      const reply = await batch({ Type: "PATCH", Id: "nobody", ...scripts });
      expect(reply.json).toMatchObject({
        Type: "Raven.Client.Exceptions.Documents.Patching.JavaScriptParseException",
      });
    }
  });

  test("fails on an identity whose id is in use; the next attempt skips it", async () => {
    await batch({ Type: "PUT", Id: "taken/1", Document: { mine: true } });
    const identity = { Type: "PUT", Id: "taken|", Document: {} };
    const refused = await batch({ Type: "PUT", Id: "with/it", Document: {} }, identity);
    expect([refused.status, refused.json]).toMatchObject([
      409,
      { Type: "Raven.Client.Exceptions.ConcurrencyException", Id: "taken/1" },
    ]);
    expect((await client.send("GET docs?id=with%2Fit")).status).toBe(404);
    expect((await client.send("GET docs?id=taken%2F1")).text).toContain('"mine":true');
    expect((await batch(identity)).json).toMatchObject({ Results: [{ "@id": "taken/2" }] });
  });

  test("preserves the spelling of numbers and the order of keys", async () => {
    const text = '{"z":1.50,"a":9223372036854775807,"e":1E5,"n":123456789012345678901234567890}';
    const body = `{"Commands":[{"Id":"exact","Document": ${text} ,"Type":"PUT"}]}`;
    expect((await client.send("POST bulk_docs", body)).status).toBe(201);
    expect((await client.send("GET docs?id=exact")).text).toContain(text.slice(0, -1));
  });

  test("has no effect when a command fails", async () => {
    const before = (await client.send("GET docs")).headers.etag;
    const reply = await batch(
      { Type: "PUT", Id: "atomic/1", Document: {} },
      {
        Type: "Counters",
        Id: "x",
        Counters: {
          DocumentId: "atomic/1",
          Operations: [{ Type: "Increment", CounterName: "c", Delta: 1 }],
        },
      },
      { Type: "PUT", Id: "atomic/2", ChangeVector: "A:1-x", Document: {} },
    );
    expect(reply.status).toBe(409);
    expect(reply.json).toMatchObject({
      Type: "Raven.Client.Exceptions.ConcurrencyException",
      Id: "atomic/2",
      ExpectedChangeVector: "A:1-x",
      ActualChangeVector: null,
    });
    expect((await client.send("GET docs?id=atomic%2F1")).status).toBe(404);
    expect((await client.send("GET docs")).headers.etag).toBe(before);
  });

  test("checks change vectors, where '' requires that the document does not exist", async () => {
    const put = await client.json("PUT docs?id=cv%2F1", {});
    const { ChangeVector } = put as { ChangeVector: string };
    const statuses = [
      await batch({ Type: "PUT", Id: "cv/1", ChangeVector: "", Document: {} }),
      await batch({ Type: "DELETE", Id: "cv/none", ChangeVector: "" }),
      await batch({ Type: "DELETE", Id: "cv/1", ChangeVector: "A:0-x" }),
      await batch({ Type: "PUT", Id: "cv/1", ChangeVector, Document: {} }),
      await batch({ Type: "PUT", Id: "cv/1", ChangeVector: null, Document: {} }),
    ].map(({ status }) => status);
    expect(statuses).toEqual([409, 409, 409, 201, 201]);
  });

  test("later commands see the effects of earlier ones", async () => {
    const reply = await batch(
      { Type: "PUT", Id: "seq/1", Document: { n: 1 } },
      { Type: "DELETE", Id: "SEQ/1" },
      { Type: "PUT", Id: "seq/1", ChangeVector: "", Document: { n: 2 } },
    );
    expect(reply.status).toBe(201);
    expect((await client.send("GET docs?id=seq%2F1")).text).toContain('"n":2');
  });

  test("deletes by prefix both stored documents and those of the batch", async () => {
    await batch(
      { Type: "PUT", Id: "pre/1", Document: {} },
      { Type: "PUT", Id: "prefer", Document: {} },
    );
    const reply = await batch(
      { Type: "PUT", Id: "Pre/2", Document: {} },
      { Type: "DELETE", Id: "pre/", IdPrefixed: true },
      { Type: "DELETE", Id: "pre/", IdPrefixed: true },
    );
    const { Results } = reply.json as { Results: unknown[] };
    expect(Results.slice(1)).toEqual([
      { Id: "pre/", Type: "DELETE", Deleted: true },
      { Id: "pre/", Type: "DELETE", Deleted: false },
    ]);
    const rest = (await client.json("GET docs?startsWith=pre")) as { Results: unknown[] };
    expect(rest.Results).toHaveLength(1);
    expect((await batch({ Type: "DELETE", Id: "", IdPrefixed: true })).status).toBe(400);
  });

  test("rejects invalid batches, each with its error type", async () => {
    const types: string[] = [];
    for (const text of [
      "",
      "{}",
      "[]",
      '{"Commands":null}',
      '{"Commands":[5]}',
      '{"Commands":[{}]}',
      '{"commands":[]}',
      "{bad",
      '{"Commands":[{"Type":"FOO","Id":"x"}]}',
      '{"Commands":[{"Type":5}]}',
      '{"Commands":[{"Type":"PUT","Id":"x"}]}',
      '{"Commands":[{"Type":"PUT","Id":5,"Document":{}}]}',
      '{"Commands":[{"Type":"PUT","Id":"x","Document":5}]}',
      '{"Commands":[{"Type":"PUT","Id":"x","Document":{"a":01}}]}',
      '{"Commands":[{"Type":"PUT","Id":"x","Document":{}}]',
      '{"Commands":[]}garbage',
      '{"Commands":[{"Type":"PUT","Id":"x","Bogus":tru,"Document":{}}]}',
    ]) {
      const reply = await client.send("POST bulk_docs", text);
      expect(reply.status, text).toBe(400);
      types.push(typeOf(reply));
    }
    expect(types).toEqual([
      "System.IO.EndOfStreamException",
      "System.InvalidOperationException",
      "System.InvalidOperationException",
      "System.InvalidOperationException",
      "System.InvalidOperationException",
      "System.InvalidOperationException",
      "System.InvalidOperationException",
      "System.IO.InvalidDataException",
      "Raven.Server.Exceptions.InvalidCommandTypeException",
      "System.InvalidOperationException",
      "System.InvalidOperationException",
      "System.InvalidOperationException",
      "Sparrow.Exceptions.InvalidStartOfObjectException",
      "System.IO.InvalidDataException",
      "System.IO.EndOfStreamException",
      "System.IO.InvalidDataException",
      "System.IO.InvalidDataException",
    ]);
    expect((await client.send("GET docs?id=x")).status).toBe(404);
  });

  test("skips compare-exchange commands, which only cluster-wide batches execute", async () => {
    const text = '{"Commands":[{"Type":"CompareExchangePUT","Id":"x"}]}';
    expect((await client.send("POST bulk_docs", text)).text).toBe('{"Results":[]}');
  });

  test("returns no rows if none are requested", async () => {
    const reply = await client.send("POST bulk_docs?noreply=true", {
      Commands: [{ Type: "PUT", Id: "quiet/1", Document: {} }],
    });
    expect([reply.status, reply.text]).toEqual([201, '{"Results":[]}']);
    expect((await client.send("GET docs?id=quiet%2F1")).status).toBe(200);
  });

  test("a majority of one node is reached; two nodes time out, and the write persists", async () => {
    const put = (query: string, id: string) =>
      client.send(`POST bulk_docs?${query}`, { Commands: [{ Type: "PUT", Id: id, Document: {} }] });
    const wait = "waitForReplicasTimeout=00:00:00.1";
    expect((await put(`${wait}&numberOfReplicasToWaitFor=majority`, "w/1")).status).toBe(201);
    const two = await put(`${wait}&numberOfReplicasToWaitFor=2`, "w/2");
    expect([two.status, typeOf(two)]).toEqual([
      408,
      "Raven.Client.Exceptions.RavenTimeoutException",
    ]);
    expect((await client.send("GET docs?id=w%2F2")).status).toBe(200);
    const quiet = `${wait}&numberOfReplicasToWaitFor=2&throwOnTimeoutInWaitForReplicas=false`;
    expect((await put(quiet, "w/3")).status).toBe(201);
    expect((await put(`${wait}&numberOfReplicasToWaitFor=x`, "w/4")).status).toBe(400);
    expect((await client.send("GET docs?id=w%2F4")).status).toBe(404);
  });

  test("waits until indexes include the write", async () => {
    const query = (n: number) =>
      client.json("POST queries", {
        Query: `from Waited where n = ${n}`,
        WaitForNonStaleResults: true,
      });
    await query(0);
    const put = (wait: string, n: number) =>
      client.send(`POST bulk_docs?${wait}`, {
        Commands: [
          {
            Type: "PUT",
            Id: `waited/${n}`,
            Document: { n, "@metadata": { "@collection": "Waited" } },
          },
        ],
      });
    for (let n = 1; n < 20; n++) {
      const wait =
        n % 2 === 0 ? "" : "&waitForSpecificIndex=auto%2Fwaited%2Fbyn&waitForSpecificIndex=none";
      expect((await put(`waitForIndexesTimeout=00:00:05${wait}`, n)).status).toBe(201);
      const found = await client.json("POST queries", { Query: `from Waited where n = ${n}` });
      expect(found).toMatchObject({ IsStale: false, Results: [{ n }] });
    }
    expect((await put("waitForIndexesTimeout=soon", 99)).status).toBe(400);
  });

  test("counters keep 64 bits, and the row has the document's change vector if its counter list changed", async () => {
    await client.send("PUT docs?id=c%2F1", {});
    const command = (delta: string) =>
      `{"Commands":[{"Type":"Counters","Id":"c/1","Counters":{"DocumentId":"c/1","Operations":[{"Type":"Increment","CounterName":"n","Delta":${delta}}]}}]}`;
    const first = await client.send("POST bulk_docs", command("9007199254740993"));
    expect(first.text).toContain('"TotalValue":9007199254740993');
    const { Results } = first.json as { Results: { DocumentChangeVector: string | null }[] };
    const etag = (await client.send("GET docs?id=c%2F1")).headers.etag;
    expect(`"${Results[0]?.DocumentChangeVector}"`).toBe(etag);
    const second = await client.send("POST bulk_docs", command("1"));
    expect(second.text).toContain('"DocumentChangeVector":null');
  });
});

describe("POST bulk_docs with attachments", () => {
  const type = { "content-type": "multipart/form-data; boundary=XyZ" };

  test("assigns contents by order, with any chunks and bytes", async () => {
    const tricky = Buffer.from(
      "\r\n--Xy\r\n--XyZ-not\r\n\u0000--XyZ\r\n"
        .replace("--XyZ-not", "--XyQ")
        .replace("--XyZ", "--Xyy"),
    );
    const big = Buffer.alloc(300_000, "abc\r\n--XyZZ".slice(0, 9));
    const main = JSON.stringify({
      Commands: [
        { Type: "PUT", Id: "a/1", Document: { "@metadata": { "@collection": "As" } } },
        { Type: "AttachmentPUT", Id: "a/1", Name: "tricky", ContentType: "text/plain" },
        { Type: "AttachmentPUT", Id: "a/1", Name: "empty", ContentType: null },
        { Type: "AttachmentPUT", Id: "a/1", Name: "big" },
      ],
    });
    const body = multipart("XyZ", [main, tricky, "", big, "surplus"]);
    const reply = await client.send("POST bulk_docs", body, type);
    expect(reply.status).toBe(201);
    const rows = (reply.json as { Results: Record<string, unknown>[] }).Results;
    expect(rows.map((row) => row["ContentType"])).toEqual([undefined, "text/plain", "", null]);
    expect(rows.map((row) => row["Size"])).toEqual([undefined, tricky.length, 0, big.length]);
    const etag = (await client.send("GET docs?id=a%2F1")).headers.etag;
    expect(`"${rows[3]?.["DocumentChangeVector"]}"`).toBe(etag);
    const get = (name: string) => client.send(`GET attachments?id=a%2F1&name=${name}`);
    expect((await get("tricky")).body.equals(tricky)).toBe(true);
    expect((await get("big")).body.equals(big)).toBe(true);
    expect((await get("empty")).body).toHaveLength(0);
  });

  test("accepts gzip-compressed sections", async () => {
    const main = JSON.stringify({
      Commands: [
        { Type: "PUT", Id: "a/2", Document: { "@metadata": { "@collection": "As" } } },
        { Type: "AttachmentPUT", Id: "a/2", Name: "folded" },
        { Type: "AttachmentPUT", Id: "a/2", Name: "plain" },
      ],
    });
    const part = (headers: string, content: Buffer | string) => [
      Buffer.from(`--XyZ\r\nContent-Disposition: form-data; name="p"\r\n${headers}\r\n`),
      Buffer.from(content),
      Buffer.from("\r\n"),
    ];
    const body = Buffer.concat([
      ...part("Content-Encoding: gzip\r\n", gzipSync(main)),
      ...part("Content-Encoding: gzip\r\n", gzipSync("folded content")),
      ...part("Command-Type: AttachmentStream\r\n", "plain content"),
      Buffer.from("--XyZ--\r\n"),
    ]);
    expect((await client.send("POST bulk_docs", body, type)).status).toBe(201);
    const get = (name: string) => client.send(`GET attachments?id=a%2F2&name=${name}`);
    expect((await get("folded")).text).toBe("folded content");
    expect((await get("plain")).text).toBe("plain content");
  });

  test("copies, moves and deletes", async () => {
    await client.send("PUT docs?id=src", {});
    await client.send("PUT docs?id=dst", {});
    await client.send("PUT attachments?id=src&name=one&contentType=t%2Fx", "1");
    await client.send("PUT attachments?id=src&name=two", "2");
    const reply = await batch(
      {
        Type: "AttachmentCOPY",
        Id: "src",
        Name: "one",
        DestinationId: "dst",
        DestinationName: "copy",
      },
      {
        Type: "AttachmentMOVE",
        Id: "src",
        Name: "two",
        DestinationId: "dst",
        DestinationName: "moved",
      },
      { Type: "AttachmentDELETE", Id: "src", Name: "one" },
      { Type: "AttachmentDELETE", Id: "nobody", Name: "x" },
    );
    expect(reply.status).toBe(201);
    const rows = (reply.json as { Results: Record<string, unknown>[] }).Results;
    expect(rows.map((row) => Object.keys(row))).toEqual([
      ["Id", "Type", "Name", "ChangeVector", "Hash", "ContentType", "Size", "DocumentChangeVector"],
      [
        "Id",
        "Type",
        "Name",
        "DestinationId",
        "DestinationName",
        "ChangeVector",
        "Hash",
        "ContentType",
        "Size",
        "DocumentChangeVector",
        "DestinationDocumentChangeVector",
      ],
      ["Type", "@id", "Name", "DocumentChangeVector"],
      ["Type", "@id", "Name"],
    ]);
    const names = async (id: string) => {
      const { Results } = (await client.json(`GET docs?id=${id}`)) as {
        Results: { "@metadata": { "@attachments"?: { Name: string }[] } }[];
      };
      return Results[0]?.["@metadata"]["@attachments"]?.map(({ Name }) => Name);
    };
    expect(await names("src")).toBeUndefined();
    expect(await names("dst")).toEqual(["copy", "moved"]);
    const taken = {
      Type: "AttachmentMOVE",
      Id: "dst",
      Name: "copy",
      DestinationId: "dst",
      DestinationName: "moved",
    };
    expect((await batch(taken)).status).toBe(409);
    expect(typeOf(await batch({ ...taken, Name: "no" }))).toBe(
      "Raven.Client.Exceptions.Documents.Attachments.AttachmentDoesNotExistException",
    );
  });

  test("rejects a batch with too few contents, a truncated body, and a missing boundary", async () => {
    const main =
      '{"Commands":[{"Type":"PUT","Id":"m/1","Document":{}},{"Type":"AttachmentPUT","Id":"m/1","Name":"a"}]}';
    const few = await client.send("POST bulk_docs", multipart("XyZ", [main]), type);
    expect([few.status, typeOf(few)]).toEqual([400, "System.NullReferenceException"]);
    const whole = multipart("XyZ", [main, "content"]);
    const cut = await client.send("POST bulk_docs", whole.subarray(0, whole.length - 12), type);
    expect([cut.status, typeOf(cut)]).toEqual([400, "System.IO.EndOfStreamException"]);
    const bare = await client.send("POST bulk_docs", whole, { "content-type": "multipart/mixed" });
    expect(bare.status).toBe(400);
    expect((await client.send("GET docs?id=m%2F1")).status).toBe(404);
    expect(await client.json("GET stats")).toMatchObject({
      CountOfUniqueAttachments: expect.any(Number),
    });
  });

  test("releases contents that no command used", async () => {
    const { CountOfUniqueAttachments } = (await client.json("GET stats")) as Record<string, number>;
    const main = '{"Commands":[{"Type":"AttachmentPUT","Id":"nobody","Name":"a"}]}';
    const reply = await client.send("POST bulk_docs", multipart("XyZ", [main, "nobody's"]), type);
    expect(typeOf(reply)).toBe("Raven.Client.Exceptions.Documents.DocumentDoesNotExistException");
    expect(await client.json("GET stats")).toMatchObject({ CountOfUniqueAttachments });
  });
});

describe("PATCH in a batch", () => {
  test("patches, creates and reports unchanged documents", async () => {
    await client.send("PUT docs?id=p%2F1", { N: 1 });
    const reply = await batch(
      { Type: "PATCH", Id: "p/1", Patch: { Script: "this.N = args.v", Values: { v: 7 } } },
      { Type: "PATCH", Id: "p/1", Patch: { Script: "this.N = 7" }, ReturnDocument: true },
      { Type: "PATCH", Id: "p/none", Patch: { Script: "this.N = 7" } },
      { Type: "PATCH", Id: "p/2", Patch: { Script: "" }, PatchIfMissing: { Script: "this.M = 1" } },
      {
        Type: "BatchPATCH",
        Ids: [{ Id: "p/1" }, { Id: "p/2" }],
        Patch: { Script: "this.b = true" },
      },
    );
    expect(reply.status).toBe(201);
    const rows = (reply.json as { Results: Record<string, unknown>[] }).Results;
    expect(rows.map((row) => row["PatchStatus"])).toEqual([
      "Patched",
      "NotModified",
      "DocumentDoesNotExist",
      "Created",
      undefined,
    ]);
    expect(rows[1]).toMatchObject({
      ChangeVector: null,
      LastModified: "0001-01-01T00:00:00.0000000",
      ModifiedDocument: { N: 7 },
    });
    expect((await client.send("GET docs?id=p%2F2")).text).toContain('"M":1,"b":true');
  });
});

describe("JsonPatch in a batch", () => {
  const patch = (...Operations: object[]) =>
    batch({ Type: "JsonPatch", Id: "j/1", JsonPatch: { Operations } });
  const textOf = async () => (await client.send("GET docs?id=j%2F1")).text;

  test("changes the members named by its paths, and preserves the spelling of the rest", async () => {
    await client.send(
      "PUT docs?id=j%2F1",
      '{"a":1,"list":[1,2],"big":9223372036854775807,"f":1.50,"a/b~c":0,"@metadata":{"@collection":"Js"}}',
    );
    const reply = await patch(
      { op: "add", path: "/list/-", value: 3 },
      { op: "add", path: "/list/0", value: 0 },
      { op: "remove", path: "/list/1" },
      { op: "replace", path: "/a~1b~0c", value: { x: null } },
      { op: "copy", from: "/list", path: "/copied" },
      { op: "move", from: "/a", path: "/moved" },
      { op: "test", path: "/moved", value: 1.0 },
      { op: "add", path: "/@metadata/note", value: "n" },
    );
    expect(reply.status).toBe(201);
    expect((reply.json as { Results: unknown[] }).Results[0]).toEqual({
      Id: "j/1",
      ChangeVector: expect.stringMatching(/^A:\d+-/),
      LastModified: expect.stringMatching(/Z$/),
      Type: "JsonPatch",
      PatchStatus: "Patched",
      Etag: expect.any(Number),
    });
    expect(await textOf()).toContain(
      '{"list":[0,2,3],"big":9223372036854775807,"f":1.50,"a/b~c":{"x":null},"copied":[0,2,3],"moved":1,"@metadata":{"@collection":"Js","note":"n",',
    );
  });

  test("is applied as a whole or not at all, and reports if nothing changed", async () => {
    const before = await textOf();
    for (const [operation, type] of [
      [{ op: "test", path: "/moved", value: 2 }, "System.InvalidOperationException"],
      [{ op: "replace", path: "/nowhere", value: 2 }, "System.InvalidOperationException"],
      [{ op: "remove", path: "/nowhere" }, "System.InvalidOperationException"],
      [{ op: "remove", path: "/list/9" }, "System.InvalidOperationException"],
      [{ op: "add", path: "/no/where", value: 2 }, "System.InvalidOperationException"],
      [{ op: "add", path: "/list/9", value: 2 }, "System.InvalidOperationException"],
      [{ op: "move", from: "/list", path: "/list/0" }, "System.InvalidOperationException"],
      [{ op: "foo", path: "/moved" }, "System.ArgumentException"],
      [{ op: "add", value: 1 }, "System.ArgumentException"],
      [{ op: "add", path: "/moved" }, "System.ArgumentException"],
    ] as const) {
      const reply = await patch({ op: "add", path: "/never", value: 1 }, operation);
      expect([reply.status, typeOf(reply)], JSON.stringify(operation)).toEqual([400, type]);
    }
    const same = await patch({ op: "test", path: "/moved", value: 1 });
    expect(same.text).toContain('"PatchStatus":"NotModified"');
    expect(await textOf()).toBe(before);
    const missing = await batch({ Type: "JsonPatch", Id: "j/none", JsonPatch: { Operations: [] } });
    expect(missing.text).toContain('"PatchStatus":"DocumentDoesNotExist"');
    const stale = {
      Type: "JsonPatch",
      Id: "j/1",
      ChangeVector: "A:1-x",
      JsonPatch: { Operations: [] },
    };
    expect((await batch(stale)).status).toBe(409);
  });

  test("returns the document on request", async () => {
    await client.send("PUT docs?id=j%2F2", '{"a":1.50,"@metadata":{"@collection":"Js","n":1}}');
    const row = async (value: number, ReturnDocument: boolean, Id = "j/2") => {
      const JsonPatch = { Operations: [{ op: "Replace", path: "a", value }] };
      const { text } = await batch({ Type: "JsonPatch", Id, JsonPatch, ReturnDocument });
      return /"PatchStatus.*/.exec(text)?.[0].replace(/"Etag":\d+/, '"Etag":_');
    };
    expect(await row(2, true)).toBe(
      '"PatchStatus":"Patched","Etag":_,"ModifiedDocument":{"a":2,"@metadata":{"@collection":"Js","n":1}}}]}',
    );
    expect(await row(2, true)).toBe(
      '"PatchStatus":"NotModified","Etag":_,"ModifiedDocument":null}]}',
    );
    expect(await row(3, false)).toBe('"PatchStatus":"Patched","Etag":_}]}');
    expect(await row(3, true, "j/none")).toBe(
      '"PatchStatus":"DocumentDoesNotExist","Etag":_,"ModifiedDocument":null}]}',
    );
  });
});

describe("PATCH json-patch", () => {
  const patch = (Operations: unknown, id = "j%2F3", headers = {}) =>
    client.send(`PATCH json-patch?id=${id}`, { Operations }, headers);

  test("changes one document and returns it", async () => {
    await client.send("PUT docs?id=j%2F3", { a: 1, "@metadata": { "@collection": "Js" } });
    expect((await patch([{ op: "add", path: "/list", value: [1] }])).json).toEqual({
      Status: "Patched",
      ModifiedDocument: { a: 1, list: [1], "@metadata": { "@collection": "Js" } },
      LastModified: expect.stringMatching(/Z$/),
      ChangeVector: expect.stringMatching(/^A:\d+-/),
      Collection: "Js",
    });
    const same = await patch([{ op: "test", path: "/list/0", value: 1 }]);
    expect([same.status, same.json]).toEqual([200, { Status: "NotModified" }]);
  });

  test("rejects impossible operations", async () => {
    const failed = await patch([{ op: "test", path: "/list/0", value: 2 }]);
    expect([failed.status, typeOf(failed)]).toEqual([400, "System.InvalidOperationException"]);
    expect(failed.text).toContain(
      "An error occurred while trying to apply json patch operation to document j/3.",
    );
    expect(typeOf(await patch([], "none"))).toMatch(/DocumentDoesNotExistException$/);
    expect(typeOf(await patch(undefined))).toBe("System.ArgumentException");
    const stale = await patch([{ op: "remove", path: "/a" }], "j%2F3", { "if-match": '"A:1-x"' });
    expect(stale.status).toBe(409);
    expect((await client.send("PATCH json-patch", { Operations: [] })).status).toBe(400);
  });
});

describe("BatchTrackChanges", () => {
  const rows = async (...commands: object[]) => {
    const reply = await batch(...commands);
    return reply.status === 201 ? (reply.json as { Results: object[] }).Results : reply;
  };
  const track = (TrackedEntities: unknown) => ({ Type: "BatchTrackChanges", TrackedEntities });
  const put = { Type: "PUT", Id: "track/2", Document: { n: 1 } };

  test("accepts a batch while the read documents are unchanged", async () => {
    const { ChangeVector } = (await client.json("PUT docs?id=track%2F1", { n: 1 })) as {
      ChangeVector: string;
    };
    const unread = { "track/2": "", "track/1": ChangeVector, "track/3": null };
    expect(await rows(track(unread), put)).toMatchObject([
      { Type: "BatchTrackChanges", Result: 1 },
      { Type: "PUT", "@id": "track/2" },
    ]);
  });

  test("rejects the whole batch if one was changed, deleted or created", async () => {
    const never = { ...put, Id: "track/never" };
    for (const [id, vector] of [
      ["track/1", "A:1-other"],
      ["track/gone", "A:1-other"],
      ["track/2", ""],
    ] as const) {
      const reply = await batch(never, track({ [id]: vector }));
      expect(reply.status).toBe(409);
      expect(reply.json).toMatchObject({ Id: id, ExpectedChangeVector: vector });
    }
    expect((await client.send("GET docs?id=track%2Fnever")).status).toBe(404);
  });

  test("requires an object of change vectors", async () => {
    for (const tracked of [undefined, null, [1], { "track/1": 5 }]) {
      expect((await batch(track(tracked))).status).toBe(400);
    }
  });
});
