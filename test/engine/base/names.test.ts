import { describe, expect, it } from "vitest";
import { checkDocumentId } from "../../../engine/base/names.ts";

describe("a document id", () => {
  it("contains no control characters except those with a short JSON escape", () => {
    const taken: number[] = [];
    for (let code = 0; code < 0xa1; code++) {
      const id = `a${String.fromCharCode(code)}b`;
      try {
        checkDocumentId(id);
        taken.push(code);
      } catch (error) {
        expect(code).toBeLessThan(32);
        expect(String(error)).toContain("cannot contain control characters");
      }
    }
    // RavenDB 7.2.7 accepts these.
    expect(taken.slice(0, 6)).toEqual([8, 9, 10, 12, 13, 32]);
    expect(taken).toHaveLength(5 + 0xa1 - 32);
    expect(() => checkDocumentId('a\u000b"\nb')).toThrow("'a\\u000b\"\nb' (escaped version)");
  });

  it("has at most 512 bytes", () => {
    expect(() => checkDocumentId("é".repeat(256))).not.toThrow();
    expect(() => checkDocumentId(`${"é".repeat(256)}a`)).toThrow("the ID was 513 bytes");
  });
});
