/** Suggests similar names for a name that does not exist. */

/** Returns at most `most` of `names`, ordered by edit distance, without names that differ in most letters. */
export function nearestNames(wanted: string, names: readonly string[], most = 3): string[] {
  const lower = wanted.toLowerCase();
  return names
    .map((name) => {
      const other = name.toLowerCase();
      const isPart = other.includes(lower) || lower.includes(other);
      return { name, far: isPart ? 0.5 : distance(lower, other) };
    })
    .filter(({ name, far }) => far <= Math.max(2, Math.min(wanted.length, name.length) / 2))
    .sort((a, b) => a.far - b.far)
    .slice(0, most)
    .map(({ name }) => name);
}

/** Returns the edit distance. */
function distance(a: string, b: string): number {
  let row = Array.from({ length: b.length + 1 }, (_, n) => n);
  for (let i = 1; i <= a.length; i++) {
    const next = [i];
    for (let j = 1; j <= b.length; j++) {
      const same = a[i - 1] === b[j - 1] ? 0 : 1;
      next.push(Math.min((row[j] ?? 0) + 1, (next[j - 1] ?? 0) + 1, (row[j - 1] ?? 0) + same));
    }
    row = next;
  }
  return row[b.length] ?? 0;
}
