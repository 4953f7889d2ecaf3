/** When batched replies leave, and what becomes of their memory. */
import { Writable } from "node:stream";
import { expect, test } from "vitest";
import {
  batchedBytesMax,
  ReplyBatch,
  type ReplySender,
} from "../../../server/listening/reply-batch.ts";

const turn = () => new Promise((resolve) => setImmediate(resolve));

/** A client whose system takes what is written at once, or when it is told to. */
class Client implements ReplySender {
  readonly written: Buffer[] = [];
  readonly ended: boolean[] = [];
  readonly socket: Writable;
  take: (() => void) | undefined;

  constructor(isSlow = false) {
    this.socket = new Writable({
      write: (chunk: Buffer, _encoding, done) => {
        // The system copies what it takes.
        this.written.push(isSlow ? chunk : Buffer.from(chunk));
        if (isSlow) this.take = done;
        else done();
      },
    });
  }

  get text(): string {
    return Buffer.concat(this.written).toString("latin1");
  }

  finish(isLast: boolean): void {
    this.ended.push(isLast);
  }
}

test("replies of one turn leave at its end, in order", async () => {
  const batch = new ReplyBatch();
  const clients = [new Client(), new Client(), new Client()];
  for (const [n, client] of clients.entries()) {
    batch.add(`head ${n} \xe9 `, n === 1 ? undefined : Buffer.from(`body ${n}`), client, n === 2);
  }
  expect(clients.map(({ text }) => text)).toEqual(["", "", ""]);
  await turn();
  expect(clients.map(({ text }) => text)).toEqual([
    "head 0 é body 0",
    "head 1 é ",
    "head 2 é body 2",
  ]);
  expect(clients.map(({ ended }) => ended)).toEqual([[false], [false], [true]]);
});

test("they leave earlier where there is no memory for one more", async () => {
  const batch = new ReplyBatch();
  const clients = Array.from({ length: 5 }, () => new Client());
  for (const [n, client] of clients.entries()) {
    batch.add(`${n}`, Buffer.alloc(batchedBytesMax - 1, `${n}`), client, false);
  }
  expect(clients.map(({ text }) => text.length > 0)).toEqual([true, true, true, true, false]);
  await turn();
  for (const [n, client] of clients.entries()) {
    expect(client.text).toBe(`${n}`.repeat(batchedBytesMax));
    expect(client.ended).toEqual([false]);
  }
});

test("the bytes of a reply stay until the system has taken them", async () => {
  const batch = new ReplyBatch();
  const slow = new Client(true);
  batch.add("slow", undefined, slow, true);
  await turn();
  for (let n = 0; n < 3; n++) {
    const other = new Client();
    batch.add("other", undefined, other, false);
    await turn();
    expect(other.text).toBe("other");
  }
  expect(slow.text).toBe("slow");
  expect(slow.ended).toEqual([]);
  slow.take?.();
  await turn();
  slow.take?.();
  await turn();
  expect(slow.ended).toEqual([true]);
});

test("what a reply begins when it has left may add the next one", async () => {
  const batch = new ReplyBatch();
  const client = new Client();
  client.finish = () => {
    if (client.written.length < 3) batch.add("again ", undefined, client, false);
  };
  batch.add("first ", undefined, client, false);
  for (let n = 0; n < 4; n++) await turn();
  expect(client.text).toBe("first again again ");
});

test("nothing is sent to a client that has gone", async () => {
  const batch = new ReplyBatch();
  const [gone, other] = [new Client(), new Client()];
  batch.add("to one", undefined, gone, false);
  batch.add("to another", undefined, other, false);
  gone.socket.destroy();
  await turn();
  expect(gone.text).toBe("");
  expect(gone.ended).toEqual([]);
  expect(other.text).toBe("to another");
});
