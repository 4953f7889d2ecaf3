/**
 * Contents that arrive in chunks: retained until a group may refer to them; incomplete ones leave
 * no files.
 */
import { createHash } from "node:crypto";
import { expect, test } from "vitest";
import { IncomingContents } from "../../../../engine/api/database/incoming-contents.ts";
import { BlobStore } from "../../../../engine/storage/log/blob-store.ts";
import { simulatedEnvironment } from "../../../support/simulated-database.ts";
import { SimulatedFileSystem } from "../../../support/simulated-file-system.ts";

const folder = "/data/blobs";
const keptMs = 10 * 60_000;

async function start() {
  const files = new SimulatedFileSystem();
  const environment = simulatedEnvironment(files);
  const blobs = new BlobStore(environment, folder);
  await blobs.sweep();
  const contents = new IncomingContents(blobs, environment.clock);
  return { files, blobs, contents, clock: environment.clock };
}

/** `text` in chunks of `size` characters. */
function chunksOf(text: string, size: number) {
  const sha256 = createHash("sha256").update(text).digest("hex");
  return Array.from({ length: Math.ceil(text.length / size) }, (_, at) => ({
    sha256,
    offset: at * size,
    total: text.length,
    bytes: Buffer.from(text.slice(at * size, (at + 1) * size)),
  }));
}

const filesOf = (files: SimulatedFileSystem) =>
  files.paths().filter((path) => path.startsWith(folder));

test("retains a complete content for ten minutes, in which a group may refer to it", async () => {
  const { files, blobs, contents, clock } = await start();
  for (const chunk of chunksOf("one and two", 4)) await contents.add(chunk);
  expect(blobs.count).toBe(1);
  expect(await blobs.findDamaged()).toEqual([]);
  clock.advance(keptMs - 10);
  expect(blobs.count).toBe(1);
  clock.advance(20);
  expect(blobs.count).toBe(0);
  // The file is removed in the next tick.
  await expect.poll(() => filesOf(files)).toEqual([]);
});

test("closing releases the retained contents", async () => {
  const { blobs, contents, clock } = await start();
  for (const chunk of chunksOf("one and two", 4)) await contents.add(chunk);
  contents.close();
  expect(blobs.count).toBe(0);
  expect(clock.plannedCount).toBe(0);
});

test("does not retain a content whose storing completes after closing", async () => {
  const { blobs, contents, clock } = await start();
  const [first, last] = chunksOf("one and two", 6);
  if (first === undefined || last === undefined) expect.fail("there are two chunks");
  await contents.add(first);
  const added = contents.add(last);
  contents.close();
  await added;
  expect(blobs.count).toBe(0);
  expect(clock.plannedCount).toBe(0);
});

test("closing deletes incomplete contents", async () => {
  const { files, blobs, contents } = await start();
  const [first] = chunksOf("one and two", 6);
  if (first === undefined) expect.fail("there are two chunks");
  await contents.add(first);
  await expect.poll(() => filesOf(files)).toHaveLength(1);
  contents.close();
  await expect.poll(() => filesOf(files)).toEqual([]);
  expect(blobs.count).toBe(0);
});

test("stores a content that restarts once, completely", async () => {
  const { files, blobs, contents } = await start();
  const chunks = chunksOf("one and two", 6);
  for (const chunk of [chunks[0], ...chunks]) if (chunk !== undefined) await contents.add(chunk);
  expect(blobs.count).toBe(1);
  expect(await blobs.findDamaged()).toEqual([]);
  await expect.poll(() => filesOf(files)).toHaveLength(1);
});

test("ignores chunks whose beginning is missing", async () => {
  const { files, blobs, contents } = await start();
  for (const chunk of chunksOf("one and two", 4).slice(1)) await contents.add(chunk);
  expect(blobs.count).toBe(0);
  expect(filesOf(files)).toEqual([]);
});
