/** Reads the resident memory of the process from a file of the system, for which a file handle may be missing. */

/** Returns the memory of the process in bytes, or `otherwise` if it cannot be read, for example without a free file handle. */
export function residentBytes(otherwise: number): number {
  try {
    return process.memoryUsage.rss();
  } catch {
    return otherwise;
  }
}
