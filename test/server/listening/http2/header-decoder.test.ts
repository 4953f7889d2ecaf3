/** Decoding header blocks: the examples of RFC 7541, its errors, and the limits. */
import { describe, expect, test } from "vitest";
import { ConnectionError, errorCodes } from "../../../../server/listening/http2/frames.ts";
import { HeaderDecoder } from "../../../../server/listening/http2/header-decoder.ts";
import { literals } from "./http2-peer.ts";

const limits = { headerBytesMax: 32 * 1024, headerCountMax: 128 };

function decodeIn(decoder: HeaderDecoder, block: Buffer | string): string[] | undefined {
  const bytes = typeof block === "string" ? Buffer.from(block.replaceAll(" ", ""), "hex") : block;
  const within = Buffer.concat([Buffer.from("??"), bytes, Buffer.from("??")]);
  return decoder.decode(within, 2, 2 + bytes.length)?.map(({ name, value }) => `${name}: ${value}`);
}

function failure(decoder: HeaderDecoder, block: Buffer | string): unknown {
  try {
    return decodeIn(decoder, block);
  } catch (error) {
    return error instanceof ConnectionError ? error.code : error;
  }
}

const first = [":method: GET", ":scheme: http", ":path: /", ":authority: www.example.com"];
const second = [...first, "cache-control: no-cache"];
const third = [
  ":method: GET",
  ":scheme: https",
  ":path: /index.html",
  ":authority: www.example.com",
  "custom-key: custom-value",
];
const early = "date: Mon, 21 Oct 2013 20:13:21 GMT";
const location = "location: https://www.example.com";
const found = [":status: 302", "cache-control: private", early, location];
const moved = [":status: 307", "cache-control: private", early, location];
const done = [
  ":status: 200",
  "cache-control: private",
  "date: Mon, 21 Oct 2013 20:13:22 GMT",
  location,
  "content-encoding: gzip",
  "set-cookie: foo=ASDJKHQKBZXOQWEOPIUAXQWEOIU; max-age=3600; version=1",
];
/** A table of 256 bytes, as these examples have it. */
const small = "3fe101";

describe("a header block", () => {
  test.each<[string, [string, string[]][]]>([
    [
      "C.3",
      [
        ["828684410f7777772e6578616d706c652e636f6d", first],
        ["828684be58086e6f2d6361636865", second],
        ["828785bf400a637573746f6d2d6b65790c637573746f6d2d76616c7565", third],
      ],
    ],
    [
      "C.4",
      [
        ["828684418cf1e3c2e5f23a6ba0ab90f4ff", first],
        ["828684be5886a8eb10649cbf", second],
        ["828785bf408825a849e95ba97d7f8925a849e95bb8e8b4bf", third],
      ],
    ],
    [
      "C.5",
      [
        [
          `${small}4803333032580770726976617465611d4d6f6e2c203231204f637420323031332032303a31333a323120474d546e1768747470733a2f2f7777772e6578616d706c652e636f6d`,
          found,
        ],
        ["4803333037c1c0bf", moved],
        [
          "88c1611d4d6f6e2c203231204f637420323031332032303a31333a323220474d54c05a04677a69707738666f6f3d4153444a4b48514b425a584f5157454f50495541585157454f49553b206d61782d6167653d333630303b2076657273696f6e3d31",
          done,
        ],
      ],
    ],
    [
      "C.6",
      [
        [
          `${small}488264025885aec3771a4b6196d07abe941054d444a8200595040b8166e082a62d1bff6e919d29ad171863c78f0b97c8e9ae82ae43d3`,
          found,
        ],
        ["4883640effc1c0bf", moved],
        [
          "88c16196d07abe941054d444a8200595040b8166e084a62d1bffc05a839bd9ab77ad94e7821dd7f2e6c7b335dfdfcd5b3960d5af27087f3672c1ab270fb5291f9587316065c003ed4ee5b1063d5007",
          done,
        ],
      ],
    ],
  ])("is decoded as in appendix %s", (_name, blocks) => {
    const decoder = new HeaderDecoder(limits);
    for (const [block, fields] of blocks) expect(decodeIn(decoder, block)).toEqual(fields);
  });

  test("has what was put out of the table no more", () => {
    const decoder = new HeaderDecoder(limits);
    // After C.5 the table has three entries.
    decodeIn(decoder, `${small}4803333032580770726976617465`);
    expect(decodeIn(decoder, "bebf")).toEqual(["cache-control: private", ":status: 302"]);
    expect(failure(decoder, "c0")).toBe(errorCodes.compression);
    const other = new HeaderDecoder(limits);
    decodeIn(other, "4803333032580770726976617465");
    // A table of nothing, then one of 4096 bytes again: it is empty.
    expect(decodeIn(other, "203fe11f 82")).toEqual([":method: GET"]);
    expect(failure(other, "be")).toBe(errorCodes.compression);
  });

  test("an entry that is larger than the table empties it", () => {
    const decoder = new HeaderDecoder(limits);
    decodeIn(decoder, "4803333032");
    const large = Buffer.concat([Buffer.from([0x40]), literals("a", "b".repeat(5000)).subarray(1)]);
    expect(decodeIn(decoder, large)?.[0]?.length).toBe(5003);
    expect(failure(decoder, "be")).toBe(errorCodes.compression);
  });

  test("an entry may be named by the one that puts it out", () => {
    const decoder = new HeaderDecoder(limits);
    // A table of 40 bytes; "n: 1" takes 34 of them.
    expect(decodeIn(decoder, "3f09 40016e0131")).toEqual(["n: 1"]);
    expect(decodeIn(decoder, "7e0132 be")).toEqual(["n: 2", "n: 2"]);
    expect(failure(decoder, "bf")).toBe(errorCodes.compression);
  });

  test("keeps to its table through thousands of entries", () => {
    const decoder = new HeaderDecoder(limits);
    const table: string[] = [];
    for (let n = 0; n < 3000; n++) {
      const value = `${n}`.repeat(1 + (n % 30));
      const block = Buffer.concat([Buffer.from([0x40]), literals(`n${n % 7}`, value).subarray(1)]);
      expect(decodeIn(decoder, block)).toEqual([`n${n % 7}: ${value}`]);
      table.unshift(`n${n % 7}: ${value}`);
      const sizeOf = (text: string) => text.length - 2 + 32;
      while (table.reduce((sum, text) => sum + sizeOf(text), 0) > 4096) table.pop();
      const at = (n * 31) % table.length;
      const index = 62 + at;
      const named = index < 127 ? [0x80 | index] : [0xff, index - 127];
      expect(decodeIn(decoder, Buffer.from(named))).toEqual([table[at]]);
    }
  });

  test.each([
    ["an index of nothing", "80"],
    ["an index behind the table", "be"],
    ["an index far behind it", "ffffff7f"],
    ["a name behind the table", "7e0131"],
    ["a number without an end", "ff"],
    ["a number that goes on and on", "ff80808080808080808001"],
    ["a number beyond all", "ffffffffffff7f"],
    ["a string without a length", "40"],
    ["a string that is cut", "4003aa"],
    ["a value that is missing", "400161"],
    ["a value that is cut", "4001610361"],
    ["a length beyond all", "00ffffffff7f"],
    ["Huffman's code with wrong padding", "00810601 61"],
    ["a table larger than ours", "3fe21f"],
    ["a table that changes within", "8220"],
  ])("fails the connection with %s", (_what, block) => {
    expect(failure(new HeaderDecoder(limits), block)).toBe(errorCodes.compression);
  });

  test("of nothing has no fields, nor one that only changes the table", () => {
    expect(decodeIn(new HeaderDecoder(limits), "")).toEqual([]);
    expect(decodeIn(new HeaderDecoder(limits), "203fe11f")).toEqual([]);
  });

  test("is not whole at any place where it is cut within a field", () => {
    const block = Buffer.concat([literals("name", "value"), literals("other", "x".repeat(200))]);
    const edge = literals("name", "value").length;
    for (let end = 1; end < block.length; end++) {
      const expected = end === edge ? ["name: value"] : errorCodes.compression;
      expect(failure(new HeaderDecoder(limits), block.subarray(0, end))).toEqual(expected);
    }
  });

  test("over a limit is decoded whole, and yields nothing", () => {
    const decoder = new HeaderDecoder({ headerBytesMax: 200, headerCountMax: 3 });
    const kept = Buffer.concat([Buffer.from([0x40]), literals("a", "b").subarray(1)]);
    expect(
      decodeIn(decoder, Buffer.concat([literals("n", "x".repeat(180)), kept])),
    ).toBeUndefined();
    expect(decodeIn(decoder, "be")).toEqual(["a: b"]);
    expect(decodeIn(decoder, "82828282")).toBeUndefined();
    expect(decodeIn(decoder, "828282")?.length).toBe(3);
    // A bomb, one field named many times, ends its connection: what it stands for is never decoded.
    const bomb = Buffer.concat([
      Buffer.from([0x40]),
      literals("a", "b".repeat(4000)).subarray(1),
      Buffer.alloc(100_000, 0xbe),
    ]);
    expect(() => decodeIn(decoder, bomb)).toThrow("headers over the limit");
  });
});
