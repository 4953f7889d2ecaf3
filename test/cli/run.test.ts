/** The command line with a real server over TLS: every command, its output and its exit codes. */
import { execFileSync, spawnSync } from "node:child_process";
import { mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { commandTable } from "../../cli/command-table.ts";
import { helpOf, overview } from "../../cli/commands/help.ts";
import { failureCodes } from "../../cli/failure.ts";
import { type CommandLine, startCommandLine } from "../support/command-line.ts";
import { projectRoot } from "../support/project-root.ts";
import type { TestServer } from "../support/start-test-server.ts";

let line: CommandLine;
let server: TestServer;
let folder: string;
const jackdaw: CommandLine["jackdaw"] = (words, more) => line.jackdaw(words, more);
const json: CommandLine["json"] = (words) => line.json(words);

beforeAll(async () => {
  line = await startCommandLine();
  ({ server, folder } = line);
  for (let age = 30; age < 33; age++) {
    const input = JSON.stringify({ Name: `user, ${age}`, Age: age });
    expect((await jackdaw(["put", `users/${age}`, "-c", "Users"], { input })).code).toBe(0);
  }
});
afterAll(() => line.stop());

describe("arguments", () => {
  test.each([
    [["staus"], "Unknown command 'staus'; did you mean 'status'?"],
    [["index", "lst"], "did you mean 'index list'?"],
    [["status", "--jsn"], "'jackdaw status' has no option '--jsn'; did you mean '--json'?"],
    [["get"], "ID is missing: jackdaw get ID…"],
    [["status", "now"], "'now' is an unexpected argument: jackdaw status"],
    [["query", "from Users", "-n", "x"], "--limit 'x' must be a whole number"],
    [["query", "from Users", "-p", "x"], "--parameter 'x' must be name=value"],
    [["status", "--url", "x"], "'x' is not a URL"],
    [["databases", "delete", "shop"], "add --yes"],
    [["completion", "tcsh"], "No completion for 'tcsh'"],
  ])("that are wrong end with code 2: %o", async (words, message) => {
    const { code, out, err } = await jackdaw(words);
    expect([code, out]).toEqual([failureCodes.usage, ""]);
    expect(err).toContain(message);
    expect(err.trim().split("\n")).toHaveLength(1);
  });

  test("without a database explain how to specify one", async () => {
    const { code, err } = await jackdaw(["query", "x"], { environment: { JACKDAW_DATABASE: "" } });
    expect([code, err]).toEqual([2, expect.stringContaining("use -d NAME")]);
  });
});

describe("help", () => {
  test("lists every command, and describes each", async () => {
    const { out } = await jackdaw(["help"]);
    for (const command of commandTable) {
      expect(out).toContain(command.about);
      expect(helpOf(command)).toContain(command.example);
    }
    expect(out.trimEnd()).toBe(overview(commandTable));
    expect((await jackdaw(["help", "query"])).out).toContain("--parameter NAME=VALUE");
    expect((await jackdaw(["index", "put", "--help"])).out).toContain(
      "jackdaw index put NAME FILE",
    );
    const { out: serve } = await jackdaw(["help", "serve"]);
    expect(serve).toContain("--DataDir=./data");
    const groups = serve
      .split("\n")
      .filter((line) => /^(Addresses|Cluster|Data|Requests)$/.test(line));
    expect(groups).toEqual(["Addresses", "Cluster", "Data", "Requests"]);
  });

  test("docs/commands.md has every command with its options and example", () => {
    const page = readFileSync(`${projectRoot}docs/commands.md`, "utf8");
    for (const { name, about, options } of commandTable) {
      expect(page).toContain(`| \`${name}\``);
      expect(page).toContain(about);
      for (const option of Object.keys(options)) expect(page).toContain(`\`--${option}`);
    }
    for (const code of Object.values(failureCodes)) expect(page).toContain(`| ${code} |`);
  });
});

describe("documents and queries", () => {
  test("are put, got and deleted", async () => {
    await jackdaw(["put", "notes/1", "-c", "Notes"], { input: '{"Text":"hello"}' });
    expect(await json(["get", "notes/1"])).toMatchObject({
      Text: "hello",
      "@metadata": { "@collection": "Notes" },
    });
    const conflict = await jackdaw(["delete", "notes/1", "--if-match", "A:1-x"]);
    expect(conflict.code).toBe(failureCodes.conflict);
    expect((await jackdaw(["delete", "notes/1"])).out).toBe("notes/1 deleted\n");
    expect((await jackdaw(["get", "notes/1"])).code).toBe(failureCodes.missing);
    expect((await jackdaw(["delete", "notes/1"])).code).toBe(failureCodes.missing);
  });

  test("preserve the spelling of numbers and the order of keys in every output format", async () => {
    const body = '"9":1.0,"Big":9007199254740993,"A":{"Small":1e-7}';
    const input = `{${body},"@metadata":{"Own":2.50}}`;
    expect((await jackdaw(["put", "exact/1", "-c", "Exact"], { input })).code).toBe(0);
    expect((await jackdaw(["get", "exact/1", "--json"])).out).toContain(`{${body},`);
    expect((await jackdaw(["get", "exact/1"])).out).toContain(
      '{\n  "9": 1.0,\n  "Big": 9007199254740993,\n  "A": {\n    "Small": 1e-7\n  },\n',
    );
    expect((await jackdaw(["get", "exact/1"])).out).toContain('"Own": 2.50');
    const query = ["query", "from Exact"];
    expect((await jackdaw([...query, "--jsonl"])).out).toContain(`{${body},`);
    expect((await jackdaw([...query, "--csv"])).out).toBe(
      'id,9,Big,A\nexact/1,1.0,9007199254740993,"{""Small"":1e-7}"\n',
    );
    expect((await jackdaw(query)).out).toMatch(
      /exact\/1 +1\.0 +9007199254740993 +\{"Small":1e-7\}/,
    );
    const file = join(folder, "exact.csv");
    await jackdaw(["export", file, "-c", "Exact"]);
    expect(readFileSync(file, "utf8")).toContain(",1.0,9007199254740993,1e-7\n");
    const patch = "from Exact update { this.Big = 1 }";
    const lost = ["- Big: 9007199254740993", "+ Big: 1"];
    for (const one of [[], ["--id", "exact/1"]]) {
      const { out } = await jackdaw(["patch", patch, "--dry-run", ...one]);
      expect(out.split("\n").map((line) => line.trim())).toEqual(expect.arrayContaining(lost));
    }
    await jackdaw(["delete", "exact/1"]);
  });

  test.each([
    [["put", "notes/2", "nowhere.json"], ""],
    [["query", "-f", "nowhere.rql"], ""],
    [["index", "put", "ByAge", "nowhere.json"], ""],
    [["import", "nowhere.csv"], ""],
    [["import", "nowhere.ravendbdump"], ""],
  ])("of a missing file: %o", async (words) => {
    const { code, err } = await jackdaw(words);
    expect(code).toBe(failureCodes.usage);
    expect(err).toMatch(/^jackdaw: nowhere\.\w+ cannot be read: no such file or directory\.\n$/);
  });

  test("are objects", async () => {
    const { code, err } = await jackdaw(["put", "notes/2", "-c", "Notes"], { input: "[1]" });
    expect([code, err]).toEqual([2, "jackdaw: The document must be a JSON object.\n"]);
  });

  test("are tables, JSON, JSON lines and CSV", async () => {
    const words = [
      "query",
      "from Users where Age > $age order by Age select Name, Age",
      "-w",
      "-p",
      "age=30",
    ];
    expect((await jackdaw(words)).out).toBe(
      "id        Name      Age\nusers/31  user, 31   31\nusers/32  user, 32   32\n",
    );
    expect((await jackdaw([...words, "--csv"])).out).toBe(
      'id,Name,Age\nusers/31,"user, 31",31\nusers/32,"user, 32",32\n',
    );
    const lines = (await jackdaw([...words, "--jsonl", "-n", "1"])).out.trim().split("\n");
    expect(lines.map((line) => (JSON.parse(line) as { Age: number }).Age)).toEqual([31]);
    expect(await json(words)).toMatchObject({ TotalResults: 2 });
  });

  test("print their plan instead", async () => {
    // The first query builds the index, and waits for it.
    await jackdaw(["query", "from Users where Age > 30", "-w"]);
    const { out } = await jackdaw(["query", "from Users where Age > 30", "-w", "--plan"]);
    expect(out).toMatch(
      /1\. Found 2 of the 3 entries of the index Auto\/Users\/ByAge by Age > \?\./,
    );
    expect(out).toMatch(
      /2\. Read 2 documents\. \d+\.\d ms\n3\. Returned 2 rows\.\n\d+ ms in total\n$/,
    );
    expect(await json(["query", "from Users", "--plan"])).toMatchObject({ BetterIndex: null });
  });

  test("are read from a file and from standard input, and report their errors", async () => {
    writeFileSync(join(folder, "query.rql"), "from Users");
    expect((await jackdaw(["query", "-f", join(folder, "query.rql"), "--csv"])).out).toContain(
      "users/30",
    );
    expect((await jackdaw(["query", "--csv"], { input: "from Users" })).out).toContain("users/30");
    expect((await jackdaw(["query", "form Users"])).code).toBe(failureCodes.failed);
    expect((await jackdaw(["query", "from Users", "-d", "nowhere"])).code).toBe(
      failureCodes.missing,
    );
  });

  test("report the hint of the server, and a collection that does not exist", async () => {
    const { code, err } = await jackdaw(["query", "from Users whre Age > 3"]);
    expect([code, err]).toEqual([
      failureCodes.failed,
      "jackdaw: 1:17 Expected end of query but got: Age. Did you mean 'where'? The error is at line 1, column 17 of the query.\n",
    ]);
    expect((await jackdaw(["query", "from User where Age > 3"])).err).toBe(
      "Collection 'User' does not exist; did you mean 'Users'?\n",
    );
    expect((await jackdaw(["query", "from 'Elsewhere'", "--csv"])).err).toContain(
      "Collection 'Elsewhere' does not exist; 'from @all_docs' returns all documents",
    );
    expect((await jackdaw(["query", "from Users where Age > 9999"])).err).toContain("0 of 0 rows");
  });

  test("are patched, after a dry run", async () => {
    const words = ["patch", "from Users update { this.Age += args.by }", "-p", "by=100"];
    const tried = await jackdaw([...words, "--dry-run", "--sample", "1"]);
    expect(tried.out).toBe(
      "users/30: would change\n  - Age: 30\n  + Age: 130\n3 of 3 documents would change, 0 are unchanged, 0 would fail. Nothing was stored\n",
    );
    expect(await json([...words, "--dry-run", "--id", "users/31"])).toEqual({
      Matching: 1,
      Tried: [{ Id: "users/31", Status: "Patched", Changes: ["- Age: 31", "+ Age: 131"] }],
    });
    expect(await json(["get", "users/30"])).toMatchObject({ Age: 30 });
    expect((await jackdaw(["patch", "from Users", "--dry-run"])).code).toBe(2);
    const unconfirmed = await jackdaw(words);
    expect([unconfirmed.code, unconfirmed.err]).toEqual([
      failureCodes.usage,
      "jackdaw: 3 documents match and would be patched; add --yes to confirm, or --dry-run to see the changes.\n",
    ]);
    expect((await jackdaw([...words, "--yes"])).out).toBe("changed 3 of 3 documents\n");
    expect(await json(["get", "users/30"])).toMatchObject({ Age: 130 });
    const same = ["patch", "from Users update { this.Age += 0 }", "--yes"];
    expect((await jackdaw(same)).out).toBe("changed 0 of 3 documents\n");
    const { out } = await jackdaw(["operation", "list"]);
    expect(out).toMatch(/UpdateByQuery +Completed .* from Users update \{ this\.Age \+= 0 \}/);
  });

  test("are reverted after a patch with undo", async () => {
    const before = await json(["get", "users/30"]);
    const words = ["patch", "from Users update { if (this.Age > 999) throw 'old'; this.Age = -1 }"];
    const patched = await jackdaw([...words, "--undo", "--yes"]);
    const id = /operation undo (\d+) -d shop/.exec(patched.out)?.[1] ?? "";
    expect(patched.out).toMatch(/^changed 3 of 3 documents\n/);
    expect(await json(["get", "users/30"])).toMatchObject({ Age: -1 });
    expect((await jackdaw(["operation", "undo", id])).out).toBe("3 documents were restored\n");
    expect(await json(["get", "users/30"])).toMatchObject({ Age: (before as { Age: number }).Age });
    expect((await jackdaw(["operation", "undo", id])).err).toContain("was undone already");
    expect((await jackdaw(["operation", "list"])).out).toMatch(/UpdateByQuery +Undone by \d+/);
    for (const what of ["pause", "limit", "resume"])
      expect((await jackdaw(["operation", what, id])).code).not.toBe(0);
    expect((await jackdaw(["operation", "pause", "999"])).err).toContain(
      "Operation 999 does not exist",
    );
  });
});

describe("the server and its databases", () => {
  test("report their state", async () => {
    expect(await json(["status"])).toMatchObject({
      Url: server.url,
      Databases: [{ Name: "shop" }],
    });
    expect((await jackdaw(["status"])).out).toMatch(
      /^Server {5}https:.*\nVersion .*\nUp .*\n\ndatabase/,
    );
  });

  test("are created, disabled, enabled and deleted", async () => {
    expect((await jackdaw(["databases", "create", "other"])).code).toBe(0);
    expect((await jackdaw(["databases", "disable", "other"])).out).toBe("other disabled\n");
    expect((await jackdaw(["databases"])).out).toMatch(/other .* disabled/);
    expect((await jackdaw(["databases", "enable", "other"])).code).toBe(0);
    expect((await jackdaw(["databases", "delete", "other", "--yes"])).code).toBe(0);
    expect((await jackdaw(["databases", "delete", "other", "-y"])).code).toBe(failureCodes.missing);
  });

  test("are exported and imported", async () => {
    const path = join(folder, "shop.ravendbdump");
    expect((await jackdaw(["export", path, "-c", "Users"])).code).toBe(0);
    await jackdaw(["databases", "create", "copy"]);
    expect((await jackdaw(["import", path, "-d", "copy"])).out).toBe(
      "3 documents, 0 with errors\n",
    );
    expect((await jackdaw(["import", join(folder, "none"), "-d", "copy"])).code).toBe(2);
    await jackdaw(["databases", "delete", "copy", "-y"]);
  });

  test("are backed up and restored, and the operations are listed", async () => {
    const backups = join(folder, "backups");
    mkdirSync(backups);
    expect((await jackdaw(["backup", backups])).out).toContain("was backed up to");
    const [made = ""] = execFileSync("ls", [backups], { encoding: "utf8" }).split("\n");
    expect((await jackdaw(["restore", join(backups, made), "again"])).err).toBe("");
    expect((await jackdaw(["query", "from Users", "-d", "again"])).err).toContain("3 of 3 rows");
    await jackdaw(["databases", "delete", "again", "-y"]);
    const [backup] = (await json(["operation", "list"])) as { Id: number }[];
    const shown = (await jackdaw(["operation", "show", String(backup?.Id)])).out;
    expect(JSON.parse(shown)).toMatchObject({ Status: "Completed" });
    expect((await jackdaw(["operation", "wait", String(backup?.Id)])).out).toContain(
      "is completed",
    );
    const { out: listed } = await jackdaw(["operation", "list"], {
      environment: { JACKDAW_DATABASE: "" },
    });
    for (const type of ["DatabaseBackup", "DatabaseExport", "DatabaseRestore"])
      expect(listed).toMatch(new RegExp(`${type} +Completed +\\S+ +admin\\.client\\.`));
    expect((await jackdaw(["operation", "kill", "99999"])).code).toBe(failureCodes.missing);
  });

  test("have indexes", async () => {
    const path = join(folder, "index.json");
    writeFileSync(path, JSON.stringify({ Maps: ["map('Users', u => ({ Age: u.Age }))"] }));
    expect((await jackdaw(["index", "put", "ByAge", path])).out).toBe("ByAge is deployed\n");
    expect((await jackdaw(["index"])).out).toMatch(/ByAge .*Map/);
    expect((await jackdaw(["index", "show", "ByAge"])).out).toContain("u.Age");
    for (const action of ["pause", "resume", "reset", "errors", "delete"]) {
      expect((await jackdaw(["index", action, "ByAge"])).code, action).toBe(0);
    }
    expect((await jackdaw(["index", "show", "ByAge"])).code).toBe(failureCodes.missing);
  });

  test("report a failed index and the remedy", async () => {
    const path = join(folder, "failing.json");
    const map = "map('Many', u => { throw 'no'; })";
    writeFileSync(path, JSON.stringify({ Maps: [map] }));
    const rows = Array.from({ length: 200 }, (_, number) => `{"Number":${number}}\n`).join("");
    writeFileSync(join(folder, "many.jsonl"), rows);
    await jackdaw(["import", join(folder, "many.jsonl"), "-c", "Many"]);
    await jackdaw(["index", "put", "Failing", path]);
    await expect
      .poll(async () => (await jackdaw(["index"])).out)
      .toContain("failed: Failing cannot run queries: 'jackdaw index errors Failing -d shop'");
    expect((await jackdaw(["index"])).out).toMatch(/Failing +JavaScriptMap +0 +Failed +\d+\n/);
    expect((await jackdaw(["index", "delete", "Failing"])).code).toBe(0);
    await jackdaw(["patch", "from Many update { del(id(this)) }", "-y"]);
  });

  test("register certificates, and revoke them", async () => {
    await server.client({ clearance: "ValidUser" }, "web shop");
    expect((await jackdaw(["cert"])).out).toMatch(/web shop +ValidUser/);
    expect((await jackdaw(["cert", "revoke", "web shop"])).out).toBe("web shop was revoked\n");
    expect((await jackdaw(["cert", "revoke", "web shop"])).code).toBe(failureCodes.missing);
  });
});

describe("an inaccessible server", () => {
  test("is missing: code 3", async () => {
    const { code, err } = await jackdaw(["status", "--url", "https://127.0.0.1:1"]);
    expect([code, err]).toEqual([
      failureCodes.unreachable,
      expect.stringContaining("jackdaw serve"),
    ]);
  });

  test("is not trusted, or does not know the certificate: code 4", async () => {
    const other = await server.client({ clearance: "ValidUser" }, "other");
    writeFileSync(join(folder, "other.pem"), other.certificate + other.key);
    const words = ["databases", "create", "x", "--cert", join(folder, "other.pem")];
    expect((await jackdaw(words)).code).toBe(failureCodes.refused);
    const untrusted = await jackdaw(["status", "--ca", join(folder, "other.pem")]);
    expect([untrusted.code, untrusted.err]).toEqual([4, expect.stringContaining("--ca FILE")]);
  });

  test("an interrupted command exits, and the operation continues", async () => {
    const words = ["patch", "from Users update { this.Age += 1 }", "-y", "--max-per-second", "1"];
    const { code, err } = await jackdaw(words, { signal: AbortSignal.abort() });
    expect([code, err]).toEqual([130, expect.stringContaining("operation wait")]);
  });
});

describe("without a server", () => {
  test("settings are listed with their sources, and secrets masked", async () => {
    writeFileSync(join(folder, "settings.json"), '{"Security.Certificate.Password":"secret"}');
    const words = ["config", "--config-path", join(folder, "settings.json")];
    const { out } = await jackdaw(words, { environment: { RAVEN_DataDir: "/x" } });
    expect(out).toMatch(/DataDir +\/x +environment/);
    expect(out).toMatch(/Security.Certificate.Password +\*\*\* +file/);
    expect(out).not.toContain("secret");
    expect((await jackdaw(words, { environment: { RAVEN_Datadri: "x" } })).code).toBe(2);
  });

  test("a folder without a database is not salvaged", async () => {
    const { code, err } = await jackdaw(["salvage", join(folder, "none"), join(folder, "to")]);
    expect([code, err]).not.toEqual([0, ""]);
    expect(err.trim().split("\n")).toHaveLength(1);
  });

  test.each([
    ["bash", ["-n"]],
    ["zsh", ["-n"]],
    ["fish", ["--no-execute"]],
  ])("completion for %s is a script of that shell", async (shell, check) => {
    const { code, out } = await jackdaw(["completion", shell]);
    expect([code, out]).toEqual([0, expect.stringContaining("databases")]);
    const path = join(folder, `completion.${shell}`);
    writeFileSync(path, out);
    const { status, error } = spawnSync(shell, [...check, path]);
    if (error === undefined) expect(status).toBe(0);
  });

  test("completion for bash has words and options", async () => {
    const path = join(folder, "jackdaw.bash");
    writeFileSync(path, (await jackdaw(["completion", "bash"])).out);
    const complete = (...words: string[]) =>
      execFileSync(
        "bash",
        [
          "-c",
          `. '${path}'; COMP_WORDS=(jackdaw ${words.map((one) => `'${one}'`).join(" ")}); COMP_CWORD=${words.length}; _jackdaw; echo "\${COMPREPLY[@]}"`,
        ],
        { encoding: "utf8" },
      ).trim();
    expect(complete("stat")).toBe("status");
    expect(complete("index", "re")).toBe("reset resume");
    expect(complete("query", "--js")).toBe("--jsonl --json");
    expect(complete("serve", "--DataD")).toBe("--DataDir=");
    expect(complete("serve", "--Logs.Slow")).toBe("--Logs.SlowQueryInMs= --Logs.SlowWriteInMs=");
    expect(complete("serve", "--js")).toBe("");
  });

  test("completion for fish has the words of a group, and settings", async () => {
    const path = join(folder, "jackdaw.fish");
    writeFileSync(path, (await jackdaw(["completion", "fish"])).out);
    const complete = (text: string) => {
      const script = `source '${path}'; complete -C '${text}'`;
      const { stdout, error } = spawnSync("fish", ["--no-config", "-c", script], {
        encoding: "utf8",
        cwd: folder,
        env: { ...process.env, PATH: "/usr/bin:/bin" }, // Without jackdaw there are no names.
      });
      return error === undefined ? stdout.split("\n").map((line) => line.split("\t")[0]) : null;
    };
    const group = complete("jackdaw databases ");
    if (group === null) return; // fish is not installed here.
    expect(group.sort()).toEqual(["", "create", "delete", "disable", "enable", "list"]);
    expect(complete("jackdaw databases delete ")).toEqual([""]);
    expect(complete("jackdaw serve --DataD")).toContain("--DataDir");
  });
});
