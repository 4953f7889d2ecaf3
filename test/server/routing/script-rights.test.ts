/** Rights to lift the limits of scripts, and the limits that remain. */
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import type { CertificatePair } from "../../../certs/authority.ts";
import {
  startTestServer,
  stopTestServers,
  type TestServer,
} from "../../support/start-test-server.ts";

let server: TestServer;
const pairs: Record<"reader" | "writer" | "owner", CertificatePair | undefined> = {
  reader: undefined,
  writer: undefined,
  owner: undefined,
};

beforeAll(async () => {
  server = await startTestServer({ databases: [{ name: "db" }] });
  pairs.reader = await server.client({ permissions: { db: "Read" } });
  pairs.writer = await server.client({ permissions: { db: "ReadWrite" } });
  pairs.owner = await server.client({ permissions: { db: "Admin" } });
  await server.request("/databases/db/docs?id=users/1", {
    method: "PUT",
    body: '{"Name":"Ann","@metadata":{"@collection":"Users"}}',
  });
});
afterAll(stopTestServers);

type Who = keyof typeof pairs;

async function patch(who: Who, script: string, flag = "?ignoreMaxStepsForScript=true") {
  const body = JSON.stringify({ Query: { Query: `from Users update { ${script} }` } });
  const path = `/databases/db/queries${flag}`;
  return await server.request(path, { method: "PATCH", body }, pairs[who]);
}

/** The error of an accepted patch. */
async function failureOf(who: Who, script: string): Promise<string> {
  const started = await patch(who, script);
  expect(started.status).toBe(200);
  const { OperationId } = started.json as { OperationId: number };
  for (;;) {
    const reply = await server.request(`/databases/db/operations/state?id=${OperationId}`);
    const { Status, Result } = reply.json as { Status: string; Result: { Message?: string } };
    if (Status !== "InProgress") return Result?.Message ?? Status;
  }
}

describe("lifting the limit of steps", () => {
  test("requires database administration rights", async () => {
    const refused = await patch("writer", "this.a = 1");
    expect(refused.status).toBe(403);
    expect(refused.text).toContain("DatabaseAdmin access is required");
    expect(refused.text).toContain("ignoreMaxStepsForScript");
    expect((await patch("reader", "this.a = 1")).status).toBe(403);
    expect((await patch("owner", "this.a = 1")).status).toBe(200);
  });

  test("is not requested by a flag without a value, or with false", async () => {
    for (const flag of ["?ignoreMaxStepsForScript=", "?ignoreMaxStepsForScript=false", ""]) {
      expect((await patch("writer", "this.a = 1", flag)).status).toBe(200);
    }
  });

  test("lets a script execute more steps", async () => {
    expect(await failureOf("owner", "for (var i = 0; i < 20000; i++) {} this.i = i")).toBe(
      "Processed 1 items.",
    );
  });

  test("does not lift the time limit, whose error names its setting", async () => {
    expect(await failureOf("owner", "while (true) {}")).toContain("Patching.MaxTimeForScriptInMs");
  });

  test("does not lift the memory limit, whose error names its setting", async () => {
    const script = "var a = []; for (;;) a.push('x'.repeat(1000000) + a.length)";
    const reported = await failureOf("owner", script);
    expect(reported).toMatch(/Patching\.(MaxMemoryForScriptInMb|MaxTimeForScriptInMs)/);
  });

  test("of an export's script requires the same right", async () => {
    const body = JSON.stringify({ TransformScript: "", MaxStepsForTransformScript: 20_000 });
    const lifting = body.replace('""', '"this.a = 1"');
    const send = (who: Who, options: string) => {
      const path = "/databases/db/smuggler/export";
      return server.request(path, { method: "POST", body: options }, pairs[who]);
    };
    expect((await send("reader", lifting)).status).toBe(403);
    expect((await send("reader", lifting.replace("20000", "10000"))).status).toBe(200);
    expect((await send("owner", lifting)).status).toBe(200);
  });
});
