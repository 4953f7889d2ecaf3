/** Unsupported settings of RavenDB, and the table of supported ones. */
import { expect, test } from "vitest";
import { settings } from "../../../server/settings/setting-table.ts";
import { unpacked, unsupportedSetting } from "../../../server/settings/unsupported-settings.ts";

test("names are grouped by their first segment", () => {
  expect(unpacked("A\nB: = C.D\n  E\nF: G")).toEqual(["A", "B", "B.C.D", "B.E", "F.G"]);
});

test("RavenDB's names are known in any case, with a reason; others are not", () => {
  expect(unsupportedSetting("license.path")?.reason).toBe("no licence is needed");
  expect(unsupportedSetting("PublicServerUrl.Tcp.Cluster")).toBeDefined();
  expect(unsupportedSetting("Databases.QueryTimeoutInSec")?.reason).toContain("other limits");
  expect(unsupportedSetting("Security.AuditLog.FolderPath")?.isWarning).toBe(true);
  expect(unsupportedSetting("Security.AuditLog.FolderPth")).toBeUndefined();
  expect(unsupportedSetting("License.Pth")).toBeUndefined();
});

test("every setting has a one-line description, and numbers have their unit in the name", () => {
  const short: Record<string, string> = { Mb: "MB", Sec: "s", Min: "min", Ms: "ms" };
  for (const [name, { about, unit, kind }] of Object.entries(settings)) {
    expect(about.length, name).toBeGreaterThan(8);
    expect(about, name).not.toMatch(/\n|\.$/);
    const named = /In(Mb|Sec|Min|Ms)$/.exec(name)?.[1];
    if (named !== undefined) expect(unit, name).toBe(short[named]);
    if (kind === "seconds") expect(unit, name).toBeDefined();
  }
});
