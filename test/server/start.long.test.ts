/** The process: startup, output, exit codes for startup errors, and shutdown, also under load. */
import { type ChildProcess, execFileSync, spawn, spawnSync } from "node:child_process";
import { once } from "node:events";
import {
  chmodSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  statSync,
  writeFileSync,
} from "node:fs";
import * as http2 from "node:http2";
import * as net from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { createInterface } from "node:readline";
import { afterAll, beforeAll, describe, expect, onTestFinished, test } from "vitest";
import {
  makeAuthority,
  makeClientCertificate,
  makeServerCertificate,
} from "../../certs/authority.ts";
import { writePfx } from "../../certs/pfx.ts";
import { exitCodes } from "../../server/settings/start-error.ts";
import { builtPath, projectRoot } from "../support/project-root.ts";
import { requestHttp1, requestHttp2 } from "../support/start-test-server.ts";

const program = join(projectRoot, "bin", "jackdaw");
const root = mkdtempSync(join(tmpdir(), "jackdaw-start-"));
const children = new Set<ChildProcess>();

beforeAll(() => {
  builtPath("server/main.js");
});
afterAll(() => {
  for (const child of children) child.kill("SIGKILL");
  rmSync(root, { recursive: true, force: true });
});

interface Started {
  readonly child: ChildProcess;
  readonly url: string;
  readonly lines: string[];
  readonly errors: () => string;
  /** Milliseconds from the start of the process to its ready message. */
  readonly readyMs: number;
}

function launch(args: readonly string[], environment: Record<string, string> = {}): ChildProcess {
  const child = spawn(program, args, { cwd: root, env: { ...process.env, ...environment } });
  children.add(child);
  child.once("exit", () => children.delete(child));
  return child;
}

async function start(
  args: readonly string[],
  environment?: Record<string, string>,
): Promise<Started> {
  const startedMs = performance.now();
  const child = launch(args, environment);
  let output = "";
  let errors = "";
  child.stderr!.on("data", (chunk) => {
    errors += String(chunk);
  });
  const url = await new Promise<string>((done, fail) => {
    child.stdout!.on("data", (chunk) => {
      output += String(chunk);
      const match = /^Server available on: (\S+)$/m.exec(output);
      if (match?.[1] !== undefined) done(match[1]);
    });
    child.once("exit", (code) => fail(new Error(`exit ${code}: ${errors}`)));
  });
  const readyMs = performance.now() - startedMs;
  return { child, url, lines: output.trim().split("\n"), errors: () => errors, readyMs };
}

async function stopped(child: ChildProcess, how: () => void): Promise<[unknown, number]> {
  const startedMs = performance.now();
  how();
  const [code] = (await once(child, "exit")) as [unknown];
  return [code, performance.now() - startedMs];
}

async function failure(
  args: readonly string[],
  environment?: Record<string, string>,
): Promise<{ code: number; text: string; ms: number }> {
  const startedMs = performance.now();
  const child = launch(args, environment);
  let text = "";
  child.stderr!.on("data", (chunk) => {
    text += String(chunk);
  });
  const [code] = (await once(child, "close")) as [number];
  return { code, text, ms: performance.now() - startedMs };
}

function folder(name: string): string {
  return join(root, name);
}

describe("a secured start", () => {
  test("creates certificates, prints their location, and prints a working curl command", async () => {
    const first = await start([`--DataDir=${folder("a")}`, "--ServerUrl=https://127.0.0.1:0"]);
    expect(first.lines.at(-1)).toBe(`Server available on: ${first.url}`);
    const shown = first.lines.join("\n");
    const name = "admin.client.certificate.localhost";
    for (const file of ["ca.crt", `${name}.crt`, `${name}.key`]) {
      expect(shown).toContain(join(folder("a"), "certs", file));
      expect(statSync(join(folder("a"), "certs", file)).mode & 0o777).toBe(0o600);
    }
    const command = /curl .*/.exec(shown)?.[0] ?? "";
    expect(execFileSync("sh", ["-c", `${command} -s`], { encoding: "utf8" })).toContain(
      "FullVersion",
    );
    expect(first.errors()).toBe("");
    expect(await stopped(first.child, () => first.child.kill("SIGTERM"))).toEqual([
      0,
      expect.any(Number),
    ]);

    const before = readFileSync(join(folder("a"), "certs", "server.crt"), "utf8");
    const second = await start([`--DataDir=${folder("a")}`, "--ServerUrl=https://127.0.0.1:0"]);
    console.log(
      `ready after ${first.readyMs.toFixed(0)} ms making certificates, ${second.readyMs.toFixed(0)} ms with them`,
    );
    expect(readFileSync(join(folder("a"), "certs", "server.crt"), "utf8")).toBe(before);
    expect(
      execFileSync("sh", ["-c", `${/curl .*/.exec(second.lines.join("\n"))?.[0]} -s`], {
        encoding: "utf8",
      }),
    ).toContain("FullVersion");
    second.child.kill("SIGKILL");
  });

  test("prints a command that works for any folder name", async () => {
    const { child, lines } = await start([
      `--DataDir=${folder("it's $HOME here")}`,
      "--ServerUrl=https://127.0.0.1:0",
    ]);
    const command = /curl .*/.exec(lines.join("\n"))?.[0] ?? "";
    expect(execFileSync("sh", ["-c", `${command} -s`], { encoding: "utf8" })).toContain(
      "FullVersion",
    );
    child.kill("SIGKILL");
  });

  test("remembers registered certificates, and that the first admin was deleted", async () => {
    const args = [`--DataDir=${folder("b")}`, "--ServerUrl=https://127.0.0.1:0"];
    const first = await start(args);
    const certs = join(folder("b"), "certs");
    const admin = {
      ca: readFileSync(join(certs, "ca.crt")),
      cert: readFileSync(join(certs, "admin.client.certificate.localhost.crt")),
      key: readFileSync(join(certs, "admin.client.certificate.localhost.key")),
    };
    const server = {
      ca: admin.ca,
      cert: readFileSync(join(certs, "server.crt")),
      key: readFileSync(join(certs, "server.key")),
    };
    const who = await requestHttp1(`${first.url}/certificates/whoami`, { tls: admin });
    const { Thumbprint } = who.json as { Thumbprint: string };
    const target = `/admin/certificates?thumbprint=${Thumbprint}`;
    const gone = await requestHttp1(first.url + target, { method: "DELETE", tls: server });
    expect(gone.status).toBe(204);
    first.child.kill("SIGKILL"); // An acknowledged change is durable.
    await once(first.child, "exit");
    const second = await start(args);
    const refused = await requestHttp1(`${second.url}/build/version`, { tls: admin });
    expect(refused.status).toBe(403);
    second.child.kill("SIGKILL");
  });

  test("accepts an existing certificate, PEM or PFX, and grants it admin access", async () => {
    const authority = await makeAuthority("x");
    const pair = await makeServerCertificate(authority, ["localhost", "127.0.0.1"]);
    writeFileSync(folder("own.crt"), pair.certificate);
    writeFileSync(folder("own.key"), pair.key);
    writeFileSync(folder("own.pfx"), await writePfx(pair, "pass", "x"));
    writeFileSync(folder("empty.pfx"), await writePfx(pair, "", "x"));
    for (const args of [
      [`--Security.Certificate.Path=${folder("own.crt")}`],
      [`--Security.Certificate.Path=${folder("own.pfx")}`, "--Security.Certificate.Password=pass"],
      [`--Security.Certificate.Path=${folder("empty.pfx")}`],
    ]) {
      const started = await start([
        ...args,
        "--RunInMemory=true",
        "--ServerUrl=https://localhost:0",
      ]);
      const tls = { ca: authority.certificate, cert: pair.certificate, key: pair.key };
      const reply = await requestHttp1(`${started.url}/certificates/whoami`, { tls });
      expect(reply.json).toMatchObject({ SecurityClearance: "ClusterNode" });
      started.child.kill("SIGKILL");
    }
  });

  test("rereads its certificate on SIGHUP, and keeps running", async () => {
    const authority = await makeAuthority("x");
    const importCertificate = async () => {
      const pair = await makeServerCertificate(authority, ["localhost", "127.0.0.1"]);
      writeFileSync(folder("again.crt"), pair.certificate + pair.key);
      return pair;
    };
    await importCertificate();
    const started = await start([
      `--Security.Certificate.Path=${folder("again.crt")}`,
      `--DataDir=${folder("again")}`,
      "--ServerUrl=https://localhost:0",
    ]);
    let output = "";
    started.child.stdout!.on("data", (chunk) => {
      output += String(chunk);
    });
    started.child.kill("SIGHUP");
    await expect.poll(() => output).toContain("certificate has not changed");
    const { certificate: cert, key } = await importCertificate();
    started.child.kill("SIGHUP");
    await expect.poll(() => output).toMatch(/certificate was renewed: .*again\.crt, until \d{4}-/);
    const tls = { ca: authority.certificate, cert, key };
    const reply = await requestHttp1(`${started.url}/certificates/whoami`, { tls });
    expect(reply.json).toMatchObject({ SecurityClearance: "ClusterNode" });
    started.child.kill("SIGKILL");
  });

  test("warns of a certificate that expires soon", async () => {
    const authority = await makeAuthority("x");
    const nearlyOver = new Date(Date.now() - 815 * 86_400_000);
    const pair = await makeServerCertificate(authority, ["localhost"], nearlyOver);
    writeFileSync(folder("soon.crt"), pair.certificate);
    writeFileSync(folder("soon.key"), pair.key);
    const started = await start([
      `--Security.Certificate.Path=${folder("soon.crt")}`,
      "--RunInMemory=true",
      "--ServerUrl=https://localhost:0",
    ]);
    await expect.poll(started.errors).toMatch(/"level":40.*soon\.crt expires on .* Renew it/);
    started.child.kill("SIGKILL");
  });
});

describe("a command", () => {
  test.each([
    [["--help"], 0],
    [["-h"], 0],
    [["--version"], 0],
    [["serve", "--help"], 0],
    [["staus"], 2],
    [["status", "--url=http://127.0.0.1:1"], 3],
  ])("%o touches no folder and exits with %d", (words, code) => {
    const cwd = mkdtempSync(join(root, "empty-"));
    expect(spawnSync(process.execPath, [program, ...words], { cwd }).status).toBe(code);
    expect(readdirSync(cwd)).toEqual([]);
  });

  test("finds a local server, started by 'serve', by its data folder", async () => {
    const data = folder("found");
    const started = await start(["serve", `--DataDir=${data}`, "--ServerUrl=https://127.0.0.1:0"]);
    const reported = execFileSync(process.execPath, [program, "status", "--data", data, "--json"]);
    expect(JSON.parse(reported.toString())).toMatchObject({ Url: started.url });
    await stopped(started.child, () => started.child.kill("SIGTERM"));
    expect(existsSync(join(data, "server.json"))).toBe(false);
  });
});

describe("started by the official test driver", () => {
  const driver = (parent: number) => {
    writeFileSync(folder("test_server_settings.json"), "{}");
    return [
      ["--config-path", folder("test_server_settings.json")],
      ["--RunInMemory=true", "--License.Eula.Accepted=true", "--Setup.Mode=None"],
      ["--Logs.Mode=None", "--Features.Availability=Experimental"],
      [`--Testing.ParentProcessId=${parent}`, "--ServerUrl=http://127.0.0.1:0"],
      ["--ServerUrl.Tcp=tcp://127.0.0.1:0"],
    ].flat();
  };

  test("prints nothing about its settings, and stops on a keyword", async () => {
    const started = await start(driver(process.pid));
    expect(started.url).toMatch(/^http:\/\/127\.0\.0\.1:\d+$/);
    expect(started.errors()).toBe("");
    const reply = await requestHttp1(`${started.url}/info/tcp?tcp=x`, {});
    const { Url: tcpUrl } = reply.json as { Url: string };
    expect(tcpUrl).toMatch(/^tcp:\/\/127\.0\.0\.1:[1-9]\d*$/);
    const { child } = started;
    const [code] = await stopped(child, () => child.stdin!.write("shutdown no-confirmation\n"));
    expect(code).toBe(0);
    expect(existsSync(join(root, "data"))).toBe(false);
  });

  test("stops when its parent exits", async () => {
    const parent = spawn("sleep", ["60"]);
    const { child } = await start(driver(parent.pid as number));
    const [code] = await stopped(child, () => parent.kill());
    expect(code).toBe(0);
  });
});

describe("settings", () => {
  test("are read from flag, environment and file, in this order; unknown ones are reported once", async () => {
    const settings = {
      DataDir: folder("from-file"),
      "Http.MaxConnections": 77,
      Indexing: { MapBatchSize: 1 },
    };
    writeFileSync(folder("settings-1.json"), JSON.stringify(settings));
    const started = await start(
      ["--config-path", folder("settings-1.json"), "--ServerUrl=http://127.0.0.1:0"],
      {
        RAVEN_DataDir: folder("from-environment"),
        RAVEN_License_Path: "x",
        RAVEN_Http_MaxConnections: "78",
      },
    );
    expect(started.errors()).toBe("");
    const invalid = await failure(["--config-path", folder("settings-1.json"), "--Typo=x"]);
    expect([invalid.code, invalid.text]).toEqual([
      exitCodes["setting-invalid"],
      "Cannot start: Unknown setting 'Typo'; 'jackdaw help serve' lists all.\n",
    ]);
    expect(started.lines).toContain(
      "Note: Without effect here: License.Path (no licence is needed).",
    );
    const reply = await requestHttp1(`${started.url}/admin/configuration/settings`, {});
    const { Settings } = reply.json as {
      Settings: { Name: string; Value: string; Source: string }[];
    };
    const find = (name: string) => Settings.find(({ Name }) => Name === name);
    expect(find("DataDir")).toMatchObject({
      Value: folder("from-environment"),
      Source: "environment",
    });
    expect(find("Http.MaxConnections")).toMatchObject({ Value: "78", Source: "environment" });
    expect(find("ServerUrl")).toMatchObject({ Value: "http://127.0.0.1:0", Source: "flag" });
    expect(find("RunInMemory")).toMatchObject({ Value: "false", Source: "default" });
    started.child.kill("SIGKILL");
  });
});

describe("a startup error is one line and has its own exit code", () => {
  const plainUrl = "--ServerUrl=http://127.0.0.1:0";
  const secureUrl = "--ServerUrl=https://127.0.0.1:0";
  const memory = "--RunInMemory=true";
  let busy: net.Server;
  let busyPort: number;

  beforeAll(async () => {
    busy = net.createServer().listen(0, "127.0.0.1");
    await once(busy, "listening");
    busyPort = (busy.address() as net.AddressInfo).port;
    const authority = await makeAuthority("x");
    const write = async (name: string, pair: { certificate: string; key: string }) => {
      writeFileSync(folder(`${name}.crt`), pair.certificate);
      writeFileSync(folder(`${name}.key`), pair.key);
      writeFileSync(folder(`${name}.pfx`), await writePfx(pair, "right", "x"));
    };
    const long = 86_400_000 * 1000;
    await write("old", await makeServerCertificate(authority, ["x"], new Date(Date.now() - long)));
    await write("new", await makeServerCertificate(authority, ["x"], new Date(Date.now() + long)));
    await write("client", await makeClientCertificate(authority, "client"));
    await write("good", await makeServerCertificate(authority, ["x"]));
    writeFileSync(folder("garbage.pfx"), "garbage");
    writeFileSync(
      folder("keyless.crt"),
      (await makeServerCertificate(authority, ["x"])).certificate,
    );
    writeFileSync(folder("broken.json"), "{");
    writeFileSync(folder("a-file"), "");
    mkdirSync(folder("half/certs"), { recursive: true });
  });
  afterAll(() => busy.close());

  const certificate = (name: string) => `--Security.Certificate.Path=${folder(name)}`;

  test.each<[string, () => string[], keyof typeof exitCodes, RegExp]>([
    [
      "an unknown scheme",
      () => ["--ServerUrl=ftp://127.0.0.1:1"],
      "url-scheme-unknown",
      /ftp.*https:/,
    ],
    ["no URL", () => ["--ServerUrl=nonsense"], "setting-invalid", /nonsense/],
    [
      "a bad number",
      () => [plainUrl, memory, "--Http.MaxConnections=many"],
      "setting-invalid",
      /many/,
    ],
    ["a bad flag", () => ["serve", "start"], "setting-invalid", /'start'/],
    [
      "a missing settings file",
      () => ["--config-path", folder("none.json")],
      "setting-invalid",
      /none\.json/,
    ],
    [
      "a broken settings file",
      () => ["--config-path", folder("broken.json")],
      "setting-invalid",
      /not JSON/,
    ],
    [
      "a port in use",
      () => [`--ServerUrl=http://127.0.0.1:${busyPort}`, memory],
      "port-in-use",
      /in use/,
    ],
    [
      "a foreign address",
      () => ["--ServerUrl=https://192.0.2.1:1", `--DataDir=${folder("f")}`, memory],
      "address-unavailable",
      /192\.0\.2\.1/,
    ],
    [
      "a folder that is a file",
      () => [plainUrl, `--DataDir=${folder("a-file")}`],
      "data-folder-unusable",
      /a-file cannot be used .*; it is a file: move it away/,
    ],
    [
      "a folder below a missing folder that cannot be created",
      () => [plainUrl, "--DataDir=/proc/jackdaw/data"],
      "data-folder-parent",
      /The data folder \/proc\/jackdaw\/data does not exist .* nothing can be created in \/proc /,
    ],
    [
      "a folder that cannot be created",
      () => [plainUrl, "--DataDir=/dev/null/jackdaw"],
      "data-folder-parent",
      /\/dev\/null is not a folder/,
    ],
    [
      "a missing certificate",
      () => [secureUrl, memory, certificate("none.pfx")],
      "certificate-missing",
      /none\.pfx/,
    ],
    [
      "a certificate without its key",
      () => [secureUrl, memory, certificate("keyless.crt")],
      "certificate-missing",
      /keyless\.key/,
    ],
    [
      "an incomplete folder",
      () => [secureUrl, memory, `--DataDir=${folder("half")}`],
      "certificate-missing",
      /server\.crt/,
    ],
    [
      "garbage",
      () => [secureUrl, memory, certificate("garbage.pfx")],
      "certificate-unreadable",
      /garbage\.pfx/,
    ],
    [
      "a wrong password",
      () => [secureUrl, memory, certificate("good.pfx"), "--Security.Certificate.Password=no"],
      "certificate-password-wrong",
      /Password/,
    ],
    [
      "no password",
      () => [secureUrl, memory, certificate("good.pfx")],
      "certificate-password-wrong",
      /Password/,
    ],
    [
      "an expired certificate",
      () => [secureUrl, memory, certificate("old.crt")],
      "certificate-date",
      /expired on/,
    ],
    [
      "a certificate that is not yet valid",
      () => [secureUrl, memory, certificate("new.crt")],
      "certificate-date",
      /not valid before/,
    ],
    [
      "a client certificate",
      () => [secureUrl, memory, certificate("client.crt")],
      "certificate-usage",
      /serverAuth/,
    ],
    [
      "a certificate without TLS",
      () => [plainUrl, memory, certificate("good.crt")],
      "certificate-without-tls",
      /https:/,
    ],
    [
      "unsecured access from everywhere",
      () => ["--ServerUrl=http://0.0.0.0:0", memory],
      "unsecured-not-allowed",
      /PublicNetwork/,
    ],
    [
      "copies on several nodes in memory only",
      () => [plainUrl, memory, "--Cluster.Nats.Url=nats://127.0.0.1:4222"],
      "setting-invalid",
      /omit RunInMemory/,
    ],
  ])("%s", async (_name, args, reason, pattern) => {
    const { code, text } = await failure(args());
    expect(text).toMatch(pattern);
    expect(text).toMatch(/^Cannot start: [^\n]+\.\n$/);
    expect(code).toBe(exitCodes[reason]);
  });

  test("a folder used by another server", async () => {
    const args = [plainUrl, `--DataDir=${folder("locked")}`];
    const { child } = await start(args);
    const { code, text } = await failure(args);
    expect(text).toMatch(
      /^Cannot start: The data folder \S+ is in use by process \d+ on \S+, started at \S+\. Stop [^\n]+\n$/,
    );
    expect(text).toContain(`process ${child.pid} on`);
    expect(code).toBe(exitCodes["data-folder-locked"]);
    child.kill("SIGKILL");
    await once(child, "exit");
    // A killed process holds no lock.
    const next = await start(args);
    next.child.kill("SIGKILL");
  });

  test("a read-only folder", async () => {
    const path = folder("read-only");
    mkdirSync(path, { mode: 0o555 });
    chmodSync(root, 0o755);
    // Root may write everywhere.
    const asNobody = ["--reuid=65534", "--regid=65534", "--clear-groups", process.execPath];
    const [command, ...before] =
      process.getuid?.() === 0 ? ["setpriv", ...asNobody] : [process.execPath];
    const args = [...before, program, plainUrl, `--DataDir=${path}`];
    const { status, stderr } = spawnSync(command as string, args, { cwd: root, encoding: "utf8" });
    expect(stderr).toMatch(
      /^Cannot start: The data folder \S+ cannot be written \(EACCES: [^\n]+\); check its owner [^\n]+\n$/,
    );
    expect(status).toBe(exitCodes["data-folder-read-only"]);
    chmodSync(path, 0o700);
    const inside = [...before, program, plainUrl, `--DataDir=${path}/data`];
    const closed = spawnSync(command as string, inside, { cwd: root, encoding: "utf8" });
    if (process.getuid?.() === 0) {
      expect(closed.stderr).toMatch(/is not accessible: this user may not enter \S+ \(EACCES\)/);
      expect(closed.status).toBe(exitCodes["data-folder-parent"]);
    }
  });

  test("the server warns of few file handles, and continues to serve after it ran out of them", async () => {
    const few = (count: number, name: string) => [
      "-c",
      `ulimit -n ${count}; exec "$0" "$@"`,
      process.execPath,
      program,
      plainUrl,
      `--DataDir=${folder(name)}`,
    ];
    const refused = spawnSync("sh", few(24, "few"), { cwd: root, encoding: "utf8" });
    expect(refused.stderr).toMatch(/^Cannot start: .*EMFILE.*; let this process open more files/m);
    expect(refused.status).toBe(exitCodes["data-folder-unusable"]);

    const server = spawn("sh", few(64, "more"), { cwd: root, stdio: ["ignore", "pipe", "ignore"] });
    onTestFinished(() => void server.kill("SIGKILL"));
    let url = "";
    for await (const line of createInterface({ input: server.stdout })) {
      url = /^Server available on: (.*)$/.exec(line)?.[1] ?? "";
      if (url !== "") break;
    }
    const sockets = Array.from({ length: 100 }, () => {
      const socket = net.connect(Number(new URL(url).port), "127.0.0.1");
      socket.on("error", () => undefined);
      return socket;
    });
    // Longer than the interval between two memory checks.
    await new Promise((resolve) => setTimeout(resolve, 2500));
    expect(server.exitCode).toBeNull();
    for (const socket of sockets) socket.destroy();
    await expect
      .poll(
        () =>
          fetch(`${url}/livez`).then(
            ({ status: found }) => found,
            () => 0,
          ),
        { timeout: 9000 },
      )
      .toBe(200);
  });

  test("a folder taken by another server while this one is suspended, which then exits", async () => {
    const args = [plainUrl, `--DataDir=${folder("lost")}`, "--Server.FolderSilenceInSec=1"];
    const first = await start(args);
    first.child.kill("SIGSTOP");
    const second = await start(args);
    const ended = once(first.child, "exit");
    first.child.kill("SIGCONT");
    expect(await ended).toEqual([exitCodes["data-folder-lost"], null]);
    expect(first.errors()).toMatch(
      /^Stopped: The folder \S+ is no longer this process's: [^\n]+\n$/,
    );
    expect(first.errors()).toContain(`process ${second.child.pid} on`);
    second.child.kill("SIGKILL");
  });

  test("the exit codes differ", () => {
    const codes = Object.values(exitCodes);
    expect(new Set(codes).size).toBe(codes.length);
    expect(codes.every((code) => code > 0 && code < 126)).toBe(true);
  });
});

describe("shutdown", () => {
  test("answers requests in flight, then exits with 0", async () => {
    const { child, url } = await start(["--ServerUrl=http://127.0.0.1:0", "--RunInMemory=true"]);
    const session = http2.connect(url);
    session.on("error", () => undefined);
    // A slow body keeps a request in flight during the shutdown.
    const stream = session.request(
      { ":method": "PUT", ":path": "/admin/configuration/client" },
      { endStream: false },
    );
    stream.write('{"Disabled":');
    const socket = net.connect(Number(new URL(url).port), "127.0.0.1");
    const head =
      "PUT /admin/configuration/client HTTP/1.1\r\nHost: localhost\r\nContent-Length: 17\r\n\r\n";
    socket.write(`${head}{"Disabled":`);
    let text = "";
    socket.on("data", (chunk) => {
      text += String(chunk);
    });
    expect((await requestHttp2(session, "/setup/alive")).status).toBe(204);
    const idle = net.connect(Number(new URL(url).port), "127.0.0.1");
    idle.on("error", () => undefined); // reset if the server stops before it has accepted the connection
    await once(idle, "connect");
    const answered = once(stream, "response") as Promise<[http2.IncomingHttpHeaders]>;
    const exited = once(child, "exit");
    child.kill("SIGTERM");
    const refusal = () => requestHttp1(`${url}/setup/alive`, {}).then(String, String);
    await expect.poll(refusal, { timeout: 10_000 }).toMatch(/ECONNREFUSED/);
    expect(child.exitCode).toBeNull();
    stream.end("true}");
    expect((await answered)[0][":status"]).toBe(201);
    const answeredMs = performance.now();
    socket.write("true}");
    await once(socket, "close");
    expect(text).toMatch(/^HTTP\/1\.1 201/);
    idle.destroy();
    expect((await exited)[0]).toBe(0);
    console.log(`exit ${(performance.now() - answeredMs).toFixed(0)} ms after the last answer`);
    session.destroy();
  });

  test("under load loses no reply", async () => {
    const { child, url } = await start(["--ServerUrl=http://127.0.0.1:0", "--RunInMemory=true"]);
    const session = http2.connect(url);
    session.on("error", () => undefined);
    let answered = 0;
    let cut = 0;
    let isOver = false;
    session.on("goaway", () => {
      isOver = true;
    });
    const load = Array.from({ length: 8 }, async () => {
      while (!isOver && !session.closed) {
        await requestHttp2(session, "/build/version").then(
          () => answered++,
          (error: Error) => {
            // A rejection before any work is not a lost reply: the client may retry elsewhere.
            if (!/REFUSED_STREAM|GOAWAY|closed|destroyed|cancel/i.test(error.message)) cut++;
          },
        );
      }
    });
    await expect.poll(() => answered, { timeout: 10_000 }).toBeGreaterThan(100);
    const [code] = await stopped(child, () => child.kill("SIGTERM"));
    isOver = true;
    await Promise.all(load);
    expect(code).toBe(0);
    expect(cut).toBe(0);
    session.destroy();
  });

  test("under writes over mutual TLS keeps all acknowledged writes, and cuts off no client", async () => {
    const args = ["--ServerUrl=https://127.0.0.1:0", `--DataDir=${folder("kept")}`];
    const certs = join(folder("kept"), "certs");
    const { child, url } = await start(args);
    const read = (name: string) => readFileSync(join(certs, name));
    const client = {
      ca: read("ca.crt"),
      cert: read("admin.client.certificate.localhost.crt"),
      key: read("admin.client.certificate.localhost.key"),
    };
    const send = (path: string, method: string, body?: string, target = url) =>
      requestHttp1(target + path, { method, tls: client, ...(body === undefined ? {} : { body }) });
    const created = await send("/admin/databases?name=kept", "PUT", '{"DatabaseName":"kept"}');
    expect(created.status).toBe(201);
    const session = http2.connect(url, client);
    session.on("error", () => undefined);
    const acknowledged: string[] = [];
    const failures: string[] = [];
    let isOver = false;
    const load = Array.from({ length: 12 }, async (_, worker) => {
      for (let i = 0; !isOver; i++) {
        const id = `kept/${worker}-${i}`;
        const path = `/databases/kept/docs?id=${id}`;
        const sent =
          worker < 8
            ? requestHttp2(session, path, { method: "PUT", body: "{}" })
            : send(path, "PUT", "{}");
        await sent.then(
          ({ status }) => {
            if (status === 201) acknowledged.push(id);
            else failures.push(`${status}`);
          },
          (error: Error) => {
            isOver = true;
            // Rejected before any work. (A new HTTP/1.1 connection cannot distinguish this from
            // being cut off.)
            const isRefusal = /REFUSED_STREAM|GOAWAY|closed|destroyed|cancel/i.test(error.message);
            if (worker < 8 && !isRefusal) failures.push(error.message);
          },
        );
      }
    });
    await expect.poll(() => acknowledged.length, { timeout: 20_000 }).toBeGreaterThan(100);
    const [code] = await stopped(child, () => child.kill("SIGTERM"));
    isOver = true;
    await Promise.all(load);
    session.destroy();
    expect(code).toBe(0);
    expect(failures).toEqual([]);

    const again = await start(args);
    const list = await send(
      "/databases/kept/docs?pageSize=100000&metadataOnly=true",
      "GET",
      undefined,
      again.url,
    );
    const stored = new Set(
      (list.json as { Results: { "@metadata": { "@id": string } }[] }).Results.map(
        (row) => row["@metadata"]["@id"],
      ),
    );
    expect(acknowledged.filter((id) => !stored.has(id))).toEqual([]);
    again.child.kill("SIGKILL");
  });

  test("does not wait forever for a client that does not read", async () => {
    const { child, url } = await start([
      "--ServerUrl=http://127.0.0.1:0",
      "--RunInMemory=true",
      "--Server.ShutdownTimeoutInSec=0.5",
    ]);
    const socket = net.connect(Number(new URL(url).port), "127.0.0.1");
    socket.on("error", () => undefined);
    socket.write(
      "PUT /admin/configuration/client HTTP/1.1\r\nHost: localhost\r\nContent-Length: 17\r\n" +
        "Expect: 100-continue\r\n\r\n",
    );
    // The request is in progress from here on, and its body never arrives.
    expect(String((await once(socket, "data"))[0])).toMatch(/^HTTP\/1\.1 100 /);
    const beganMs = performance.now();
    const [code] = await stopped(child, () => child.kill("SIGINT"));
    expect(code).toBe(0);
    expect(performance.now() - beganMs).toBeGreaterThan(500);
  });
});
