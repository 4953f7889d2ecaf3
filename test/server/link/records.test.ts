/** Calls through records are the calls that were made, with their arguments. */
import { describe, expect, test } from "vitest";
import {
  fieldOf,
  fieldsIn,
  type HttpCommands,
  type HttpEvents,
  type RequestHead,
} from "../../../server/link/link.ts";
import {
  CommandWriter,
  commandReader,
  EventWriter,
  eventReader,
} from "../../../server/link/records.ts";
import {
  allocateRing,
  type RecordHandler,
  RingReceiver,
  RingSender,
} from "../../../server/link/ring.ts";

/** Composes header fields in the format of `RequestHead.fields`. */
function fieldsText(fields: Iterable<readonly [name: string, value: string]>): string {
  let text = "";
  for (const [name, value] of fields) text += `\n${name}:${value}`;
  return `${text}\n`;
}

type Call = readonly [name: string, ...args: unknown[]];

/** An object whose every method notes its name and arguments. */
function noting<T extends object>(calls: Call[]): T {
  return new Proxy({} as T, {
    get:
      (_target, name) =>
      (...args: unknown[]) =>
        calls.push([String(name), ...args]),
  });
}

/** Makes calls through a ring. @returns those that arrive */
function through<T extends object>(
  writerOf: (sender: RingSender) => T,
  readerOf: (target: T) => RecordHandler,
  calls: readonly Call[],
): Call[] {
  const memory = allocateRing(1024 * 1024);
  const sender = new RingSender(memory);
  const receiver = new RingReceiver(memory);
  const writer = writerOf(sender) as Readonly<Record<string, (...args: unknown[]) => void>>;
  for (const [name, ...args] of calls) writer[name]?.(...args);
  const arrived: Call[] = [];
  const handle = readerOf(noting<T>(arrived));
  let isWaiting = true;
  while (isWaiting) {
    sender.send();
    isWaiting = receiver.receive(handle, Number.POSITIVE_INFINITY).wakesSender;
  }
  return arrived;
}

const output = (sender: RingSender) => ({ sender, sendSoon: () => undefined });
const id = 0xffffffff;

const head: RequestHead = {
  method: "PATCH",
  target: "/databases/d/docs?id=%C3%BC",
  authority: "localhost:8443",
  fields: fieldsText([
    ["accept", "*/*"],
    ["x-latin", "é:ÿ"],
  ]),
  body: "whole",
  isWebSocket: false,
};

describe("events", () => {
  const calls: Call[] = [
    ["opened", 1, { address: "::1", isSecure: true, certificate: Buffer.from([1, 0, 255]) }],
    ["opened", id, { address: "", isSecure: false, certificate: undefined }],
    ["request", 1, 7, head, Buffer.from("{}")],
    ["request", 1, 8, { ...head, body: "whole" }, Buffer.alloc(0)],
    ["request", 1, 9, { ...head, body: "pending", fields: "\n" }, undefined],
    ["request", 1, id, { ...head, body: "none", authority: "", isWebSocket: true }, undefined],
    ["bodyData", 9, Buffer.alloc(1000, 3), false],
    ["bodyData", 9, Buffer.alloc(0), true],
    ["bodyFailed", 9, "cut-off", ""],
    ["bodyFailed", 9, "unknown-encoding", "snäppy"],
    ["bodyFailed", 9, "wrong-encoding", "gzip"],
    ["sent", 9, 0xffffffff],
    ["aborted", 9],
    ["message", 9, Buffer.from("text"), false],
    ["message", 9, Buffer.from([0]), true],
    ["socketClosed", 9, 4999],
    ["closed", 1],
  ];

  test("arrive with their arguments", () => {
    const arrived = through<HttpEvents>(
      (sender) => new EventWriter(output(sender)),
      eventReader,
      calls,
    );
    expect(arrived).toEqual(calls);
  });
});

describe("commands", () => {
  const calls: Call[] = [
    ["reply", 1, 200, fieldsText([["etag", '"a"']]), Buffer.from("body"), true],
    ["reply", 1, 200, "\n", Buffer.alloc(0), false],
    ["reply", id, 404, "\n", undefined, false],
    ["open", 2, 200, fieldsText([["content-type", "text/plain"]]), true],
    ["data", 2, Buffer.from("chunk"), false],
    ["data", 2, Buffer.alloc(0), true],
    ["pull", 2, 262_144],
    ["abort", 2],
    ["disconnect", 3],
    ["acceptSocket", 4, fieldsText([["a", "b"]])],
    ["acceptTunnel", 4, "\n"],
    ["send", 4, Buffer.from("message"), true],
    ["closeSocket", 4, 1001, "the server stops…"],
    ["closeSocket", 4, 0, ""],
  ];

  test("arrive with their arguments", () => {
    const arrived = through<HttpCommands>(
      (sender) => new CommandWriter(output(sender)),
      commandReader,
      calls,
    );
    expect(arrived).toEqual(calls);
  });

  test("with more data than a record holds arrive in parts, the last marked", () => {
    const bytes = Buffer.alloc(700_000, "abc");
    const arrived = through<HttpCommands>(
      (sender) => new CommandWriter(output(sender)),
      commandReader,
      [["data", 5, bytes, true]],
    );
    expect(arrived.map(([, , , isLast]) => isLast)).toEqual([false, false, true]);
    const parts = arrived.map(([, , part]) => part as Buffer);
    expect(Buffer.concat(parts).equals(bytes)).toBe(true);
  });
});

test("messages and data arrive unchanged after other records have waited", () => {
  const memory = allocateRing(4096);
  const sender = new RingSender(memory);
  const receiver = new RingReceiver(memory);
  const writer = new CommandWriter(output(sender));
  const arrived: Call[] = [];
  const handle = commandReader(noting<HttpCommands>(arrived));
  const bytes = Buffer.alloc(600);
  for (let round = 0; round < 3; round++) {
    arrived.length = 0;
    // More than the ring holds.
    for (let n = 0; n < 12; n++) writer.reply(n, 200, "\n", Buffer.alloc(900, "r"), false);
    const transfer = () => {
      do sender.send();
      while (receiver.receive(handle, Number.POSITIVE_INFINITY).wakesSender);
    };
    transfer();
    expect(arrived).toHaveLength(12);
    for (let n = 0; n < 4; n++) {
      writer.data(n, bytes.fill(`${n}`), true); // a buffer that is used again
      writer.send(n, Buffer.alloc(600, "m"), true);
    }
    transfer();
    const payloads = arrived.slice(12).map(([, , payload]) => String(payload));
    expect(payloads).toEqual(
      Array.from({ length: 8 }, (_, i) => (i % 2 === 0 ? `${i / 2}` : "m").repeat(600)),
    );
  }
});

describe("header fields", () => {
  const fields = fieldsText([
    ["accept", "a, b"],
    ["x-accept", "c"],
    ["empty", ""],
    ["colon", "a:b"],
  ]);

  test.each([
    ["accept", "a, b"],
    ["x-accept", "c"],
    ["empty", ""],
    ["colon", "a:b"],
    ["cept", undefined],
    ["x", undefined],
    ["", undefined],
  ])("%s is %s", (name, value) => {
    expect(fieldOf(fields, name)).toBe(value);
  });

  test("are listed in order, and there may be none", () => {
    expect(fieldsText(fieldsIn(fields))).toBe(fields);
    expect([...fieldsIn(fieldsText([]))]).toEqual([]);
    expect(fieldOf("\n", "accept")).toBeUndefined();
  });
});
