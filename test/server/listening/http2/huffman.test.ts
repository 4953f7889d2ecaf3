/** The Huffman code of header strings: every byte, the RFC's examples, and how a string may end. */
import { once } from "node:events";
import * as http2 from "node:http2";
import * as net from "node:net";
import { describe, expect, test } from "vitest";
import { frameTypes } from "../../../../server/listening/http2/frames.ts";
import { preface } from "../../../../server/listening/http2/http2-session.ts";
import { decodeHuffman } from "../../../../server/listening/http2/huffman.ts";
import { framesIn } from "./http2-peer.ts";

const decode = (bytes: Buffer) => decodeHuffman(bytes, 0, bytes.length);
const hex = (text: string) => Buffer.from(text, "hex");

/** Words of RFC 7541, appendix B: of the bytes 0 to 31, and from 127 on. All begin with a one. */
const firstWords =
  "1ff8 7fffd8 fffffe2 fffffe3 fffffe4 fffffe5 fffffe6 fffffe7 fffffe8 ffffea 3ffffffc fffffe9 fffffea 3ffffffd fffffeb fffffec " +
  "fffffed fffffee fffffef ffffff0 ffffff1 ffffff2 3ffffffe ffffff3 ffffff4 ffffff5 ffffff6 ffffff7 ffffff8 ffffff9 ffffffa ffffffb";
const lastWords =
  "ffffffc fffe6 3fffd2 fffe7 fffe8 3fffd3 3fffd4 3fffd5 7fffd9 3fffd6 7fffda 7fffdb 7fffdc 7fffdd 7fffde ffffeb 7fffdf " +
  "ffffec ffffed 3fffd7 7fffe0 ffffee 7fffe1 7fffe2 7fffe3 7fffe4 1fffdc 3fffd8 7fffe5 3fffd9 7fffe6 7fffe7 ffffef " +
  "3fffda 1fffdd fffe9 3fffdb 3fffdc 7fffe8 7fffe9 1fffde 7fffea 3fffdd 3fffde fffff0 1fffdf 3fffdf 7fffeb 7fffec " +
  "1fffe0 1fffe1 3fffe0 1fffe2 7fffed 3fffe1 7fffee 7fffef fffea 3fffe2 3fffe3 3fffe4 7ffff0 3fffe5 3fffe6 7ffff1 " +
  "3ffffe0 3ffffe1 fffeb 7fff1 3fffe7 7ffff2 3fffe8 1ffffec 3ffffe2 3ffffe3 3ffffe4 7ffffde 7ffffdf 3ffffe5 fffff1 1ffffed " +
  "7fff2 1fffe3 3ffffe6 7ffffe0 7ffffe1 3ffffe7 7ffffe2 fffff2 1fffe4 1fffe5 3ffffe8 3ffffe9 ffffffd 7ffffe3 7ffffe4 7ffffe5 " +
  "fffec fffff3 fffed 1fffe6 3fffe9 1fffe7 1fffe8 7ffff3 3fffea 3fffeb 1ffffee 1ffffef fffff4 fffff5 3ffffea 7ffff4 " +
  "3ffffeb 7ffffe6 3ffffec 3ffffed 7ffffe7 7ffffe8 7ffffe9 7ffffea 7ffffeb ffffffe 7ffffec 7ffffed 7ffffee 7ffffef 7fffff0 3ffffee";
const words = [
  ...firstWords.split(" ").map((word, at) => [at, word] as const),
  ...lastWords.split(" ").map((word, at) => [127 + at, word] as const),
];

/** Bits as bytes, with the ones that end a string. */
function padded(bits: string): Buffer {
  const whole = bits.padEnd(Math.ceil(bits.length / 8) * 8, "1");
  return Buffer.from(whole.match(/.{8}/g)?.map((byte) => Number.parseInt(byte, 2)) ?? []);
}

const bitsOf = (word: string) => BigInt(`0x${word}`).toString(2);

/** The first head that Node's client, which is another's code, sends for these fields. */
async function headOf(fields: http2.OutgoingHttpHeaders): Promise<Buffer> {
  const chunks: Buffer[] = [];
  const server = net.createServer((socket) => {
    socket.on("error", () => undefined);
    socket.on("data", (chunk) => chunks.push(chunk));
  });
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  const client = http2.connect(`http://127.0.0.1:${(server.address() as net.AddressInfo).port}`);
  client.on("error", () => undefined);
  client.request(fields).on("error", () => undefined);
  const heads = () => {
    const bytes = Buffer.concat(chunks).subarray(preface.length);
    const isWhole = bytes.length > 9 && bytes.length >= 9 + bytes.readUIntBE(0, 3);
    return isWhole ? framesIn(bytes).filter(({ type }) => type === frameTypes.headers) : [];
  };
  await expect.poll(() => heads().length).toBe(1);
  client.destroy();
  server.close();
  return heads()[0]?.payload as Buffer;
}

describe("the Huffman code", () => {
  test("has the words of the RFC for control characters and letters beyond ASCII", () => {
    expect(words.length).toBe(32 + 129);
    for (const [byte, word] of words) {
      expect(decode(padded(bitsOf(word))), `byte ${byte}`).toBe(String.fromCharCode(byte));
    }
    const all = words.map(([, word]) => bitsOf(word)).join("");
    const text = String.fromCharCode(...words.map(([byte]) => byte));
    expect(decode(padded(all))).toBe(text);
  });

  test("has those of another encoder for the characters of ASCII", async () => {
    const printable = Array.from({ length: 95 }, (_, n) => String.fromCharCode(32 + n)).filter(
      (one) => one !== " ",
    );
    // Each among short ones, so that the word is worth it for the encoder.
    const value = printable.map((one) => `${"e".repeat(12)}${one} a`).join("");
    const payload = await headOf({ ":path": "/", test: value });
    const nameEnd = payload.indexOf(hex("8349509f")) + 4; // "test"
    let length = 127;
    let at = nameEnd + 1;
    expect(payload[nameEnd]).toBe(0xff); // in Huffman's code, and 127 bytes or more
    for (let factor = 1; ; factor *= 128) {
      const byte = payload[at++] as number;
      length += (byte & 127) * factor;
      if (byte < 128) break;
    }
    expect(decodeHuffman(payload, at, at + length)).toBe(value);
  });

  test.each([
    ["www.example.com", "f1e3c2e5f23a6ba0ab90f4ff"],
    ["no-cache", "a8eb10649cbf"],
    ["custom-key", "25a849e95ba97d7f"],
    ["custom-value", "25a849e95bb8e8b4bf"],
    ["302", "6402"],
    ["307", "640eff"],
    ["private", "aec3771a4b"],
    ["Mon, 21 Oct 2013 20:13:21 GMT", "d07abe941054d444a8200595040b8166e082a62d1bff"],
    ["https://www.example.com", "9d29ad171863c78f0b97c8e9ae82ae43d3"],
    ["gzip", "9bd9ab"],
    ["", ""],
  ])("decodes the RFC's %j", (text, code) => {
    expect(decode(hex(code))).toBe(text);
    const within = Buffer.concat([Buffer.from("xx"), hex(code), Buffer.from("yy")]);
    expect(decodeHuffman(within, 2, 2 + code.length / 2)).toBe(text);
  });

  test("a string ends with fewer than eight ones, and nothing else", () => {
    // "0" has the word 00000, "&" 11111000.
    expect(decode(hex("07"))).toBe("0");
    for (const code of ["00", "01", "05", "06", "07ff", "ff", "f8ff", "ffff", "fe"]) {
      expect(decode(hex(code)), code).toBeUndefined();
    }
    expect(decode(hex("f8"))).toBe("&");
    // Every number of ones up to seven.
    for (const text of ["0", "00", "000", "0000", "00000", "000000", "0000000", "00000000"]) {
      expect(decode(padded(text.replaceAll("0", "00000")))).toBe(text);
    }
  });

  test("the word that ends all strings is in none", () => {
    expect(decode(hex("3fffffff"))).toBeUndefined();
    expect(decode(hex("ffffffff"))).toBeUndefined();
    expect(decode(hex("fffffffcffffff"))).toBeUndefined();
    expect(decode(hex("07ffffffff"))).toBeUndefined();
  });

  test("decodes strings of any length", () => {
    expect(decode(Buffer.alloc(50_000, 0))).toBe("0".repeat(80_000));
    expect(decode(Buffer.alloc(5, 0))).toBe("0".repeat(8));
  });
});
