/**
 * Tokenizes text for full-text fields, and holds the analyzers that a definition may name.
 *
 * The standard analyzer splits like Lucene's StandardTokenizer: runs of letters and digits, with host names, e-mail
 * addresses, acronyms, company names (`at&t`), names with apostrophes and numbers with `. , - _ /` kept whole; each
 * Chinese or Japanese character is a word. Words are lower-cased, English stop words are dropped, and a trailing `'s`
 * is removed. Undocumented behavior was measured on RavenDB 7.2.7 (words over 255 characters are dropped).
 *
 * Knows nothing of fields, indexes or queries.
 */

import { EngineError } from "../../base/errors.ts";
import { searchPhraseLengthMax } from "../../base/limits.ts";
import type { Work, WorkBudget } from "../../base/scheduling/work-budget.ts";

/** Called for each word in order. Words that are not indexed occupy no position: "war peace" finds "war and peace". */
type WordVisitor = (word: string) => void;

/** Splits a text into indexed words. */
export type Analyzer = (text: string, visit: WordVisitor) => void;

const wordLengthMax = 255;
/** Maximum number of parts joined into one word: bounds the look-ahead on a text like `a-a-a-a-…`. */
const partCountMax = 64;

const stopWords: ReadonlySet<string> = new Set(
  (
    "a an and are as at be but by for if in into is it no not of on or such that the their then there these they " +
    "this to was will with"
  ).split(" "),
);

const letterPattern = /\p{L}/u;
const digitPattern = /\p{Nd}/u;
const singlePattern =
  /[\u3040-\u30ff\u3100-\u312f\u31f0-\u31ff\u3300-\u337f\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff\uff65-\uff9f]/;

/** Character classes of the tokenizer. */
const otherClass = 0;
const letterClass = 1;
const digitClass = 2;
const singleClass = 3;

const asciiClasses = new Uint8Array(128);
for (let code = 0; code < 128; code++) asciiClasses[code] = slowClassOf(String.fromCharCode(code));

function slowClassOf(character: string): number {
  if (singlePattern.test(character)) return singleClass;
  if (digitPattern.test(character)) return digitClass;
  if (letterPattern.test(character) || (character >= "\u0e00" && character <= "\u0e59")) {
    return letterClass;
  }
  return otherClass;
}

function classAt(text: string, at: number): number {
  const code = text.charCodeAt(at);
  return code < 128 ? (asciiClasses[code] as number) : slowClassOf(text.charAt(at));
}

/** One run of letters and digits. */
interface Part {
  readonly end: number;
  readonly hasDigit: boolean;
  readonly isAlpha: boolean;
  /** The following character, if another part follows directly; else empty. */
  separator: string;
}

type WordForm = "plain" | "apostrophe" | "acronym" | "host";

/** The longest word found so far at a position. */
interface Match {
  end: number;
  form: WordForm;
}

const separators = new Set(["'", "&", "@", ".", "-", "_", "/", ","]);

/** Returns the invariant lower-case form: character by character, never one into two. */
export function lowerInvariant(text: string): string {
  if (!/[\u0130\u03a3]/.test(text)) return text.toLowerCase();
  let lower = "";
  for (const character of text)
    lower += character === "\u0130" ? character : character.toLowerCase();
  return lower;
}

export const standardAnalyzer: Analyzer = (text, visit) => {
  let at = 0;
  while (at < text.length) {
    const first = classAt(text, at);
    if (first === otherClass) {
      at++;
      continue;
    }
    if (first === singleClass) {
      visit(text.charAt(at));
      at++;
      continue;
    }
    const match = longestWord(text, at);
    emitStandardWord(text.slice(at, match.end), match.form, visit);
    at = match.end;
  }
};

function emitStandardWord(source: string, form: WordForm, visit: WordVisitor): void {
  if (source.length > wordLengthMax) return;
  let word = lowerInvariant(source);
  if (stopWords.has(word)) return;
  if (form === "apostrophe" && word.endsWith("'s")) word = word.slice(0, -2);
  else if (form === "acronym") word = word.replaceAll(".", "");
  else if (form === "host" && word.endsWith(".")) word = word.slice(0, -1);
  visit(word);
}

function longestWord(text: string, at: number): Match {
  const parts: Part[] = [];
  let end = at;
  for (;;) {
    const part = readPart(text, end);
    parts.push(part);
    end = part.end;
    if (parts.length >= partCountMax || !separators.has(text.charAt(end))) break;
    const next = classAt(text, end + 1);
    if (end + 1 >= text.length || (next !== letterClass && next !== digitClass)) break;
    part.separator = text.charAt(end);
    end++;
  }
  const match: Match = { end: (parts[0] as Part).end, form: "plain" };
  if (parts.length === 1) return match;
  matchApostrophe(parts, match);
  matchAcronym(text, parts, match);
  matchCompany(parts, match);
  matchAddress(parts, match);
  matchHost(parts, match);
  matchNumber(parts, match);
  return match;
}

function readPart(text: string, at: number): Part {
  let end = at;
  let hasDigit = false;
  let isAlpha = true;
  for (; end < text.length; end++) {
    const kind = classAt(text, end);
    if (kind === digitClass) {
      hasDigit = true;
      isAlpha = false;
    } else if (kind !== letterClass) break;
  }
  return { end, hasDigit, isAlpha, separator: "" };
}

function propose(match: Match, end: number, form: WordForm): void {
  if (end <= match.end) return;
  match.end = end;
  match.form = form;
}

/** Returns the number of leading parts that are joined by one of `joints` and satisfy `isFit`. */
function chainLength(
  parts: readonly Part[],
  joints: string,
  isFit: (part: Part) => boolean,
): number {
  let count = 0;
  while (count < parts.length) {
    const part = parts[count] as Part;
    if (!isFit(part)) break;
    count++;
    if (part.separator === "" || !joints.includes(part.separator)) break;
  }
  return count;
}

function isAlpha(part: Part): boolean {
  return part.isAlpha;
}

function isAny(): boolean {
  return true;
}

function matchApostrophe(parts: readonly Part[], match: Match): void {
  const count = chainLength(parts, "'", isAlpha);
  if (count >= 2) propose(match, (parts[count - 1] as Part).end, "apostrophe");
}

/** Letters or words, each followed by a point: `U.S.A.`, and, mistakenly, `example.com.`. */
function matchAcronym(text: string, parts: readonly Part[], match: Match): void {
  const count = chainLength(parts, ".", isAny);
  if (count < 2) return;
  const end = (parts[count - 1] as Part).end;
  if (text.charAt(end) !== ".") return;
  let start = (parts[0] as Part).end - 1;
  let isAcronym = true;
  for (let i = 0; i < count; i++) {
    const part = parts[i] as Part;
    if (part.end - start !== 1 || !part.isAlpha) isAcronym = i === 0 && part.isAlpha && isAcronym;
    start = part.end + 1;
  }
  propose(match, end + 1, isAcronym ? "acronym" : "host");
}

function matchCompany(parts: readonly Part[], match: Match): void {
  const [first, second] = parts as [Part, Part];
  if (!first.isAlpha || !second.isAlpha) return;
  if (first.separator === "&" || first.separator === "@") propose(match, second.end, "plain");
}

function matchAddress(parts: readonly Part[], match: Match): void {
  const local = chainLength(parts, ".-_", isAny);
  if (local === 0 || (parts[local - 1] as Part).separator !== "@") return;
  const domain = chainLength(parts.slice(local), ".-", isAny);
  if (domain >= 2) propose(match, (parts[local + domain - 1] as Part).end, "plain");
}

function matchHost(parts: readonly Part[], match: Match): void {
  const count = chainLength(parts, ".", isAny);
  if (count >= 2) propose(match, (parts[count - 1] as Part).end, "host");
}

/** Parts joined by `. , - _ /` of which every second has a digit. */
function matchNumber(parts: readonly Part[], match: Match): void {
  for (const offset of [0, 1]) {
    let count = 0;
    while (count < parts.length) {
      const part = parts[count] as Part;
      if (count % 2 === offset && !part.hasDigit) break;
      count++;
      if (part.separator === "" || !"_-/.,".includes(part.separator)) break;
    }
    if (count >= 2) propose(match, (parts[count - 1] as Part).end, "plain");
  }
}

const whitespaceAnalyzer: Analyzer = (text, visit) => {
  for (const word of text.split(/\s+/u)) if (word !== "") visit(word);
};

const lowerWhitespaceAnalyzer: Analyzer = (text, visit) => {
  for (const word of text.split(/\s+/u)) if (word !== "") visit(lowerInvariant(word));
};

const simpleAnalyzer: Analyzer = (text, visit) => {
  for (const word of text.match(/\p{L}+/gu) ?? []) visit(lowerInvariant(word));
};

const stopAnalyzer: Analyzer = (text, visit) => {
  simpleAnalyzer(text, (word) => {
    if (!stopWords.has(word)) visit(word);
  });
};

/** The whole text as one term. */
export const keywordAnalyzer: Analyzer = (text, visit) => visit(text);

export const lowerKeywordAnalyzer: Analyzer = (text, visit) => visit(lowerInvariant(text));

const gramLengthMin = 2;
const gramLengthMax = 6;

/** Every run of two to six characters of each word. */
const gramAnalyzer: Analyzer = (text, visit) => {
  standardAnalyzer(text, (word) => {
    for (let length = gramLengthMin; length <= gramLengthMax; length++) {
      for (let at = 0; at + length <= word.length; at++) visit(word.slice(at, at + length));
    }
  });
};

const analyzers: ReadonlyMap<string, Analyzer> = new Map([
  ["standardanalyzer", standardAnalyzer],
  ["ravenstandardanalyzer", standardAnalyzer],
  ["stopanalyzer", stopAnalyzer],
  ["simpleanalyzer", simpleAnalyzer],
  ["whitespaceanalyzer", whitespaceAnalyzer],
  ["lowercasewhitespaceanalyzer", lowerWhitespaceAnalyzer],
  ["keywordanalyzer", keywordAnalyzer],
  ["lowercasekeywordanalyzer", lowerKeywordAnalyzer],
  ["ngramanalyzer", gramAnalyzer],
]);

/** Finds an analyzer by name, with or without a namespace, in any case; undefined if it does not exist. */
export function findAnalyzer(name: string): Analyzer | undefined {
  const plain = name.split(",")[0]?.trim() ?? "";
  return analyzers.get(plain.slice(plain.lastIndexOf(".") + 1).toLowerCase());
}

/** Base cost of a phrase of a search text. */
const pieceUnits = 16;
/** Memory overhead of a phrase besides its text, in bytes. */
const pieceBytes = 256;

/** A phrase of a search text. */
export type SearchPhrase =
  | { readonly kind: "words"; readonly words: readonly string[] }
  /** `text` is lower-cased, without its stars. */
  | {
      readonly kind: "wildcard";
      readonly text: string;
      readonly startsOpen: boolean;
      readonly endsOpen: boolean;
    };

/**
 * Splits a search text into phrases: at spaces and tabs; `"…"` is one phrase; `\` escapes a following quote or star. A
 * phrase with a star at either end is a wildcard; any other is analyzed, and omitted if no word remains. If a quoted
 * phrase ends with a star, the first word is the prefix. The empty text is the word of empty values. Duplicates are
 * removed if `isDistinct`. Measured on RavenDB 7.2.7.
 */
export function* parseSearchText(
  text: string,
  analyze: Analyzer,
  budget: WorkBudget,
  isDistinct = true,
): Work<SearchPhrase[]> {
  if (text === "") return [{ kind: "words", words: [""] }];
  const pieces = new Map<string, SearchPhrase>();
  for (const { source, isPhrase } of splitSearchText(text)) {
    budget.spend(pieceUnits + source.length);
    if (budget.isDue) yield;
    const key = `${isPhrase ? '"' : ""}${source}${isDistinct ? "" : `"${pieces.size}`}`;
    if (pieces.has(key)) continue;
    const piece = searchPiece(source, isPhrase, analyze);
    if (piece === null) continue;
    budget.hold(pieceBytes + 4 * source.length);
    pieces.set(key, piece);
  }
  return [...pieces.values()];
}

function searchPiece(source: string, isPhrase: boolean, analyze: Analyzer): SearchPhrase | null {
  const startsOpen = !isPhrase && source.startsWith("*");
  const endsOpen = /(?:^|[^\\*])\*+$/.test(source) && (isPhrase || source.length > 1);
  if (startsOpen || (endsOpen && !isPhrase)) {
    // A phrase may end with several stars only if it also begins with stars.
    const bare = startsOpen ? source.replace(/^\*+|\*+$/g, "") : source.slice(0, -1);
    return { kind: "wildcard", text: lowerInvariant(bare), startsOpen, endsOpen };
  }
  const words = wordsOfPhrase(source, analyze);
  const [first] = words;
  if (first === undefined) return null;
  if (!endsOpen) return { kind: "words", words };
  const prefix = lowerInvariant(first.replace(/\*+$/, ""));
  return { kind: "wildcard", text: prefix, startsOpen: false, endsOpen };
}

/** Returns the words of a text, analyzed synchronously. @throws EngineError work-limit */
export function wordsOfPhrase(text: string, analyze: Analyzer): string[] {
  if (text.length > searchPhraseLengthMax) {
    throw new EngineError(
      "work-limit",
      `A word or phrase that is sought has ${text.length} characters, more than the limit of ${searchPhraseLengthMax}.`,
    );
  }
  const words: string[] = [];
  analyze(text, (word) => words.push(word));
  return words;
}

/**
 * Returns the words of a text of any length by the standard analyzer, in whose grammar white space always ends a word.
 */
export function* standardWords(text: string, budget: WorkBudget): Work<string[]> {
  const words: string[] = [];
  for (const [piece] of text.matchAll(/\S+/gu)) {
    words.push(...wordsOfPhrase(piece, standardAnalyzer));
    budget.spend(pieceUnits + piece.length);
    if (budget.isDue) yield;
  }
  return words;
}

function* splitSearchText(text: string): Generator<{ source: string; isPhrase: boolean }> {
  let current = "";
  let inPhrase = false;
  for (let i = 0; i < text.length; i++) {
    const character = text.charAt(i);
    if (character === "\\" && text[i + 1] === '"') current += text.charAt(++i);
    else if (character === '"') {
      if (current !== "") yield { source: current, isPhrase: inPhrase };
      current = "";
      inPhrase = !inPhrase;
    } else if (!inPhrase && (character === " " || character === "\t")) {
      if (current !== "") yield { source: current, isPhrase: false };
      current = "";
    } else current += character;
  }
  if (current !== "") yield { source: current, isPhrase: false };
}
