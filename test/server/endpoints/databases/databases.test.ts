import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { type EndpointClient, startEndpointClient } from "../../../support/endpoint-client.ts";
import { stopTestServers } from "../../../support/start-test-server.ts";

let client: EndpointClient;
beforeAll(async () => {
  client = await startEndpointClient();
});
afterAll(stopTestServers);

async function create(name: string): Promise<void> {
  const reply = await client.send(`PUT /admin/databases?name=${name}`, { DatabaseName: name });
  expect(reply.status).toBe(201);
}

async function recordOf(name: string): Promise<Record<string, unknown>> {
  return (await client.json(`GET /admin/databases?name=${name}`)) as Record<string, unknown>;
}

describe("PUT /admin/databases", () => {
  test("creates a database once, ignoring the case of its name", async () => {
    await create("Shop");
    const again = await client.send("PUT /admin/databases?name=shop", { DatabaseName: "shop" });
    expect(again.status).toBe(409);
    const listed = (await client.json("GET /databases?namesOnly=true")) as { Databases: string[] };
    expect(listed.Databases).toEqual(["db", "Shop"]);
    expect((await client.send("GET /databases?name=nope")).status).toBe(404);
  });

  test("rejects the server's own name, in any case and from any caller", async () => {
    for (const name of ["System", "system", "SYSTEM"]) {
      const refused = await client.send(`PUT /admin/databases?name=${name}`, {
        DatabaseName: name,
      });
      expect([refused.status, refused.json]).toMatchObject([
        400,
        {
          Type: "Raven.Client.Exceptions.BadRequestException",
          Message: expect.stringContaining(`'${name}' is forbidden for use`),
        },
      ]);
    }
    const { databases } = client.server.running.services;
    await expect(databases.create("System", {})).rejects.toThrow("is forbidden for use");
    await create("Systems");
  });

  test("replaces a record only with its current etag", async () => {
    await create("edited");
    const { Etag } = await recordOf("edited");
    const edited = { DatabaseName: "edited", Settings: { a: "1" } };
    const put = "PUT /admin/databases?name=edited";
    const old = await client.send(put, edited, { etag: `"${Number(Etag) - 1}"` });
    expect(old.status).toBe(409);
    expect((await recordOf("edited"))["Settings"]).toEqual({});
  });
});

describe("states", () => {
  test("a disabled database rejects requests until it is enabled", async () => {
    await create("paused");
    await client.send("PUT /databases/paused/docs?id=a", { n: 1 });
    await client.send("POST /admin/databases/disable", { DatabaseNames: ["paused"] });
    expect((await client.send("GET /databases/paused/docs?id=a")).status).toBe(503);
    expect((await recordOf("paused"))["Disabled"]).toBe(true);
    await client.send("POST /admin/databases/enable", { DatabaseNames: ["paused"] });
    expect((await client.send("GET /databases/paused/docs?id=a")).text).toContain('"n":1');
  });

  test("preserves all concurrent changes", async () => {
    await create("busy");
    await Promise.all([
      client.send("POST /admin/databases/disable", { DatabaseNames: ["busy"] }),
      client.send("POST /admin/databases/set-lock", {
        DatabaseNames: ["busy"],
        Mode: "PreventDeletesError",
      }),
    ]);
    const record = await recordOf("busy");
    expect(record).toMatchObject({ Disabled: true, LockMode: "PreventDeletesError" });
  });
});

describe("DELETE /admin/databases", () => {
  test("respects the lock", async () => {
    await create("kept");
    const names = { DatabaseNames: ["kept"] };
    const doomed = { ...names, HardDelete: true };
    await client.send("POST /admin/databases/set-lock", { ...names, Mode: "PreventDeletesError" });
    const refused = await client.send("DELETE /admin/databases", doomed);
    expect(refused.json).toMatchObject({ Type: "System.InvalidOperationException" });
    await client.send("POST /admin/databases/set-lock", { ...names, Mode: "PreventDeletesIgnore" });
    expect((await client.send("DELETE /admin/databases", doomed)).status).toBe(200);
    expect((await client.send("GET /databases?name=kept")).status).toBe(200);
    await client.send("POST /admin/databases/set-lock", { ...names, Mode: "Unlock" });
    expect((await client.send("DELETE /admin/databases", doomed)).status).toBe(200);
    expect((await client.send("GET /databases?name=kept")).status).toBe(404);
  });
});

describe("POST /admin/databases/set-lock", () => {
  test("locks all named databases or none", async () => {
    await create("locked");
    const lock = async (DatabaseNames: unknown) => {
      const body = { DatabaseNames, Mode: "PreventDeletesError" };
      const reply = await client.send("POST /admin/databases/set-lock", body);
      return reply.status === 204 ? 204 : (reply.json as { Type: string }).Type;
    };
    expect(await lock(["locked", "missing"])).toMatch(/DatabaseDoesNotExistException$/);
    expect(await lock([["locked"]])).toMatch(/DatabaseDoesNotExistException$/);
    expect(await lock([])).toBe("System.ArgumentException");
    expect(await lock(undefined)).toBe("System.ArgumentException");
    expect(await lock("locked")).toBe("System.FormatException");
    expect((await recordOf("locked"))["LockMode"]).toBe("Unlock");
    expect(await lock(["LOCKED"])).toBe(204);
    expect((await recordOf("locked"))["LockMode"]).toBe("PreventDeletesError");
  });
});
