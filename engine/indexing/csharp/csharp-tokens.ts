/**
 * Splits a C# text of an index into tokens: names, literals, punctuation. Comments and white space are dropped.
 *
 * It knows no grammar. Interpolated strings keep the source text in their braces, which the parser reads.
 *
 * Invariants:
 * - Every token consumes text: there are at most as many tokens as characters.
 * - Nothing but `csharpError` is thrown.
 */
import { csharpError } from "./csharp-error.ts";

/** One section of `$"…"`: literal text, or an expression in braces with its format. */
type Piece =
  | { readonly kind: "text"; readonly text: string }
  | { readonly kind: "hole"; readonly from: number; readonly to: number; readonly format: string };

export type Token =
  | { readonly kind: "name"; readonly text: string; readonly at: number; readonly to: number }
  | {
      readonly kind: "punctuation";
      readonly text: string;
      readonly at: number;
      readonly to: number;
    }
  | { readonly kind: "text"; readonly text: string; readonly at: number; readonly to: number }
  | {
      readonly kind: "number";
      readonly text: string;
      readonly isDouble: boolean;
      readonly at: number;
      readonly to: number;
    }
  | {
      readonly kind: "interpolated";
      readonly text: string;
      readonly pieces: readonly Piece[];
      readonly at: number;
      readonly to: number;
    }
  | { readonly kind: "end"; readonly text: ""; readonly at: number; readonly to: number };

const space = /(?:\s|\/\/[^\n]*|\/\*[\s\S]*?\*\/)*/y;
const namePattern = /@?[\p{L}_][\p{L}\p{Nd}_]*/uy;
const numberPattern = /(?:0[xX][0-9a-fA-F_]+|(?:\d[\d_]*)?(?:\.\d[\d_]*)?(?:[eE][+-]?\d+)?)/y;
const suffixPattern = /(?:[uU][lL]?|[lL][uU]?|[fFdDmM])?(?![\p{L}\p{Nd}_])/uy;
const punctuationPattern =
  /=>|\?\?=|\+\+|--|[-+*/%]=|\?\?|\?\.|\?\[|==|!=|<=|>=|&&|\|\||<<|[-+*/%<>=!?:;,.()[\]{}&|^~]/y;

const escapes: Readonly<Record<string, string>> = {
  "'": "'",
  '"': '"',
  "\\": "\\",
  "0": "\0",
  a: "\x07",
  b: "\b",
  f: "\f",
  n: "\n",
  r: "\r",
  t: "\t",
  v: "\v",
};

function matchAt(pattern: RegExp, text: string, at: number): string {
  pattern.lastIndex = at;
  return pattern.exec(text)?.[0] ?? "";
}

/**
 * Returns all tokens of `text` from `from` up to `to`, followed by an end token. @throws EngineError index-compilation
 */
export function tokensOf(text: string, from = 0, to = text.length): Token[] {
  const source = text.slice(0, to);
  const tokens: Token[] = [];
  let at = from;
  for (;;) {
    at += matchAt(space, source, at).length;
    if (at >= source.length) break;
    const token = tokenAt(source, at);
    tokens.push(token);
    at = token.to;
  }
  tokens.push({ kind: "end", text: "", at: source.length, to: source.length });
  return tokens;
}

function tokenAt(text: string, at: number): Token {
  const start = matchAt(/\$@?"|@\$?"|["']/y, text, at);
  if (start === '"' || start === "'") return plainString(text, at, start);
  if (start === '@"') return verbatimString(text, at);
  if (start !== "") return interpolatedString(text, at, start);
  const name = matchAt(namePattern, text, at);
  if (name !== "") return { kind: "name", text: name, at, to: at + name.length };
  if (/^\.?\d/.test(text.slice(at, at + 2))) return number(text, at);
  const punctuation = matchAt(punctuationPattern, text, at);
  // `a ?.5 : 1` is a conditional with a number.
  const isCondition = punctuation === "?." && /\d/.test(text.charAt(at + 2));
  const found = isCondition ? "?" : punctuation;
  if (found !== "") return { kind: "punctuation", text: found, at, to: at + found.length };
  throw csharpError(text, at, `Unexpected character '${text.charAt(at)}'`);
}

function number(text: string, at: number): Token {
  const digits = matchAt(numberPattern, text, at);
  const suffix = matchAt(suffixPattern, text, at + digits.length);
  const to = at + digits.length + suffix.length;
  if (/[\p{L}\p{Nd}_]/u.test(text.charAt(to))) throw csharpError(text, at, "Invalid number");
  const isHexadecimal = /^0x/i.test(digits);
  const isDouble = !isHexadecimal && (/[.eE]/.test(digits) || /[fdm]/i.test(suffix));
  return { kind: "number", text: digits.replaceAll("_", ""), isDouble, at, to };
}

/** `"…"` or `'…'`. */
function plainString(text: string, at: number, quote: string): Token {
  let value = "";
  let i = at + 1;
  for (;;) {
    const character = text.charAt(i);
    if (character === "" || character === "\n") {
      throw csharpError(text, at, quote === '"' ? "Newline in constant" : "Too many characters");
    }
    if (character === quote) break;
    if (character === "\\") {
      const found = escapeAt(text, i);
      value += found.text;
      i = found.to;
    } else {
      value += character;
      i += 1;
    }
  }
  if (quote === "'" && value.length !== 1) {
    const reason =
      value === "" ? "Empty character literal" : "Too many characters in character literal";
    throw csharpError(text, at, reason);
  }
  return { kind: "text", text: value, at, to: i + 1 };
}

function escapeAt(text: string, at: number): { readonly text: string; readonly to: number } {
  const character = text.charAt(at + 1);
  const known = escapes[character];
  if (known !== undefined) return { text: known, to: at + 2 };
  const code = /^(?:u([0-9a-fA-F]{4})|x([0-9a-fA-F]{1,4})|U([0-9a-fA-F]{8}))/.exec(
    text.slice(at + 1, at + 10),
  );
  const value = Number.parseInt(code?.[1] ?? code?.[2] ?? code?.[3] ?? "", 16);
  if (code === null || value > 0x10ffff)
    throw csharpError(text, at, "Unrecognized escape sequence");
  return { text: String.fromCodePoint(value), to: at + 1 + code[0].length };
}

/** `@"…"`, in which `""` is a quote. */
function verbatimString(text: string, at: number): Token {
  for (let i = at + 2; i < text.length; i += 1) {
    if (text.charAt(i) !== '"') continue;
    if (text.charAt(i + 1) === '"') i += 1;
    else {
      const value = text.slice(at + 2, i).replaceAll('""', '"');
      return { kind: "text", text: value, at, to: i + 1 };
    }
  }
  throw csharpError(text, at, "Unterminated string literal");
}

/** `$"…{value:format}…"`, also verbatim. */
function interpolatedString(text: string, at: number, start: string): Token {
  const isVerbatim = start.includes("@");
  const pieces: Piece[] = [];
  let plain = "";
  let i = at + start.length;
  for (;;) {
    const character = text.charAt(i);
    const next = text.charAt(i + 1);
    if (character === "" || (character === "\n" && !isVerbatim)) {
      throw csharpError(text, at, "Unterminated string literal");
    }
    if (character === '"' && !(isVerbatim && next === '"')) break;
    const isDoubled = character === next && (character === "{" || character === "}");
    if (isDoubled || (character === '"' && isVerbatim)) {
      plain += character;
      i += 2;
    } else if (character === "\\" && !isVerbatim) {
      const found = escapeAt(text, i);
      plain += found.text;
      i = found.to;
    } else if (character === "{") {
      if (plain !== "") pieces.push({ kind: "text", text: plain });
      plain = "";
      const hole = holeAt(text, i);
      pieces.push(hole);
      i = hole.to + (hole.format === "" ? 0 : hole.format.length + 1) + 1;
    } else {
      plain += character;
      i += 1;
    }
  }
  if (plain !== "") pieces.push({ kind: "text", text: plain });
  return { kind: "interpolated", text: "", pieces, at, to: i + 1 };
}

/** Returns the hole whose `{` is at `at`. */
function holeAt(text: string, at: number): Extract<Piece, { kind: "hole" }> {
  let depth = 0;
  let to = -1;
  for (let i = at + 1; i < text.length; i += 1) {
    const character = text.charAt(i);
    if (character === '"' || character === "'") i = plainString(text, i, character).to - 1;
    else if (/[([{]/.test(character)) depth += 1;
    else if (character === ":" && depth === 0 && to < 0) {
      to = i;
      const end = text.indexOf("}", i);
      if (end < 0) break;
      return { kind: "hole", from: at + 1, to, format: text.slice(i + 1, end) };
    } else if (character === "}" && depth === 0) {
      return { kind: "hole", from: at + 1, to: i, format: "" };
    } else if (/[)\]}]/.test(character)) depth -= 1;
  }
  throw csharpError(text, at, "Unterminated interpolation");
}
