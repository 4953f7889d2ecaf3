import { execFile } from "node:child_process";
import { setImmediate } from "node:timers/promises";
import { promisify } from "node:util";
import { expect, test } from "vitest";
import {
  countDropped,
  countPassing,
  whenCollecting,
} from "../../../../engine/base/memory/gc-hints.ts";
import { builtPath } from "../../../support/project-root.ts";

const mebi = 1024 * 1024;
const pieceBytes = 64 * 1024;

test("many temporary buffers use little memory", () => {
  const { arrayBuffers: before } = process.memoryUsage();
  let most = 0;
  for (let bytes = 0; bytes < 400 * mebi; bytes += pieceBytes) {
    Buffer.allocUnsafeSlow(pieceBytes);
    countPassing(pieceBytes);
    most = Math.max(most, process.memoryUsage().arrayBuffers - before);
  }
  expect(most).toBeLessThan(24 * mebi);
});

/** A large buffer that has outlived many small ones. */
function oldBuffer(): WeakRef<Buffer> {
  const buffer = Buffer.allocUnsafeSlow(40 * mebi);
  for (let count = 0; count < 1000; count++) countPassing(pieceBytes);
  return new WeakRef(buffer);
}

test("a dropped buffer is collected in the next event-loop tick, with registered references to it", async () => {
  const dropped = oldBuffer();
  let last: Buffer | undefined = dropped.deref();
  whenCollecting(() => {
    last = undefined;
  });
  await setImmediate();
  expect(last?.length).toBe(40 * mebi);
  countDropped(40 * mebi);
  await setImmediate();
  await setImmediate();
  expect(last === undefined).toBe(true);
  expect(dropped.deref() === undefined).toBe(true);
});

test("threads that first collect at the same moment do not fail", async () => {
  const program = builtPath("test/support/collecting-threads.js");
  const { stdout } = await promisify(execFile)(process.execPath, [program]);
  expect(stdout).toBe("0 failures\n");
});
