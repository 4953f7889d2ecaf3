import { randomBytes } from "node:crypto";
import { gzipSync } from "node:zlib";
import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { multipartBoundary, multipartContents } from "../../../server/http/multipart.ts";

async function* pieces(body: Buffer, cuts: readonly number[]): AsyncGenerator<Buffer> {
  const ends = [...new Set([...cuts.map((cut) => cut % (body.length + 1)), body.length])];
  let from = 0;
  for (const to of ends.sort((a, b) => a - b)) {
    yield body.subarray(from, to);
    from = to;
  }
}

async function read(
  body: Buffer,
  cuts: readonly number[],
  boundary: string,
  isUnfolding = false,
): Promise<string[]> {
  const contents: string[] = [];
  for await (const content of multipartContents(pieces(body, cuts), boundary, isUnfolding)) {
    const chunks: Buffer[] = [];
    for await (const chunk of content) chunks.push(chunk);
    contents.push(Buffer.concat(chunks).toString("latin1"));
  }
  return contents;
}

/** Contents full of text that looks like a delimiter. */
const content = fc
  .array(
    fc.constantFrom("\r", "\n", "\r\n", "-", "--", "--Xy", "\r\n--X", "\r\n--XyY", "a", "\u0000"),
    { maxLength: 8 },
  )
  .map((parts) => parts.join(""))
  .filter((text) => !`\r\n${text}\r\n--Xy`.slice(0, -4).includes("\r\n--XyZ"));
const headers = fc.constantFrom("", "A: b\r\n", "A: b\r\nContent-Type: text/plain; x=\r\n y\r\n");

describe("multipartContents", () => {
  test("returns the sections unchanged, for any chunk boundaries", async () => {
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

  test("decompresses sections with a content encoding on request, and no others", async () => {
    const part = (headers: string, content: Buffer) =>
      Buffer.concat([Buffer.from(`--b\r\n${headers}\r\n`), content, Buffer.from("\r\n")]);
    const small = Buffer.from("small");
    const long = Buffer.from("long ".repeat(50_000));
    // A zstd frame of one raw block, as RFC 8878 draws it.
    const zstd = Buffer.from("28b52ffd200529000 0736d616c6c".replace(" ", ""), "hex");
    const body = Buffer.concat([
      part("A: b\r\ncontent-encoding: gzip\r\n", gzipSync(long)),
      part("Content-Encoding: zstd\r\n", zstd),
      part("Content-Encoding: deflate\r\n", small),
      part("A: Content-Encoding: gzip\r\n", small),
      part("Content-Encoding: GZIP\r\nA: b\r\n", gzipSync(small)),
      Buffer.from("--b--"),
    ]);
    const expected = [long, small, small, small, small].map((each) => each.toString("latin1"));
    expect(await read(body, [], "b", true)).toEqual(expected);
    expect(await read(body, [70, 71, 300, 480, 490], "b", true)).toEqual(expected);
    expect(await read(body, [], "b")).toContain(zstd.toString("latin1"));
    const broken = Buffer.concat([part("Content-Encoding: gzip\r\n", small), Buffer.from("--b--")]);
    await expect(read(broken, [], "b", true)).rejects.toThrow("gzip");
  });

  test("skips the unread rest of a compressed section", async () => {
    const noise = randomBytes(300_000);
    const body = Buffer.concat([
      Buffer.from("--b\r\nContent-Encoding: gzip\r\n\r\n"),
      gzipSync(noise),
      Buffer.from("\r\n--b\r\n\r\ntwo\r\n--b--"),
    ]);
    const cuts = Array.from({ length: 30 }, (_, at) => at * 10_000);
    const found: string[] = [];
    for await (const part of multipartContents(pieces(body, cuts), "b", true)) {
      for await (const chunk of part) {
        if (found.push(chunk.toString("latin1")) === 1) break;
      }
    }
    expect(noise.toString("latin1").startsWith(found[0] ?? "")).toBe(true);
    expect(found.slice(1).join("")).toBe("two");
  });

  test("skips the unread rest of a section", async () => {
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

  test("fails if the body ends before its last boundary, or if headers are unterminated", async () => {
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
