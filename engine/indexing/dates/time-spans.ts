/** Texts that .NET reads as time spans, in its constant format, as numbers of ticks of 100 ns. */

/** Characters of a time span. */
export const spanLengthMin = 8;
export const spanLengthMax = 26;
const ticksPerDay = 864_000_000_000n;
const ticksMax = 2n ** 63n - 1n;
/** RavenDB 7.2.7 does not limit hours, minutes and seconds. */
const spanPattern = /^(-)?(?:(\d{1,8})\.)?(\d\d):(\d\d):(\d\d)(?:\.(\d{0,7}))?$/;

/** The ticks of a time span in .NET's constant format, or null. */
export function spanTicks(text: string): bigint | null {
  const { length } = text;
  if (length < spanLengthMin || length > spanLengthMax) return null;
  const match = spanPattern.exec(text);
  if (match === null) return null;
  const [days, hours, minutes, seconds, fraction] = match
    .slice(2)
    .map((part, i) => BigInt(i === 4 ? (part ?? "").padEnd(7, "0") : (part ?? 0))) as [
    bigint,
    bigint,
    bigint,
    bigint,
    bigint,
  ];
  const total = ((days * 24n + hours) * 60n + minutes) * 60n + seconds;
  const ticks = total * 10_000_000n + fraction;
  const signed = match[1] === undefined ? ticks : -ticks;
  return signed > ticksMax || signed < -ticksMax - 1n ? null : signed;
}

/** `[-][d.]hh:mm:ss[.fffffff]`, as .NET prints a time span. */
export function timeSpanText(ticks: bigint): string {
  const all = ticks < 0n ? -ticks : ticks;
  const days = all / ticksPerDay;
  const two = (value: bigint): string => String(value).padStart(2, "0");
  const hours = two((all / 36_000_000_000n) % 24n);
  const minutes = two((all / 600_000_000n) % 60n);
  const seconds = two((all / 10_000_000n) % 60n);
  const rest = all % 10_000_000n;
  const fraction = rest === 0n ? "" : `.${String(rest).padStart(7, "0")}`;
  return `${ticks < 0n ? "-" : ""}${days === 0n ? "" : `${days}.`}${hours}:${minutes}:${seconds}${fraction}`;
}
