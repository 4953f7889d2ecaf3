/**
 * The spelling of single values in stored documents: numbers, strings, dates.
 *
 * RavenDB 7.2.7 writes a number of a script as a 64-bit integer when it is integral and fits, else as .NET's shortest
 * round-trip text (`1E+20`, `1.5E-09`); a property that held a double stays one (`3.0`). It knows nothing of documents
 * or scripts.
 */

import { roundTripText } from "../../base/json/double-text.ts";

export { doubleText, roundTripText } from "../../base/json/double-text.ts";

const integerMax = 2 ** 63;

/** Text of a number where there was no double: integral ones as integers, -0 as 0, NaN and infinities quoted. */
export function numberText(value: number): string {
  if (Number.isSafeInteger(value)) return value === 0 ? "0" : String(value);
  if (Number.isInteger(value) && Math.abs(value) <= integerMax) {
    const whole = BigInt(value);
    return String(whole === 2n ** 63n ? whole - 1n : whole);
  }
  return roundTripText(value);
}

/** Returns a string as JSON text. An unpaired surrogate has no UTF-8 and becomes U+FFFD, as in the reference. */
export function stringText(value: string): string {
  if (isPlain(value)) return `"${value}"`;
  const text = JSON.stringify(value);
  if (!text.includes("\\ud")) return text;
  return JSON.stringify(value.replace(/\p{Surrogate}/gu, "\ufffd"));
}

/** Returns whether it is a short text that needs no escapes: the host's writer has a fixed cost. */
function isPlain(text: string): boolean {
  if (text.length > 60) return false;
  for (let i = 0; i < text.length; i += 1) {
    const code = text.charCodeAt(i);
    if (code < 32 || code === 34 || code === 92 || code >= 0xd800) return false;
  }
  return true;
}

const dateTimeMin = -62_135_596_800_000;
const dateTimeMax = 253_402_300_799_999;

/** `yyyy-MM-ddTHH:mm:ss.fff0000Z`, or null when the time is outside years 1 to 9999. */
export function dateText(time: number): string | null {
  if (!(time >= dateTimeMin && time <= dateTimeMax)) return null;
  return `${new Date(Math.trunc(time)).toISOString().slice(0, -1)}0000Z`;
}
