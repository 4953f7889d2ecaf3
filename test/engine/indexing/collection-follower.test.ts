import { describe, expect, it } from "vitest";
import { CollectionFollower } from "../../../engine/indexing/collection-follower.ts";
import type { IndexHost } from "../../../engine/indexing/index-host.ts";

const stride = 64;

/** A host with `count` documents of `bytes` bytes each. */
function hostOf(count: number, bytes: number): IndexHost {
  const record = Buffer.alloc(4);
  record.writeUInt32LE(bytes);
  const rowsSince = (_collection: string | null, etag: number) => {
    const row = { docNum: 0, etag, bytes: record, start: 0 };
    const next = () => {
      if (row.etag === count) return false;
      row.docNum = row.etag++;
      return true;
    };
    return { row, pending: null, next };
  };
  const host: Partial<IndexHost> = {
    etagsOf: () => ({ document: count, deletion: 0 }),
    newReader: () => ({ rowsSince, rowsOf: () => rowsSince(null, count) }),
  };
  return host as IndexHost;
}

/** Numbers of documents taken by each call if every clock check ends the slice. */
async function slices(count: number, bytes: number): Promise<number[]> {
  let taken = 0;
  const target = {
    remove: () => undefined,
    take: () => {
      taken++;
      return null;
    },
  };
  const follower = new CollectionFollower(["Us"], target, hostOf(count, bytes), stride);
  const found: number[] = [];
  while (follower.isStale) {
    taken = 0;
    await follower.catchUp(() => true);
    found.push(taken);
  }
  return found;
}

describe("CollectionFollower", () => {
  it("checks the clock after a number of small documents", async () => {
    expect(await slices(150, 100)).toEqual([64, 64, 22]);
  });

  it("checks the clock after fewer documents when they are larger", async () => {
    expect(await slices(20, 10_000)).toEqual([4, 4, 4, 4, 4]);
  });

  it("checks the clock after each large document", async () => {
    expect(await slices(3, 1_000_000)).toEqual([1, 1, 1]);
  });
});
