/** The version of Jackdaw, read from its package.json. */
import { readFileSync } from "node:fs";

/** For example `0.1.0`. The file's relative position differs between sources, build output, and bundle. */
export const productVersion: string = (() => {
  for (const up of ["../..", "../../.."]) {
    try {
      const text = readFileSync(new URL(`${up}/package.json`, import.meta.url), "utf8");
      const { name, version } = JSON.parse(text) as { name?: string; version?: string };
      if (name === "jackdaw-db" && version !== undefined) return version;
    } catch {
      // not found here
    }
  }
  return "unknown";
})();
