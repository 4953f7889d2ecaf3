import { expect, test } from "vitest";
import { openFilesMax, openFilesWarnings } from "../../../server/startup/open-files.ts";

test("a low limit of file handles is reported at the start, with the remedy", () => {
  expect(openFilesWarnings(1024)).toEqual([
    expect.stringMatching(
      /^The limit of open files and connections is 1024; .*ulimit -n 65536.*LimitNOFILE/,
    ),
  ]);
  expect(openFilesWarnings(65536)).toEqual([]);
  expect(openFilesWarnings(Number.POSITIVE_INFINITY)).toEqual([]);
  if (process.platform === "linux") expect(openFilesMax()).toBeGreaterThan(0);
});
