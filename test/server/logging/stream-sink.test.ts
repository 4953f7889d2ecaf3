/** The log on a stream whose reader may be slow. */
import { Writable } from "node:stream";
import { expect, test } from "vitest";
import { StreamSink } from "../../../server/logging/stream-sink.ts";

test("drops lines if the reader lags, buffers little, and reports the number of dropped lines", () => {
  const waiting: (() => void)[] = [];
  let taken = "";
  const stream = new Writable({
    write(chunk, _encoding, done) {
      taken += String(chunk);
      waiting.push(done);
    },
  });
  const sink = new StreamSink(stream, "json");
  const message = "x".repeat(8000);
  for (let i = 0; i < 1000; i++) sink.write({ level: "Info", timeMs: 0, message });
  expect(sink.droppedCount).toBeGreaterThan(500);
  expect(stream.writableLength).toBeLessThan(2 * 1024 * 1024);
  while (waiting.length > 0) waiting.shift()?.();
  sink.write({ level: "Info", timeMs: 0, message: "after" });
  while (waiting.length > 0) waiting.shift()?.();
  const lines = taken
    .trim()
    .split("\n")
    .map((line) => JSON.parse(line) as Record<string, unknown>);
  expect(lines.at(-2)).toMatchObject({ event: "log-lines-dropped", count: sink.droppedCount });
  expect(lines.at(-1)).toMatchObject({ msg: "after" });
  expect(lines).toHaveLength(1000 - sink.droppedCount + 2);
});

test("is text on a terminal and JSON elsewhere, unless configured", () => {
  const start = (isTTY: boolean, format: "auto" | "json" | "text") => {
    let taken = "";
    const stream = {
      isTTY,
      destroyed: false,
      writableLength: 0,
      write: (chunk: string) => {
        taken += chunk;
        return true;
      },
    };
    new StreamSink(stream, format).write({ level: "Info", timeMs: 0, message: "m" });
    return taken[0];
  };
  expect([start(true, "auto"), start(false, "auto")]).toEqual(["1", "{"]);
  expect([start(true, "json"), start(false, "text")]).toEqual(["{", "1"]);
});
