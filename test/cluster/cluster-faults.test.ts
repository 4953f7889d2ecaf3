/**
 * Three servers and three servers of NATS, all processes of their own, under traffic of all kinds while they are killed,
 * stopped, cut off, wiped and damaged. What was told to clients meanwhile is checked against what is there at the end.
 *
 * CLUSTER_ROUNDS sets the number of rounds (10), CLUSTER_SEED the seed, CLUSTER_FAULTS which faults (parts of their names,
 * separated by commas).
 */
import { expect, test } from "vitest";
import { faults } from "./faults.ts";
import { runRounds } from "./rounds.ts";

const rounds = Number(process.env["CLUSTER_ROUNDS"] ?? 10);
const seed = Number(process.env["CLUSTER_SEED"] ?? Date.now() % 1_000_000);
const wanted = process.env["CLUSTER_FAULTS"]?.split(",");
const only = Object.keys(faults).filter(
  (name) => wanted === undefined || wanted.some((part) => name.includes(part)),
);

test(
  `what clients were told holds over ${rounds} faults, seed ${seed}`,
  async () => {
    const report = await runRounds({
      rounds,
      seed,
      only,
      options: { hasClocks: true, hasSmallDisk: true },
      print: (line) => console.log(line),
    });
    console.log(report.summary);
    for (const reason of report.leftOut) console.log(`left out: ${reason}`);
    expect(report.problems).toEqual([]);
  },
  240_000 + rounds * 90_000,
);
