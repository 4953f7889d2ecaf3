/** `jackdaw dev`: the printed commands work, and documents persist. */
import { execFile } from "node:child_process";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { PassThrough, Readable } from "node:stream";
import { promisify } from "node:util";
import { afterAll, expect, test } from "vitest";
import { runCommand } from "../../../cli/run.ts";

const folder = mkdtempSync(join(tmpdir(), "jackdaw-dev-"));
afterAll(() => rmSync(folder, { recursive: true, force: true }));

function start(...words: readonly string[]) {
  const interruption = new AbortController();
  const text = { output: "", errors: "" };
  const output = new PassThrough().on("data", (chunk) => {
    text.output += String(chunk);
  });
  const errors = new PassThrough().on("data", (chunk) => {
    text.errors += String(chunk);
  });
  const streams = { input: Readable.from([]), output, errors };
  const ended = runCommand(
    ["dev", "--no-open", ...words],
    streams,
    { RAVEN_ServerUrl: "http://0.0.0.0:1" },
    interruption.signal,
  );
  return { text, ended, stop: () => interruption.abort() };
}

async function shell(command: string): Promise<string> {
  const words = ["-c", `${command} --silent --fail --max-time 10`];
  return (await promisify(execFile)("sh", words)).stdout;
}

test("prints commands that work, and stores documents durably", async () => {
  for (const isFirst of [true, false]) {
    const dev = start("--port=0", `--data=${folder}`, "-d", "shop");
    await expect.poll(() => dev.text.output).toContain("Ctrl-C");
    const { output } = dev.text;
    expect(output).toMatch(/^Jackdaw for development: http:\/\/127\.0\.0\.1:\d+\n/);
    expect(output).toContain(`Data      ${folder}\n`);
    const [put, get] = output.split("\n").filter((line) => line.startsWith("  curl ")) as [
      string,
      string,
    ];
    if (isFirst) await shell(put);
    expect(JSON.parse(await shell(get))).toMatchObject({ Results: [{ Name: "Bob" }] });
    const studio = /Studio {4}(\S+)/.exec(output)?.[1] ?? "";
    expect(studio).toMatch(/\/studio\/db\/shop\/docs$/);
    expect(await shell(`curl --location ${studio}`)).toContain("<title>");
    dev.stop();
    expect(await dev.ended).toBe(0);
    expect(dev.text.errors).toBe("");
  }
});

test("stores nothing with --memory, and prints JSON with --json", async () => {
  const dev = start("--port=0", "--memory", "--json");
  await expect.poll(() => dev.text.output).toContain("\n");
  const { Address, Database } = JSON.parse(dev.text.output) as Record<string, string>;
  expect(Database).toBe("dev");
  expect(await shell(`curl ${Address}/databases`)).toContain('"dev"');
  dev.stop();
  expect(await dev.ended).toBe(0);
});

test.each([
  [["--port=70000"], /--port '70000' must be a port from 0 to 65535/],
  [["--ServerUrl=http://0.0.0.0:8080"], /ServerUrl/],
  [["--port=0", "--memory", "-d", "a b/c"], /name/i],
])("refuses %j", async (words, message) => {
  const dev = start(...words);
  expect(await dev.ended).not.toBe(0);
  expect(dev.text.errors).toMatch(message);
});

test("a port in use is reported", async () => {
  const dev = start("--port=0", "--memory", "--json");
  await expect.poll(() => dev.text.output).toContain("\n");
  const { Address } = JSON.parse(dev.text.output) as { Address: string };
  const other = start(`--port=${new URL(Address).port}`, "--memory");
  expect(await other.ended).not.toBe(0);
  expect(other.text.errors).toMatch(/in use .* use another --port\.$/m);
  dev.stop();
  await dev.ended;
});

test("a data folder in use is reported", async () => {
  const dev = start("--port=0", `--data=${folder}`, "--json");
  await expect.poll(() => dev.text.output).toContain("\n");
  const other = start("--port=0", `--data=${folder}`);
  expect(await other.ended).not.toBe(0);
  expect(other.text.errors).toMatch(/in use .* use another --data\.$/m);
  dev.stop();
  await dev.ended;
});
