/**
 * Files in S3: writes, listings, reads and removals, in several requests and pages, and failing
 * servers.
 */
import { randomBytes } from "node:crypto";
import { afterAll, beforeAll, beforeEach, describe, expect, test } from "vitest";
import { s3Storage } from "../../../server/backups/backup-destination.ts";
import type { BackupStorage } from "../../../server/backups/backup-storage.ts";
import { S3Client } from "../../../server/backups/s3-client.ts";
import { S3Storage } from "../../../server/backups/s3-storage.ts";
import { realS3, S3Server } from "../../support/s3-server.ts";

let server: S3Server;
let count = 0;
beforeAll(async () => {
  server = await S3Server.start();
});
beforeEach(() => {
  server.fault = () => undefined;
  server.requests.length = 0;
});
afterAll(() => server.stop());

async function all(bytes: AsyncIterable<Buffer>): Promise<Buffer> {
  const parts: Buffer[] = [];
  for await (const part of bytes) parts.push(Buffer.from(part));
  return Buffer.concat(parts);
}

/** Chunks that are overwritten when the next one is requested, like those of a log. */
async function* pieces(bytes: Buffer, size = 1 << 20): AsyncGenerator<Buffer> {
  const shared = Buffer.alloc(size);
  for (let at = 0; at < bytes.length; at += size) {
    const length = bytes.copy(shared, 0, at, at + size);
    yield shared.subarray(0, length);
  }
}

function newPlace(): BackupStorage {
  const real = realS3();
  const RemoteFolderName = `/a folder+&ü(1)/${Date.now()}-${++count}/`;
  return s3Storage({ ...(real ?? server.access), RemoteFolderName });
}

/** A place whose attempts wait but a moment. */
function impatientPlace(): BackupStorage {
  const { access } = server;
  const settings = {
    bucket: access.BucketName,
    accessKey: access.AwsAccessKey,
    secretKey: access.AwsSecretKey,
    sessionToken: null,
    region: access.AwsRegionName,
    serverUrl: access.CustomServerUrl,
    isPathStyle: true,
    storageClass: null,
  };
  return new S3Storage(new S3Client(settings, 1), `hasty-${++count}`);
}

describe("on an S3 server", () => {
  test.each([0, 1, 100_000, 8 * 1024 * 1024, 8 * 1024 * 1024 + 1, 20_000_000])(
    "reads back a file of %i bytes",
    async (length) => {
      const place = newPlace();
      const bytes = randomBytes(length);
      const written = await place.write("x.file", pieces(bytes));
      expect(written).toBe(length);
      expect(await place.files()).toEqual([{ name: "x.file", bytes: length }]);
      expect((await all(place.read("x.file"))).equals(bytes)).toBe(true);
      const head = await all(place.read("x.file", 1000));
      expect(head.equals(bytes.subarray(0, 1000))).toBe(true);
      await place.removeAll();
      expect(await place.exists()).toBe(false);
    },
    60_000,
  );

  test("lists files and folders in order, over several pages, and removes folders recursively", async () => {
    const place = newPlace();
    expect(await place.exists()).toBe(false);
    expect([await place.files(), await place.folders()]).toEqual([[], []]);
    for (const name of ["c", "a b", "b&<", "d+e", "é"]) {
      await place.write(name, [Buffer.from(name)]);
      await place.within(`in ${name}`).write("x", [Buffer.from("1")]);
    }
    const names = ["a b", "b&<", "c", "d+e", "é"];
    expect((await place.files()).map(({ name }) => name)).toEqual(names);
    expect(await place.folders()).toEqual(names.map((name) => `in ${name}`));
    expect((await all(place.read("b&<"))).toString()).toBe("b&<");
    await place.remove(["a b", "é"]);
    expect((await place.files()).map(({ name }) => name)).toEqual(["b&<", "c", "d+e"]);
    await place.within("in c").removeAll();
    expect(await place.folders()).not.toContain("in c");
    await place.removeAll();
    expect(await place.exists()).toBe(false);
  }, 60_000);

  test("a failing upload leaves no file, however much was sent", async () => {
    for (const length of [10, 20_000_000]) {
      const place = newPlace();
      const failing = async function* () {
        yield* pieces(randomBytes(length));
        throw new Error("the source fails");
      };
      await expect(place.write("x", failing())).rejects.toThrow("the source fails");
      expect(await place.files()).toEqual([]);
    }
    expect(server.uploads.size).toBe(0);
  });

  test("reports a missing file and an invalid secret", async () => {
    const place = newPlace();
    await expect(all(place.read("none"))).rejects.toThrow(
      /none: the S3 server replied 404 NoSuchKey/,
    );
    const wrong = s3Storage({ ...(realS3() ?? server.access), AwsSecretKey: "not-the-secret" });
    const failed = await wrong.files().catch((error: Error) => error.message);
    expect(failed).toMatch(/replied 403 SignatureDoesNotMatch/);
    expect(failed).not.toContain("not-the-secret");
  });
});

test("retries requests for a limited time while the server is overloaded or closes connections", async () => {
  const place = impatientPlace();
  const bytes = randomBytes(9_000_000);
  let failures = 3;
  server.fault = () => (failures-- > 0 ? "503" : undefined);
  await place.write("x", pieces(bytes));
  let cuts = 4;
  server.fault = (method) => (method === "GET" && cuts-- > 0 ? "cut" : undefined);
  expect((await all(place.read("x"))).equals(bytes)).toBe(true);
  server.fault = () => "503";
  await expect(place.write("y", pieces(bytes))).rejects.toThrow(
    /replied 503 SlowDown \(it <fails>\)/,
  );
  server.requests.length = 0;
  server.fault = () => "403";
  await expect(place.write("y", [Buffer.from("1")])).rejects.toThrow("403 AccessDenied");
  expect(server.requests).toHaveLength(1);
});

test("a read resumes in the same object, or fails if that was replaced", async () => {
  const place = impatientPlace();
  await place.write("x", [randomBytes(3_000_000)]);
  const key = place.pathOf("x");
  let attempts = 0;
  server.fault = (method) => {
    if (method !== "GET") return undefined;
    if (++attempts === 1) return "cut";
    server.objects.set(key, randomBytes(3_000_000));
    return undefined;
  };
  await expect(all(place.read("x"))).rejects.toThrow("412 PreconditionFailed");
});

test("aborts and reports an upload whose completion fails after the status was sent", async () => {
  const place = impatientPlace();
  server.fault = (method, _key, url) =>
    method === "POST" && url.searchParams.has("uploadId") ? "late error" : undefined;
  const failed = place.write("x", pieces(randomBytes(9_000_000)));
  await expect(failed).rejects.toMatchObject({ code: "file-failed" });
  server.fault = () => undefined;
  expect(server.uploads.size).toBe(0);
  expect(await place.files()).toEqual([]);
});

test("names an unreachable server", async () => {
  const settings = {
    bucket: "b",
    accessKey: "a",
    secretKey: "s",
    sessionToken: null,
    region: "us-east-1",
    serverUrl: "http://127.0.0.1:1",
    isPathStyle: true,
    storageClass: null,
  };
  const place = new S3Storage(new S3Client(settings, 1), "");
  await expect(place.files()).rejects.toThrow(
    "The S3 server http://127.0.0.1:1/b cannot be reached",
  );
});
