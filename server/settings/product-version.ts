/** Which Jackdaw this is: the version of its package, from the file that is delivered with it. */
import { readFileSync } from "node:fs";

/** `0.1.0`. In the sources, in what tsc makes of them, and in the bundle the file is at other places. */
export const productVersion: string = (() => {
  for (const up of ["../..", "../../.."]) {
    try {
      const text = readFileSync(new URL(`${up}/package.json`, import.meta.url), "utf8");
      const { name, version } = JSON.parse(text) as { name?: string; version?: string };
      if (name === "jackdaw-db" && version !== undefined) return version;
    } catch {
      // not there
    }
  }
  return "unknown";
})();
