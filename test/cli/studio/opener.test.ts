/** The address is passed to the opening program as one argument, on every system. */
import { expect, test } from "vitest";
import { openerOf } from "../../../cli/studio/opener.ts";

const address = "http://127.0.0.1:5000/studio/#code=a&b";

test("each system has its program, run without a shell", () => {
  expect(openerOf("linux", address)).toEqual(["xdg-open", [address]]);
  expect(openerOf("darwin", address)).toEqual(["open", [address]]);
  expect(openerOf("win32", address)).toEqual([
    "rundll32.exe",
    ["url.dll,FileProtocolHandler", address],
  ]);
});
