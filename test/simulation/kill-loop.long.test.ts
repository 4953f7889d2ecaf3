/** A short run of the loop that kills a real process; `npm run stress crash` runs it for longer. */
import { spawn } from "node:child_process";
import { once } from "node:events";
import { join } from "node:path";
import { expect, test } from "vitest";
import { OpenDatabase } from "../../engine/api/database/open-database.ts";
import { nodeEnvironment } from "../../engine/base/platform/node-environment.ts";
import { newTestFolder } from "../support/open-test-database.ts";
import { builtPath } from "../support/project-root.ts";
import { killLoop } from "./kill-loop.ts";

test("a killed process loses nothing acknowledged", { timeout: 120_000 }, async () => {
  const program = builtPath("test/support/crash-child.js");
  const report = await killLoop({ program, rounds: 4, seed: 4711, roundMs: 400 });
  expect(report.acknowledged).toBeGreaterThan(0);
});

test("a second process immediately fails because the folder is in use", {
  timeout: 60_000,
}, async () => {
  const program = builtPath("test/support/crash-child.js");
  const folder = join(await newTestFolder(), "database");
  const holder = spawn(process.execPath, [program, folder, "1", "1000"]);
  try {
    await once(holder.stdout, "data");
    await expect(OpenDatabase.open(nodeEnvironment(), "second", folder)).rejects.toMatchObject({
      code: "database-locked",
      message: expect.stringContaining(`${holder.pid}`),
    });
  } finally {
    holder.kill("SIGKILL");
    await once(holder, "close");
  }
  const database = await OpenDatabase.open(nodeEnvironment(), "second", folder);
  await database.close();
});
