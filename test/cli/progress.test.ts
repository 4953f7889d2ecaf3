import { PassThrough } from "node:stream";
import { expect, test } from "vitest";
import { ProgressLine, rateText } from "../../cli/progress.ts";

const shown = (count: number) => String(count);

function lineOn(isTTY: boolean, isQuiet = false) {
  const errors = Object.assign(new PassThrough(), { isTTY });
  const time = { ms: 0 };
  const options = { is: () => isQuiet, text: () => undefined, all: () => [] };
  const streams = { input: new PassThrough(), output: new PassThrough(), errors };
  const line = new ProgressLine({ streams, options }, () => time.ms);
  // One read returns everything available, or (from Node 26 on) one write.
  const written = () => {
    let text = "";
    for (let piece = errors.read(); piece !== null; piece = errors.read()) text += String(piece);
    return text;
  };
  return { line, time, written };
}

test("tells percent, rate and time left, where the total is known", () => {
  expect(rateText(40, 100, 2000, shown)).toBe("40 %  40 of 100, 20/s, 3 s left");
  expect(rateText(40, undefined, 2000, shown)).toBe("40, 20/s, 2 s");
  expect(rateText(0, 100, 0, shown)).toBe("0 %  0 of 100, 0/s, ? left");
  // A file that grows while it is read.
  expect(rateText(120, 100, 1000, shown)).toBe("100 %  120 of 100, 120/s, 0 s left");
});

test("is one line on a terminal, overwritten at most ten times a second, and removed", () => {
  const { line, time, written } = lineOn(true);
  line.show(() => "one");
  time.ms = 50;
  line.show(() => "too early");
  time.ms = 100;
  line.show(() => "two");
  line.end();
  line.end();
  expect(written()).toBe("\r\u001b[Kone\r\u001b[Ktwo\r\u001b[K");
});

test("is a line every five seconds elsewhere, and nothing in quiet mode", () => {
  const { line, time, written } = lineOn(false);
  for (time.ms = 0; time.ms <= 10_000; time.ms += 1000) line.showBytes(time.ms, 20_000);
  line.end();
  expect(written()).toBe(
    "25 %  4.9 KB of 19.5 KB, 1000 bytes/s, 15 s left\n50 %  9.8 KB of 19.5 KB, 1000 bytes/s, 10 s left\n",
  );
  const quiet = lineOn(true, true);
  quiet.line.show(() => "x");
  quiet.line.end();
  expect(quiet.written()).toBe("");
});
