/** The command line with a real server over TLS, in this process. */
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { PassThrough, Readable } from "node:stream";
import { text } from "node:stream/consumers";
import { expect } from "vitest";
import { runCommand } from "../../cli/run.ts";
import { startTestServer, stopTestServers, type TestServer } from "./start-test-server.ts";

interface CommandResult {
  readonly code: number;
  readonly out: string;
  readonly err: string;
}

export interface CommandLine {
  readonly server: TestServer;
  /** A separate folder for files. */
  readonly folder: string;
  /** Variables that identify the server and its database `shop`. */
  readonly environment: Readonly<Record<string, string>>;
  jackdaw(
    words: readonly string[],
    more?: { input?: string; environment?: Record<string, string>; signal?: AbortSignal },
  ): Promise<CommandResult>;
  /** The output of a successful command, with `--json`. */
  json(words: readonly string[]): Promise<unknown>;
  stop(): Promise<void>;
}

/** A server with the database `shop`. */
export async function startCommandLine(flags: readonly string[] = []): Promise<CommandLine> {
  const folder = mkdtempSync(join(tmpdir(), "jackdaw-cli-"));
  const server = await startTestServer({ databases: [{ name: "shop" }], flags });
  writeFileSync(join(folder, "ca.pem"), server.authority.certificate);
  writeFileSync(join(folder, "cert.pem"), server.admin.certificate);
  writeFileSync(join(folder, "key.pem"), server.admin.key);
  const environment = {
    JACKDAW_URL: server.url,
    JACKDAW_CERT: join(folder, "cert.pem"),
    JACKDAW_KEY: join(folder, "key.pem"),
    JACKDAW_CA: join(folder, "ca.pem"),
    JACKDAW_DATABASE: "shop",
  };
  const jackdaw: CommandLine["jackdaw"] = async (words, more = {}) => {
    const [output, errors] = [new PassThrough(), new PassThrough()];
    const printed = Promise.all([text(output), text(errors)]);
    const code = await runCommand(
      words,
      { input: Readable.from([more.input ?? ""]), output, errors },
      { ...environment, ...more.environment },
      more.signal ?? new AbortController().signal,
    );
    output.end();
    errors.end();
    const [out, err] = await printed;
    return { code, out, err };
  };
  return {
    server,
    folder,
    environment,
    jackdaw,
    json: async (words) => {
      const { code, out, err } = await jackdaw([...words, "--json"]);
      expect([code, err]).toEqual([0, ""]);
      return JSON.parse(out);
    },
    stop: async () => {
      await stopTestServers();
      rmSync(folder, { recursive: true, force: true });
    },
  };
}
