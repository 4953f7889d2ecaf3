import { expect, test } from "vitest";
import { openEngine } from "../../../../engine/engine.ts";
import { Chain } from "../../../../engine/storage/replication/chain.ts";
import {
  decodeFrame,
  encodeFrame,
  frameTypes,
  genesisPayload,
} from "../../../../engine/storage/replication/frame.ts";
import type { Mark } from "../../../../engine/storage/replication/replica-types.ts";

const databaseId = "ab".repeat(16);

/** The first frame of the stream after a mark, as read by a node whose own log ends with `own`. */
function verdictOf(seed: Mark, own: Mark | null): string {
  const generation = seed.generation + 1;
  const place = { generation, epoch: seed.epoch, sequence: 1, previous: seed.hash };
  const { bytes } = encodeFrame(frameTypes.genesis, place, [genesisPayload(databaseId, seed)]);
  const frame = decodeFrame(bytes);
  if (frame === null) throw new Error("the input is not a frame");
  return new Chain(databaseId, generation, own).verdictOn(frame).kind;
}

test("is written once, and only the log that has it continues with the stream", async () => {
  const engine = await openEngine({});
  await engine.databases.create("one", { DatabaseName: "one" });
  await engine.databases.create("other", { DatabaseName: "other" });
  const mark = await engine.databases.markAsSeed("one");
  expect(mark).toEqual({
    generation: 1,
    sequence: 1,
    epoch: 0,
    hash: expect.stringMatching(/^[0-9a-f]{64}$/),
  });
  expect(await engine.databases.markAsSeed("one")).toEqual(mark);
  const other = await engine.databases.markAsSeed("other");
  expect(other.hash).not.toBe(mark.hash);
  expect(verdictOf(mark, mark)).toBe("valid");
  // A new copy, and one of an earlier stream, need the files; another log of the same generation is
  // not a copy of this database.
  expect(verdictOf(mark, null)).toBe("behind");
  expect(
    verdictOf(
      { ...mark, generation: 3 },
      { generation: 1, sequence: 900, epoch: 7, hash: "0".repeat(64) },
    ),
  ).toBe("behind");
  expect(verdictOf(mark, other)).toBe("broken");
  await expect(engine.databases.markAsSeed("none")).rejects.toMatchObject({
    code: "database-missing",
  });
  await engine.close();
});
