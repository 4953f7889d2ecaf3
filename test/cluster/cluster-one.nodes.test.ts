/**
 * The test harness on a single node: its traffic is recorded correctly, and its checks pass without
 * faults.
 */
import { expect, test } from "vitest";
import { runRounds } from "./rounds.ts";

test("a single node without faults passes all checks", { timeout: 120_000 }, async () => {
  const report = await runRounds({
    rounds: 1,
    seed: 1,
    only: ["all nodes are killed together"],
    options: { count: 1, nats: "none" },
    print: (line) => console.log(line),
  });
  console.log(report.summary);
  expect(report.problems).toEqual([]);
});
