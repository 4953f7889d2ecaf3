/** The maximum number of open files and connections of this process. */
import { readFileSync } from "node:fs";

/** Below this limit, a busy server refuses connections. */
export const openFilesMin = 4096;

/** Reads the limit on Linux; undefined on other systems. */
export function openFilesMax(): number | undefined {
  try {
    const limits = readFileSync("/proc/self/limits", "utf8");
    const found = /^Max open files\s+(\d+|unlimited)/m.exec(limits)?.[1];
    if (found === undefined) return undefined;
    return found === "unlimited" ? Number.POSITIVE_INFINITY : Number(found);
  } catch {
    return undefined;
  }
}

/** Returns warnings for the start: without free handles, the system drops connections silently. */
export function openFilesWarnings(count = openFilesMax()): string[] {
  if (count === undefined || count >= openFilesMin) return [];
  return [
    `The limit of open files and connections is ${count}; beyond it, connections are dropped. Raise the limit (ulimit -n 65536, LimitNOFILE=65536 of systemd), or lower Http.MaxConnections.`,
  ];
}
