/** Server output, split into chunks of complete messages. */
import { expect, test } from "vitest";
import { MessageAssembler } from "../../../../server/cluster/nats/message-assembler.ts";
import { SeededRandom } from "../../../support/random.ts";

/** Feeds `bytes` in reads whose sizes come from `next`. */
function cut(bytes: Buffer, next: () => number, isReadToCapacity: boolean): Buffer[] {
  const pieces: Buffer[] = [];
  const messages = new MessageAssembler((piece) => pieces.push(piece));
  for (let at = 0; at < bytes.length; ) {
    const { room } = messages;
    const count = Math.min(
      next(),
      isReadToCapacity ? room.length : bytes.length,
      bytes.length - at,
    );
    const read = bytes.subarray(at, at + count);
    if (isReadToCapacity) {
      read.copy(room);
      messages.filled(count);
    } else messages.add(read);
    at += count;
  }
  return pieces;
}

const message = (subject: string, payload: Buffer) =>
  Buffer.concat([
    Buffer.from(`MSG ${subject} 7 ${payload.length}\r\n`),
    payload,
    Buffer.from("\r\n"),
  ]);

function messageWithHeaders(headers: string, payload: Buffer): Buffer {
  const total = headers.length + payload.length;
  const line = `HMSG jd.1 7 $JS.ACK.x ${headers.length} ${total}\r\n${headers}`;
  return Buffer.concat([Buffer.from(line), payload, Buffer.from("\r\n")]);
}

/** Random server output. Payloads look like lines and messages, too. */
function operation(random: SeededRandom): Buffer {
  const payload = Buffer.alloc(random.below(random.below(4) === 0 ? 300_000 : 60), "MSG a 1 5\r\n");
  switch (random.below(6)) {
    case 0:
      return message("jd.1", payload);
    case 1:
      return message("jd.1 reply.to", payload);
    case 2:
      return messageWithHeaders("NATS/1.0\r\nA: b\r\n\r\n", payload);
    case 3:
      return Buffer.from("PING\r\n");
    case 4:
      return Buffer.from("-ERR 'MSG 5 is not for you'\r\n");
    default:
      return Buffer.from('INFO {"max_payload":8388608}\r\n');
  }
}

test.each([1, 2, 3, 4, 5, 6, 7, 8])(
  "chunks contain complete messages, for any read sizes: seed %i",
  (seed) => {
    const random = new SeededRandom(seed);
    const operations = Array.from({ length: 60 }, () => operation(random));
    const bytes = Buffer.concat(operations);
    const ends = new Set<number>();
    let end = 0;
    for (const { length } of operations) {
      end += length;
      ends.add(end);
    }
    const most = [3, 100, 70_000][seed % 3] as number;
    for (const isReadToCapacity of [true, false]) {
      const pieces = cut(bytes, () => 1 + random.below(most), isReadToCapacity);
      expect(Buffer.concat(pieces).equals(bytes)).toBe(true);
      let at = 0;
      for (const { length } of pieces) {
        at += length;
        expect(ends).toContain(at);
      }
    }
  },
);

test("the payload of a message that arrives in many reads is aligned, and returned in one chunk", () => {
  for (let length = 1; length < 20; length++) {
    const payload = Buffer.alloc(200_000, "x");
    const headers = `NATS/1.0\r\nA: ${"b".repeat(length)}\r\n\r\n`;
    for (const sent of [
      messageWithHeaders(headers, payload),
      message("s".repeat(length), payload),
    ]) {
      const [piece, ...others] = cut(sent, () => 64 * 1024, true);
      expect(others).toEqual([]);
      expect(((piece?.byteOffset ?? 0) + (piece?.indexOf("xxx") ?? 0)) % 8).toBe(0);
    }
  }
});

test("invalid server output is forwarded to the client, and takes no memory", () => {
  const lines = [
    "MSG a 7 99999999999999\r\n",
    "MSG a 7 -5\r\n",
    "MSG a 7 many\r\n",
    "HMSG a 7 9 5\r\n",
    "HMSG\r\n",
    "\r\n",
  ];
  for (const line of lines) {
    expect(cut(Buffer.from(line), () => 5, true).join("")).toBe(line);
  }
  const endless = Buffer.alloc(3 * 1024 * 1024, "x");
  const kept = endless.length - Buffer.concat(cut(endless, () => 64 * 1024, false)).length;
  expect(kept).toBeLessThanOrEqual(1024 * 1024);
});
