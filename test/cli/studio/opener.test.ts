/** The address reaches the program that opens it as one argument, whatever the system. */
import { expect, test } from "vitest";
import { openerOf } from "../../../cli/studio/opener.ts";

const address = "http://127.0.0.1:5000/studio/#code=a&b";

test("each system has its program, and no shell between", () => {
  expect(openerOf("linux", address)).toEqual(["xdg-open", [address]]);
  expect(openerOf("darwin", address)).toEqual(["open", [address]]);
  expect(openerOf("win32", address)).toEqual([
    "rundll32.exe",
    ["url.dll,FileProtocolHandler", address],
  ]);
});
