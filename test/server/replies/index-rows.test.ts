import { expect, test } from "vitest";
import type { IndexInfo } from "../../../engine/engine.ts";
import { statusOf } from "../../../server/replies/index-rows.ts";

test.each([
  [{ isRunning: true }, "Running"],
  [{ isRestoring: true }, "Running"],
  [{ isRestoring: true, isPaused: true }, "Paused"],
  [{ isPaused: true }, "Paused"],
  [{ isDisabled: true, isPaused: true }, "Disabled"],
  [{}, "Paused"],
])("the status of an index with %j is %s", (state, status) => {
  const index = { isDisabled: false, isPaused: false, isRunning: false, isRestoring: false };
  expect(statusOf({ ...index, ...state } as IndexInfo)).toBe(status);
});
