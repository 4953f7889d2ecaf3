/**
 * A server with one damaged database: commands report it, and list the other databases as usual.
 */
import { mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, expect, test } from "vitest";
import { failureCodes } from "../../cli/failure.ts";
import { openEngine } from "../../engine/engine.ts";
import { type CommandLine, startCommandLine } from "../support/command-line.ts";

let line: CommandLine;
const data = mkdtempSync(join(tmpdir(), "jackdaw-damaged-"));

beforeAll(async () => {
  const engine = await openEngine({ folder: data });
  const database = await engine.databases.create("hurt", {});
  for (let number = 0; number < 5; number++) {
    await database.documents.put(`users/${number}`, Buffer.from('{"Name":"Ann"}'));
  }
  await engine.close();
  const log = join(data, "Databases", "hurt", "log");
  const path = join(log, readdirSync(log).sort()[0] ?? "");
  const bytes = readFileSync(path);
  bytes.fill(0x55, 200, 208);
  writeFileSync(path, bytes);
  rmSync(join(data, "Databases", "hurt", "snap"), { recursive: true, force: true });
  line = await startCommandLine(["--RunInMemory=false", `--DataDir=${data}`]);
});
afterAll(async () => {
  await line.stop();
  rmSync(data, { recursive: true, force: true });
});

test("status lists it with the reason, and the other databases", async () => {
  const { code, out } = await line.jackdaw(["status"]);
  expect(code).toBe(0);
  expect(out).toMatch(/\nhurt +cannot be opened\n/);
  expect(out).toMatch(/\nshop +0 .* online\n/);
  expect(out).toMatch(/\nhurt: .*\.seg is damaged at byte .* with 'jackdaw salvage'\.\n$/);
  const listed = (await line.json(["databases"])) as { Name: string; LoadError?: string }[];
  expect(listed).toContainEqual(
    expect.objectContaining({ Name: "hurt", LoadError: expect.stringContaining("is damaged") }),
  );
});

test("the doctor names it", async () => {
  const { code, out, err } = await line.jackdaw(["doctor"]);
  expect(code).toBe(failureCodes.failed);
  expect(out).toMatch(/fail +database +hurt cannot be opened: .* is damaged at byte/);
  expect(err).toContain("database");
});
