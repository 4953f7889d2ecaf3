/**
 * Texts that are indexed as moments of one time line: dates, and time spans, which count from the beginning of the year 1,
 * so that the ticks of both are those by which RavenDB 7.2.7 indexes them beside their text.
 *
 * Invariants:
 * - The term of a time span is its text in .NET's constant format. Its fifth character is no hyphen; that of a date is.
 */
import { type Instant, parseInstant, termsOfInstant, ticksBeforeEpoch } from "./date-terms.ts";
import { spanLengthMax, spanLengthMin, spanTicks, timeSpanText } from "./time-spans.ts";

const ticksPerMillisecond = 10_000n;
const byteColon = 0x3a;

/** The moment that `text` denotes, or null when it is neither a date nor a time span. */
export function parseMoment(text: string): Instant | null {
  return parseInstant(text) ?? parseSpan(text);
}

function parseSpan(text: string): Instant | null {
  const span = spanTicks(text);
  if (span === null) return null;
  const ticks = ((span % ticksPerMillisecond) + ticksPerMillisecond) % ticksPerMillisecond;
  const sinceEpoch = span - ticks - ticksBeforeEpoch;
  return {
    milliseconds: Number(sinceEpoch / ticksPerMillisecond),
    ticks: Number(ticks),
    term: timeSpanText(span),
  };
}

/** Whether an ASCII text may be a time span. Hot: called for each text of a document. */
export function mayBeSpan(bytes: Buffer, length: number): boolean {
  if (length < spanLengthMin || length > spanLengthMax) return false;
  const first = bytes[0] as number;
  if ((first < 0x30 || first > 0x39) && first !== 0x2d) return false;
  // `ss` follows the last colon, and a fraction that.
  for (let at = length - 3; at >= 2; at--) if (bytes[at] === byteColon) return true;
  return false;
}

/** All terms under which a moment may be indexed. */
export function termsOfMoment(moment: Instant): string[] {
  return isSpanTerm(moment.term) ? [moment.term] : termsOfInstant(moment);
}

function isSpanTerm(term: string): boolean {
  return term.charCodeAt(4) !== 0x2d;
}
