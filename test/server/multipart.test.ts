import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { multipartBoundary, multipartContents } from "../../server/multipart.ts";

async function* pieces(body: Buffer, cuts: readonly number[]): AsyncGenerator<Buffer> {
  const ends = [...new Set([...cuts.map((cut) => cut % (body.length + 1)), body.length])];
  let from = 0;
  for (const to of ends.sort((a, b) => a - b)) {
    yield body.subarray(from, to);
    from = to;
  }
}

async function read(body: Buffer, cuts: readonly number[], boundary: string): Promise<string[]> {
  const contents: string[] = [];
  for await (const content of multipartContents(pieces(body, cuts), boundary)) {
    const chunks: Buffer[] = [];
    for await (const chunk of content) chunks.push(chunk);
    contents.push(Buffer.concat(chunks).toString("latin1"));
  }
  return contents;
}

/** Contents full of what looks like a delimiter. */
const content = fc
  .array(
    fc.constantFrom("\r", "\n", "\r\n", "-", "--", "--Xy", "\r\n--X", "\r\n--XyY", "a", "\u0000"),
    { maxLength: 8 },
  )
  .map((parts) => parts.join(""))
  .filter((text) => !`\r\n${text}\r\n--Xy`.slice(0, -4).includes("\r\n--XyZ"));
const headers = fc.constantFrom("", "A: b\r\n", "A: b\r\nContent-Type: text/plain; x=\r\n y\r\n");

describe("multipartContents", () => {
  test("gives the parts as they were, however the body is cut", async () => {
    await fc.assert(
      fc.asyncProperty(
        fc.array(fc.tuple(headers, content), { minLength: 1, maxLength: 4 }),
        fc.array(fc.nat(), { maxLength: 20 }),
        fc.constantFrom("", "preamble\r\n"),
        fc.constantFrom("", "\r\n", "\r\nepilogue --XyZ"),
        fc.constantFrom("", "  "),
        async (parts, cuts, preamble, epilogue, padding) => {
          const text = parts
            .map(([head, body]) => `--XyZ${padding}\r\n${head}\r\n${body}\r\n`)
            .join("");
          const body = Buffer.from(`${preamble}${text}--XyZ--${epilogue}`, "latin1");
          const expected = parts.map(([, part]) => part);
          expect(await read(body, cuts, "XyZ")).toEqual(expected);
          const everywhere = Array.from({ length: body.length }, (_, at) => at);
          expect(await read(body, everywhere, "XyZ")).toEqual(expected);
        },
      ),
      { numRuns: 200 },
    );
  });

  test("passes over what was not read of a part", async () => {
    const body = Buffer.from("--b\r\n\r\none\r\n--b\r\n\r\ntwo\r\n--b--");
    const found: string[] = [];
    for await (const part of multipartContents(pieces(body, [9, 12, 20]), "b")) {
      if (found.length === 0) {
        found.push("unread");
        continue;
      }
      for await (const chunk of part) found.push(chunk.toString());
    }
    expect(found.join(" ")).toBe("unread two");
  });

  test("fails when the body ends before its last boundary, or headers have no end", async () => {
    const body = Buffer.from("--b\r\nA: b\r\n\r\none\r\n--b--");
    for (let length = 0; length < body.length - 1; length++) {
      await expect(read(body.subarray(0, length), [], "b"), String(length)).rejects.toThrow(
        "ends before",
      );
    }
    const endless = Buffer.from(`--b\r\nA: ${"b".repeat(40_000)}`);
    await expect(read(endless, [1000, 20_000, 30_000], "b")).rejects.toThrow("too long");
  });
});

describe("multipartBoundary", () => {
  test("is taken from the content type, quoted or not", () => {
    expect(multipartBoundary("multipart/form-data; boundary=abc")).toBe("abc");
    expect(multipartBoundary('Multipart/Mixed; x=y; boundary="a b"; z')).toBe("a b");
    expect(multipartBoundary("application/json")).toBeUndefined();
    expect(multipartBoundary(undefined)).toBeUndefined();
    expect(() => multipartBoundary("multipart/form-data")).toThrow("boundary");
  });
});
