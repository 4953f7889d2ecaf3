/** The README's commands, run as they stand there, against a server of the built code. */
import { execFileSync, spawn, spawnSync } from "node:child_process";
import { once } from "node:events";
import { existsSync, mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { createInterface } from "node:readline";
import { fileURLToPath } from "node:url";
import { afterAll, beforeAll, describe, expect, test } from "vitest";

const root = fileURLToPath(new URL("..", import.meta.url));
const readme = readFileSync(join(root, "README.md"), "utf8");
const folder = mkdtempSync(join(tmpdir(), "jackdaw-readme-"));
const data = join(folder, "data");
let server: ReturnType<typeof spawn>;
let url = "";

/** The commands of one section, in order. */
function commandsOf(section: string): string[] {
  const text = readme.split(`\n## ${section}\n`)[1]?.split("\n## ")[0] ?? "";
  return [...text.matchAll(/```sh\n([\s\S]*?)```/g)].map(([, block]) => block as string);
}

/** Runs blocks in one shell; the output of each. */
function runAll(blocks: readonly string[]): string[] {
  const separator = "=== next block ===";
  const script = blocks.join(`\necho '${separator}'\n`).replace("https://127.0.0.1:8443", url);
  const ran = spawnSync("bash", ["-euo", "pipefail", "-c", script], {
    cwd: folder,
    encoding: "utf8",
  });
  expect(ran.status, `${ran.stdout.slice(-2000)}\n${ran.stderr}`).toBe(0);
  return ran.stdout.split(`${separator}\n`);
}

beforeAll(async () => {
  expect(existsSync(join(root, "dist/server/main.js")), "npm run build comes first").toBe(true);
  server = spawn(
    process.execPath,
    [join(root, "bin/jackdaw"), "--ServerUrl=https://127.0.0.1:0", `--DataDir=${data}`],
    { stdio: ["pipe", "pipe", "inherit"], cwd: folder },
  );
  for await (const line of createInterface({ input: server.stdout as NodeJS.ReadableStream })) {
    const found = /^Server available on: (.*)$/.exec(line);
    if (found === null) continue;
    url = found[1] as string;
    break;
  }
  execFileSync("ln", ["-s", join(root, "dist"), join(folder, "dist")]);
  execFileSync("ln", ["-s", join(root, "node_modules"), join(folder, "node_modules")]);
});

afterAll(async () => {
  const gone = once(server, "exit");
  server.stdin?.write("shutdown\n");
  await gone;
  expect(server.exitCode).toBe(0);
  rmSync(folder, { recursive: true, force: true });
});

type Ten = [string, string, string, string, string, string, string, string, string, string];

describe("ten minutes with curl", () => {
  test("each command does what the text says", () => {
    const outputs = runAll([
      ...commandsOf("Ten minutes with curl"),
      ...commandsOf("Ten queries"),
      'query "from Cities order by Population as long desc limit 1"',
      ...commandsOf("Indexes of your own"),
      ...commandsOf("Back up and restore"),
    ]);
    const [first, loaded, read, attached, counted, patched, deleted, queried, changed, after] =
      Array.from({ length: 10 }, (_, n) => outputs[n + 1] ?? "") as Ten;
    expect(first).toContain('"Id":"notes/1"');
    expect(first).toMatch(/\{"Text":"hello","@metadata":\{"@collection":"Notes",/);
    expect(loaded).toMatch(/"Collections":\{.*"Cities":5000/);
    expect(read).toContain('"Name":"Haifa"');
    expect(read).toContain('"Name":"Israel"');
    expect(read).toContain('"Code":"AE"');
    expect(read.trim().split("\n").at(-1)).toMatch(/304$/);
    expect(attached).toContain("A port below a mountain.");
    expect(counted).toContain('"CounterName":"visits","TotalValue":1');
    expect(patched).toContain('"Status":"Patched"');
    expect(patched).toContain('"Population":267312');
    expect(patched).toContain('"Tags":["port"]');
    expect(deleted).toBe("");
    const replies = queried.split(/(?<=\})(?=\{"TotalResults")/);
    expect(replies.map((reply) => /"TotalResults":(\d+)/.exec(reply)?.[1])).toEqual([
      "15",
      "8",
      "109",
      "1",
      "2",
      "23",
      "175",
      "15",
      "1",
      "1",
    ]);
    expect(replies[0]).toMatch(/"Results":\[\{"Name":"Shanghai"/);
    expect(replies[3]).toContain('"Includes":{"countries/IS":{"Code":"IS"');
    expect(replies[6]).toContain('{"Country":"countries/IN","Cities":503,"People":207969013');
    expect(replies[7]).toContain('{"City":"Shanghai","Country":"China","Millions":22');
    expect(replies[9]).toContain('"Name":"Shanghai"');
    const totals = [...changed.matchAll(/"Total":(\d+)/g)].map(([, total]) => total);
    expect(totals).toEqual(["168", "4999", "4999"]);
    const indexed = outputs[11] ?? "";
    expect(indexed).toMatch(/"TotalResults":1,.*"Results":\[\{"Name":"Reykjav[^}]*"Size":"small"/);
    expect(indexed).toMatch(
      /"Results":\[\{"Country":"countries\/CN","People":3765\d+,"Cities":481/,
    );
    expect(indexed).toContain('"MapErrors":0');
    const [restored, ports] = outputs.slice(-2) as [string, string];
    expect(restored).toContain('"Documents":{"StartTime"');
    expect(restored).toMatch(/Finished processing Documents\. Read: 5\d\d\d\./);
    expect(restored).not.toContain("ERROR");
    expect(ports.match(/"@id":"cities/g)).toHaveLength(15);
    expect(ports).not.toContain("Latitude");
    expect(after).toMatch(/"Name":"Shanghai",.*"Population":22315484,.*"CountryName":"China"/);
  });
});
