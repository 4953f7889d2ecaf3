/** The configured names of the values of a time series, in the database's settings. */

/** `settings`: the database's record. Collections and series are compared without case. Cost: O(names). */
export function valueNamesOf(
  settings: Readonly<Record<string, unknown>>,
  collection: string,
  series: string,
): readonly string[] {
  const { NamedValues } = (settings["TimeSeries"] ?? {}) as { NamedValues?: object | null };
  const names = memberLike(memberLike(NamedValues, collection), series);
  return Array.isArray(names) ? (names as readonly string[]) : [];
}

function memberLike(object: unknown, name: string): unknown {
  if (typeof object !== "object" || object === null) return undefined;
  const lower = name.toLowerCase();
  const found = Object.entries(object).find(([key]) => key.toLowerCase() === lower);
  return found?.[1];
}
