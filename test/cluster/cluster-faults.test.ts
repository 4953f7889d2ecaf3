/**
 * Three servers and three servers of NATS, all processes of their own, under traffic of all kinds while they are killed,
 * stopped, cut off, wiped and damaged. What was told to clients meanwhile is checked against what is there at the end.
 *
 * Without settings each of the short faults is done once. CLUSTER_ROUNDS sets another number of rounds, of all faults, in
 * clusters of up to 20 rounds each, with seeds that follow one another; CLUSTER_SEED sets the first; CLUSTER_FAULTS says
 * which faults (parts of their names, separated by commas), CLUSTER_REPORTS where the histories of failures are kept.
 */
import { expect, test } from "vitest";
import { faults, shortFaults } from "./faults.ts";
import { runRounds } from "./rounds.ts";

/** What is written grows with the rounds, and all of it is read at the end. */
const roundsPerCluster = 20;

const { CLUSTER_ROUNDS, CLUSTER_SEED, CLUSTER_FAULTS } = process.env;
const wanted = CLUSTER_FAULTS?.split(",");
const isShort = CLUSTER_ROUNDS === undefined && wanted === undefined;
const rounds = Number(CLUSTER_ROUNDS ?? shortFaults.length);
const firstSeed = Number(CLUSTER_SEED ?? Date.now() % 1_000_000);
const only = isShort
  ? shortFaults
  : Object.keys(faults).filter(
      (name) => wanted === undefined || wanted.some((part) => name.includes(part)),
    );

const clusters = Array.from({ length: Math.ceil(rounds / roundsPerCluster) }, (_, at) => ({
  seed: firstSeed + at,
  count: Math.min(roundsPerCluster, rounds - at * roundsPerCluster),
}));

test.each(clusters)(
  "what clients were told holds over $count faults, seed $seed",
  async ({ seed, count }) => {
    const report = await runRounds({
      rounds: count,
      seed,
      only,
      options: { hasClocks: true, hasSmallDisk: true },
      print: (line) => console.log(line),
    });
    console.log(report.summary);
    for (const reason of report.leftOut) console.log(`left out: ${reason}`);
    expect(report.problems).toEqual([]);
  },
  240_000 + roundsPerCluster * 90_000,
);
