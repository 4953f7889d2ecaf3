import { crc32 } from "node:zlib";
import fc from "fast-check";
import { expect, test } from "vitest";
import { ChunkSums } from "../../../../engine/storage/segments/chunk-sums.ts";

const image = Buffer.from(Array.from({ length: 4096 }, (_, at) => (at * 7919) >>> 5));

test("computes checksums of ranges from any known parts", () => {
  const cuts = fc.uniqueArray(fc.integer({ min: 0, max: image.length }), { minLength: 2 });
  const span = fc.tuple(fc.nat(image.length), fc.nat(image.length));
  fc.assert(
    fc.property(
      cuts,
      fc.array(fc.boolean()),
      fc.array(span),
      fc.nat(image.length),
      (all, isKnown, spans, at) => {
        const edges = all.sort((left, right) => left - right);
        const sums = new ChunkSums();
        for (const [k, start] of edges.entries()) {
          const end = edges[k + 1];
          if (end === undefined || isKnown[k] === false) continue;
          sums.add(start, end, crc32(image.subarray(start, end)));
        }
        const check = () => {
          for (const [one, other] of spans) {
            const from = Math.min(one, other);
            const to = Math.max(one, other);
            expect(sums.sumOf(image, from, to)).toBe(crc32(image.subarray(from, to)));
          }
        };
        check();
        sums.dropBelow(at);
        check();
        sums.cut(Math.min(image.length, at + 1000));
        check();
      },
    ),
  );
});

test("forgets only the parts that will be overwritten", () => {
  const bytes = Buffer.from(image);
  const sums = new ChunkSums();
  for (let at = 0; at < 4000; at += 1000) {
    sums.add(at, at + 1000, crc32(bytes.subarray(at, at + 1000)));
  }
  sums.cut(2500);
  bytes.fill(9, 2000);
  expect(sums.sumOf(bytes, 0, 4000)).toBe(crc32(bytes.subarray(0, 4000)));
  bytes.fill(9, 0, 2000);
  expect(sums.sumOf(bytes, 0, 4000)).not.toBe(crc32(bytes.subarray(0, 4000)));
});
