import fc from "fast-check";
import { expect, test } from "vitest";
import { ByteReader, bytesOf } from "../../../../engine/base/tree/sections.ts";

test("reads back the written values, for any chunk boundaries", () => {
  fc.assert(
    fc.property(fc.array(fc.nat(20)), (cuts) => {
      const bytes = Buffer.concat([
        bytesOf(Uint32Array.of(7, 2 ** 32 - 1)),
        bytesOf(Float64Array.of(0.5)),
        Buffer.from("abc"),
      ]);
      const parts: Uint8Array[] = [];
      let at = 0;
      for (const cut of cuts) {
        parts.push(bytes.subarray(at, at + cut));
        at = Math.min(bytes.length, at + cut);
      }
      parts.push(bytes.subarray(at));
      const reader = new ByteReader("a", parts);
      expect(reader.uint32()).toBe(7);
      expect([...reader.uint32s(1)]).toEqual([2 ** 32 - 1]);
      expect(reader.float64()).toBe(0.5);
      const text = Buffer.alloc(3);
      reader.copy(text, 3);
      expect(text.toString()).toBe("abc");
      reader.end();
    }),
  );
});

test("names the section that ends too early, is too long or contains a wrong value", () => {
  const damaged = { code: "database-damaged", message: expect.stringContaining("documents.x") };
  const reader = () => new ByteReader("documents.x", [Buffer.alloc(6)]);
  expect(() => reader().float64()).toThrow(expect.objectContaining(damaged));
  expect(() => reader().uint32s(2 ** 31)).toThrow(expect.objectContaining(damaged));
  expect(() => reader().end()).toThrow(expect.objectContaining(damaged));
  expect(() => reader().copy(Buffer.alloc(2), 3)).toThrow(expect.objectContaining(damaged));
  expect(() => reader().expect(false, "x")).toThrow(expect.objectContaining(damaged));
});
