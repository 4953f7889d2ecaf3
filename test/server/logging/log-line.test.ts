/** Log lines: their fields, and protection against forged lines. */
import { expect, test } from "vitest";
import { jsonLine, textLine } from "../../../server/logging/log-line.ts";

const timeMs = Date.UTC(2026, 10, 23, 10);
const hostile = "a\nb\r\u001b[31m\u0085\u2028\u202e\u0000";

test("a JSON line has pino's fields, and those of the event", () => {
  const fields = { event: "slow-write", ms: 12.5, thumbprint: null, left: undefined };
  const line = jsonLine({ level: "Warn", timeMs, message: "A write was slow", fields });
  const { pid, hostname, ...others } = JSON.parse(line) as Record<string, unknown>;
  expect(pid).toBe(process.pid);
  expect(typeof hostname).toBe("string");
  const expected = { level: 40, time: timeMs, event: "slow-write", ms: 12.5, thumbprint: null };
  expect(others).toEqual({ ...expected, msg: "A write was slow" });
});

test("fields cannot replace the standard fields", () => {
  const line = jsonLine({ level: "Info", timeMs, message: "m", fields: { level: 1, pid: 2 } });
  expect(JSON.parse(line)).toMatchObject({ level: 30, pid: process.pid });
});

test("control characters, separators and direction marks are escaped in both formats", () => {
  const event = { level: "Info", timeMs, message: hostile, fields: { name: hostile } } as const;
  for (const line of [jsonLine(event), textLine(event)]) expect(line).toMatch(/^[\x20-\x7e]+$/);
  expect((JSON.parse(jsonLine(event)) as { name: string }).name).toBe(hostile);
});

test("a text value with spaces is quoted, so it cannot be mistaken for another field", () => {
  const line = textLine({ level: "Warn", timeMs, message: "m", fields: { a: "x b=1", c: "y" } });
  expect(line).toBe('2026-11-23T10:00:00.000Z Warning: m a="x b=1" c=y');
});

test("further lines of an error are indented in text, and a field in JSON", () => {
  const error = new Error("first\n2026-11-23T10:00:00.000Z forged");
  const text = textLine({ level: "Error", timeMs, message: "It failed", error });
  expect(text).toMatch(
    /^\S+Z Error: It failed: Error: first\n {4}2026-11-23T10:00:00.000Z forged\n/,
  );
  for (const line of text.split("\n").slice(1)) expect(line).toMatch(/^ {4}\S/);
  const json = jsonLine({ level: "Error", timeMs, message: "It failed", error });
  expect(JSON.parse(json)).toMatchObject({ err: { type: "Error", message: error.message } });
});

test("long texts are truncated", () => {
  const long = "x".repeat(1_000_000);
  const line = jsonLine({ level: "Info", timeMs, message: long, fields: { long }, error: long });
  expect(line.length).toBeLessThan(40_000);
});
