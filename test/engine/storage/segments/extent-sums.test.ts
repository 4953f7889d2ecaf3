/**
 * Extents verified by their checksum: an extent that matches is intact, and a damaged record fails
 * its own check.
 */
import { mkdtemp, open, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, expect, test } from "vitest";
import { nodeEnvironment } from "../../../../engine/base/platform/node-environment.ts";
import { type FileLog, openLog } from "../../../../engine/storage/log/file-log.ts";
import { positionSegmentFactor } from "../../../../engine/storage/log/log.ts";
import { newPlace } from "../../../../engine/storage/segments/blocks.ts";
import { trustMs } from "../../../../engine/storage/segments/compared-extents.ts";
import { ImagePool } from "../../../../engine/storage/segments/image-pool.ts";
import { segmentFileName } from "../../../../engine/storage/segments/segment.ts";
import { SegmentCache } from "../../../../engine/storage/segments/segment-cache.ts";
import { TinyOwner } from "../../../support/tiny-owner.ts";

const folders: string[] = [];
const count = 9_000;
/** Offset of the logs' clock, in milliseconds. */
let aheadMs = 0;

afterEach(async () => {
  for (const folder of folders.splice(0)) await rm(folder, { recursive: true });
});

/** Without capacity for images, and with extents of the usual size. */
async function openTiny(folder: string): Promise<{ log: FileLog; owner: TinyOwner }> {
  const owner = new TinyOwner();
  const environment = nodeEnvironment();
  const { clock } = environment;
  const log = await openLog({
    ...environment,
    clock: { ...clock, monotonicMs: () => clock.monotonicMs() + aheadMs },
    folder,
    owner,
    listener: {
      durable: (durable) => owner.durable(durable),
      lost: (lost) => owner.lost(lost),
      stopped: () => undefined,
    },
    cache: new SegmentCache(0, new ImagePool(true)),
    segmentBytesMin: 2 * 1024 * 1024,
    segmentBytesMax: 2 * 1024 * 1024,
  });
  owner.log = log;
  const sections = log.snapshot?.sections;
  if (sections !== undefined) owner.restore(sections);
  await log.replay();
  return { log, owner };
}

/** A closed log of several segments, with a snapshot when `hasSnapshot`. */
async function newFolder(hasSnapshot: boolean): Promise<string> {
  const folder = join(await mkdtemp(join(tmpdir(), "jackdaw-sums-")), "log");
  folders.push(join(folder, ".."));
  const { log, owner } = await openTiny(folder);
  for (let n = 0; n < count; n++) {
    owner.put(`key${n}`, `${n} `.repeat(100));
    if (n % 500 === 499) await log.flush();
  }
  await log.close(hasSnapshot ? () => owner.sections() : undefined);
  return folder;
}

/** Returns the keys of the first extents' records that a scan does not find. */
async function missingIn(log: FileLog, owner: TinyOwner, extents: number): Promise<string[]> {
  const missing: string[] = [];
  const [first] = owner.entries.values();
  const segment = Math.floor((first?.position ?? 0) / positionSegmentFactor);
  for (let index = 0; index < extents; index++) {
    const start = segment * positionSegmentFactor + index * log.extentBytes;
    const extent = await log.readExtent(start);
    for (const [key, { position, length }] of owner.entries) {
      if (position < start || position >= start + log.extentBytes) continue;
      const offset = position - segment * positionSegmentFactor;
      if (!extent?.has(offset, length)) missing.push(key);
    }
  }
  return missing;
}

function placeOf(owner: TinyOwner, key: string): { position: number; length: number } {
  return owner.entries.get(key) ?? { position: 0, length: 0 };
}

/** Overwrites a byte of the record in its file. */
async function damage(folder: string, owner: TinyOwner, key: string): Promise<void> {
  const { position, length } = placeOf(owner, key);
  const segment = Math.floor(position / positionSegmentFactor);
  const file = await open(join(folder, "log", segmentFileName(segment)), "r+");
  const at = position - segment * positionSegmentFactor + length - 20;
  await file.write(Buffer.from([0xff]), 0, 1, at);
  await file.close();
}

for (const hasSnapshot of [true, false]) {
  const name = hasSnapshot ? "with the sums of a snapshot" : "with sums taken by recovery";
  test(`does not find a damaged record only, ${name}`, async () => {
    const folder = await newFolder(hasSnapshot);
    const { log, owner } = await openTiny(folder);
    try {
      expect(await missingIn(log, owner, 2)).toEqual([]);
      await damage(folder, owner, "key700");
      aheadMs += trustMs;
      expect(await missingIn(log, owner, 2)).toEqual(["key700"]);
      const { position, length } = placeOf(owner, "key700");
      expect(log.place(position, length, newPlace())).toBe(false);
    } finally {
      await log.close();
    }
  });

  test(`detects damage on the first read after opening, ${name}`, async () => {
    const folder = await newFolder(hasSnapshot);
    const { log, owner } = await openTiny(folder);
    try {
      await damage(folder, owner, "key700");
      expect(await missingIn(log, owner, 2)).toEqual(["key700"]);
      expect(await missingIn(log, owner, 2)).toEqual(["key700"]);
    } finally {
      await log.close();
    }
  });
}

test("does not verify a recently verified extent again", async () => {
  const folder = await newFolder(true);
  const { log, owner } = await openTiny(folder);
  try {
    expect(await missingIn(log, owner, 2)).toEqual([]);
    await damage(folder, owner, "key700");
    aheadMs += trustMs / 2;
    expect(await missingIn(log, owner, 2)).toEqual([]);
    aheadMs += trustMs / 2;
    expect(await missingIn(log, owner, 2)).toEqual(["key700"]);
  } finally {
    await log.close();
  }
});

test("a single read detects damage in a trusted extent, which is then no longer trusted", async () => {
  const folder = await newFolder(true);
  const { log, owner } = await openTiny(folder);
  try {
    expect(await missingIn(log, owner, 2)).toEqual([]);
    await damage(folder, owner, "key700");
    const { position, length } = placeOf(owner, "key700");
    await expect(log.read(position, length)).rejects.toMatchObject({ code: "record-damaged" });
    expect(await missingIn(log, owner, 2)).toEqual(["key700"]);
  } finally {
    await log.close();
  }
});

test("scrub detects damage in a trusted extent, which is then no longer trusted", async () => {
  const folder = await newFolder(true);
  const { log, owner } = await openTiny(folder);
  try {
    expect(await missingIn(log, owner, 2)).toEqual([]);
    await damage(folder, owner, "key700");
    const damaged: number[] = [];
    await log.scrub(({ position }) => damaged.push(position), Number.POSITIVE_INFINITY);
    expect(damaged).toEqual([placeOf(owner, "key700").position]);
    expect(await missingIn(log, owner, 2)).toEqual(["key700"]);
  } finally {
    await log.close();
  }
});

test("checksums are reused after reopening if they match the segment's bytes", async () => {
  const folder = await newFolder(true);
  const sumsThen = async () => {
    const { log, owner } = await openTiny(folder);
    const [first] = owner.entries.values();
    const extent = await log.readExtent(first?.position ?? 0);
    await log.close(() => owner.sections());
    return extent?.segment.extentSums;
  };
  const sums = await sumsThen();
  expect(sums?.length).toBeGreaterThanOrEqual(2);
  // Without a snapshot, all segments are read and their checksums recomputed.
  await rm(join(folder, "snap"), { recursive: true });
  expect(await sumsThen()).toEqual(sums);
});
