/** What is encoded, decoded by our decoder and by Node's client. */
import { once } from "node:events";
import * as http2 from "node:http2";
import * as net from "node:net";
import { describe, expect, test } from "vitest";
import { HeaderDecoder } from "../../../../server/listening/http2/header-decoder.ts";
import { HeaderEncoder } from "../../../../server/listening/http2/header-encoder.ts";
import { Http2Session } from "../../../../server/listening/http2/http2-session.ts";
import { InputScheduler } from "../../../../server/listening/input-scheduler.ts";
import { SeededRandom } from "../../../support/random.ts";
import { seedOfRun } from "../../../support/seed.ts";
import { limits, unheld } from "./http2-peer.ts";

const decoderLimits = { headerBytesMax: 1 << 20, headerCountMax: 1000 };
const names = [
  "date",
  "content-type",
  "etag",
  "vary",
  "x-one",
  "x-two",
  "content-length",
  "location",
  "set-cookie",
];
const statuses = [200, 201, 204, 206, 304, 400, 404, 409, 500, 503];

function randomFields(random: SeededRandom): string[] {
  const fields: string[] = [];
  for (let left = random.below(9); left > 0; left--) {
    const name = random.chance(0.1) ? `n${random.below(300)}` : (names[random.below(9)] as string);
    const letter = String.fromCharCode(random.chance(0.1) ? 0xe9 : 97 + random.below(3));
    const length = random.chance(0.05) ? random.below(3000) : random.below(60);
    fields.push(name, letter.repeat(length));
  }
  return fields;
}

describe("header blocks", () => {
  const seed = seedOfRun();

  test("are read as they were meant, whatever tables the client asks for", () => {
    const random = new SeededRandom(seed);
    for (let round = 0; round < 40; round++) {
      const encoder = new HeaderEncoder();
      const decoder = new HeaderDecoder(decoderLimits);
      const out = Buffer.alloc(64 * 1024);
      for (let n = 0; n < 300; n++) {
        for (let sizes = random.chance(0.05) ? 1 + random.below(3) : 0; sizes > 0; sizes--) {
          const size = [0, 50, 300, 1000, 4096, 4097, 65_536, 4_294_967_295][random.below(8)];
          encoder.resize(size as number);
        }
        const fields = randomFields(random);
        const status = statuses[random.below(statuses.length)] as number;
        const start = random.below(20);
        const end = encoder.encode(status, fields, out, start);
        expect(end - start).toBeLessThanOrEqual(encoder.bytesMax(fields));
        const decoded = decoder
          .decode(out, start, end)
          ?.flatMap(({ name, value }) => [name, value]);
        expect(decoded).toEqual([":status", String(status), ...fields]);
      }
    }
  });

  test("name what was said before by its number", () => {
    const encoder = new HeaderEncoder();
    const out = Buffer.alloc(1000);
    const fields = ["server", "one", "date", "today", "content-type", "application/json"];
    expect(encoder.encode(200, fields, out, 0)).toBeGreaterThan(20);
    expect(encoder.encode(200, fields, out, 0)).toBe(4);
    // What is another each time is not kept.
    const changing = ["content-length", "17", "etag", "x"];
    const length = encoder.encode(200, changing, out, 0);
    expect(encoder.encode(200, changing, out, 0)).toBe(length);
    expect(encoder.encode(200, fields, out, 0)).toBe(4);
  });

  test("that cannot be encoded leave the table as it was", () => {
    const encoder = new HeaderEncoder();
    const decoder = new HeaderDecoder(decoderLimits);
    const out = Buffer.alloc(1000);
    encoder.resize(100);
    for (const bad of ["a\nb", "a\r\nb: c", "\0", "\u0100"]) {
      expect(() => encoder.encode(200, ["good", "one", "bad", bad], out, 0)).toThrow(TypeError);
    }
    const end = encoder.encode(200, ["good", "one"], out, 0);
    // The table is made smaller first, as was asked.
    expect([...out.subarray(0, 2)]).toEqual([0x3f, 100 - 31]);
    expect(decoder.decode(out, 0, end)?.map(({ value }) => value)).toEqual(["200", "one"]);
  });

  test("are read by Node's client, which changes its table meanwhile", async () => {
    const random = new SeededRandom(seed);
    const expected = new Map<string, string[]>();
    const server = net.createServer((socket) => {
      new Http2Session(socket, {
        limits,
        input: new InputScheduler(),
        held: unheld(),
        isKnown: true,
        accept: (stream) => {
          stream.respond(200, expected.get(stream.head.target) ?? [], undefined);
        },
        report: (error) => {
          throw error;
        },
      });
    });
    server.listen(0, "127.0.0.1");
    await once(server, "listening");
    const { port } = server.address() as net.AddressInfo;
    const client = http2.connect(`http://127.0.0.1:${port}`, {
      settings: { headerTableSize: 200 },
    });
    for (let n = 0; n < 400; n++) {
      if (n % 50 === 25) {
        client.settings({ headerTableSize: [0, 4096, 100, 65_536][random.below(4)] as number });
      }
      // Node joins what is repeated, and takes some names once only.
      const fields: string[] = [];
      for (const [at, one] of randomFields(random).entries()) {
        if (at % 2 === 0) fields.push(`x-${fields.length}-${one}`);
        else fields.push(one);
      }
      expected.set(`/${n}`, fields);
      const stream = client.request({ ":path": `/${n}` });
      const [headers] = (await once(stream.resume(), "response")) as [http2.IncomingHttpHeaders];
      for (let at = 0; at < fields.length; at += 2) {
        expect(headers[fields[at] as string]).toBe(fields[at + 1]);
      }
    }
    client.destroy();
    server.close();
  });
});
