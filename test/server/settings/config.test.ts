/** Reading settings. */
import { describe, expect, test } from "vitest";
import { loadConfig } from "../../../server/settings/config.ts";
import type { SettingSources } from "../../../server/settings/setting-sources.ts";
import { StartError } from "../../../server/settings/start-error.ts";

function load(
  argv: readonly string[],
  more: Partial<SettingSources> & { files?: Record<string, string> } = {},
) {
  return loadConfig({
    argv,
    environment: more.environment ?? {},
    readFile: (path) => {
      const text = more.files?.[path];
      if (text === undefined) throw Object.assign(new Error("no such file"), { code: "ENOENT" });
      return text;
    },
    defaultFile: "settings.json",
  });
}

describe("settings", () => {
  test("have defaults", () => {
    const { config, warnings } = load([]);
    expect(warnings).toEqual([]);
    expect(config.serverUrl.href).toBe("https://127.0.0.1:8443/");
    expect(config.dataFolder).toBe("./data");
    expect(config.runInMemory).toBe(false);
    expect(config.certificatePassword).toBeUndefined();
    expect(config.unsecuredAccessAllowed).toBe("Local");
    expect(config.limits.bodyBytesMax).toBe(160 * 1024 * 1024);
    expect(config.parentProcessId).toBeUndefined();
  });

  test("are flags with = or a space, in any letter case; the last one counts", () => {
    const { config } = load([
      "--serverurl=http://localhost:1",
      "--DataDir",
      "x",
      "--RunInMemory",
      "--datadir=y",
    ]);
    expect(config.serverUrl.port).toBe("1");
    expect(config.dataFolder).toBe("y");
    expect(config.runInMemory).toBe(true);
  });

  test("limit the memory, or leave it to the machine", () => {
    expect(load([]).config.memoryBytesMax).toBeUndefined();
    expect(load(["--Memory.LimitInMb=64"]).config.memoryBytesMax).toBe(64 * 1024 * 1024);
  });

  test("may be empty, which differs from absent", () => {
    expect(load(["--Security.Certificate.Password="]).config.certificatePassword).toBe("");
    expect(load(["--ServerUrl.Tcp="]).config.tcpUrl).toBeUndefined();
    const { config } = load(["--ServerUrl=https://[::1]:8443", "--ServerUrl.Tcp=38888"]);
    expect(config.tcpUrl?.href).toBe("tcp://[::1]:38888");
  });

  test("are read from files, flat or nested, with a byte-order mark, and from variables", () => {
    const files = {
      "settings.json":
        '\uFEFF{"Security":{"Certificate":{"Path":"a.pfx"}},"Security.WellKnownCertificates.Admin":["ab","CD"]}',
    };
    const { config } = load([], {
      files,
      environment: {
        RAVEN_DataDir: "from-variable",
        RAVEN_ARGS: "--RunInMemory=true  --Http.MaxConnections=5",
        RAVEN_SETTINGS: '{"PublicServerUrl":"https://db.example.org"}',
        RAVENOUS: "x",
        PATH: "/bin",
      },
    });
    expect(config.certificatePath).toBe("a.pfx");
    expect(config.wellKnownAdmins).toEqual(["AB", "CD"]);
    expect(config.dataFolder).toBe("from-variable");
    expect(config.runInMemory).toBe(true);
    expect(config.limits.connectionCountMax).toBe(5);
    expect(config.publicServerUrl?.hostname).toBe("db.example.org");
  });

  test("of RavenDB without effect here are reported", () => {
    const { warnings, notes } = load(
      [
        "--License.Eula.Accepted=true",
        "--Setup.Mode=None",
        "--Logs.Mode=None",
        "--logs.path=/x",
        "--Security.AuditLog.FolderPath=/audit",
        "--Security.AuditLog.RetentionTimeInHrs=5",
        "--Features.Availability=Experimental",
        "--Cluster.ElectionTimeoutInMs=3000",
        "--Indexing.Auto.SearchEngineType=Lucene",
        "--log-to-console",
        "--Http.Protocols=Http1",
      ],
      { environment: { RAVEN_IN_DOCKER: "true", RAVEN_License: "{}" } },
    );
    expect(notes).toEqual([
      "Without effect here: License, License.Eula.Accepted (no licence is needed).",
      "Without effect here: Setup.Mode (this server has no setup wizard).",
      "Without effect here: Logs.Mode (the log has other settings).",
      "Without effect here: Features.Availability (all features are always on).",
      "Without effect here: Cluster.ElectionTimeoutInMs (clusters have other settings).",
      "Without effect here: Indexing.Auto.SearchEngineType (indexes have other limits).",
      "Without effect here: log-to-console, Http.Protocols (this server does not use it).",
    ]);
    expect(warnings).toEqual([
      "Without effect here: Security.AuditLog.RetentionTimeInHrs (the audit log has other settings).",
    ]);
  });

  test.each([
    [["--Datadri=x"], {}, "Unknown setting 'Datadri'; did you mean 'DataDir'?"],
    [["--Http.MaxConections=1"], {}, "did you mean 'Http.MaxConnections'?"],
    [["--Logs.Pth=x"], {}, "Unknown setting 'Logs.Pth'; did you mean 'Logs.Path'?"],
    [[], { RAVEN_Servr_Url: "x" }, "Unknown setting 'Servr.Url'; did you mean 'ServerUrl'?"],
  ])(
    "if unknown, stop the start, and the nearest name is suggested: %s %o",
    (argv, environment, text) => {
      expect(() => load(argv, { environment })).toThrow(text);
    },
  );

  test("with several values, of which only the first is used, are reported", () => {
    const { config, warnings } = load(["--ServerUrl=http://127.0.0.1:1;http://127.0.0.2:1"]);
    expect(config.serverUrl.port).toBe("1");
    expect(warnings).toEqual([
      "Without effect here: all of ServerUrl but its first address, http://127.0.0.1:1 (one is served).",
    ]);
  });

  test("of the folder lock have a lower bound", () => {
    expect(load([]).config.folderSilenceMs).toBe(10_000);
    expect(load(["--Server.FolderSilenceInSec=1.5"]).config.folderSilenceMs).toBe(1500);
    expect(() => load(["--Server.FolderSilenceInSec=0.1"])).toThrow("must be at least 0.5");
  });

  test.each([
    ["None", "None"],
    ["local", "Local"],
    ["Local, PrivateNetwork", "PrivateNetwork"],
    ["PublicNetwork", "PublicNetwork"],
  ] as const)("allow unsecured access '%s'", (text, expected) => {
    const { config } = load([`--Security.UnsecuredAccessAllowed=${text}`]);
    expect(config.unsecuredAccessAllowed).toBe(expected);
  });

  test.each([
    ["--RunInMemory=maybe"],
    ["--Http.MaxConnections=-1"],
    ["--Memory.LimitInMb=15"],
    ["--Memory.LimitInMb=much"],
    ["--Http.MaxConnections=1.5"],
    ["--Http.MaxConnections="],
    ["--Security.UnsecuredAccessAllowed=Everybody"],
    ["--ServerUrl=127.0.0.1"],
    ["--ServerUrl=tcp://127.0.0.1:1"],
    ["DataDir=x"],
  ])("that cannot be parsed stop the start: %s", (argument) => {
    expect(() => load([argument])).toThrow(StartError);
  });
});
