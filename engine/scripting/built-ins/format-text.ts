/**
 * Formats numbers, dates and time spans as .NET's invariant culture does: for `toStringWithFormat`, `compareDates`, the
 * `convert…ToTimeSpanString` functions, and indexes in C#.
 *
 * It knows nothing of script values. A tick is 100 ns.
 */

import { EngineError } from "../../base/errors.ts";
import { dayNames } from "../../indexing/dates/date-members.ts";

const isoTicks = /^(\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d)\.(\d{7})Z?$/;

/** Ticks since 1970 of a 7-digit ISO text, or null. */
export function ticksOfText(text: string): bigint | null {
  const parts = isoTicks.exec(text);
  if (parts === null) return null;
  const time = Date.parse(`${parts[1]}Z`);
  return Number.isNaN(time) ? null : BigInt(time) * 10_000n + BigInt(parts[2] as string);
}

function grouped(digits: string): string {
  return digits.replace(/\B(?=(\d{3})+$)/g, ",");
}

/** Returns a number with a fixed count of fraction digits. Rounds half away from zero, as .NET does. */
function fixed(value: number | bigint, decimals: number, group: boolean): string {
  const text = fixedDigits(value, Math.min(decimals, 99));
  const [whole, fraction] = text.split(".") as [string, string?];
  const body = (group ? grouped(whole) : whole) + (fraction === undefined ? "" : `.${fraction}`);
  return value < 0 && /[1-9]/.test(body) ? `-${body}` : body;
}

/** Returns the digits of a number without its sign. */
function fixedDigits(value: number | bigint, decimals: number): string {
  if (typeof value === "number") return Math.abs(value).toFixed(decimals);
  const whole = String(value).replace("-", "");
  return decimals === 0 ? whole : `${whole}.${"0".repeat(decimals)}`;
}

function badFormat(): EngineError {
  return new EngineError("invalid-format", "Format specifier was invalid.");
}

/** Returns a number in a standard (`N2`, `F1`, `P`, `E3`, `C`, `G`, `D3`, `X`) or custom (`#,##0.00`) format. */
export function formatNumber(given: number | bigint, format: string): string {
  const value = Number.isSafeInteger(Number(given)) ? Number(given) : given;
  const standard = /^([a-zA-Z])(\d{0,2})$/.exec(format);
  if (standard === null) return customNumber(value, format);
  const letter = (standard[1] as string).toUpperCase();
  const decimals = standard[2] === "" ? null : Number(standard[2]);
  switch (letter) {
    case "N":
      return fixed(value, decimals ?? 2, true);
    case "F":
      return fixed(value, decimals ?? 2, false);
    case "P":
      return `${fixed(hundredfold(value), decimals ?? 2, true)} %`;
    case "C": {
      const text = `¤${fixed(value < 0 ? -value : value, decimals ?? 2, true)}`;
      return value < 0 ? `(${text})` : text;
    }
    case "E":
      return scientific(Number(value), decimals ?? 6, standard[1] as string);
    case "G":
    case "R":
      return decimals === null || decimals === 0 ? String(value) : general(Number(value), decimals);
    default:
      throw badFormat();
  }
}

function hundredfold(value: number | bigint): number | bigint {
  return typeof value === "bigint" ? value * 100n : value * 100;
}

function scientific(value: number, decimals: number, letter: string): string {
  const [mantissa, exponent] = value.toExponential(decimals).split("e") as [string, string];
  const digits = exponent.slice(1).padStart(3, "0");
  return `${mantissa}${letter}${exponent[0]}${digits}`;
}

function general(value: number, digits: number): string {
  const exponent = value === 0 ? 0 : Math.floor(Math.log10(Math.abs(value)));
  if (exponent >= -5 && exponent < digits) return String(Number(value.toPrecision(digits)));
  const [mantissa, power] = Number(value.toPrecision(digits)).toExponential().split("e") as [
    string,
    string,
  ];
  return `${mantissa}E${power[0]}${power.slice(1).padStart(2, "0")}`;
}

/** Returns a custom format of `0`, `#`, `,`, `.`, `%` and text. */
function customNumber(value: number | bigint, format: string): string {
  const body = /[#0,.]*[#0][#0,.]*/.exec(format);
  if (body === null) return format;
  const percent = format.includes("%");
  const [whole, fraction = ""] = body[0].split(".") as [string, string?];
  const places = fraction.replace(/[^#0]/g, "");
  let text = fixedDigits(percent ? hundredfold(value) : value, Math.min(places.length, 99));
  let least = places.length;
  while (least > 0 && places[least - 1] === "#" && text.endsWith("0")) {
    text = text.slice(0, -1);
    least -= 1;
  }
  if (text.endsWith(".")) text = text.slice(0, -1);
  const [digits, rest] = text.split(".") as [string, string?];
  const width = (whole.match(/0/g) ?? []).length;
  let shown = digits.replace(/^0+/, "").padStart(width, "0");
  if (whole.includes(",")) shown = grouped(shown);
  const number = rest === undefined ? shown : `${shown}.${rest}`;
  return (value < 0 ? "-" : "") + format.replace(body[0], () => number);
}

const monthNames = [
  "January",
  "February",
  "March",
  "April",
  "May",
  "June",
  "July",
  "August",
  "September",
  "October",
  "November",
  "December",
];

const standardDates: ReadonlyMap<string, string> = new Map([
  ["d", "MM/dd/yyyy"],
  ["D", "dddd, dd MMMM yyyy"],
  ["f", "dddd, dd MMMM yyyy HH:mm"],
  ["F", "dddd, dd MMMM yyyy HH:mm:ss"],
  ["g", "MM/dd/yyyy HH:mm"],
  ["G", "MM/dd/yyyy HH:mm:ss"],
  ["o", "yyyy-MM-dd'T'HH:mm:ss.fffffff'Z'"],
  ["O", "yyyy-MM-dd'T'HH:mm:ss.fffffff'Z'"],
  ["s", "yyyy-MM-dd'T'HH:mm:ss"],
  ["t", "HH:mm"],
  ["T", "HH:mm:ss"],
  ["u", "yyyy-MM-dd HH:mm:ss'Z'"],
  ["y", "yyyy MMMM"],
  ["Y", "yyyy MMMM"],
  ["m", "MMMM dd"],
  ["M", "MMMM dd"],
]);

/**
 * Returns a date (milliseconds since 1970) in a standard (`d`) or custom (`yyyy-MM-dd`) format.
 * @param ticks beyond the milliseconds, 0 to 9999. @param zone the expansion of `K`: empty for a local time.
 */
export function formatDate(time: number, format: string, ticks = 0, zone: "Z" | "" = "Z"): string {
  const pattern = format.length === 1 ? standardDates.get(format) : format;
  if (pattern === undefined) throw badFormat();
  const date = new Date(time);
  return pattern.replace(
    /'[^']*'|"[^"]*"|\\.|(y+|M+|d+|H+|h+|m+|s+|f+|F+|t+|K)/g,
    (token, part?: string) => {
      if (part === undefined) return token.startsWith("\\") ? token.slice(1) : token.slice(1, -1);
      return part === "K" ? zone : datePart(date, part, ticks);
    },
  );
}

function datePart(date: Date, part: string, ticks: number): string {
  const { length } = part;
  const padded = (value: number): string => String(value).padStart(Math.min(length, 2), "0");
  switch (part[0]) {
    case "y":
      return length <= 2
        ? String(date.getUTCFullYear() % 100).padStart(length, "0")
        : String(date.getUTCFullYear()).padStart(length, "0");
    case "M": {
      const name = monthNames[date.getUTCMonth()] as string;
      if (length === 3) return name.slice(0, 3);
      return length > 3 ? name : padded(date.getUTCMonth() + 1);
    }
    case "d": {
      const name = dayNames[date.getUTCDay()] as string;
      if (length === 3) return name.slice(0, 3);
      return length > 3 ? name : padded(date.getUTCDate());
    }
    case "H":
      return padded(date.getUTCHours());
    case "h":
      return padded(date.getUTCHours() % 12 || 12);
    case "m":
      return padded(date.getUTCMinutes());
    case "s":
      return padded(date.getUTCSeconds());
    case "t":
      return (date.getUTCHours() < 12 ? "AM" : "PM").slice(0, length);
    default: {
      const all =
        String(date.getUTCMilliseconds()).padStart(3, "0") + String(ticks).padStart(4, "0");
      const digits = all.slice(0, length);
      return part[0] === "f" ? digits : digits.replace(/0+$/, "");
    }
  }
}
