import { expect, test } from "vitest";
import { DocumentBits } from "../../../../engine/indexing/columns/document-bits.ts";

test("counts each document once, however often it is added and removed", () => {
  const bits = new DocumentBits();
  const expected = new Set<number>();
  for (let i = 0; i < 4000; i++) {
    const docNum = (i * 7919) % 1201;
    if (i % 3 === 0) {
      bits.delete(docNum);
      expected.delete(docNum);
    } else {
      bits.add(docNum);
      expected.add(docNum);
    }
    expect(bits.count).toBe(expected.size);
  }
  bits.delete(1_000_000);
  bits.add(1_000_000);
  expect(bits.count).toBe(expected.size + 1);
});
