/** The command `jackdaw studio`: its output, and how it ends. */
import { PassThrough } from "node:stream";
import { afterAll, beforeAll, expect, test } from "vitest";
import { runCommand } from "../../../cli/run.ts";
import { type CommandLine, startCommandLine } from "../../support/command-line.ts";
import { requestHttp1 } from "../../support/start-test-server.ts";

let line: CommandLine;

beforeAll(async () => {
  line = await startCommandLine();
});
afterAll(() => line.stop());

/** Runs it until it has printed an address, and stops it. */
async function run(
  words: readonly string[],
  isTerminal: boolean,
  whileOpen: (lines: () => string[], input: PassThrough) => Promise<void>,
) {
  const input = Object.assign(new PassThrough(), { isTTY: isTerminal });
  const output = new PassThrough();
  const interruption = new AbortController();
  let printed = "";
  output.on("data", (chunk) => {
    printed += String(chunk);
  });
  const lines = () => printed.trimEnd().split("\n");
  const ended = runCommand(
    ["studio", "--no-open", ...words],
    { input, output, errors: new PassThrough() },
    line.environment,
    interruption.signal,
  );
  await expect.poll(lines).toContainEqual(expect.stringContaining("#code="));
  await whileOpen(lines, input);
  interruption.abort();
  return ended;
}

test("prints the server, the identity and the address, and ends with Ctrl-C", async () => {
  let origin = "";
  const code = await run([], true, async (lines, input) => {
    const [first, address = "", hint] = lines();
    expect(first).toMatch(
      /^Studio of https:\/\/127\.0\.0\.1:\d+ \(version [\d.]+, compatible with RavenDB [\d.]+\), as .+:$/,
    );
    expect(address).toMatch(/^http:\/\/127\.0\.0\.1:\d+\/studio\/#code=[\w-]{43}$/);
    expect(hint).toContain("Press Enter for another one");
    input.write("\n");
    await expect.poll(() => lines().length).toBe(4);
    expect(lines()[3]).not.toBe(address);
    ({ origin } = new URL(address));
    expect(
      (await requestHttp1(`${origin}/`, { headers: { "sec-fetch-site": "none" } })).status,
    ).toBe(302);
  });
  expect(code).toBe(0);
  await expect(requestHttp1(`${origin}/`, {})).rejects.toThrow("ECONNREFUSED");
});

test("--json prints only the address, --port chooses the port, and a port in use is reported", async () => {
  await run(["--json"], false, async (lines) => {
    expect(lines()).toHaveLength(1);
    const { Address } = JSON.parse(lines()[0] as string) as { Address: string };
    const { port } = new URL(Address);
    const taken = await line.jackdaw(["studio", "--no-open", "--port", port]);
    expect([taken.code, taken.err]).toEqual([
      1,
      expect.stringContaining("choose another with --port"),
    ]);
  });
  expect((await line.jackdaw(["studio", "--port", "x"])).code).toBe(2);
});

test("reports an unreachable or rejecting server before opening anything", async () => {
  const away = await line.jackdaw(["studio", "--url", "http://127.0.0.1:1"]);
  expect([away.code, away.out]).toEqual([3, ""]);
  const environment = { JACKDAW_CERT: "", JACKDAW_KEY: "" };
  const refused = await line.jackdaw(["studio", "--data", line.folder], { environment });
  expect([refused.code, refused.err]).toEqual([4, expect.stringContaining("certificate")]);
});
