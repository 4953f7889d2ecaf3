/** Interpretation of JetStream replies. */
import { expect, test } from "vitest";
import {
  deliveredAt,
  judgeAppend,
  readAnswer,
} from "../../../../server/cluster/nats/stream-answers.ts";

const judge = (answer: unknown) =>
  judgeAppend(
    Buffer.from(typeof answer === "string" ? answer : JSON.stringify(answer)),
    "JD_1_1",
    7,
  );

test("only the reply for this stream and the next sequence means stored", () => {
  expect(judge({ stream: "JD_1_1", seq: 8 })).toEqual({
    outcome: { kind: "stored", sequence: 8 },
  });
  for (const other of [
    { stream: "JD_1_2", seq: 8 },
    { stream: "JD_1_1", seq: 9 },
    { stream: "JD_1_1", seq: 8, duplicate: true },
    { stream: "JD_1_1" },
    {},
    [],
    "",
    "{",
    "null",
  ]) {
    expect(judge(other)).toMatchObject({
      outcome: { kind: "unknown" },
      complaint: expect.stringMatching(/^(has sequence|cannot be parsed)/),
    });
  }
});

test.each([
  [10071, 400, "wrong last sequence: 9"],
  [10164, 400, "wrong last sequence"],
])("the error %i is a rejection", (code, status, description) => {
  expect(judge({ error: { code: status, err_code: code, description } })).toEqual({
    outcome: { kind: "refused" },
  });
});

test.each([
  [10060, 400, "expected stream does not match"],
  [10077, 503, "maximum bytes exceeded"],
  [10047, 500, "insufficient storage resources available"],
  [10008, 503, "JetStream system temporarily unavailable"],
  [10023, 503, "insufficient resources"],
  [10039, 503, "JetStream not enabled for account"],
  [0, 500, ""],
])("the error %i leaves the outcome unknown, and is reported", (code, status, description) => {
  expect(judge({ error: { code: status, err_code: code, description } })).toEqual({
    outcome: { kind: "unknown" },
    complaint: `says ${code} ${description}`,
  });
});

test("a reply is read with its error, and any other text is invalid", () => {
  const read = (text: string) => readAnswer(Buffer.from(text));
  expect(read('{"a":1}')).toEqual({ kind: "done", body: { a: 1 } });
  expect(read('{"error":{"code":404,"err_code":10037,"description":"no message found"}}')).toEqual({
    kind: "refused",
    error: { status: 404, code: 10037, description: "no message found" },
  });
  expect(() => read("[1]")).toThrow(TypeError);
  expect(() => read('{"error":"x"}')).toThrow(TypeError);
  expect(() => read("")).toThrow(SyntaxError);
});

test("the position of a message is in its reply subject, in either format", () => {
  expect(deliveredAt("$JS.ACK.JD_1_1.follow_1.1.42.7.1732350000000000000.3")).toEqual({
    sequence: 42,
    deliveredCount: 7,
  });
  const long = "$JS.ACK.hub.AbCdEf.JD_1_1.follow_1.1.42.7.1732350000000000000.3";
  expect(deliveredAt(long)).toEqual({ sequence: 42, deliveredCount: 7 });
  expect(deliveredAt(`${long}.random`)).toEqual({ sequence: 42, deliveredCount: 7 });
  for (const other of [
    "",
    "_INBOX.x",
    "$JS.ACK.a.b",
    "$JS.ACK.s.c.1.x.7.0.3",
    "$JS.ACK.s.c.1.0.7.0.3",
    "$JS.NAK.JD_1_1.follow_1.1.42.7.1.3",
    "$JS.ACK.a.s.c.1.42.7.0.3",
  ]) {
    expect(deliveredAt(other)).toBeNull();
  }
});
