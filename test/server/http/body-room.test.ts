/** Memory charged for bodies: in isolation, and over HTTP during requests. */
import { request } from "node:http";
import { afterAll, beforeAll, describe, expect, test, vi } from "vitest";
import { processMemory } from "../../../engine/base/memory/memory-budget.ts";
import { BodyRoom, memoryOfBody } from "../../../server/http/body-room.ts";
import { startEndpointClient } from "../../support/endpoint-client.ts";
import { stopTestServers, type TestServer } from "../../support/start-test-server.ts";

const mega = 1024 * 1024;
const held = () => processMemory.workBytesOf("bodies");

describe("a reservation", () => {
  test("counts a large body twice, a small one once", () => {
    expect([1, mega, mega + 1, 10 * mega].map(memoryOfBody)).toEqual([
      1,
      mega,
      2 * mega + 2,
      20 * mega,
    ]);
  });

  test("does not count the first bytes, doubles when it grows, and releases everything once", () => {
    const room = new BodyRoom();
    const before = held();
    void room.grow(16 * 1024, false);
    expect(held() - before).toBe(0);
    const taken = [20_000, 70_000, 140_000].map((length) => {
      void room.grow(length, false);
      return held() - before;
    });
    expect(taken).toEqual([65_536, 65_536, 140_000]);
    room.release();
    room.release();
    expect(held()).toBe(before);
  });

  test("immediately releases memory added after its release", async () => {
    const room = new BodyRoom();
    const before = held();
    room.release();
    await room.grow(4 * mega, true);
    expect(held()).toBe(before);
  });
});

describe("over HTTP", () => {
  let server: TestServer;
  beforeAll(async () => {
    ({ server } = await startEndpointClient(["--Http.MaxRequestBodySizeInMb=8"]));
  });
  afterAll(stopTestServers);

  interface Begun {
    write(bytes: Buffer | string): void;
    end(bytes?: Buffer | string): void;
    readonly status: Promise<number>;
    destroy(): void;
  }

  function start(method: string, path: string, headers: Record<string, string | number>): Begun {
    const sent = request(`${server.url}/databases/db/${path}`, { method, headers });
    const status = new Promise<number>((resolve, reject) => {
      sent.on("response", (reply) => {
        reply.resume();
        reply.on("end", () => resolve(reply.statusCode ?? 0));
      });
      sent.on("error", reject);
    });
    // A test that aborts a request does not wait for its reply.
    status.catch(() => undefined);
    return {
      write: (bytes) => sent.write(bytes),
      end: (bytes) => sent.end(bytes),
      status,
      destroy: () => sent.destroy(),
    };
  }

  const text = `{"t":"${"a".repeat(3 * mega)}"}`;

  test("a large body of known length is charged twice in advance, and released at the end", async () => {
    const before = held();
    const put = start("PUT", "docs?id=large", { "content-length": text.length });
    put.write(text.slice(0, 1000));
    await vi.waitFor(() => expect(held() - before).toBe(2 * text.length));
    put.end(text.slice(1000));
    expect(await put.status).toBe(201);
    await vi.waitFor(() => expect(held()).toBe(before));
  });

  test("a body whose client disconnects is released, too", async () => {
    const before = held();
    const put = start("PUT", "docs?id=cut", { "content-length": text.length });
    put.write(text.slice(0, 1000));
    await vi.waitFor(() => expect(held()).toBeGreaterThan(before));
    put.destroy();
    await vi.waitFor(() => expect(held()).toBe(before));
  });

  test("the commands of a form are charged as they arrive", async () => {
    const before = held();
    const form = start("POST", "bulk_docs", {
      "content-type": "multipart/mixed; boundary=b",
    });
    const document = `{"t":"${"a".repeat(2 * mega)}"}`;
    form.write('--b\r\nContent-Disposition: form-data; name="main"\r\n\r\n');
    form.write(`{"Commands":[{"Id":"form","Type":"PUT","Document":${document}}`);
    await vi.waitFor(() => expect(held() - before).toBeGreaterThan(4 * mega - 16 * 1024));
    form.end("]}\r\n--b--\r\n");
    expect(await form.status).toBe(201);
    await vi.waitFor(() => expect(held()).toBe(before));
  });

  test("a document over the limit is rejected in a body, a form and a bulk insert, and nothing stays charged", async () => {
    const before = held();
    const over = `{"t":"${"a".repeat(9 * mega)}"}`;
    const put = start("PUT", "docs?id=over", {});
    put.end(over);
    const form = start("POST", "bulk_docs", { "content-type": "multipart/mixed; boundary=b" });
    form.end(
      '--b\r\nContent-Disposition: form-data; name="main"\r\n\r\n' +
        `{"Commands":[{"Id":"over","Type":"PUT","Document":${over}}]}\r\n--b--\r\n`,
    );
    const bulk = start("POST", "bulk_insert?id=1", {});
    bulk.end(`[{"Id":"over","Type":"PUT","Document":${over}}]`);
    // The error of a bulk insert reports its progress.
    expect([await put.status, await form.status, await bulk.status]).toEqual([413, 413, 400]);
    expect((await server.request("/databases/db/docs?id=over")).status).toBe(404);
    await vi.waitFor(() => expect(held()).toBe(before));
  });
});
