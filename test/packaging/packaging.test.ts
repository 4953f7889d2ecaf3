/**
 * The files for containers and services: their settings exist, their paths agree, and the image's
 * entry point translates the variables of RavenDB's image.
 */
import { mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { pathToFileURL } from "node:url";
import { afterAll, describe, expect, test } from "vitest";
import { loadConfig } from "../../server/settings/config.ts";
import { settings } from "../../server/settings/setting-table.ts";
import { exitCodes } from "../../server/settings/start-error.ts";
import { ravenImageVariables } from "../../server/settings/unsupported-settings.ts";
import { projectRoot } from "../support/project-root.ts";

const read = (path: string) => readFileSync(join(projectRoot, "packaging", path), "utf8");
const dockerfile = read("docker/Dockerfile");
const compose = read("docker/compose.yaml");
const unit = read("systemd/jackdaw.service");

type Environment = Record<string, string>;
interface Container {
  settingValue(name: string, environment: Environment): string | undefined;
  dataFolder(environment: Environment, folders?: readonly string[]): string | undefined;
  serverUrl(environment: Environment, interfaces?: object): string;
  insideUrl(environment: Environment): URL;
}
const { settingValue, dataFolder, serverUrl, insideUrl } = (await import(
  pathToFileURL(`${projectRoot}packaging/docker/container.mjs`).href
)) as Container;

/** `RAVEN_Name` -> value, from lines `RAVEN_Name=value` and `RAVEN_Name: value`. */
function variablesIn(text: string): Environment {
  const found = text.matchAll(/^[ A-Z]*(RAVEN_\w+)(?:=|: )"?(.*?)"?(?: \\)?$/gm);
  return Object.fromEntries([...found].map(([, name = "", value = ""]) => [name, value]));
}

function load(environment: Environment) {
  return loadConfig({
    argv: [],
    environment,
    readFile: () => {
      throw Object.assign(new Error("not there"), { code: "ENOENT" });
    },
    defaultFile: "settings.json",
  });
}

describe("the image", () => {
  const inDockerfile = variablesIn(dockerfile);

  test("sets variables of settings, and variables of RavenDB's image", () => {
    expect(Object.keys(inDockerfile).length).toBeGreaterThan(2);
    const known = Object.keys(settings).map((name) => name.toLowerCase());
    for (const name of Object.keys(inDockerfile)) {
      const setting = name.slice("RAVEN_".length).replaceAll("_", ".").toLowerCase();
      expect(known.includes(setting) || ravenImageVariables.has(name.toLowerCase()), name).toBe(
        true,
      );
    }
    expect(() => load({ ...inDockerfile, RAVEN_ServerUrl: "http://0.0.0.0:8080" })).not.toThrow();
  });

  test("runs as a fixed unprivileged user and owner of its folders", () => {
    expect(/^USER (.*)$/m.exec(dockerfile)?.[1]).toBe("999:999");
    const folders = /install -d -o 999 -g 999 -m 0700 (.*)$/m.exec(dockerfile)?.[1]?.split(" ");
    expect(folders).toContain(inDockerfile["RAVEN_DataDir"]);
    expect(dockerfile).toContain(`VOLUME ["${inDockerfile["RAVEN_DataDir"]}"]`);
  });

  test("copies existing files", () => {
    const [, copied = ""] = /^COPY (packaging\/docker.*) \/usr/m.exec(dockerfile) ?? [];
    expect(copied.split(" ").length).toBe(3);
    for (const path of copied.split(" ")) {
      expect(readFileSync(join(projectRoot, path), "utf8")).not.toBe("");
    }
  });

  test("accepts the variables of the compose file for RavenDB's image", () => {
    const { RAVEN_DATABASE: database, ...variables } = variablesIn(compose);
    expect(database).toBe("shop");
    expect(Object.keys(variables).length).toBeGreaterThan(6);
    const all = { ...inDockerfile, ...variables };
    const url = serverUrl(all);
    const { config, warnings } = load({ ...all, RAVEN_ServerUrl: url });
    expect(warnings).toEqual([]);
    expect(config.serverUrl.href).toBe("http://0.0.0.0:8080/");
    expect(config.tcpUrl?.href).toBe("tcp://0.0.0.0:38888");
    expect(compose).toContain("8080:8080");
    expect(compose).toContain(`:${inDockerfile["RAVEN_DataDir"]}`);
  });
});

describe("the entry point", () => {
  const folder = mkdtempSync(join(tmpdir(), "jackdaw-packaging-"));
  afterAll(() => rmSync(folder, { recursive: true, force: true }));
  const interfaces = {
    lo: [{ family: "IPv4", internal: true, address: "127.0.0.1" }],
    eth0: [
      { family: "IPv6", internal: false, address: "fe80::1" },
      { family: "IPv4", internal: false, address: "172.18.0.2" },
    ],
  };

  test("finds settings like the server: flags, variables in any case, the text of a file", () => {
    const file = JSON.stringify({ "Security.UnsecuredAccessAllowed": "Local", DataDir: "/c" });
    expect(settingValue("DataDir", { RAVEN_ARGS: "--DataDir=/a", RAVEN_DataDir: "/b" })).toBe("/a");
    expect(settingValue("DataDir", { RAVEN_ARGS: "-x --datadir /a" })).toBe("/a");
    expect(settingValue("DataDir", { raven_DATADIR: "/b", RAVEN_SETTINGS: file })).toBe("/b");
    expect(settingValue("DataDir", { RAVEN_SETTINGS: file })).toBe("/c");
    expect(settingValue("Security.UnsecuredAccessAllowed", { RAVEN_SETTINGS: file })).toBe("Local");
    expect(settingValue("DataDir", { RAVEN_SETTINGS: "{" })).toBeUndefined();
  });

  test("listens on all addresses, or only on its own where a private network is required", () => {
    expect(serverUrl({}, interfaces)).toBe("http://0.0.0.0:8080");
    const allowed = { RAVEN_Security_UnsecuredAccessAllowed: "PrivateNetwork" };
    expect(serverUrl(allowed, interfaces)).toBe("http://172.18.0.2:8080");
    expect(serverUrl({ ...allowed, RAVEN_ServerUrl: "https://[::]:443" })).toBe("https://[::]:443");
  });

  test("queries the server's health on an address of the container", () => {
    expect(insideUrl({}).href).toBe("http://127.0.0.1:8080/");
    expect(insideUrl({ RAVEN_ServerUrl: "https://[::]:8443" }).href).toBe("https://[::1]:8443/");
    expect(insideUrl({ RAVEN_ServerUrl: "http://10.0.0.1:80;http://b" }).hostname).toBe("10.0.0.1");
  });

  test("uses a folder mounted at the data folder of older images", () => {
    const environment = { RAVEN_DataDir: "/var/lib/ravendb/data" };
    expect(dataFolder(environment, [join(folder, "none"), folder])).toBe(folder);
    expect(dataFolder(environment, [join(folder, "none")])).toBe("/var/lib/ravendb/data");
  });
});

describe("the service", () => {
  test("does not restart after exit codes that a retry would not change", () => {
    const listed = /^RestartPreventExitStatus=(.*)$/m.exec(unit)?.[1]?.split(" ").map(Number);
    const retried = [
      "unexpected",
      "port-in-use",
      "data-folder-locked",
      "data-folder-lost",
      "nats-unusable",
    ];
    const final = Object.entries(exitCodes).filter(([name]) => !retried.includes(name));
    expect(listed).toEqual(final.map(([, code]) => code).sort((one, other) => one - other));
  });

  test("has one data folder, and uses existing settings", () => {
    const [, environment = ""] = /^Environment=(.*)$/m.exec(unit) ?? [];
    const folder = /RAVEN_DataDir=(\S+)/.exec(environment)?.[1];
    expect(folder).toBe("/var/lib/jackdaw");
    expect(unit).toContain("StateDirectory=jackdaw\n");
    expect(unit).toContain(`${folder}/server.json`);
    expect(() => load({ RAVEN_DataDir: folder ?? "" })).not.toThrow();
  });

  test("waits longer for the stop than the server does", () => {
    const seconds = Number(/^TimeoutStopSec=(\d+)$/m.exec(unit)?.[1]);
    expect(seconds).toBeGreaterThan(Number(settings["Server.ShutdownTimeoutInSec"].fallback));
  });
});
