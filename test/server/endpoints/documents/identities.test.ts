import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { hiLoCapacity } from "../../../../engine/batches/hilo.ts";
import { type EndpointClient, startEndpointClient } from "../../../support/endpoint-client.ts";
import { stopTestServers } from "../../../support/start-test-server.ts";

let client: EndpointClient;
beforeAll(async () => {
  client = await startEndpointClient();
});
afterAll(stopTestServers);

interface Range {
  readonly Low: number;
  readonly High: number;
}

describe("HiLo", () => {
  test("returns consecutive ranges, and stores them in a document", async () => {
    const first = await client.send(
      "GET hilo/next?tag=users&lastBatchSize=0&lastMax=0&lastRangeAt=1970-01-01T00:00:00.0000000Z",
    );
    expect(first.status).toBe(201);
    expect(first.headers.etag).toBeUndefined();
    expect(first.json).toMatchObject({
      Prefix: "users/",
      Low: 1,
      High: 32,
      LastSize: 32,
      ServerTag: "A",
    });
    const next = await client.json("GET hilo/next?tag=USERS&identityPartsSeparator=-");
    expect(next).toMatchObject({ Prefix: "USERS-", Low: 33, High: 64 });
    expect(await client.json("GET hilo/next?tag=users&lastMax=1000")).toMatchObject({ Low: 1001 });
    expect((await client.send("GET docs?id=Raven%2FHilo%2Fusers")).text).toContain(
      '{"Max":1032,"@metadata":{"@collection":"@hilo"',
    );
  });

  test("never returns a number twice, for any number of concurrent requests", async () => {
    const ranges = (await Promise.all(
      Array.from({ length: 40 }, () => client.json("GET hilo/next?tag=many")),
    )) as Range[];
    const numbers = ranges.flatMap(({ Low, High }) =>
      Array.from({ length: High - Low + 1 }, (_, i) => Low + i),
    );
    expect(new Set(numbers).size).toBe(numbers.length);
  });

  test("returns larger ranges to fast clients, and smaller ones to slow clients", () => {
    const now = 1e15;
    const second = 1e6;
    expect(hiLoCapacity(0, 0, now)).toBe(32);
    expect(hiLoCapacity(100, 0, now)).toBe(100);
    expect(hiLoCapacity(32, now - second, now)).toBe(64);
    expect(hiLoCapacity(900_000, now - second, now)).toBe(1_000_000);
    expect(hiLoCapacity(100, now - 45 * second, now)).toBe(100);
    expect(hiLoCapacity(100, now - 90 * second, now)).toBe(50);
    expect(hiLoCapacity(32, now - 90 * second, now)).toBe(32);
    expect(hiLoCapacity(-7, now - second, now)).toBe(32);
  });

  test("accepts only the last range back", async () => {
    await client.send("GET hilo/next?tag=back");
    const returnRange = async (end: number, last: number) => {
      const reply = await client.send(`PUT hilo/return?tag=back&end=${end}&last=${last}`);
      expect([reply.status, reply.headers["content-length"]]).toEqual([200, "0"]);
    };
    await returnRange(31, 5);
    expect(await client.json("GET hilo/next?tag=back")).toMatchObject({ Low: 33 });
    await returnRange(64, 40);
    expect(await client.json("GET hilo/next?tag=back")).toMatchObject({ Low: 41 });
    expect((await client.send("PUT hilo/return?tag=unknown&end=1&last=1")).status).toBe(200);
  });

  test("preserves the other content and the collection of its document", async () => {
    await client.send("PUT docs?id=Raven/Hilo/mine", {
      Note: "x",
      Max: 64,
      "@metadata": { "@collection": "HiloDocs", own: 1 },
    });
    expect(await client.json("GET hilo/next?tag=mine")).toMatchObject({ Low: 65, High: 96 });
    const { Results } = (await client.json("GET docs?id=Raven/Hilo/mine")) as { Results: object[] };
    expect(Results).toMatchObject([
      { Note: "x", Max: 96, "@metadata": { "@collection": "HiloDocs", own: 1 } },
    ]);
  });

  test("rejects requests without a tag, or with an invalid number", async () => {
    for (const what of [
      "GET hilo/next",
      "GET hilo/next?tag=u&lastBatchSize=x",
      "PUT hilo/return?tag=u",
    ]) {
      expect((await client.send(what)).status, what).toBe(400);
    }
    expect((await client.send("GET hilo/next?tag=u&lastRangeAt=bad&lastMax=-5")).status).toBe(201);
  });
});

describe("identities", () => {
  test("count from 1 in any spelling, shared with document ids", async () => {
    expect(await client.json("POST identity/next?name=id%7C")).toEqual({ NewIdentityValue: 1 });
    expect(await client.json("POST identity/next?name=ID")).toEqual({ NewIdentityValue: 2 });
    expect(await client.json("PUT docs?id=Id%7C", {})).toMatchObject({ Id: "Id/3" });
    expect(await client.json("GET debug/identities")).toEqual({ "id|": 3 });
  });

  test("skip numbers in use, except in a batch, where they are a conflict", async () => {
    await client.json("PUT docs?id=taken/1", { by: "hand" });
    await client.json("PUT docs?id=taken/2", { by: "hand" });
    expect(await client.json("PUT docs?id=taken%7C", {})).toMatchObject({ Id: "taken/3" });
    await client.json("PUT docs?id=batched/1", { by: "hand" });
    const command = { Type: "PUT", Id: "batched|", Document: {} };
    expect((await client.send("POST bulk_docs", { Commands: [command] })).status).toBe(409);
    const { Results } = (await client.json("GET docs?id=taken/1&id=batched/1")) as {
      Results: object[];
    };
    expect(Results).toMatchObject([{ by: "hand" }, { by: "hand" }]);
  });

  test("return the same number for a repeated request", async () => {
    const next = (id: string) => client.json(`POST identity/next?name=again&raft-request-id=${id}`);
    expect(await next("one")).toEqual({ NewIdentityValue: 1 });
    expect(await next("one")).toEqual({ NewIdentityValue: 1 });
    expect(await next("two")).toEqual({ NewIdentityValue: 2 });
  });

  test("are raised by seeding, and lowered only if forced", async () => {
    const seed = (rest: string) => client.json(`POST identity/seed?name=s&${rest}`);
    expect(await seed("value=10")).toEqual({ NewSeedValue: 10 });
    expect(await seed("value=5")).toEqual({ NewSeedValue: 10 });
    // RavenDB 7.2.7 returns this.
    expect(await seed("value=-5&force=true")).toEqual({ NewSeedValue: 0 });
    expect(await client.json("POST identity/next?name=s")).toEqual({ NewIdentityValue: -4 });
    for (const what of [
      "POST identity/next",
      "POST identity/seed?name=s",
      "POST identity/seed?name=s&value=x",
    ]) {
      expect((await client.send(what)).status, what).toBe(400);
    }
  });
});

describe("compare exchange", () => {
  // As in RavenDB 7.2.7.
  test("returns the first outcome for a repeated request", async () => {
    const put = (id: string) =>
      client.json(`PUT cmpxchg?key=again&index=0&raft-request-id=${id}`, '{"Object":5}');
    const created = (await put("one")) as Record<string, unknown>;
    expect(created).toMatchObject({ Value: { Object: 5 }, Successful: true });
    expect(await put("one")).toEqual(created);
    expect(await put("two")).toEqual({ ...created, Successful: false });
    const remove = (id: string) =>
      client.json(`DELETE cmpxchg?key=again&index=${created["Index"]}&raft-request-id=${id}`);
    const gone = (await remove("one")) as Record<string, unknown>;
    expect(gone).toMatchObject({ Value: { Object: 5 }, Successful: true });
    expect(await remove("one")).toEqual(gone);
    expect(await remove("two")).toMatchObject({ Successful: false });
    // A failure is not recorded, so the request may succeed now.
    expect(await put("two")).toMatchObject({ Successful: true });
  });

  test("replaces a value only if the index is current", async () => {
    const put = async (key: string, index: number | string, text: string) =>
      (await client.json(`PUT cmpxchg?key=${key}&index=${index}`, text)) as Record<string, unknown>;
    const created = await put("a", 0, '{"Object":5}');
    expect(created).toEqual({ Index: created["Index"], Value: { Object: 5 }, Successful: true });
    expect(await put("A", 0, '{"Object":6}')).toEqual({ ...created, Successful: false });
    const next = await put(
      "a",
      String(created["Index"]),
      '{"Object":{"x":[1]},"@metadata":{"m":1}}',
    );
    expect(next["Successful"]).toBe(true);
    expect(next["Index"]).toBeGreaterThan(created["Index"] as number);
    expect(await put("none", 7, '{"Object":1}')).toEqual({
      Index: 0,
      Value: null,
      Successful: false,
    });
    const get = await client.send("GET cmpxchg?key=A");
    expect(get.text).toBe(
      `{"Results":[{"Key":"A","Value":{"Object":{"x":[1]},"@metadata":{"m":1}},"Index":${next["Index"]}}]}`,
    );
    expect(get.headers.etag).toBeUndefined();
    const gone = (await client.json(`DELETE cmpxchg?key=a&index=${next["Index"]}`)) as Record<
      string,
      unknown
    >;
    expect(gone).toMatchObject({ Successful: true, Value: { Object: { x: [1] } } });
    expect(gone["Index"]).toBeGreaterThan(next["Index"] as number);
    expect((await put("a", 0, '{"Object":1}'))["Index"]).toBeGreaterThan(gone["Index"] as number);
    expect(await client.json("DELETE cmpxchg?key=none&index=1")).toEqual({
      Index: 0,
      Value: null,
      Successful: false,
    });
  });

  test("preserves the spelling of numbers", async () => {
    await client.send("PUT cmpxchg?key=n&index=0", '{"Object":9223372036854775807, "f":1.50}');
    expect((await client.send("GET cmpxchg?key=n")).text).toContain(
      '{"Object":9223372036854775807,"f":1.50}',
    );
  });

  test("is read by keys, by prefix and in pages", async () => {
    for (const key of ["p/1", "P/2", "p/3", "q/1"])
      await client.send(`PUT cmpxchg?key=${key}&index=0`, '{"Object":1}');
    const keys = async (query: string) =>
      ((await client.json(`GET cmpxchg?${query}`)) as { Results: { Key: string }[] }).Results.map(
        ({ Key }) => Key,
      );
    // Lists have keys in lower case, as in RavenDB 7.2.7.
    expect(await keys("startsWith=P%2F")).toEqual(["p/1", "p/2", "p/3"]);
    expect(await keys("startsWith=p%2F&start=1&pageSize=1")).toEqual(["p/2"]);
    expect(await keys("startsWith=zz")).toEqual([]);
    expect(await keys("key=p%2F1&key=zz")).toEqual(["p/1", "zz"]);
    expect((await client.send("GET cmpxchg?key=zz")).status).toBe(404);
    expect((await client.send("GET cmpxchg?key=")).status).toBe(404);
  });

  test("rejects invalid values and indexes", async () => {
    for (const [query, body] of [
      ["key=d", "{}"],
      ["index=0", "{}"],
      ["key=d&index=x", "{}"],
      ["key=d&index=-1", "{}"],
      ["key=d&index=0", ""],
      ["key=d&index=0", "[1]"],
      [`key=${"k".repeat(600)}&index=0`, "{}"],
    ] as const) {
      expect((await client.send(`PUT cmpxchg?${query}`, body)).status, query).toBe(400);
    }
    expect((await client.send("DELETE cmpxchg?key=d")).status).toBe(400);
  });
});

describe("numbers at the limit", () => {
  const last = Number.MAX_SAFE_INTEGER;

  test("are rejected as identities: the last one is issued once, then none", async () => {
    const seed = (value: string) => client.send(`POST identity/seed?name=ends|&value=${value}`);
    expect((await seed(String(last - 1))).json).toEqual({ NewSeedValue: last - 1 });
    expect(await client.json("POST identity/next?name=ends|")).toEqual({ NewIdentityValue: last });
    for (const what of ["POST identity/next?name=ends|", "PUT docs?id=ends|"]) {
      for (let tick = 0; tick < 2; tick++) {
        const refused = await client.send(what, {});
        expect([refused.status, refused.json]).toMatchObject([
          400,
          { Message: expect.stringContaining("are used up") },
        ]);
      }
    }
    for (const value of ["9007199254740992", "9223372036854775807", "-9223372036854775808"]) {
      expect((await seed(value)).json, value).toMatchObject({
        Type: "System.ArgumentOutOfRangeException",
        Message: expect.stringContaining(value),
      });
    }
    expect(await client.json("GET debug/identities")).toMatchObject({ "ends|": last });
  });

  test("are never in a HiLo range, from the document or from the client", async () => {
    await client.send("PUT docs?id=Raven/Hilo/ended", '{"Max":9007199254740993}');
    for (const tag of ["ended", "fresh"]) {
      const more = tag === "fresh" ? "&lastMax=9223372036854775807" : "";
      const refused = await client.send(`GET hilo/next?tag=${tag}${more}`);
      expect([refused.status, refused.json], tag).toMatchObject([
        400,
        { Message: expect.stringContaining("are used up") },
      ]);
    }
    const back = await client.send("PUT hilo/return?tag=ended&end=9223372036854775807&last=1");
    expect(back.status).toBe(400);
  });
});
