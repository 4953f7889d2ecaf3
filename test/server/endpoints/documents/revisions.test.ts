import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { type EndpointClient, startEndpointClient } from "../../../support/endpoint-client.ts";
import { stopTestServers } from "../../../support/start-test-server.ts";

let client: EndpointClient;
beforeAll(async () => {
  client = await startEndpointClient();
  const reply = await client.send("POST admin/revisions/config", {
    Collections: { Users: { MinimumRevisionsToKeep: 2 } },
  });
  expect(reply.status).toBe(200);
});
afterAll(stopTestServers);

interface Shown {
  readonly Results: readonly ({ readonly "@metadata": Record<string, string> } | null)[];
  readonly TotalResults?: number;
}

const put = async (id: string, fields: object, collection = "Users") =>
  (
    (await client.json(`PUT docs?id=${id}`, {
      ...fields,
      "@metadata": { "@collection": collection },
    })) as { ChangeVector: string }
  ).ChangeVector;
const revisions = async (query: string) => (await client.json(`GET revisions?${query}`)) as Shown;
const flags = ({ Results }: Shown) => Results.map((each) => each?.["@metadata"]["@flags"]);

/**
 * DELETE admin/revisions with a body; Node's client does not announce the body of a DELETE by
 * itself.
 */
const drop = async (body: object) => {
  const length = JSON.stringify(body).length;
  return (await client.send("DELETE admin/revisions", body, { "content-length": `${length}` }))
    .json;
};

/** Waits for an operation to complete. @returns its result */
async function resultOf(reply: unknown): Promise<Record<string, unknown>> {
  const { OperationId } = reply as { OperationId: number };
  const { Result } = await client.ended(`operations/state?id=${OperationId}`);
  return Result as Record<string, unknown>;
}

describe("revisions", () => {
  test("are read by document, newest first, in pages, before a time, and by change vector", async () => {
    const first = await put("r1", { n: 1 });
    const second = await put("r1", { n: 2 });
    const all = await client.send("GET revisions?id=R1");
    expect((all.json as Shown).TotalResults).toBe(2);
    expect(flags(all.json as Shown)).toEqual(["HasRevisions, Revision", "HasRevisions, Revision"]);
    const again = await client.send("GET revisions?id=R1", undefined, {
      "if-none-match": String(all.headers["etag"]),
    });
    expect(again.status).toBe(304);
    const page = await client.send("GET revisions?id=r1&start=1&pageSize=1&metadataOnly=true");
    expect(page.headers["etag"]).toBe(`"${first}"`);
    expect(Object.keys((page.json as Shown).Results[0] ?? {})).toEqual(["@metadata"]);
    const none = await client.send("GET revisions?id=r1&before=2001-01-01T00:00:00.0000000Z");
    expect([none.headers["etag"], none.text]).toEqual([
      '"nothing"',
      '{"Results":[],"TotalResults":0}',
    ]);
    const byVector = await revisions(
      `changeVector=${encodeURIComponent(second)}&changeVector=A:1-none`,
    );
    expect(byVector.Results.map((each) => each?.["@metadata"]["@change-vector"])).toEqual([
      second,
      undefined,
    ]);
    expect((await client.send("GET revisions?changeVector=A:1-none")).status).toBe(404);
    expect((await client.send("GET revisions")).status).toBe(400);
    expect(await client.json("GET revisions/count?id=r1")).toEqual({ RevisionsCount: 2 });
  });

  test("of deleted documents are in the bin until the document is stored again", async () => {
    await put("b1", { n: 1 });
    await client.send("DELETE docs?id=b1");
    const bin = (await client.json("GET revisions/bin")) as Shown;
    expect(bin.Results.map((each) => each?.["@metadata"]["@id"])).toEqual(["b1"]);
    await put("b1", { n: 2 });
    expect(await client.json("GET revisions/bin")).toEqual({ Results: [] });
  });

  test("are included in a load by change vector and by time", async () => {
    const first = await put("i1", { n: 1 });
    await put("i1", { n: 2 });
    await put("p1", { first, list: [first, "x"] }, "Pointers");
    const byPath = await client.json("GET docs?id=p1&revisions=first&revisions=list");
    expect(byPath).toMatchObject({
      RevisionIncludes: [{ Id: "i1", ChangeVector: first, Revision: { n: 1 } }],
    });
    const before = "2090-01-01T00:00:00.0000000Z";
    const byTime = await client.json(`GET docs?id=i1&revisionsBefore=${before}`);
    expect(byTime).toMatchObject({
      RevisionIncludes: [{ Id: "i1", Before: before, Revision: { n: 2 } }],
    });
    expect((await client.send("GET docs?id=p1&revisions=none")).status).toBe(400);
  });

  test("return the contents of their attachments after the document has lost them", async () => {
    await put("a1", {});
    await client.send("PUT attachments?id=a1&name=File.txt", "hello");
    const { Results } = await revisions("id=a1");
    await client.send("DELETE attachments?id=a1&name=File.txt");
    const sendRequest = (vector: string | undefined) =>
      client.send("POST attachments?id=a1&name=file.txt", {
        Type: "Revision",
        ChangeVector: vector,
      });
    expect((await sendRequest(Results[0]?.["@metadata"]["@change-vector"])).text).toBe("hello");
    expect((await sendRequest(Results[1]?.["@metadata"]["@change-vector"])).status).toBe(404);
  });

  test("are forced by batch commands", async () => {
    await put("f1", { n: 1 }, "Others");
    const force = { Type: "ForceRevisionCreation", Id: "f1" };
    const created = (await client.json("POST bulk_docs", { Commands: [force, force] })) as {
      Results: object[];
    };
    expect(created.Results).toMatchObject([{ RevisionCreated: true }, { RevisionCreated: false }]);
    const document = { n: 2, "@metadata": { "@collection": "Others" } };
    const before = { Type: "PUT", Document: document, ForceRevisionCreationStrategy: "Before" };
    await client.send("POST bulk_docs", { Commands: [{ ...before, Id: "f1" }] });
    await client.send("POST bulk_docs", { Commands: [{ ...before, Id: "f1" }] });
    expect(flags(await revisions("id=f1"))).toHaveLength(2);
    const missing = await client.send("POST bulk_docs", { Commands: [{ ...before, Id: "f2" }] });
    expect(missing.status).toBe(400);
  });

  test("are deleted by name, and by enforcing the configuration", async () => {
    await put("d1", { n: 1 });
    const second = await put("d1", { n: 2 });
    const one = { DocumentIds: ["d1"], RevisionsChangeVectors: [second] };
    expect(await drop(one)).toEqual({ TotalDeletes: 1 });
    const rest = { DocumentIds: ["d1"] };
    expect(await drop(rest)).toEqual({ TotalDeletes: 1 });
    expect((await client.send("GET docs?id=d1")).text).not.toContain("HasRevisions");
    await put("f3", {}, "Others");
    await client.send("POST bulk_docs", {
      Commands: [{ Type: "ForceRevisionCreation", Id: "f3" }],
    });
    const enforce = async (includes: boolean) =>
      resultOf(
        await client.json("POST admin/revisions/config/enforce", {
          IncludeForceCreated: includes,
          Collections: ["others"],
        }),
      );
    expect(await enforce(false)).toMatchObject({ RemovedRevisions: 0 });
    expect(await enforce(true)).toMatchObject({
      $type: "Raven.Client.Documents.Operations.Revisions.EnforceConfigurationResult, Raven.Client",
    });
    expect(await client.json("GET revisions/count?id=f3")).toEqual({ RevisionsCount: 0 });
  });

  test("are adopted if no revision marks their document as deleted", async () => {
    await put("w1", { n: 1 });
    await client.send("DELETE docs?id=w1");
    const [marker] = (await revisions("id=w1")).Results;
    const RevisionsChangeVectors = [marker?.["@metadata"]["@change-vector"]];
    expect(await drop({ DocumentIds: ["w1"], RevisionsChangeVectors })).toEqual({
      TotalDeletes: 1,
    });
    const adopt = async (body: object) =>
      resultOf(await client.json("POST admin/revisions/orphaned/adopt", body));
    expect(await adopt({ Collections: ["others"] })).toMatchObject({ AdoptedCount: 0 });
    expect(await adopt({ Collections: ["users"] })).toMatchObject({
      $type:
        "Raven.Client.Documents.Operations.Revisions.AdoptOrphanedRevisionsResult, Raven.Client",
      AdoptedCount: 1,
    });
    expect(flags(await revisions("id=w1"))).toEqual([
      "HasRevisions, DeleteRevision",
      "HasRevisions, Revision",
    ]);
    expect(await adopt({})).toMatchObject({ AdoptedCount: 0, Warnings: {} });
    expect((await client.send("GET revisions/bin")).text).toContain('"@id":"w1"');
  });

  test("are dropped from the bin if the database is configured to", async () => {
    expect((await client.send("GET revisions/bin-cleaner/config")).status).toBe(404);
    const configure = async (body: object) =>
      (await client.send("POST admin/revisions/bin-cleaner/config", body)).status;
    expect(await configure({ CleanerFrequencyInSec: 0 })).toBe(400);
    expect(await configure({ MinimumEntriesAgeToKeepInMin: -1 })).toBe(400);
    expect(await configure({ MinimumEntriesAgeToKeepInMin: "x" })).toBe(400);
    expect(await configure({})).toBe(200);
    expect(await client.json("GET revisions/bin-cleaner/config")).toEqual({
      Disabled: false,
      MinimumEntriesAgeToKeepInMin: 43_200,
      CleanerFrequencyInSec: 300,
    });
    expect(await configure({ Disabled: true })).toBe(200);
  });

  test("revert documents to a time or to a given revision", async () => {
    const first = await put("v1", { n: 1 });
    await put("v2", { n: 1 });
    await client.send("DELETE docs?id=v2");
    await new Promise((resolve) => setTimeout(resolve, 3));
    const moment = new Date().toISOString().replace("Z", "0000Z");
    await new Promise((resolve) => setTimeout(resolve, 3));
    await put("v1", { n: 2 });
    await put("v2", { n: 2 });
    await put("v3", { n: 1 });
    const request = { Time: moment, Collections: [] };
    const result = await resultOf(await client.json("POST revisions/revert", request));
    expect(result).toMatchObject({ RevertedDocuments: 3 });
    expect((await client.send("GET docs?id=v1")).text).toContain('"n":1');
    expect((await client.send("GET docs?id=v2")).status).toBe(404);
    expect((await client.send("GET docs?id=v3")).status).toBe(404);
    const named = await client.send("POST revisions/revert/docs", {
      IdToChangeVector: { v1: first },
    });
    expect(named.status).toBe(400); // Two are retained; the first was dropped.
    const { Results } = await revisions("id=v3");
    const vector = Results[1]?.["@metadata"]["@change-vector"];
    await client.send("POST revisions/revert/docs", { IdToChangeVector: { v3: vector } });
    expect((await client.send("GET docs?id=v3")).text).toContain("HasRevisions, Reverted");
  });

  test("restore attachments with the document, and remove later ones", async () => {
    await put("w1", { n: 1 });
    await client.send("PUT attachments?id=w1&name=old", "old content");
    const { Results } = await revisions("id=w1");
    const vector = Results[0]?.["@metadata"]["@change-vector"];
    const commands = [
      { Type: "AttachmentDELETE", Id: "w1", Name: "old" },
      { Type: "PUT", Id: "w1", Document: { n: 2, "@metadata": { "@collection": "Users" } } },
    ];
    await client.send("POST bulk_docs", { Commands: commands });
    await client.send("PUT attachments?id=w1&name=new", "new content");
    await client.send("POST admin/revisions/config", { Collections: { Users: {} } });
    // Two were retained until now: the revision with the old attachment was dropped, so a new one
    // is created.
    expect(
      (await client.send("POST revisions/revert/docs", { IdToChangeVector: { w1: vector } }))
        .status,
    ).toBe(400);
    await client.send("PUT attachments?id=w1&name=old", "old content");
    const kept = (await revisions("id=w1")).Results[0]?.["@metadata"]["@change-vector"];
    await client.send("DELETE attachments?id=w1&name=old");
    await client.send("PUT attachments?id=w1&name=third", "third");
    const back = await client.send("POST revisions/revert/docs", {
      IdToChangeVector: { w1: kept },
    });
    expect(back.status).toBe(200);
    expect((await client.send("GET attachments?id=w1&name=old")).text).toBe("old content");
    expect((await client.send("GET attachments?id=w1&name=third")).status).toBe(404);
    expect((await client.send("GET docs?id=w1")).text).toContain('"Name":"old"');
  });

  test("are counted, in total and by collection", async () => {
    const { CountOfRevisionDocuments: count } = (await client.json("GET stats/essential")) as {
      CountOfRevisionDocuments: number;
    };
    await put("c1", {}, "Users");
    const stats = await client.json("GET stats/essential");
    expect(stats).toMatchObject({ CountOfRevisionDocuments: count + 1 });
    const detailed = (await client.json("GET collections/stats/detailed")) as {
      Collections: { Users: { CountOfRevisions: number } };
    };
    expect(detailed.Collections.Users.CountOfRevisions).toBeGreaterThan(0);
  });
});

describe("configurations", () => {
  test("are stored in the database record, and read back completely", async () => {
    expect((await client.send("GET expiration/config")).status).toBe(404);
    await client.send("POST admin/expiration/config", { DeleteFrequencyInSec: 100 });
    const kept = { Disabled: false, DeleteFrequencyInSec: 100, MaxItemsToProcess: null };
    expect(await client.json("GET expiration/config")).toEqual(kept);
    expect(await client.json("GET admin/record")).toMatchObject({ Expiration: kept });
    const zero = await client.send("POST admin/refresh/config", { RefreshFrequencyInSec: 0 });
    expect(zero.status).toBe(400);
    const twice = await client.send("POST admin/revisions/config", {
      Collections: { Users: {}, users: {} },
    });
    expect(twice.text).toContain("Collection name : 'users'");
    const missing = await client.send("POST admin/revisions/config", {
      Collections: { Users: null },
    });
    expect(missing.status).toBe(400);
  });

  test("of clients have an increasing etag", async () => {
    expect(await client.json("GET configuration/client")).toEqual({
      Etag: -2,
      Configuration: null,
    });
    await client.send("PUT admin/configuration/client", { MaxNumberOfRequestsPerSession: 7 });
    const { Etag, Configuration } = (await client.json("GET configuration/client")) as {
      Etag: number;
      Configuration: object;
    };
    expect(Etag).toBeGreaterThan(0);
    expect(Configuration).toMatchObject({ MaxNumberOfRequestsPerSession: 7 });
  });
});

test("GET replication/conflicts reports none on a single node", async () => {
  expect(await client.json("GET replication/conflicts?docId=users%2F1")).toEqual({
    Id: "users/1",
    LargestEtag: 0,
    Results: [],
  });
  expect(await client.json("GET replication/conflicts")).toEqual({
    TotalResults: 0,
    SkippedResults: 0,
    Results: [],
    ContinuationToken: null,
  });
});
