/** Contents that come in chunks: kept until a group may refer to them, and nothing is left of others. */
import { createHash } from "node:crypto";
import { expect, test } from "vitest";
import { IncomingContents } from "../../../engine/database/incoming-contents.ts";
import { BlobStore } from "../../../engine/log/blob-store.ts";
import { simulatedEnvironment } from "../../support/simulated-database.ts";
import { SimulatedFileSystem } from "../../support/simulated-file-system.ts";

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

test("what has come whole is kept for ten minutes, in which a group may refer to it", async () => {
  const { files, blobs, contents, clock } = await start();
  for (const chunk of chunksOf("one and two", 4)) await contents.add(chunk);
  expect(blobs.count).toBe(1);
  expect(await blobs.findDamaged()).toEqual([]);
  clock.advance(keptMs - 10);
  expect(blobs.count).toBe(1);
  clock.advance(20);
  expect(blobs.count).toBe(0);
  // Its removal begins in the next turn.
  await expect.poll(() => filesOf(files)).toEqual([]);
});

test("what is kept is released when it is closed", async () => {
  const { blobs, contents, clock } = await start();
  for (const chunk of chunksOf("one and two", 4)) await contents.add(chunk);
  contents.close();
  expect(blobs.count).toBe(0);
  expect(clock.plannedCount).toBe(0);
});

test("what finishes storing after it was closed is not kept", async () => {
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

test("of what had not come whole nothing is left when it is closed", async () => {
  const { files, blobs, contents } = await start();
  const [first] = chunksOf("one and two", 6);
  if (first === undefined) expect.fail("there are two chunks");
  await contents.add(first);
  await expect.poll(() => filesOf(files)).toHaveLength(1);
  contents.close();
  await expect.poll(() => filesOf(files)).toEqual([]);
  expect(blobs.count).toBe(0);
});

test("a content that begins again is stored once, and whole", async () => {
  const { files, blobs, contents } = await start();
  const chunks = chunksOf("one and two", 6);
  for (const chunk of [chunks[0], ...chunks]) if (chunk !== undefined) await contents.add(chunk);
  expect(blobs.count).toBe(1);
  expect(await blobs.findDamaged()).toEqual([]);
  await expect.poll(() => filesOf(files)).toHaveLength(1);
});

test("chunks whose beginning has not come are left out", async () => {
  const { files, blobs, contents } = await start();
  for (const chunk of chunksOf("one and two", 4).slice(1)) await contents.add(chunk);
  expect(blobs.count).toBe(0);
  expect(filesOf(files)).toEqual([]);
});
