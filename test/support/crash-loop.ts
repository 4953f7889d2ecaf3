/** Replays a scenario repeatedly, each time with a power loss, or an error, at another file system call. */
import { type Fault, SimulatedFileSystem } from "./simulated-file-system.ts";

/** Runs the scenario; its errors after the crash are ignored. */
export type Scenario<Oracle> = (files: SimulatedFileSystem, oracle: Oracle) => Promise<void>;

interface CrashLoopOptions {
  /** Number of random power-loss outcomes tested per call. */
  readonly seeds: number;
  /** Interval between tested calls: every call (1), every second one (2), ... */
  readonly step?: number;
}

/** The number of calls that the scenario makes without faults. */
export async function countCalls<Oracle>(
  newOracle: () => Oracle,
  scenario: Scenario<Oracle>,
): Promise<number> {
  const files = new SimulatedFileSystem();
  await scenario(files, newOracle());
  return files.callCount;
}

/**
 * Crashes at every call. `check` receives the contents of the device, the oracle as the scenario left it, and `where`
 * for its messages; it must not change the oracle.
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

/** Runs the scenario with the fault that `faultAt` returns per call index; errors after a fault are ignored. */
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

/** Adds `where` to the message when `check` fails. */
export async function named<T>(where: string, check: () => Promise<T>): Promise<T> {
  try {
    return await check();
  } catch (error) {
    if (error instanceof Error) error.message = `${where}: ${error.message}`;
    throw error;
  }
}
