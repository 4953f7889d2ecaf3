import { afterAll, beforeEach, describe, expect, test } from "vitest";
import { type EndpointClient, startEndpointClient } from "../../support/endpoint-client.ts";
import { stopTestServers } from "../../support/start-test-server.ts";

let client: EndpointClient;
beforeEach(async () => {
  await stopTestServers();
  client = await startEndpointClient();
});
afterAll(stopTestServers);

interface BatchReply {
  readonly Results: readonly Record<string, string>[];
  readonly TransactionIndex: number;
}

const send = (commands: readonly object[], query = "", version: string | null = "7.2.3") =>
  client.send(
    `POST bulk_docs${query}`,
    { Commands: commands, TransactionMode: "ClusterWide" },
    version === null ? {} : { "raven-client-version": version },
  );
const batch = async (...commands: object[]) => (await send(commands)).json as BatchReply;
const put = (id: string, n: number, rest: object = {}) => ({
  Type: "PUT",
  Id: id,
  Document: { n, "@metadata": { "@collection": "Things" } },
  ...rest,
});
const guards = async () => {
  const { Results } = (await client.json("GET cmpxchg?startsWith=rvn-atomic")) as {
    Results: { Key: string; Index: number }[];
  };
  return Results.map(({ Key, Index }) => [Key, Index]);
};

describe("cluster-wide batches", () => {
  test("assign the batch's index to the vectors and guards of documents, and to values", async () => {
    const value = { Type: "CompareExchangePUT", Id: "k", Document: { Object: 1 }, Index: 0 };
    const { Results, TransactionIndex: index } = await batch(value, put("A/1", 1));
    const vector = Results[0]?.["@change-vector"] ?? "";
    expect(vector).toMatch(new RegExp(`^RAFT:1-[^,]{22},TRXN:${index}-.{22}$`));
    expect(Results[1]).toEqual({ Type: "CompareExchangePUT", Key: "k", Index: index });
    expect(await guards()).toEqual([["rvn-atomic/a/1", index]]);
    const loaded = await client.send("GET docs?id=a/1&txMode=ClusterWide");
    expect(loaded.text).toContain(`"@change-vector":"${vector}","@flags":"FromClusterTransaction"`);
    expect((await client.send("GET docs?id=none&txMode=ClusterWide")).text).toContain(
      '"Results":[]',
    );
  });

  test("are not executed again if repeated with the same request id", async () => {
    const value = { Type: "CompareExchangePUT", Id: "k", Document: { Object: 1 }, Index: 0 };
    const first = await send([value, put("A/1", 1)], "?raft-request-id=one");
    expect(first.status).toBe(201);
    const again = await send([value, put("A/1", 1)], "?raft-request-id=one");
    expect([again.status, again.text]).toEqual([201, first.text]);
    const other = await send([value, put("A/1", 1)], "?raft-request-id=another");
    expect(other.status).toBe(409);
    // A rejected request may succeed when it is repeated.
    await client.send(`DELETE cmpxchg?key=k&index=${(first.json as BatchReply).TransactionIndex}`);
    expect((await send([value], "?raft-request-id=another")).status).toBe(201);
  });

  test("give a versioned document the same vector as its newest revision", async () => {
    await client.send("POST admin/revisions/config", { Default: { Disabled: false } });
    const first = await batch(put("a", 1));
    const seen = { ChangeVector: first.Results[0]?.["@change-vector"] };
    const { Results, TransactionIndex: index } = await batch(put("a", 2, seen));
    const vector = Results[0]?.["@change-vector"] ?? "";
    expect(vector).toContain(`TRXN:${index}-`);
    expect((await client.send("GET docs?id=a")).text).toContain(`"@change-vector":"${vector}"`);
    const kept = (await client.json("GET revisions?id=a")) as {
      Results: { n: number; "@metadata": Record<string, string> }[];
    };
    expect(kept.Results.map(({ n }) => n)).toEqual([2, 1]);
    expect(kept.Results[0]?.["@metadata"]["@change-vector"]).toBe(vector);
  });

  test("are rejected if they expect an index that no value can have", async () => {
    const value = {
      Type: "CompareExchangePUT",
      Id: "far",
      Document: { Object: 1 },
      Index: 2 ** 60,
    };
    expect((await send([value])).status).toBe(409);
  });

  test("are rejected as a whole, with all violations, if a guard or value does not match", async () => {
    const first = await batch(put("a", 1));
    const value = { Type: "CompareExchangePUT", Id: "k", Document: { Object: 1 }, Index: 5 };
    const refused = await send([put("b", 1), put("a", 2, { ChangeVector: "" }), value]);
    expect(refused.status).toBe(409);
    expect(refused.json).toMatchObject({
      Type: "Raven.Client.Exceptions.ClusterTransactionConcurrencyException",
      ConcurrencyViolations: [
        { Type: "Document", Id: "rvn-atomic/a", Expected: 0, Actual: first.TransactionIndex },
        { Type: "CompareExchange", Id: "k", Expected: 5, Actual: -1 },
      ],
    });
    expect((await client.send("GET docs?id=b")).status).toBe(404);
    const current = { ChangeVector: first.Results[0]?.["@change-vector"] };
    expect((await send([put("a", 2, current)])).status).toBe(201);
    expect((await send([put("a", 3, current)])).status).toBe(409);
  });

  test("delete the guard together with its document, whatever change vector the client has", async () => {
    await batch(put("a", 1), put("a", 2));
    expect((await batch({ Type: "DELETE", Id: "a" })).Results).toMatchObject([
      { Type: "DELETE", Id: "a" },
    ]);
    expect(await guards()).toEqual([]);
    expect((await client.send("GET docs?id=a")).status).toBe(404);
  });

  test("create no guards for old clients, or if guards are disabled", async () => {
    expect((await send([put("a", 1)], "", null)).status).toBe(201);
    const { json } = await send([put("a", 2)], "?disableAtomicDocumentWrites=true");
    expect((json as BatchReply).Results[0]?.["@change-vector"]).toMatch(/^RAFT:2-.{22}$/);
    expect(await guards()).toEqual([]);
  });

  test("reject unsupported ids and commands", async () => {
    const typeOf = async (command: object) =>
      ((await send([command])).json as { Type: string }).Type.split(".").at(-1);
    expect(await typeOf(put("a/", 1))).toBe("RachisApplyException");
    expect(await typeOf(put("", 1))).toBe("RachisApplyException");
    expect(await typeOf({ Type: "DELETE", Id: "a", IdPrefixed: true })).toBe(
      "RachisApplyException",
    );
    expect(await typeOf({ Type: "PATCH", Id: "a", Patch: { Script: "" } })).toBe(
      "ArgumentOutOfRangeException",
    );
    expect(await typeOf({ Type: "CompareExchangeDELETE", Id: "rvn-atomic/a", Index: 0 })).toBe(
      "CompareExchangeInvalidKeyException",
    );
    expect((await batch(put("people|", 1))).Results[0]?.["@id"]).toBe("people/1");
  });

  test("are in the vectors of all later writes, which are checked against them, too", async () => {
    await batch(put("a", 1));
    const write = async (id: string, vector?: string) =>
      client.send(
        `PUT docs?id=${id}`,
        { n: 2, "@metadata": { "@collection": "Things" } },
        {
          ...(vector === undefined ? {} : { "if-match": vector }),
        },
      );
    const other = (await write("other")).json as { ChangeVector: string };
    expect(other.ChangeVector).toMatch(/RAFT:1-.{22}/);
    expect(other.ChangeVector).toMatch(/A:\d+-.{22}/);
    const plain = (await write("a")).json as { ChangeVector: string };
    expect(plain.ChangeVector).toMatch(/TRXN:\d+-.{22}/);
    const head = await client.send("HEAD docs?id=a");
    expect(head.headers["etag"]).toBe(`"${plain.ChangeVector}"`);
    expect((await write("a", "A:1-wrong")).status).toBe(409);
    expect((await write("a", plain.ChangeVector)).status).toBe(201);
    const stats = (await client.json("GET stats")) as { DatabaseChangeVector: string };
    expect(stats.DatabaseChangeVector).toMatch(/RAFT:1-.{22}/);
  });
});
