import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, describe, expect, test, vi } from "vitest";
import { nodeEnvironment } from "../../../../engine/base/platform/node-environment.ts";
import { type LogOptions, openLog } from "../../../../engine/storage/log/file-log.ts";
import type { LogListener } from "../../../../engine/storage/log/log.ts";
import { ImagePool } from "../../../../engine/storage/segments/image-pool.ts";
import { SegmentCache } from "../../../../engine/storage/segments/segment-cache.ts";
import { TinyOwner } from "../../../support/tiny-owner.ts";

const folders: string[] = [];

async function newFolder(): Promise<string> {
  const folder = await mkdtemp(join(tmpdir(), "jackdaw-log-"));
  folders.push(folder);
  return folder;
}

afterEach(async () => {
  for (const folder of folders.splice(0)) await rm(folder, { recursive: true });
});

async function open(
  folder: string | null,
  owner: TinyOwner,
  cache = new SegmentCache(1 << 20, new ImagePool(true)),
  more: Partial<LogOptions> = {},
) {
  const environment = nodeEnvironment();
  const listener: LogListener = {
    durable: (count) => owner.durable(count),
    lost: (count) => owner.lost(count),
    stopped: () => undefined,
  };
  const log = await openLog({
    ...environment,
    folder,
    owner,
    listener,
    cache,
    segmentBytesMin: 1024,
    segmentBytesMax: 4096,
    oversizedBytesMin: 32_768,
    ...more,
  });
  owner.log = log;
  const sections = log.snapshot?.sections;
  if (sections !== undefined) owner.restore(sections);
  const report = await log.replay();
  return { log, report };
}

describe.each(["memory", "disk"])("a log in %s", (place) => {
  test("makes appended records readable immediately and durable later", async () => {
    const owner = new TinyOwner();
    const { log } = await open(place === "disk" ? await newFolder() : null, owner);
    const position = owner.put("a", "one");
    expect(log.durableCount).toBe(0);
    expect(log.peek(position, 32)?.toString("latin1", 24, 28)).toBe("aone");
    await log.flush();
    expect(log.durableCount).toBe(1);
    expect(owner.state()).toEqual({ a: "one" });
    await log.close();
  });

  test("fills many segments and reads all of them", async () => {
    const owner = new TinyOwner();
    const { log } = await open(
      place === "disk" ? await newFolder() : null,
      owner,
      new SegmentCache(2048, new ImagePool(true)),
    );
    for (let index = 0; index < 300; index++) {
      owner.put(`key${index % 50}`, `value ${index}`);
      if (index % 7 === 0) await log.flush();
    }
    await log.flush();
    for (const [key, entry] of owner.entries) {
      const bytes = await log.read(entry.position, entry.length);
      expect(bytes.toString("latin1", 24, 24 + key.length)).toBe(key);
    }
    await log.close();
  });
});

describe("a log on disk", () => {
  test("is unchanged after it was closed and reopened", async () => {
    const folder = await newFolder();
    const first = new TinyOwner();
    const { log } = await open(folder, first);
    for (let index = 0; index < 200; index++) first.put(`key${index % 20}`, `value ${index}`);
    first.remove("key3");
    await log.close();
    const second = new TinyOwner();
    const reopened = await open(folder, second);
    expect(reopened.report).toMatchObject({ wasClosed: true, transactions: 201, tornBytes: 0 });
    expect(second.state()).toEqual(first.state());
    second.put("more", "x");
    await reopened.log.close();
    const third = new TinyOwner();
    const again = await open(folder, third);
    expect(third.state()).toEqual(second.state());
    await again.log.close();
  });

  test("caches no image of a segment for one large transaction, which is read from its file", async () => {
    const folder = await newFolder();
    const owner = new TinyOwner();
    const { log } = await open(folder, owner);
    const large = owner.put("large", "x".repeat(50_000));
    const small = owner.put("small", "1");
    await log.flush();
    await vi.waitFor(() => expect(log.peek(large, 32)).toBeNull());
    const { position, length } = owner.entries.get("large") ?? { position: -1, length: 0 };
    expect((await log.read(position, length)).toString("latin1", 24, 30)).toBe("largex");
    owner.put("small", "2");
    await log.flush();
    expect(log.metrics().imageBytes).toBeLessThan(10_000);
    await log.close();
    const again = new TinyOwner();
    const reopened = await open(folder, again);
    expect(again.state()).toEqual(owner.state());
    expect(again.state()).toMatchObject({ small: "2" });
    expect(small).toBeGreaterThan(large);
    await reopened.log.close();
  });

  test("stores a transaction larger than a segment in its own segment", async () => {
    const folder = await newFolder();
    const owner = new TinyOwner();
    const { log } = await open(folder, owner);
    owner.put("small", "1");
    owner.put("large", "x".repeat(50_000));
    owner.put("small", "2");
    await log.close();
    const second = new TinyOwner();
    const reopened = await open(folder, second);
    expect(second.state()).toEqual({ small: "2", large: "x".repeat(50_000) });
    await reopened.log.close();
  });

  test("lets a writer wait for the device", async () => {
    const owner = new TinyOwner();
    const { log } = await open(await newFolder(), owner);
    for (let index = 0; index < 100; index++) owner.put("key", "x".repeat(500));
    expect(log.unsyncedBytes).toBeGreaterThan(50_000);
    await log.whenUnsyncedBelow(1000);
    expect(log.unsyncedBytes).toBeLessThanOrEqual(1000);
    await log.close();
  });

  test("slows writers that outrun compaction, and reports it once a minute, with the folder", async () => {
    const clock = { ...nodeEnvironment().clock };
    const real = clock.monotonicMs.bind(clock);
    let skippedMs = 0;
    clock.monotonicMs = () => real() + skippedMs;
    const reported: unknown[][] = [];
    const folder = await newFolder();
    const owner = new TinyOwner();
    const { log } = await open(folder, owner, undefined, {
      clock,
      report: (...event) => void reported.push(event),
      compaction: { bytesPerSecond: 20_000 },
    });
    const held = () => reported.filter(([, , event]) => event === "writers-held");
    const overwrite = async (isEnough: () => boolean) => {
      for (let round = 0; round < 3_000 && !isEnough(); round++) {
        for (let key = 0; key < 20; key++)
          owner.put(`key${(key * 7 + round) % 60}`, "x".repeat(400));
        await log.flush();
      }
    };
    let rounds = 0;
    await overwrite(() => held().length > 0);
    await overwrite(() => rounds++ > 5);
    expect(held()).toEqual([
      [
        `Writers of ${folder} are held back, because they overwrite faster than compaction reclaims`,
        undefined,
        "writers-held",
      ],
    ]);
    skippedMs = 61_000;
    await overwrite(() => held().length > 1);
    expect(held()).toHaveLength(2);
    await log.close();
  });
});
