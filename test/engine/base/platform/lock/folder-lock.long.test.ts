/**
 * Ownership of a folder among real processes: in other namespaces, of other users, suspended and
 * continued, killed. All intervals are a tenth of the real ones.
 */
import { type ChildProcess, execFileSync, spawn, spawnSync } from "node:child_process";
import { once } from "node:events";
import { chmodSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { openFolder } from "../../../../../engine/api/database/open-folder.ts";

import { lockFolder } from "../../../../../engine/base/platform/lock/folder-lock.ts";
import { ownFacts } from "../../../../../engine/base/platform/lock/holder-facts.ts";
import {
  encodeLock,
  findLock,
  type LockRecord,
} from "../../../../../engine/base/platform/lock/lock-record.ts";
import { nodeEnvironment } from "../../../../../engine/base/platform/node-environment.ts";
import type { LockChildOptions } from "../../../../support/lock-child.ts";
import { builtPath } from "../../../../support/project-root.ts";

const silenceMs = 1000;
/** Nobody waits for it: a process that opens the folder within half of it has not waited. */
const longSilenceMs = 60_000;

let folder = "";
const program = builtPath("test/support/lock-child.js");
const children = new Set<Owner>();

beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), "jackdaw-lock-"));
});

afterEach(async () => {
  for (const { child } of children) {
    child.kill("SIGKILL");
    if (child.exitCode === null && child.signalCode === null) await once(child, "exit");
  }
  children.clear();
  rmSync(folder, { recursive: true, force: true });
});

/** A process that has locked the folder, or tried to, and its output. */
class Owner {
  readonly child: ChildProcess;
  /** Ids acknowledged as durable. */
  readonly acknowledged: string[] = [];
  readonly lines: string[] = [];
  errors = "";
  readonly #waiting = new Set<() => void>();

  constructor(child: ChildProcess) {
    this.child = child;
    children.add(this);
    let rest = "";
    child.stdout?.on("data", (bytes) => {
      const lines = `${rest}${String(bytes)}`.split("\n");
      rest = lines.pop() ?? "";
      for (const line of lines) {
        this.lines.push(line);
        if (/^\w+\/\d+$/.test(line)) this.acknowledged.push(line);
      }
      for (const wake of this.#waiting) wake();
    });
    child.stderr?.on("data", (bytes) => {
      this.errors += String(bytes);
    });
    child.on("exit", () => {
      for (const wake of this.#waiting) wake();
    });
  }

  /** Waits for an output line. */
  async prints(pattern: RegExp): Promise<string> {
    for (;;) {
      const line = this.lines.find((one) => pattern.test(one));
      if (line !== undefined) return line;
      if (this.child.exitCode !== null) {
        throw new Error(`it ended, saying: ${this.lines.slice(-3).join("\n")}${this.errors}`);
      }
      await new Promise<void>((resolve) => {
        const wake = (): void => {
          this.#waiting.delete(wake);
          resolve();
        };
        this.#waiting.add(wake);
      });
    }
  }

  /** Waits until `count` documents were acknowledged. */
  async hasWritten(count: number): Promise<void> {
    const target = this.acknowledged.length + count;
    while (this.acknowledged.length < target) await delay(5);
  }

  /** Finds its process, also if something else started it. @returns its id in this namespace. */
  get pid(): number {
    return this.child.pid as number;
  }
}

const delay = (ms: number): Promise<void> => new Promise((resolve) => setTimeout(resolve, ms));

function own(
  options: Partial<LockChildOptions> & { prefix: string },
  around: readonly string[] = [],
): Owner {
  const json = JSON.stringify({ silenceMs, ...options });
  const [command, ...more] = [...around, process.execPath, program, folder, json];
  return new Owner(spawn(command as string, more, { stdio: "pipe" }));
}

/** Checks that all acknowledged documents are found and the database is intact. */
async function expectAll(owners: readonly Owner[]): Promise<void> {
  const engine = await openFolder({ folder, environment: nodeEnvironment({ silenceMs }) });
  const database = await engine.databases.find("db");
  for (const { acknowledged } of owners) {
    expect(acknowledged.length).toBeGreaterThan(0);
    for (const id of acknowledged) {
      expect(await database?.get(id), id).toMatchObject({ number: Number(id.split("/")[1]) });
    }
  }
  database?.checkInvariants();
  await engine.close();
}

/** Returns whether this command can be run here, and reports if it cannot. */
function canRun(...command: readonly string[]): boolean {
  const [program, ...rest] = [...command, "true"];
  const isAllowed = spawnSync(program as string, rest, { stdio: "ignore" }).status === 0;
  if (!isAllowed) console.warn(`left out, as it may not be run here: ${command.join(" ")}`);
  return isAllowed;
}

describe("a second process is rejected", () => {
  const inNetwork = ["unshare", "-n"];
  const inProcesses = ["unshare", "-p", "-f", "--kill-child", "--mount-proc"];
  const inProcessesOnly = ["unshare", "-p", "-f", "--kill-child"];
  const asNobody = ["setpriv", "--reuid=65534", "--regid=65534", "--clear-groups"];

  test.each([
    ["in the same namespaces", []],
    ["in another network namespace", inNetwork],
    ["in another PID namespace", inProcesses],
    ["in another PID namespace without its own /proc", inProcessesOnly],
    ["in other network and PID namespaces", [...inNetwork, ...inProcesses]],
    ["of another user", asNobody],
  ])("%s", async (_name, around) => {
    if (around.length > 0 && !canRun(...around)) return;
    const first = own({ prefix: "first" });
    await first.hasWritten(3);
    chmodSync(folder, 0o777);
    const second = own({ prefix: "second" }, around);
    const line = await second.prints(/^database-locked/);
    expect(line).toContain(`${folder} is in use by process ${first.pid} on `);
    await first.hasWritten(3);
    expect(second.acknowledged).toEqual([]);
  });

  test.each([
    ["of processes", inProcesses],
    ["of network", inNetwork],
    ["of a user", asNobody],
  ])("by an owner in a namespace %s", async (_name, around) => {
    if (!canRun(...around)) return;
    chmodSync(folder, 0o777);
    const first = own({ prefix: "first" }, around);
    await first.hasWritten(3);
    const second = own({ prefix: "second" });
    await second.prints(/^database-locked/);
    await first.hasWritten(3);
  });

  test("on another machine that shares the file system, where only heartbeats are visible", async () => {
    const first = own({ prefix: "first", bootId: "one" });
    await first.hasWritten(3);
    const second = own({ prefix: "second", bootId: "two" });
    expect(await second.prints(/^database-locked/)).toContain("on one, started at");
    await first.hasWritten(3);
  });

  test("when the owner is too busy to respond", async () => {
    const busy = `
      process.argv[2] = ${JSON.stringify(folder)};
      process.argv[3] = ${JSON.stringify(JSON.stringify({ silenceMs, prefix: "first" }))};
      setTimeout(() => { for (const end = Date.now() + 4000; Date.now() < end; ); }, 1000);
      import(${JSON.stringify(program)});
    `;
    const first = new Owner(
      spawn(process.execPath, ["--input-type=module", "-e", busy, "x", "y"], { stdio: "pipe" }),
    );
    await first.hasWritten(3);
    await delay(1200);
    const second = own({ prefix: "second" });
    await second.prints(/^database-locked/);
    await first.hasWritten(3);
  });
});

describe("a folder is acquired immediately", () => {
  /** @returns milliseconds until another process had opened the folder. */
  async function timeToTake(): Promise<number> {
    const owner = own({ prefix: "second", silenceMs: longSilenceMs });
    const line = await owner.prints(/^open/);
    owner.child.kill("SIGKILL");
    await once(owner.child, "exit");
    return Number(line.split(" ")[1]);
  }

  test("after the owner was killed", async () => {
    const first = own({ prefix: "first", silenceMs: longSilenceMs });
    await first.hasWritten(5);
    first.child.kill("SIGKILL");
    await once(first.child, "exit");
    expect(await timeToTake()).toBeLessThan(longSilenceMs / 2);
    await expectAll([first]);
  });

  test("after the owner was killed in other namespaces, as with a restarted container", async () => {
    const around = ["unshare", "-n", "-p", "-f", "--kill-child", "--mount-proc"];
    if (!canRun(...around)) return;
    const first = own({ prefix: "first", silenceMs: longSilenceMs }, around);
    await first.hasWritten(5);
    first.child.kill("SIGKILL");
    await once(first.child, "exit");
    await delay(50);
    expect(await timeToTake()).toBeLessThan(longSilenceMs / 2);
    await expectAll([first]);
  });

  test("after the owner has shut down cleanly", async () => {
    const first = own({ prefix: "first", silenceMs: longSilenceMs });
    await first.hasWritten(5);
    first.child.stdin?.write("end\n");
    await once(first.child, "exit");
    expect(first.lines.at(-1)).toBe("closed");
    expect(await timeToTake()).toBeLessThan(longSilenceMs / 2);
    await expectAll([first]);
  });

  test("when the owner's process id was reused by another process, or by this one", async () => {
    // Process ids restart in each container.
    const facts = await ownFacts();
    for (const pid of [1, process.pid]) {
      const record: LockRecord = {
        ...facts,
        nonce: "00",
        pid,
        startTicks: "17",
        socket: null,
        silenceMs: longSilenceMs,
        under: null,
      };
      writeFileSync(join(folder, "LOCK.7"), encodeLock(record));
      const startMs = performance.now();
      const lock = await lockFolder(folder, null, { silenceMs });
      expect(performance.now() - startMs).toBeLessThan(longSilenceMs / 2);
      expect(lock.mayHaveRival).toBe(false);
      await lock.release();
      rmSync(join(folder, "LOCK.8"));
    }
  });
});

describe("a lock that cannot be judged is taken after it was silent", () => {
  test.each([
    ["of another machine", (record: LockRecord) => encodeLock({ ...record, bootId: "other" })],
    ["that is damaged", () => "{"],
    ["that is empty", () => ""],
  ])("%s", async (_name, content) => {
    const record: LockRecord = {
      ...(await ownFacts()),
      nonce: "00",
      socket: null,
      silenceMs,
      under: null,
    };
    writeFileSync(join(folder, "LOCK.7"), content(record));
    const startMs = performance.now();
    const lock = await lockFolder(folder, null, { silenceMs });
    const waitedMs = performance.now() - startMs;
    expect(waitedMs).toBeGreaterThan(silenceMs * 0.9);
    expect(lock.mayHaveRival).toBe(true);
    expect(readdirSync(folder).filter((name) => /^LOCK\.\d+$/.test(name))).toEqual(["LOCK.8"]);
    await lock.release();
  });

  test("by exactly one of several contenders", async () => {
    const record = { ...(await ownFacts()), bootId: "other", nonce: "00", socket: null };
    writeFileSync(join(folder, "LOCK.7"), encodeLock({ ...record, silenceMs, under: null }));
    const owners = ["a", "b", "c", "d"].map((prefix) => own({ prefix, bootId: prefix }));
    const outcomes = await Promise.all(
      owners.map((owner) => owner.prints(/^(open|database-locked)/)),
    );
    expect(outcomes.filter((line) => line.startsWith("open"))).toHaveLength(1);
  });
});

describe("a suspended owner", () => {
  test.each([
    ["on the same machine", undefined, undefined],
    ["on another machine", "one", "two"],
  ])(
    "loses the folder, reports it and exits, and no acknowledged write is lost: %s",
    async (_name, one, two) => {
      const first = own({
        prefix: "first",
        pauseMs: 0,
        ...(one === undefined ? {} : { bootId: one }),
      });
      await first.hasWritten(20);
      first.child.kill("SIGSTOP");
      const second = own({
        prefix: "second",
        ...(two === undefined ? {} : { bootId: two }),
      });
      await second.hasWritten(20);
      const before = first.acknowledged.length;
      first.child.kill("SIGCONT");
      const [code] = (await once(first.child, "exit")) as [number];
      expect(code).toBe(22);
      expect(first.lines.at(-1)).toMatch(
        /^lost The folder .* is no longer this process's: process \d+ on .*, took it while/,
      );
      // Writes in flight when it was suspended may still be acknowledged.
      expect(first.acknowledged.length).toBeLessThanOrEqual(before + 1);
      await second.hasWritten(20);
      second.child.stdin?.write("end\n");
      await once(second.child, "exit");
      await expectAll([first, second]);
    },
    30_000,
  );

  test("continues if no other process took the folder", async () => {
    const first = own({ prefix: "first" });
    await first.hasWritten(3);
    first.child.kill("SIGSTOP");
    await delay(2 * silenceMs);
    first.child.kill("SIGCONT");
    await first.hasWritten(3);
    // Its heartbeats are then found to be live.
    const second = own({ prefix: "second" });
    await second.prints(/^database-locked/);
    await first.hasWritten(3);
  });
});

describe("an owner", () => {
  test("writes nothing more after its lock file was removed", async () => {
    const first = own({ prefix: "first" });
    await first.hasWritten(3);
    const found = await findLock(folder);
    rmSync(join(folder, `LOCK.${found?.generation}`));
    await once(first.child, "exit");
    expect(first.lines.at(-1)).toMatch(/^lost .*: its lock file was removed\./);
  });

  test("on a shared file system acknowledges nothing after another process took the folder, whatever its clock shows", async () => {
    // A lease of one day, as on a machine whose clock stopped.
    const day = 24 * 60 * 60 * 1000;
    const options = { silenceMs: day, isLocalFolder: async () => false };
    const engine = await openFolder({ folder, environment: nodeEnvironment(options) });
    const database = await engine.databases.create("db", {});
    await database.put("one", {});
    // A successor does this before anything else.
    const found = await findLock(folder);
    const record = { ...(found?.record as LockRecord), nonce: "11", host: "elsewhere" };
    writeFileSync(join(folder, `LOCK.${(found?.generation ?? 0) + 1}`), encodeLock(record));
    rmSync(join(folder, `LOCK.${found?.generation}`));
    await expect(database.put("two", {})).rejects.toMatchObject({ code: "database-stopped" });
    expect((await engine.lost).message).toContain("on elsewhere, started at");
    await engine.close().catch(() => undefined);
  });

  test("writes its heartbeat counter to a file that all can read", async () => {
    const lock = await lockFolder(folder, null, { silenceMs });
    const path = join(folder, "LOCK.1");
    const before = readFileSync(path, "utf8");
    await delay(silenceMs / 2);
    const after = readFileSync(path, "utf8");
    expect(after).not.toBe(before);
    expect(after.split("\n")[0]).toBe(before.split("\n")[0]);
    expect(JSON.parse(before.split("\n")[0] as string)).toMatchObject({ pid: process.pid });
    await lock.release();
    await delay(silenceMs / 2);
    expect(readFileSync(path, "utf8")).toContain("\nreleased");
    expect(readdirSync(folder)).toEqual(["LOCK.1"]);
  });

  test("keeps the nested folders with the outer one", async () => {
    const options = { silenceMs };
    const outer = await lockFolder(folder, null, options);
    execFileSync("mkdir", [join(folder, "inner")]);
    const inner = await lockFolder(join(folder, "inner"), outer, options);
    expect(inner.isLeased()).toBe(true);
    await expect(lockFolder(join(folder, "inner"), outer, options)).rejects.toMatchObject({
      code: "database-locked",
    });
    // Other processes see the heartbeats of the outer folder.
    const script = `
      const { lockFolder } = await import(process.argv[1]);
      await lockFolder(process.argv[2], null).catch((error) => console.log(error.code));
    `;
    const module = program.replace(
      "test/support/lock-child.js",
      "engine/base/platform/lock/folder-lock.js",
    );
    const output = execFileSync(
      process.execPath,
      ["--input-type=module", "-e", script, module, join(folder, "inner")],
      { encoding: "utf8" },
    );
    expect(output).toBe("database-locked\n");
    await inner.release();
    await outer.release();
  });
});
