/** How much memory the process has, read without failing: the system tells it in a file, for which a handle may be missing. */

/** The memory of the process; `otherwise` when it cannot be read, as when no file handle is left for that. */
export function residentBytes(otherwise: number): number {
  try {
    return process.memoryUsage.rss();
  } catch {
    return otherwise;
  }
}
