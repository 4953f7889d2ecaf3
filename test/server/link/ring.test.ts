/** Records between two ends, with rings of a kilobyte, compared with arrays. */
import { describe, expect, test } from "vitest";
import { allocateRing, RingReceiver, RingSender } from "../../../server/link/ring.ts";
import { SeededRandom } from "../../support/random.ts";

const never = Number.POSITIVE_INFINITY;

interface Sent {
  readonly kind: number;
  readonly flags: number;
  readonly number: number;
  readonly connection: number;
  readonly exchange: number;
  readonly payload: Buffer;
}

function begin(sender: RingSender, record: Sent): void {
  const { kind, flags, number, connection, exchange, payload } = record;
  const at = sender.begin(kind, flags, number, connection, exchange, payload.length);
  payload.copy(sender.target, at);
}

/** Receives all that is there, until `untilMs`. */
function receiveAll(receiver: RingReceiver, untilMs = never) {
  const records: Sent[] = [];
  const received = receiver.receive(
    (kind, flags, number, connection, exchange, bytes, start, end) => {
      const payload = Buffer.from(bytes.subarray(start, end));
      records.push({ kind, flags, number, connection, exchange, payload });
    },
    untilMs,
  );
  return { ...received, records };
}

function record(length: number, exchange = 1): Sent {
  return {
    kind: 3,
    flags: 7,
    number: 0xffff,
    connection: 0xffffffff,
    exchange,
    payload: Buffer.alloc(length, exchange),
  };
}

describe("a ring", () => {
  test("transfers records of all lengths unchanged, in order", () => {
    const memory = allocateRing(4096);
    const sender = new RingSender(memory);
    const receiver = new RingReceiver(memory);
    for (let length = 0; length <= sender.payloadBytesMax; length++) {
      begin(sender, record(length, length));
      sender.send();
      expect(receiveAll(receiver).records).toEqual([record(length, length)]);
    }
    expect(receiveAll(receiver).records).toEqual([]);
  });

  test("refuses a record that exceeds a quarter of it", () => {
    const sender = new RingSender(allocateRing(1024));
    expect(() => begin(sender, record(sender.payloadBytesMax + 1))).toThrow(/quarter/);
  });

  test("shows nothing to the receiver before it is sent", () => {
    const memory = allocateRing(1024);
    const sender = new RingSender(memory);
    const receiver = new RingReceiver(memory);
    begin(sender, record(5));
    expect(receiveAll(receiver).records).toEqual([]);
    sender.send();
    expect(receiveAll(receiver).records).toHaveLength(1);
  });

  test("wakes a sleeping receiver once, and one that is not asleep never", () => {
    const memory = allocateRing(1024);
    const sender = new RingSender(memory);
    const receiver = new RingReceiver(memory);
    begin(sender, record(1));
    expect(sender.send()).toBe(true);
    begin(sender, record(2));
    expect(sender.send()).toBe(false);
    expect(sender.send()).toBe(false);
    expect(receiveAll(receiver)).toMatchObject({ hasMore: false, wakesSender: false });
    begin(sender, record(3));
    expect(sender.send()).toBe(true);
  });

  test("stops after a few records when the time is up, and does not sleep then", () => {
    const memory = allocateRing(4096);
    const sender = new RingSender(memory);
    const receiver = new RingReceiver(memory);
    for (let n = 0; n < 20; n++) begin(sender, record(8, n));
    sender.send();
    const first = receiveAll(receiver, 0);
    expect(first.records).toHaveLength(8);
    expect(first.hasMore).toBe(true);
    begin(sender, record(8, 20));
    expect(sender.send()).toBe(false);
    expect(receiveAll(receiver).records).toHaveLength(13);
  });

  test("keeps what does not fit, and is woken when there is space", () => {
    const memory = allocateRing(1024);
    const sender = new RingSender(memory);
    const receiver = new RingReceiver(memory);
    for (let n = 0; n < 100; n++) begin(sender, record(100, n));
    sender.send();
    const records: Sent[] = [];
    for (let round = 0; round < 100 && records.length < 100; round++) {
      const received = receiveAll(receiver);
      records.push(...received.records);
      expect(received.wakesSender).toBe(records.length < 100);
      sender.send();
    }
    expect(records).toEqual(Array.from({ length: 100 }, (_, n) => record(100, n)));
    expect(receiveAll(receiver)).toMatchObject({ records: [], wakesSender: false });
  });

  test("lets other records overtake bulk records, while an eighth of it is not received", () => {
    const memory = allocateRing(4096);
    const sender = new RingSender(memory);
    const receiver = new RingReceiver(memory);
    for (let n = 0; n < 20; n++) {
      if (sender.takesBulk) begin(sender, record(100, n));
      else sender.sendLater(record(100, n));
    }
    begin(sender, record(100, 100));
    sender.send();
    const numbers: number[] = [];
    const counts: number[] = [];
    for (let round = 0; round < 20 && numbers.length < 22; round++) {
      const { records } = receiveAll(receiver);
      numbers.push(...records.map(({ exchange }) => exchange));
      counts.push(records.length);
      if (round === 0) begin(sender, record(100, 101));
      sender.send();
    }
    expect(numbers.filter((n) => n < 100)).toEqual(Array.from({ length: 20 }, (_, n) => n));
    expect([numbers.indexOf(100), numbers.indexOf(101)]).toEqual([5, 6]);
    expect(counts).toEqual([6, 5, 5, 5, 1]);
  });

  test("goes on behind a record whose handler failed", () => {
    const memory = allocateRing(1024);
    const sender = new RingSender(memory);
    const receiver = new RingReceiver(memory);
    for (let n = 0; n < 3; n++) begin(sender, record(8, n));
    sender.send();
    const fail = () => {
      throw new Error("of the handler");
    };
    expect(() => receiver.receive(fail, never)).toThrow("of the handler");
    expect(receiveAll(receiver).records).toHaveLength(2);
  });

  test("transfers random records in random steps, past the end of its positions", () => {
    for (let seed = 1; seed <= 20; seed++) {
      const seeded = new SeededRandom(seed);
      const random = () => seeded.below(1000) / 1000;
      const memory = allocateRing(1024);
      // Positions are 32-bit numbers that overflow.
      new Int32Array(memory).fill(-4096, 0, 2);
      const sender = new RingSender(memory);
      const receiver = new RingReceiver(memory);
      const sent: Sent[] = [];
      const seen: Sent[] = [];
      let isAwake = false;
      for (let step = 0; step < 2000; step++) {
        if (random() < 0.6) {
          const one = { ...record(Math.floor(random() * 240), step), flags: step & 0xff };
          sent.push(one);
          begin(sender, one);
          if (random() < 0.5 && sender.send()) isAwake = true;
        } else if (isAwake) {
          const { records, hasMore, wakesSender } = receiveAll(
            receiver,
            random() < 0.5 ? 0 : never,
          );
          seen.push(...records);
          isAwake = hasMore;
          if (wakesSender && sender.send()) isAwake = true;
        }
      }
      for (let round = 0; round < 2000 && seen.length < sent.length; round++) {
        sender.send();
        seen.push(...receiveAll(receiver).records);
      }
      expect(seen, `seed ${seed}`).toEqual(sent);
    }
  });
});
