import { expect, test } from "vitest";
import { openFilesMax, openFilesWarnings } from "../../../server/startup/open-files.ts";

test("few handles are told of at the start, with what to do", () => {
  expect(openFilesWarnings(1024)).toEqual([
    expect.stringMatching(/^The limit of open files and connections is 1024; .*ulimit -n 65536.*LimitNOFILE/),
  ]);
  expect(openFilesWarnings(65536)).toEqual([]);
  expect(openFilesWarnings(Number.POSITIVE_INFINITY)).toEqual([]);
  if (process.platform === "linux") expect(openFilesMax()).toBeGreaterThan(0);
});
