/**
 * Commands for operators: checks, automatic backups, certificates, the doctor, names for
 * completion.
 */
import { execFile } from "node:child_process";
import {
  chmodSync,
  cpSync,
  existsSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  renameSync,
  statSync,
  writeFileSync,
} from "node:fs";
import { createServer } from "node:net";
import { join } from "node:path";
import { setTimeout as wait } from "node:timers/promises";
import { createSecureContext } from "node:tls";
import { promisify } from "node:util";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { findCertificateFolder, makeCertificateFolder } from "../../certs/certificate-folder.ts";
import { failureCodes } from "../../cli/failure.ts";
import { openEngine } from "../../engine/engine.ts";
import { type CommandLine, startCommandLine } from "../support/command-line.ts";

let line: CommandLine;
let folder: string;
const jackdaw: CommandLine["jackdaw"] = (words, more) => line.jackdaw(words, more);
const json: CommandLine["json"] = (words) => line.json(words);

beforeAll(async () => {
  line = await startCommandLine(["--RunInMemory=false"]);
  ({ folder } = line);
  for (let number = 0; number < 3; number++) {
    await jackdaw(["put", `users/${number}`, "-c", "Users"], { input: `{"Age":${number}}` });
  }
});
afterAll(() => line.stop());

describe("check", () => {
  test("reads the folder of a stopped server, and names damaged files", async () => {
    const data = join(folder, "stopped");
    const engine = await openEngine({ folder: data });
    const database = await engine.databases.create("shop", {});
    for (let number = 0; number < 5; number++) {
      await database.documents.put(`users/${number}`, Buffer.from('{"Name":"Ann"}'));
    }
    const busy = await jackdaw(["check", data]);
    expect([busy.code, busy.err]).toEqual([
      failureCodes.conflict,
      expect.stringContaining("stop the server first"),
    ]);
    await engine.close();

    const good = await jackdaw(["check", data]);
    expect([good.code, good.err]).toEqual([0, ""]);
    expect(good.out).toMatch(/^System: ok, .*\nshop: ok, 5 documents, .*\n[\d.]+ [KM]B read\n$/);
    expect(await json(["check", join(data, "Databases", "shop")])).toMatchObject([
      { name: "shop", documents: 5, damages: [] },
    ]);

    const log = join(data, "Databases", "shop", "log");
    const path = join(log, readdirSync(log).sort()[0] ?? "");
    const bytes = readFileSync(path);
    bytes.fill(0x55, 200, 208);
    writeFileSync(path, bytes);
    const bad = await jackdaw(["check", data]);
    expect(bad.code).toBe(failureCodes.failed);
    expect(bad.out).toContain(`damaged: ${path}, byte `);
    expect(bad.err).toContain(`jackdaw salvage ${join(data, "Databases", "shop")} TARGET`);
    expect(readFileSync(path).equals(bytes)).toBe(true);
    const target = join(folder, "salvaged");
    expect((await jackdaw(["salvage", join(data, "Databases", "shop"), target])).code).toBe(0);
    expect((await jackdaw(["check", target])).code).toBe(0);
  });

  test("finds no database in an empty folder", async () => {
    expect((await jackdaw(["check", join(folder, "nowhere")])).code).toBe(failureCodes.missing);
    expect((await jackdaw(["check", folder])).code).toBe(failureCodes.missing);
  });
});

describe("backups", () => {
  test("are verified, and compared with a database", async () => {
    const backups = join(folder, "backups");
    mkdirSync(backups);
    await jackdaw(["backup", backups]);
    const [made = ""] = readdirSync(backups);
    const path = join(backups, made);
    // The folder passed to the command works as well.
    const good = await jackdaw(["verify", backups, "--compare", "shop"]);
    expect(good.err).toBe("");
    expect(good.out).toMatch(/Documents +3 +3\n[\s\S]*is equal to shop\n.* is valid\n$/);
    await jackdaw(["put", "users/3", "-c", "Users"], { input: '{"Age":3}' });
    const other = await jackdaw(["verify", path, "--compare", "shop"]);
    expect(other.code).toBe(failureCodes.failed);
    expect(other.out).toContain("different: Documents: 3 in the backup, 4 in shop");
    const [file = ""] = readdirSync(path).filter((name) => name.endsWith("-full-backup"));
    const bytes = readFileSync(join(path, file));
    bytes[bytes.length >> 1] = (bytes[bytes.length >> 1] as number) ^ 1;
    writeFileSync(join(path, file), bytes);
    expect((await jackdaw(["verify", path])).code).toBe(failureCodes.failed);
  });

  test("are encrypted with the key in a file, which they then require", async () => {
    const backups = join(folder, "secret");
    const key = join(folder, "backup.key");
    writeFileSync(key, `${Buffer.alloc(32, 7).toString("base64")}\n`);
    const created = await jackdaw(["backup", backups, "--encryption-key", key]);
    expect([created.code, created.err]).toEqual([0, ""]);
    const files = readdirSync(backups, { recursive: true, encoding: "utf8" });
    expect(files.some((name) => name.endsWith(".ravendb-encrypted-full-backup"))).toBe(true);
    const closed = await jackdaw(["verify", backups]);
    expect([closed.code, closed.err]).toEqual([1, expect.stringContaining("--encryption-key")]);
    const other = join(folder, "other.key");
    writeFileSync(other, Buffer.alloc(32, 8).toString("base64"));
    expect((await jackdaw(["verify", backups, "--encryption-key", other])).code).toBe(1);
    expect((await jackdaw(["verify", backups, "--encryption-key", key])).code).toBe(0);
    const restored = await jackdaw(["restore", backups, "opened", "--encryption-key", key]);
    expect([restored.code, restored.err]).toEqual([0, ""]);
    await jackdaw(["databases", "delete", "opened", "--yes"]);
    const missing = await jackdaw(["restore", backups, "none", "--encryption-key", "/nofile"]);
    expect([missing.code, missing.err]).toEqual([2, expect.stringContaining("cannot be read")]);
  });

  test("are found by their parent folder: the newest of a database", async () => {
    const backups = join(folder, "several");
    const first = await jackdaw(["backup", backups]);
    const one = join(backups, readdirSync(backups)[0] ?? "");
    expect(first.out).toBe(`shop was backed up to ${one}\n`);
    // A later one, dated a minute after it.
    const later = one.replace(/[^/]+(?=\.ravendb-shop)/, "2099-01-01-00-00-00");
    cpSync(one, later, { recursive: true });
    for (const name of readdirSync(later)) {
      renameSync(join(later, name), join(later, name.replace(/^[\d-]+/, "2099-01-01-00-00-00")));
    }
    const restored = await jackdaw(["restore", backups, "newest"]);
    expect([restored.code, restored.err]).toEqual([0, `The newest backup there is ${later}\n`]);
    expect(restored.out).toBe(`newest was restored from ${later}\n`);
    await jackdaw(["databases", "delete", "newest", "-y"]);
    cpSync(one, one.replace("ravendb-shop", "ravendb-other"), { recursive: true });
    const refused = await jackdaw(["restore", backups, "which"]);
    expect(refused.code).toBe(failureCodes.usage);
    expect(refused.err).toContain("has backups of several databases; specify one of their folders");
  });

  test("continuous ones are listed, restored to a point in time, and removed", async () => {
    const backups = join(folder, "continuous");
    mkdirSync(backups);
    const { TaskId } = (await json(["backup", backups, "--continuous", "1"])) as { TaskId: number };
    const find = async () => {
      const tasks = (await json(["backup", "status"])) as { LastFullBackup: string | null }[];
      return tasks.find((task) => task.LastFullBackup !== null);
    };
    for (let round = 0; round < 100 && (await find()) === undefined; round++) await wait(100);
    expect(await find()).toMatchObject({ TaskId, Error: null });
    expect((await jackdaw(["backup", "status"])).out).toMatch(
      /Continuous backup to Local +(waiting|running)/,
    );
    await jackdaw(["put", "users/late", "-c", "Users"], { input: '{"Age":99}' });
    const moment = new Date().toISOString();
    await wait(50);
    await jackdaw(["put", "users/later", "-c", "Users"], { input: '{"Age":100}' });
    const restored = await restoredAt(backups, moment);
    expect(restored.err).toBe("");
    expect((await jackdaw(["get", "users/late", "-d", "then"])).code).toBe(0);
    expect((await jackdaw(["get", "users/later", "-d", "then"])).code).toBe(failureCodes.missing);
    await jackdaw(["databases", "delete", "then", "-y"]);
    expect((await jackdaw(["restore", backups, "x", "--at", "noon"])).err).toContain("PointInTime");
    expect((await jackdaw(["backup", "remove", String(TaskId)])).out).toContain("was removed");
    expect((await jackdaw(["backup", "remove", String(TaskId)])).code).toBe(failureCodes.missing);
    expect((await jackdaw(["backup", backups, "--continuous", "x"])).code).toBe(failureCodes.usage);
  });

  /** Recent writes reach the files within a second. */
  async function restoredAt(backups: string, moment: string) {
    for (let round = 0; ; round++) {
      const tried = await jackdaw(["restore", backups, "then", "--at", moment]);
      const late = tried.code === 0 && (await jackdaw(["get", "users/late", "-d", "then"])).code;
      if (late === 0 || round === 50) return tried;
      await jackdaw(["databases", "delete", "then", "-y"]);
      await wait(100);
    }
  }
});

describe("certificates", () => {
  test("are created locally, registered, renewed with the same rights, and never overwritten", async () => {
    const out = join(folder, "made");
    mkdirSync(out);
    const words = ["cert", "make", "web shop", "--access", "shop=Read", "--out", out];
    const created = await jackdaw(words);
    expect([created.code, created.err]).toEqual([0, ""]);
    const [crt, key, pfx] = ["crt", "key", "pfx"].map((ending) => join(out, `web-shop.${ending}`));
    for (const path of [crt, key, pfx] as string[]) expect(statSync(path).mode & 0o777).toBe(0o600);
    createSecureContext({ pfx: readFileSync(pfx as string), passphrase: "" });
    const line = /^Try it: (curl --cacert .+)$/m.exec(created.out)?.[1] ?? "";
    const { stdout } = await promisify(execFile)("sh", ["-c", `${line} --silent --fail`]);
    expect(JSON.parse(stdout)).toMatchObject({ Databases: [{ Name: "shop" }] });
    const as = ["--cert", crt as string, "--key", key as string];
    expect((await jackdaw(["get", "users/1", ...as])).code).toBe(0);
    expect((await jackdaw(["put", "users/1", ...as], { input: "{}" })).code).toBe(
      failureCodes.refused,
    );

    const again = await jackdaw(words);
    expect([again.code, again.err]).toEqual([2, expect.stringContaining("not overwritten")]);
    expect(
      ((await json(["cert"])) as { Name: string }[]).filter(({ Name }) => Name === "web shop"),
    ).toHaveLength(1);

    const second = join(folder, "renewed");
    mkdirSync(second);
    const environment = { SECRET: "s3cret" };
    const renewed = await jackdaw(
      ["cert", "renew", "web shop", "--out", second, "--password-variable", "SECRET"],
      { environment },
    );
    expect(renewed.out).toContain(
      "The old certificate remains valid; revoke it with 'jackdaw cert revoke ",
    );
    expect(readFileSync(join(second, "web-shop.key"), "utf8")).toContain("ENCRYPTED");
    const bytes = readFileSync(join(second, "web-shop.pfx"));
    createSecureContext({ pfx: bytes, passphrase: "s3cret" });
    expect(() => createSecureContext({ pfx: bytes, passphrase: "" })).toThrow();
    const both = ((await json(["cert"])) as { Name: string; Permissions: object }[]).filter(
      ({ Name }) => Name === "web shop",
    );
    expect(both.map(({ Permissions }) => Permissions)).toEqual([
      { shop: "Read" },
      { shop: "Read" },
    ]);
  });

  test.each([
    [["cert", "make", "x"], "A user needs --access"],
    [["cert", "make", "x", "--access", "shop"], "must be DATABASE=read|write|admin"],
    [["cert", "make", "x", "--access", "shop=all"], "must be one of read, write, admin"],
    [["cert", "make", "x", "--clearance", "god"], "must be one of user, operator, admin"],
    [["cert", "make", "x", "--clearance", "admin", "--password-variable", "NONE"], "is empty"],
    [["cert", "make", "x", "--clearance", "admin", "--out", "/dev/null/x"], "--out"],
  ])("are not created with invalid options: %o", async (words, message) => {
    const { code, err } = await jackdaw(words, { environment: { PWD: folder } });
    expect([code, err]).toEqual([failureCodes.usage, expect.stringContaining(message)]);
    expect(existsSync("x.crt")).toBe(false);
  });

  test("of a local server are renewed in place, with the same names", async () => {
    const data = join(folder, "local");
    const certs = join(data, "certs");
    await makeCertificateFolder(certs, "localhost", ["db.example", "127.0.0.1"]);
    const before = readFileSync(join(certs, "server.crt"), "utf8");
    const { code, out } = await jackdaw(["cert", "renew", "--data", data]);
    expect([code, out]).toEqual([0, expect.stringContaining("is valid until")]);
    const { X509Certificate } = await import("node:crypto");
    const after = new X509Certificate(readFileSync(join(certs, "server.crt")));
    expect(after.toString()).not.toBe(before);
    expect(after.subjectAltName).toBe("DNS:db.example, IP Address:127.0.0.1");
    expect(await findCertificateFolder(certs)).toBeDefined();
    expect((await jackdaw(["cert", "renew", "--data", join(folder, "none")])).code).toBe(
      failureCodes.missing,
    );
  });
});

describe("the doctor", () => {
  interface Finding {
    readonly State: string;
    readonly About: string;
    readonly Text: string;
  }
  const alone = { JACKDAW_URL: "", JACKDAW_CERT: "", JACKDAW_KEY: "", JACKDAW_CA: "" };

  async function examine(data: string, settings: Record<string, string>) {
    const environment = { ...alone, RAVEN_DataDir: data, ...settings };
    const { code, out, err } = await jackdaw(["doctor", "--json"], { environment });
    const findings = JSON.parse(out) as Finding[];
    const of = (about: string) => findings.find(({ About }) => About === about);
    return { code, err, findings, of };
  }

  test("accepts a suitable folder for a new server", async () => {
    const { code, err, findings, of } = await examine(join(folder, "new"), {
      RAVEN_ServerUrl: "https://127.0.0.1:0",
    });
    expect([code, err, findings.filter(({ State }) => State === "fail")]).toEqual([0, "", []]);
    for (const about of [
      "node",
      "memory",
      "settings",
      "server",
      "data folder",
      "disk",
      "certificate",
      "port",
    ]) {
      expect(of(about), about).toBeDefined();
    }
    expect(existsSync(join(folder, "new"))).toBe(false);
  });

  test("fails for a port in use, an expired certificate, and invalid settings", async () => {
    const blocker = createServer().listen(0, "127.0.0.1");
    await new Promise((done) => blocker.once("listening", done));
    const { port } = blocker.address() as { port: number };
    const used = await examine(join(folder, "new"), {
      RAVEN_ServerUrl: `https://127.0.0.1:${port}`,
    });
    blocker.close();
    expect([used.code, used.of("port")?.State]).toEqual([1, "fail"]);
    expect(used.err).toContain("Failed checks: port");

    const data = join(folder, "old");
    const certs = join(data, "certs");
    await makeCertificateFolder(certs, "localhost", ["127.0.0.1"]);
    const { makeServerCertificate } = await import("../../certs/authority.ts");
    const authority = {
      certificate: readFileSync(join(certs, "ca.crt"), "utf8"),
      key: readFileSync(join(certs, "ca.key"), "utf8"),
    };
    const old = await makeServerCertificate(authority, ["127.0.0.1"], new Date("2020-01-01"));
    writeFileSync(join(certs, "server.crt"), old.certificate);
    writeFileSync(join(certs, "server.key"), old.key);
    const ended = await examine(data, { RAVEN_ServerUrl: "https://127.0.0.1:0" });
    expect([ended.code, ended.of("certificate")]).toEqual([
      1,
      expect.objectContaining({ State: "fail", Text: expect.stringContaining("expired") }),
    ]);

    const wrong = await examine(data, { RAVEN_ServerUrl: "here" });
    expect([wrong.code, wrong.of("settings")?.State]).toEqual([1, "fail"]);
  });

  test("warns of a private key that everybody may read, beside the date of the certificate", async () => {
    const data = join(folder, "exposed");
    const certs = join(data, "certs");
    await makeCertificateFolder(certs, "localhost", ["127.0.0.1"]);
    const settings = { RAVEN_ServerUrl: "https://127.0.0.1:0" };
    const exposedOf = async () =>
      (await examine(data, settings)).findings.filter(
        ({ About, State }) => About === "certificate" && State === "warn",
      );
    expect(await exposedOf()).toEqual([]);
    chmodSync(join(certs, "server.key"), 0o644);
    expect(await exposedOf()).toEqual([
      expect.objectContaining({
        Text: expect.stringContaining("server.key (mode 644). Run chmod"),
      }),
    ]);
    expect((await examine(data, settings)).of("certificate")?.State).toBe("ok");
  });

  test("asks a server that runs, and tells of one that is gone", async () => {
    const running = await jackdaw(["doctor", "--json"]);
    const findings = JSON.parse(running.out) as Finding[];
    expect(findings).toContainEqual(
      expect.objectContaining({
        State: "ok",
        About: "server",
        Text: expect.stringContaining("is running, version"),
      }),
    );
    expect(findings).toContainEqual(expect.objectContaining({ State: "ok", About: "clock" }));
    const data = join(folder, "gone");
    mkdirSync(data);
    const announced = { Url: "https://127.0.0.1:1", ProcessId: 2 ** 22 + 1, StartedAt: "" };
    writeFileSync(join(data, "server.json"), JSON.stringify(announced));
    const gone = await examine(data, { RAVEN_ServerUrl: "https://127.0.0.1:0" });
    expect([gone.code, gone.of("server")?.State]).toEqual([0, "warn"]);
  });
});

describe("names for completion", () => {
  test("come from the server, or are empty", async () => {
    expect((await jackdaw(["completion", "names", "databases"])).out).toBe("shop\n");
    await jackdaw(["query", "from Users where Age > 1", "-w"]);
    expect((await jackdaw(["completion", "names", "indexes"])).out).toBe("Auto/Users/ByAge\n");
    expect((await jackdaw(["completion", "names", "operations"])).out).toMatch(/^\d+\n/);
    const nobody = { JACKDAW_URL: "https://127.0.0.1:1" };
    const silent = await jackdaw(["completion", "names", "databases"], { environment: nobody });
    expect(silent).toEqual({ code: 0, out: "", err: "" });
    expect((await jackdaw(["completion", "names", "x"])).code).toBe(failureCodes.usage);
  });

  test("operations of all databases, and of the server, are listed without a database", async () => {
    expect((await jackdaw(["compact"])).out).toContain(" was compacted\n");
    const environment = { JACKDAW_DATABASE: "" };
    const { out } = await jackdaw(["operation", "list", "--json"], { environment });
    const all = JSON.parse(out) as { Database: string | null }[];
    expect(new Set(all.map(({ Database }) => Database))).toEqual(new Set([null, "shop"]));
    expect((await jackdaw(["operation"], { environment })).out).toMatch(
      /\(server\) .*\n[\s\S]*shop /,
    );
  });
});
