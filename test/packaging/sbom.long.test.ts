/** The software bill of materials of the package. */
import { execFileSync } from "node:child_process";
import { readFileSync } from "node:fs";
import { beforeAll, describe, expect, test } from "vitest";
import { bundledPackages, type Sbom, sbomOf } from "../../packaging/sbom.ts";
import { builtPath, projectRoot } from "../support/project-root.ts";

const identity = { name: "jackdaw-db", version: "1.2.3" };
const time = "2026-11-23T00:00:00.000Z";

describe("of the build", () => {
  let all: Sbom;
  let licences: string;
  beforeAll(() => {
    licences = readFileSync(builtPath("bundle/LICENSES.txt"), "utf8");
    const args = ["sbom", "--sbom-format", "cyclonedx"];
    const options = { cwd: projectRoot, encoding: "utf8", maxBuffer: 2 ** 28 } as const;
    all = JSON.parse(
      execFileSync("npm", args, { ...options, stdio: ["ignore", "pipe", "ignore"] }),
    );
  });

  test("lists exactly the packages in the bundle, with licence and hash", () => {
    const sbom = sbomOf(all, bundledPackages(licences), identity, time);
    const listed = sbom.components.map(({ name, version }) => `${name} ${version}`).sort();
    const headings = licences.split("\n----\n").map((part) => {
      const [, heading] = /^(\S+ \S+) \(.+\)$/m.exec(part) ?? [];
      return heading;
    });
    expect(listed).toEqual([...new Set(headings)].sort());
    expect(listed.length).toBeGreaterThan(20);
    for (const { name, licenses, hashes } of sbom.components) {
      expect(licenses, name).not.toEqual([]);
      expect(hashes, name).toMatchObject([{ alg: "SHA-512" }]);
    }
  });

  test("is reproducible, and every reference in it is resolved", () => {
    const make = () => sbomOf(all, bundledPackages(licences), identity, time);
    expect(JSON.stringify(make())).toBe(JSON.stringify(make()));
    const { components, dependencies, metadata } = make();
    const refs = [metadata.component["bom-ref"], ...components.map((one) => one["bom-ref"])];
    expect(dependencies.map(({ ref }) => ref).sort()).toEqual([...refs].sort());
    for (const { dependsOn = [] } of dependencies) {
      for (const ref of dependsOn) expect(refs).toContain(ref);
    }
    expect(metadata).toMatchObject({ timestamp: time, component: identity });
    expect(make()).not.toHaveProperty("serialNumber");
  });

  test("fails for a bundled package that is not installed or has no licence", () => {
    expect(() => sbomOf(all, ["nowhere@1.0.0"], identity, time)).toThrow("nowhere@1.0.0");
    const [bare] = all.components.map((one) => ({ ...one, licenses: [] }));
    const name = `${bare?.name}@${bare?.version}`;
    const without = { ...all, components: bare === undefined ? [] : [bare] };
    expect(() => sbomOf(without, [name], identity, time)).toThrow(`${name} has no licence`);
  });
});
