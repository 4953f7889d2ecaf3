import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { DocumentParser } from "../../../../engine/state/documents/document-parser.ts";
import { slowMinify } from "./slow-minify.ts";

const parser = new DocumentParser(null);
function minify(text: string): string {
  const bytes = Buffer.from(text);
  return parser.parseValue(bytes, 0, bytes.length).body.toString();
}

/** Like `minify`, for a document that is parsed in slices. */
function minifyInSlices(text: string): string {
  const bytes = Buffer.from(text);
  const sliced = new DocumentParser(null);
  const work = sliced.parseInSlices(bytes, 0, bytes.length, Buffer.alloc(bytes.length), 1000);
  for (let pauses = 0; ; pauses++) {
    const step = work.next();
    if (step.done !== true) continue;
    expect(pauses).toBeGreaterThan(1);
    return step.value.body.toString();
  }
}

describe("an object with many keys", () => {
  it.each([5_000, 50_000])(
    "removes duplicates in slices, of %i members with a half as many keys",
    (count) => {
      const drawn = Array.from({ length: count }, (_, n) => (n * 7919) % (count / 2));
      const members = drawn.map((key, n) => `"key${key}":{"v":${n},"v":[${n}]}`).join(",");
      const text = `{"before":1,"x":{${members}},"after":[{"a":1,"b":2}],${members}}`;
      expect(minifyInSlices(text)).toBe(minify(text));
      const unique = `{"x":{${drawn.map((_, n) => `"key${n}":${n}`).join(",")}},"y":1}`;
      expect(minifyInSlices(unique)).toBe(unique);
    },
  );

  it("keeps the last value of each key, at its last position", () => {
    const keys = fc.array(fc.nat({ max: 60 }), { minLength: 10, maxLength: 80 });
    fc.assert(
      fc.property(keys, (drawn) => {
        const members = drawn.map((key, index) => `"key${key}":{"v":${index},"v":[${index}]}`);
        const text = `{"x":{${members.join(",")}}}`;
        expect(minify(text)).toBe(slowMinify(text));
      }),
      { numRuns: 500 },
    );
  });

  it("takes no longer to check if its keys were chosen to collide", () => {
    // The table's hash, to find keys in the same bucket of a table for 4096 keys.
    const place = (key: string): number => {
      let hash = key.length;
      for (const byte of Buffer.from(key)) hash = Math.imul(hash ^ byte, 0x01000193);
      return (hash ^ (hash >>> 15)) & 511;
    };
    const keys: string[] = [];
    for (let i = 0; keys.length < 200; i++) if (place(`"k${i}"`) === 7) keys.push(`"k${i}"`);
    const unique = `{${keys.map((key) => `${key}:1`).join(",")}}`;
    expect(minify(unique)).toBe(unique);
    const repeated = `{${[...keys, ...keys.slice(0, 5)].map((key, i) => `${key}:${i}`).join(",")}}`;
    expect(minify(repeated)).toBe(slowMinify(repeated));
  });
});

describe("nested duplicate keys", () => {
  const nested = (depth: number): string =>
    `${'{"a":0,"a":'.repeat(depth)}"${"x".repeat(100_000)}"${"}".repeat(depth)}`;

  it("are removed, but not on so many levels that the work would be quadratic", () => {
    expect(minify(nested(50))).toBe(slowMinify(nested(50)));
    expect(minifyInSlices(nested(50))).toBe(slowMinify(nested(50)));
    expect(() => minifyInSlices(nested(1000))).toThrow("too many levels deep");
    expect(() => minify(nested(1000))).toThrow("too many levels deep");
  });

  it("are removed from any number of sibling objects", () => {
    const flat = `[${'{"a":0,"b":1,"a":2},'.repeat(20_000)}0]`;
    expect(minify(flat)).toBe(slowMinify(flat));
  });
});
