import fc from "fast-check";
import { expect, test } from "vitest";
import { TextInput } from "../../../../engine/base/json/text-input.ts";

test("returns the UTF-8 of each text, independent of earlier texts", () => {
  const input = new TextInput();
  fc.assert(
    fc.property(
      fc.array(fc.string({ unit: "binary", maxLength: 50 }), { maxLength: 5 }),
      (texts) => {
        for (const text of texts) {
          const long = text.repeat(1 + (text.length % 3) * 400);
          const length = input.set(long);
          expect(input.bytes.subarray(0, length).equals(Buffer.from(long))).toBe(true);
        }
      },
    ),
  );
});

test("releases the buffer of a large text", () => {
  const input = new TextInput();
  input.set("x".repeat(3 * 1024 * 1024));
  expect(input.set("small")).toBe(5);
  expect(input.bytes.length).toBeLessThan(1024 * 1024);
});
