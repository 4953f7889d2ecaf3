/** `jackdaw check`: verifies the files of a stopped server, or of one of its databases, byte by byte. Changes nothing. */
import { existsSync, readdirSync } from "node:fs";
import { basename, join, resolve } from "node:path";
import {
  bytesToCheck,
  type CheckedDatabase,
  checkDatabase,
  EngineError,
  type Environment,
  nodeEnvironment,
} from "../../engine/engine.ts";
import type { CommandContext } from "../command.ts";
import { localSettings } from "../connection.ts";
import { Failure } from "../failure.ts";
import { painter, sizeText } from "../output.ts";
import { ProgressLine } from "../progress.ts";

interface Checked extends CheckedDatabase {
  readonly name: string;
  readonly folder: string;
}

/** Checks the databases and prints the result. @throws Failure failed when a database is damaged */
export async function run(context: CommandContext): Promise<void> {
  const { arguments: given, options, print, streams, environment, interrupted } = context;
  const root = resolve(given[0] ?? localSettings(environment).dataFolder);
  const world = nodeEnvironment();
  const found: Checked[] = [];
  const progress = new ProgressLine(context);
  let bytes = 0;
  const lock = await lockRoot(world, root);
  try {
    const folders = databasesIn(root);
    let total = 0;
    for (const folder of folders) total += await bytesToCheck(world, folder);
    const passed = (count: number): void => {
      bytes += count;
      interrupted.throwIfAborted();
      progress.showBytes(bytes, total);
    };
    for (const folder of folders) {
      const result = await checkDatabase(world, folder, passed, lock ?? undefined);
      found.push({ name: basename(folder), folder, ...result });
    }
  } catch (error) {
    if (interrupted.aborted) throw new Failure("interrupted", "Interrupted; nothing was changed");
    throw asFailure(error, root);
  } finally {
    progress.end();
    await lock?.release();
  }
  const damaged = found.filter(({ damages }) => damages.length > 0);
  if (options.is("json")) print(JSON.stringify(found));
  else {
    const paint = painter(streams.output.isTTY === true, environment);
    for (const one of found) for (const line of linesOf(one, paint)) print(line);
    print(`${sizeText(bytes)} read`);
  }
  const [first] = damaged;
  if (first === undefined) return;
  throw new Failure(
    "failed",
    `${damaged.map(({ name }) => name).join(", ")}: damaged. Restore a backup, or copy the readable data with 'jackdaw salvage ${first.folder} TARGET'`,
  );
}

type Lock = Awaited<ReturnType<Environment["files"]["lockDirectory"]>>;

/** Locks a data folder, in addition to the locks of its databases. Returns null if `root` is a database. */
async function lockRoot(world: Environment, root: string): Promise<Lock | null> {
  if (!existsSync(root)) throw new Failure("missing", `Folder ${root} does not exist`);
  if (isDatabase(root)) return null;
  if (databasesIn(root).length === 0) {
    throw new Failure(
      "missing",
      `${root} contains no database; specify the data folder of a server`,
    );
  }
  try {
    return await world.files.lockDirectory(root);
  } catch (error) {
    throw asFailure(error, root);
  }
}

function isDatabase(folder: string): boolean {
  return existsSync(join(folder, "log"));
}

function databasesIn(root: string): string[] {
  if (isDatabase(root)) return [root];
  const inner = join(root, "Databases");
  const names = existsSync(inner) ? readdirSync(inner).sort() : [];
  return [join(root, "System"), ...names.map((name) => join(inner, name))].filter(isDatabase);
}

function asFailure(error: unknown, root: string): Error {
  if (error instanceof Failure) return error;
  const { code, message } = error as { code?: string; message: string };
  if (code === "EACCES" || code === "EROFS" || code === "EPERM") {
    return new Failure(
      "failed",
      `${root} cannot be locked (${code}), so a server could change it during the check; check a copy, or run as the owner`,
      { cause: error },
    );
  }
  if (!(error instanceof EngineError)) return error as Error;
  if (error.code === "database-locked") {
    const what = `${message.replace(/\.$/, "")}; stop the server first, or check a copy`;
    return new Failure("conflict", what, { cause: error });
  }
  return new Failure(error.code === "database-missing" ? "missing" : "failed", message, {
    cause: error,
  });
}

function linesOf(one: Checked, paint: ReturnType<typeof painter>): string[] {
  const { name, documents, segments, frames, records, contents, damages, unusableSnapshots } = one;
  const isGood = damages.length === 0;
  const state = isGood ? paint("green", "ok") : paint("red", "damaged");
  const location = (damage: CheckedDatabase["damages"][number]) =>
    `${damage.file}, byte ${damage.offset}${damage.length > 0 ? ` to ${damage.offset + damage.length - 1}` : ""}: ${damage.reason}`;
  return [
    `${name}: ${state}, ${documents} documents, ${records} records in ${frames} commits and ${segments} files, ${contents} attachments`,
    ...damages.map((damage) => `  ${paint("red", "damaged")}: ${location(damage)}`),
    ...unusableSnapshots.map(
      (snapshot) =>
        `  ${paint("yellow", "note")}: ${location(snapshot)}; it is rebuilt from the log`,
    ),
    ...(one.tornBytes > 0
      ? [
          `  ${paint("yellow", "note")}: the last write was interrupted and had not been acknowledged; the next start removes it`,
        ]
      : []),
  ];
}
