import { fork, spawn } from "node:child_process";
import { once } from "node:events";
import { mkdtemp, readFile, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { nodeEnvironment } from "../../engine/node-environment.ts";

let folder = "";

beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), "jackdaw-environment-"));
});

afterAll(async () => {
  await rm(folder, { recursive: true });
});

/** A program that takes the lock of the folder in its argument, says so or why not, and waits. */
const holderProgram = `
  process.on("message", () => process.exit(0));
  const { nodeEnvironment } = await import(process.argv[2]);
  try {
    await nodeEnvironment().files.lockDirectory(process.argv[3]);
    process.send("locked");
  } catch (error) {
    process.send(error.message);
  }
`;

const environmentUrl = new URL("../../engine/node-environment.ts", import.meta.url);

test("the clock gives whole microseconds, and timers can be cancelled", async () => {
  const { clock } = nodeEnvironment();
  const micros = clock.nowMicros();
  expect(Number.isSafeInteger(micros)).toBe(true);
  expect(Math.abs(micros / 1000 - Date.now())).toBeLessThan(60_000);
  expect(clock.monotonicMs()).toBeLessThanOrEqual(clock.monotonicMs());
  let ran = 0;
  clock.setTimer(1, () => ran++).cancel();
  await new Promise<void>((resolve) => clock.setTimer(5, resolve) && setTimeout(resolve, 50));
  expect(ran).toBe(0);
});

test("random bytes are as many as asked for, and differ", () => {
  const environment = nodeEnvironment();
  expect(environment.random(16)).toHaveLength(16);
  expect(environment.random(16).equals(environment.random(16))).toBe(false);
});

describe("files", () => {
  const { files } = nodeEnvironment();

  test("are written, read, cut, renamed and removed", async () => {
    const path = join(folder, "file");
    const file = await files.open(path, "create");
    await file.write(Buffer.from("xxhello worldxx"), 2, 11, 0);
    await file.write(Buffer.from("W"), 0, 1, 6);
    await file.sync();
    expect(await file.size()).toBe(11);
    const target = Buffer.alloc(20, ".");
    expect(await file.read(target, 1, 15, 6)).toBe(5);
    expect(target.toString()).toBe(".World..............");
    await file.truncate(5);
    expect(await file.size()).toBe(5);
    await file.close();
    await expect(files.open(path, "create")).rejects.toMatchObject({ code: "EEXIST" });
    await expect(files.open(join(folder, "none"), "update")).rejects.toMatchObject({
      code: "ENOENT",
    });
    await files.rename(path, join(folder, "renamed"));
    await files.syncDirectory(folder);
    expect(await files.exists(path)).toBe(false);
    expect(await files.list(folder)).toEqual(["renamed"]);
    const reading = await files.open(join(folder, "renamed"), "read");
    await expect(reading.write(Buffer.from("x"), 0, 1, 0)).rejects.toMatchObject({ code: "EBADF" });
    await reading.close();
    await files.unlink(join(folder, "renamed"));
    expect(await files.list(folder)).toEqual([]);
  });

  test("folders are made with their parents and removed with all below", async () => {
    await files.makeDirectory(join(folder, "a/b/c"));
    await files.makeDirectory(join(folder, "a/b/c"));
    expect(await files.exists(join(folder, "a/b"))).toBe(true);
    await files.removeTree(join(folder, "a"));
    await files.removeTree(join(folder, "a"));
    expect(await files.exists(join(folder, "a"))).toBe(false);
    expect(await files.freeBytes(folder)).toBeGreaterThan(0);
  });

  test("a device that takes nothing is an error", async () => {
    const full = await files.open("/dev/full", "update");
    await expect(full.write(Buffer.alloc(10), 0, 10, 0)).rejects.toMatchObject({ code: "ENOSPC" });
    await full.close();
  });
});

describe("the lock of a folder", () => {
  const { files } = nodeEnvironment();

  test("is given once within a process", async () => {
    const lock = await files.lockDirectory(folder);
    await expect(files.lockDirectory(folder)).rejects.toMatchObject({ code: "database-locked" });
    await expect(files.lockDirectory(`${folder}/.`)).rejects.toThrow(`process ${process.pid} `);
    await lock.release();
    await (await files.lockDirectory(folder)).release();
  });

  test("is given to one process, named to others, and taken over when it was killed", async () => {
    const program = join(folder, "holder.mjs");
    await writeFile(program, holderProgram);
    const isTypeScript = environmentUrl.pathname.endsWith(".ts");
    const target = isTypeScript ? await compiled() : environmentUrl.href;
    const holder = fork(program, [target, folder]);
    expect(await once(holder, "message")).toEqual(["locked", undefined]);
    await expect(files.lockDirectory(folder)).rejects.toThrow(`process ${holder.pid} `);
    const second = fork(program, [target, folder]);
    const [message] = (await once(second, "message")) as [string];
    expect(message).toContain(`is in use by process ${holder.pid}`);
    second.send("exit");
    holder.kill("SIGKILL");
    await once(holder, "exit");
    const lock = await files.lockDirectory(folder);
    expect(await readFile(join(folder, "LOCK"), "utf8")).toContain(`"pid":${process.pid}`);
    await lock.release();
  });
});

/** The environment as JavaScript: this version of node does not run TypeScript. */
async function compiled(): Promise<string> {
  const output = join(folder, "built");
  const root = new URL("../../", import.meta.url).pathname;
  const tsc = join(root, "node_modules/typescript/bin/tsc");
  const options = [
    "--outDir",
    output,
    "--rootDir",
    root,
    "--target",
    "es2023",
    "--module",
    "nodenext",
  ];
  const more = ["--skipLibCheck", "--rewriteRelativeImportExtensions", "--types", "node"];
  const compiler = spawn(process.execPath, [tsc, ...options, ...more, environmentUrl.pathname], {
    cwd: root,
  });
  await once(compiler, "exit");
  await writeFile(join(output, "package.json"), '{"type":"module"}');
  return join(output, "engine/node-environment.js");
}
