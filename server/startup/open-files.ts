/** How many files and connections this process may have open. */
import { readFileSync } from "node:fs";

/** With fewer a busy server refuses connections. */
export const openFilesMin = 4096;

/** Linux says what the limit is; undefined elsewhere. */
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

/** What is said at the start: when the handles run out, the system drops connections without a word. */
export function openFilesWarnings(count = openFilesMax()): string[] {
  if (count === undefined || count >= openFilesMin) return [];
  return [
    `Only ${count} files and connections can be open at once; when they are used up, further connections are dropped. Raise the limit (ulimit -n 65536, LimitNOFILE=65536 of systemd), or lower Http.MaxConnections.`,
  ];
}
