import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { type EndpointClient, startEndpointClient } from "../../../support/endpoint-client.ts";
import { startTestServer, stopTestServers } from "../../../support/start-test-server.ts";

let client: EndpointClient;
beforeAll(async () => {
  client = await startEndpointClient();
});
afterAll(stopTestServers);

/** Sends operations as text, to preserve all digits of the numbers. */
const post = (documentId: string, operations: string, rest = "") =>
  client.send(
    "POST counters",
    `{"Documents":[{"DocumentId":"${documentId}","Operations":[${operations}]}]${rest}}`,
  );
const increment = (name: string, delta: string) =>
  `{"Type":"Increment","CounterName":"${name}","Delta":${delta}}`;

describe("counters", () => {
  test("return an entry for each increment and read, null if missing, in the spelling of the request", async () => {
    await client.send("PUT docs?id=u%2F1", {});
    const reply = await post(
      "u/1",
      `${increment("Likes", "3")},${increment("b", "1")},${increment("likes", "-1")},{"Type":"Get","CounterName":"none"},{"Type":"Put","CounterName":"p","Delta":9}`,
    );
    expect([reply.status, reply.text]).toEqual([
      200,
      '{"Counters":[{"DocumentId":"u/1","CounterName":"Likes","TotalValue":3,"CounterValues":null},' +
        '{"DocumentId":"u/1","CounterName":"b","TotalValue":1,"CounterValues":null},' +
        '{"DocumentId":"u/1","CounterName":"likes","TotalValue":2,"CounterValues":null},null]}',
    ]);
    const named = await client.json("GET counters?docId=U%2F1&counter=LIKES&counter=zz");
    expect(named).toEqual({
      Counters: [
        { DocumentId: "U/1", CounterName: "LIKES", TotalValue: 2, CounterValues: null },
        null,
      ],
    });
  });

  test("are listed by the bytes of their names, and in the document ignoring case", async () => {
    await client.send("PUT docs?id=o", {});
    await post("o", ["b", "D", "a", "C", "é"].map((name) => increment(name, "1")).join(","));
    const names = ({ Counters }: { Counters: { CounterName: string }[] }) =>
      Counters.map(({ CounterName }) => CounterName);
    const expected = ["C", "D", "a", "b", "é"];
    expect(names((await client.json("GET counters?docId=o")) as never)).toEqual(expected);
    expect(names((await post("o", '{"Type":"GetAll"}')).json as never)).toEqual(expected);
    const document = await client.send("GET docs?id=o&counter=%40all_counters");
    expect(document.text).toContain('"@counters":["a","b","C","D","é"]');
    const { CounterIncludes } = document.json as {
      CounterIncludes: { o: { CounterName: string }[] };
    };
    expect(CounterIncludes.o.map(({ CounterName }) => CounterName)).toEqual(expected);
  });

  test("are listed in the document, however many they are", async () => {
    await client.send("PUT docs?id=many", {});
    const names = Array.from({ length: 1_300 }, (_, n) => `count${n}`);
    const operations = [...names].reverse().map((name) => increment(name, "1"));
    const { Counters } = (await post("many", operations.join(","))).json as {
      Counters: { CounterName: string }[];
    };
    expect(Counters.map(({ CounterName }) => CounterName)).toEqual([...names].reverse());
    const { Results } = (await client.json("GET docs?id=many")) as {
      Results: { "@metadata": { "@counters": string[] } }[];
    };
    expect(Results[0]?.["@metadata"]["@counters"]).toEqual([...names].sort());
    await post("many", '{"Type":"Delete","CounterName":"count7"}');
    const left = (await client.send("GET docs?id=many")).text;
    expect(left.includes('"count6","count60"') && left.includes('"count699","count70"')).toBe(true);
  });

  test("have exactly 64 bits", async () => {
    await client.send("PUT docs?id=big", {});
    const of = async (name: string, delta: string) => {
      const reply = await post("big", increment(name, delta));
      return reply.status === 200
        ? /"TotalValue":(-?\d+)/.exec(reply.text)?.[1]
        : (reply.json as { Type: string }).Type;
    };
    expect(await of("exact", "9007199254740993")).toBe("9007199254740993");
    expect(await of("exact", "2")).toBe("9007199254740995");
    expect(await of("max", "9223372036854776000")).toBe("9223372036854775807");
    expect(await of("max", "1")).toBe(
      "Raven.Client.Exceptions.Documents.Counters.CounterOverflowException",
    );
    expect(await of("max", "-9223372036854775807")).toBe("0");
    expect(await of("min", "-9223372036854776000")).toBe("-9223372036854775808");
    expect(await of("min", "-1")).toBe(
      "Raven.Client.Exceptions.Documents.Counters.CounterOverflowException",
    );
    expect(await of("odd", "1.5")).toBe("1");
    expect(await of("odd", '"7"')).toBe("8");
    expect(await of("odd", "null")).toBe("8");
    expect(await of("odd", '"seven"')).toBe("System.FormatException");
    expect(await of("odd", "1e2")).toBe("108");
  });

  test("list the values per node on request", async () => {
    await client.send("PUT docs?id=full", {});
    const reply = await post("full", increment("a", "2"), ',"ReplyWithAllNodesValues":true');
    expect(reply.text).toMatch(/"CounterValues":\{"A-[A-Za-z0-9+/]{22}":2\}/);
    const get = await client.send("GET counters?docId=full&counter=a&full=true");
    expect(get.text).toBe(reply.text);
    expect((await client.send("GET counters?docId=full&full=maybe")).status).toBe(400);
  });

  test("change the document only if its list of names changes", async () => {
    await client.send("PUT docs?id=cv", {});
    const etag = async () => (await client.send("GET docs?id=cv")).headers.etag;
    const before = await etag();
    await post("cv", increment("a", "1"));
    const added = await etag();
    await post("cv", increment("a", "1"));
    expect(await etag()).toBe(added);
    await post("cv", '{"Type":"Delete","CounterName":"never"}');
    expect(await etag()).toBe(added);
    await post("cv", '{"Type":"Delete","CounterName":"A"}');
    expect(new Set([before, added, await etag()]).size).toBe(3);
    expect((await client.send("GET docs?id=cv")).text).not.toContain("counters");
  });

  test("are all changed or none", async () => {
    await client.send("PUT docs?id=all", {});
    const reply = await client.send(
      "POST counters",
      `{"Documents":[{"DocumentId":"all","Operations":[${increment("a", "1")}]},{"DocumentId":"nobody","Operations":[${increment("a", "1")}]}]}`,
    );
    expect(reply.status).toBe(400);
    expect(await client.json("GET counters?docId=all")).toEqual({ Counters: [] });
  });

  test("reject invalid operations, and return nothing for missing ones", async () => {
    expect(await client.json("GET counters?docId=nobody")).toEqual({ Counters: [] });
    expect((await post("nobody", '{"Type":"Get","CounterName":"a"}')).text).toBe(
      '{"Counters":[null]}',
    );
    expect((await post("u/1", '{"Type":"Get","CounterName":null}')).text).toBe(
      '{"Counters":[null]}',
    );
    expect((await client.send("POST counters", "{}")).text).toBe('{"Counters":[]}');
    const ofNobody = (operations: string) =>
      client.send("POST counters", `{"Documents":[{"Operations":[${operations}]}]}`);
    expect((await ofNobody('{"Type":"Get","CounterName":"a"}')).text).toBe('{"Counters":[null]}');
    expect((await ofNobody(increment("a", "1"))).json).toMatchObject({
      Type: "System.ArgumentException",
    });
    const bad: [string, string][] = [
      ["GET counters", ""],
      ["POST counters", ""],
      ["POST counters", '{"Documents":5}'],
      ["POST counters", '{"Documents":[5]}'],
    ];
    for (const [what, body] of bad) {
      expect((await client.send(what, body === "" ? undefined : body)).status, body).toBe(400);
    }
    expect((await post("u/1", '{"Type":"Foo","CounterName":"x"}')).status).toBe(400);
    expect((await post("u/1", '{"Type":"Increment","Delta":1}')).status).toBe(400);
    expect((await post("u/1", increment("n".repeat(600), "1"))).status).toBe(400);
  });

  test("may be read, but not changed, with read access", async () => {
    const server = await startTestServer({ databases: [{ name: "db" }] });
    const reader = await server.client({ permissions: { db: "Read" } });
    await server.request("/databases/db/docs?id=u", { method: "PUT", body: "{}" });
    const sendRequest = (operation: string) =>
      server.request(
        "/databases/db/counters",
        { method: "POST", body: `{"Documents":[{"DocumentId":"u","Operations":[${operation}]}]}` },
        reader,
      );
    expect((await sendRequest('{"Type":"Get","CounterName":"a"}')).status).toBe(200);
    expect((await sendRequest(increment("a", "1"))).status).toBe(403);
  });
});
