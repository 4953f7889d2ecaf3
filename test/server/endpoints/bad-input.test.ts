/**
 * Requests with members of wrong types, missing members and ids that are too long: the error types
 * of RavenDB 7.2.7.
 */
import { afterAll, beforeAll, expect, test } from "vitest";
import { type EndpointClient, startEndpointClient } from "../../support/endpoint-client.ts";
import { stopTestServers } from "../../support/start-test-server.ts";

let client: EndpointClient;
beforeAll(async () => {
  client = await startEndpointClient();
  await client.send("PUT docs?id=u/1", { a: 1 });
});
afterAll(stopTestServers);

const long = "x".repeat(600);
const [argument, operation] = ["System.ArgumentException", "System.InvalidOperationException"];
const [data, format] = ["System.IO.InvalidDataException", "System.FormatException"];
const noObject = "Sparrow.Exceptions.InvalidStartOfObjectException";

async function expectRefused(request: string, body: unknown, type: string): Promise<void> {
  const { status, json } = await client.send(request, body as object | undefined);
  expect([request, body, status, json]).toMatchObject([request, body, 400, { Type: type }]);
}

test("ids of more than 512 bytes are rejected, also on reads", async () => {
  const paths = [
    `docs?id=${long}`,
    `docs?id=a&id=${long}`,
    `docs/size?id=${long}`,
    `docs/class?id=${long}`,
    `revisions?id=${long}`,
    `revisions/count?id=${long}`,
    `timeseries?docId=${long}&name=h`,
    `timeseries/ranges?docId=${long}&name=h&from=&to=`,
    `timeseries/stats?docId=${long}`,
    `counters?docId=${long}`,
    `counters?docId=${long}&counter=a`,
    `attachments?id=${long}&name=a`,
  ];
  for (const path of paths) await expectRefused(`GET ${path}`, undefined, argument);
  for (const path of [`docs?id=${long}`, `attachments?id=${long}&name=a`]) {
    await expectRefused(`DELETE ${path}`, undefined, argument);
    expect((await client.send(`HEAD ${path}`)).status).toBe(400);
  }
  await expectRefused("POST docs", { Ids: [long] }, argument);
  const Operations = [{ Type: "Get", CounterName: "a" }];
  await expectRefused("POST counters", { Documents: [{ DocumentId: long, Operations }] }, argument);
  await expectRefused("POST bulk_docs", { Commands: [{ Type: "DELETE", Id: long }] }, argument);
  expect((await client.send(`GET docs?id=${"x".repeat(512)}`)).status).toBe(404);
});

const script = { Script: "this.a=1" };
const counters = (Operations: unknown) => ({
  Type: "Counters",
  Id: "u/1",
  Counters: { DocumentId: "u/1", Operations },
});

test.each([
  [{ Type: "DELETE", Id: "zz", IdPrefixed: "x" }, operation],
  [{ Type: "DELETE", Id: "zz", IdPrefixed: 5 }, operation],
  [{ Type: "DELETE", Id: "zz", IdPrefixed: null }, operation],
  [{ Type: "PATCH", Id: "u/1", Patch: script, ReturnDocument: "x" }, operation],
  [{ Type: "PATCH", Id: "u/1", Patch: 5 }, noObject],
  [{ Type: "PATCH", Id: "u/1", Patch: "x" }, noObject],
  [{ Type: "PATCH", Id: "u/1", Patch: [] }, noObject],
  [{ Type: "PATCH", Id: "none", Patch: script, PatchIfMissing: 5 }, noObject],
  [{ Type: "PATCH", Id: "u/1", Patch: { ...script, Values: 5 } }, format],
  [{ Type: "BatchPATCH", Ids: null, Patch: script }, noObject],
  [{ Type: "BatchPATCH", Ids: 5, Patch: script }, noObject],
  [{ Type: "BatchPATCH", Ids: {}, Patch: script }, noObject],
  [{ Type: "BatchPATCH", Ids: [{}], Patch: script }, operation],
  [{ Type: "AttachmentPUT" }, operation],
  [{ Type: "AttachmentPUT", Id: "u/1" }, operation],
  [{ Type: "AttachmentPUT", Id: "u/1", Name: null }, operation],
  [{ Type: "AttachmentPUT", Id: "u/1", Name: "x" }, "System.NullReferenceException"],
  [counters(undefined), data],
  [counters(null), data],
  [counters(5), format],
  [counters([{}]), data],
  [counters([{ Type: "Get" }]), data],
  [counters([{ Type: "GetAll" }]), data],
  [counters([{ CounterName: "l", Delta: 1 }]), data],
  [counters([{ Type: "Increment", CounterName: "l" }]), data],
  [counters([{ Type: "Zap", CounterName: "l" }]), argument],
])("the command %j is rejected as %s", async (command, type) => {
  await expectRefused("POST bulk_docs", { Commands: [command] }, type);
});

test.each([
  [counters([])],
  [counters([{ Type: "None", CounterName: "l" }])],
  [counters([{ Type: "Increment", CounterName: "l", Delta: null }])],
  [{ Type: "PATCH", Id: "u/1", Patch: { ...script, Values: null } }],
])("the command %j is executed", async (command) => {
  expect((await client.send("POST bulk_docs", { Commands: [command] })).status).toBe(201);
});

test.each([
  ["POST counters", { Documents: [], ReplyWithAllNodesValues: "x" }, format],
  ["GET revisions/bin?etag=x", undefined, argument],
  ["POST revisions/revert", { Time: "2020-01-01T00:00:00Z", WindowInSec: "x" }, format],
  ["POST revisions/revert", { Time: "2020-01-01T00:00:00Z", Collections: 5 }, format],
  ["POST revisions/revert/docs", { IdToChangeVector: 5 }, format],
])("%s with %j is rejected as %s", async (request, body, type) => {
  await expectRefused(request, body, type);
});

test.each([
  ["POST multi_get", { Requests: null }, "System.NullReferenceException"],
  ["PATCH queries", { Query: null }, "Raven.Client.Exceptions.BadRequestException"],
  ["PUT admin/timeseries/policy?collection=C", { Name: "M", AggregationTime: "1h" }, format],
  ["PUT admin/timeseries/policy?collection=C", { Name: "M", AggregationTime: 5 }, format],
  ["GET task?key=77&type=Nope", undefined, argument],
  ["PUT docs?id=zz", "nope", data],
  ["PUT docs?id=zz", "truth", data],
  ["PUT docs?id=zz", "true", noObject],
])("%s of %j is rejected as %s", async (request, body, type) => {
  await expectRefused(request, body, type);
});

test.each(["Replication", "PullReplicationAsSink", "RavenEtl", "GenAi"])(
  "no task of the type %s is found",
  async (type) => {
    expect((await client.send(`GET task?key=77&type=${type}`)).status).toBe(404);
  },
);

test("a configuration of revisions may have numbers and booleans in text, and in place of each other", async () => {
  const stored = async (Z: object) => {
    const { status } = await client.send("POST admin/revisions/config", { Collections: { Z } });
    if (status !== 200) return status;
    const { Collections } = (await client.json("GET revisions/config")) as {
      Collections: { Z: { Disabled: boolean; MinimumRevisionsToKeep: number | null } };
    };
    return [Collections.Z.Disabled, Collections.Z.MinimumRevisionsToKeep];
  };
  expect(await stored({ MinimumRevisionsToKeep: "2" })).toEqual([false, 2]);
  expect(await stored({ MinimumRevisionsToKeep: " 3 " })).toEqual([false, 3]);
  expect(await stored({ MinimumRevisionsToKeep: true })).toEqual([false, 1]);
  expect(await stored({ MinimumRevisionsToKeep: "" })).toEqual([false, null]);
  expect(await stored({ MinimumRevisionsToKeep: "2.7" })).toBe(400);
  expect(await stored({ Disabled: "True" })).toEqual([true, null]);
  expect(await stored({ Disabled: 0.5 })).toEqual([true, null]);
  expect(await stored({ Disabled: "1" })).toBe(400);
});

test("a counter without a name is stored and listed, but not returned", async () => {
  await client.send("PUT docs?id=u/9", {});
  const send = async (Operations: object[]) => {
    const Documents = [{ DocumentId: "u/9", Operations }];
    return (await client.send("POST counters", { Documents })).text;
  };
  await send([{ Type: "Increment", CounterName: "b", Delta: 1 }]);
  expect(await send([{ Type: "Increment", CounterName: "", Delta: 1 }])).toBe(
    '{"Counters":[null]}',
  );
  expect((await client.send("GET docs?id=u/9")).text).toContain('"@counters":["","b"]');
  const b = { DocumentId: "u/9", CounterName: "b", TotalValue: 1, CounterValues: null };
  expect(await client.json("GET counters?docId=u/9")).toEqual({ Counters: [null, b] });
  const included = await client.json("GET docs?id=u/9&counter=@all_counters");
  expect(included).toMatchObject({ CounterIncludes: { "u/9": [null, { CounterName: "b" }] } });
  await send([{ Type: "Delete", CounterName: "" }]);
  expect(await client.json("GET counters?docId=u/9")).toEqual({ Counters: [b] });
});

test("compare-exchange keys are listed in lower case, and a page of identities is limited", async () => {
  await client.send("PUT cmpxchg?key=Seat/1A&index=0", { Object: 1 });
  const listed = await client.json("GET cmpxchg?startsWith=SEAT/");
  expect(listed).toMatchObject({ Results: [{ Key: "seat/1a", Value: { Object: 1 } }] });
  const read = await client.json("GET cmpxchg?key=SEAT/1a");
  expect(read).toMatchObject({ Results: [{ Key: "SEAT/1a" }] });
  await client.send("POST identity/next?name=a|");
  await client.send("POST identity/next?name=b|");
  expect(await client.json("GET debug/identities?pageSize=1")).toEqual({ "a|": 1 });
});
