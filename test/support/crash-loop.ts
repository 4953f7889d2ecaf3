/**
 * Plays a scenario again and again, each time losing power, or failing, at another call of the file system.
 */
import { type Fault, SimulatedFileSystem } from "./simulated-file-system.ts";

/** Plays the scenario; what it throws after the crash is of no interest. */
export type Scenario<Oracle> = (files: SimulatedFileSystem, oracle: Oracle) => Promise<void>;

export interface CrashLoopOptions {
  /** Ways in which power is lost at each call. */
  readonly seeds: number;
  /** Look at every call (1), every second one (2), ... */
  readonly step?: number;
}

/** How many calls the scenario makes when nothing goes wrong. */
export async function countCalls<Oracle>(
  newOracle: () => Oracle,
  scenario: Scenario<Oracle>,
): Promise<number> {
  const files = new SimulatedFileSystem();
  await scenario(files, newOracle());
  return files.callCount;
}

/**
 * Crashes at every call. `check` gets what the device holds, and the oracle as the scenario left it, and `where` for
 * its messages; it must not change the oracle.
 */
export async function crashEverywhere<Oracle>(
  newOracle: () => Oracle,
  scenario: Scenario<Oracle>,
  options: CrashLoopOptions,
  check: (after: SimulatedFileSystem, oracle: Oracle, where: string) => Promise<void>,
): Promise<void> {
  const count = await countCalls(newOracle, scenario);
  for (let index = 0; index < count; index += options.step ?? 1) {
    const oracle = newOracle();
    const files = await playWithFault(scenario, oracle, (call) =>
      call === index ? { kind: "crash" } : undefined,
    );
    for (let seed = 0; seed < options.seeds; seed++) {
      const call = files.calls[index];
      const where = `crash in call ${index} (${call?.name} ${call?.path}), seed ${seed}`;
      await named(where, () => check(files.powerLoss(index * 1000 + seed), oracle, where));
    }
  }
}

/** Plays the scenario with the fault that `faultAt` gives for the index of each call; errors end it quietly. */
export async function playWithFault<Oracle>(
  scenario: Scenario<Oracle>,
  oracle: Oracle,
  faultAt: (index: number, name: string) => Fault | undefined,
): Promise<SimulatedFileSystem> {
  const files = new SimulatedFileSystem();
  let hadFault = false;
  files.onCall = (call) => {
    const fault = faultAt(call.index, call.name);
    hadFault ||= fault !== undefined;
    return fault;
  };
  try {
    await scenario(files, oracle);
  } catch (error) {
    if (!hadFault) throw error;
  }
  files.onCall = undefined;
  return files;
}

/** Says where it was when `check` fails. */
export async function named<T>(where: string, check: () => Promise<T>): Promise<T> {
  try {
    return await check();
  } catch (error) {
    if (error instanceof Error) error.message = `${where}: ${error.message}`;
    throw error;
  }
}
