/**
 * Query text -> tokens, one at a time, on request of the parser.
 *
 * Some text is a token only in context: `0b` after a point is a part of a path, and `{ … }` may be a script. The parser
 * reads these with `pathPart` and `script`; the lexer has no grammar.
 *
 * Invariants:
 * - White space and comments are between tokens, never part of one.
 * - `opaqueSpans` is ordered, without overlaps, and covers the text read so far.
 */
import { EngineError } from "../../base/errors.ts";
import { tooManyClauses } from "../analysis/query-size.ts";
import { type OpaqueSpan, type Place, placeOf } from "./syntax-error.ts";
import type { Token, TokenKind } from "./token.ts";

const spacePattern = /[ \t\r\n]+/y;
const lineCommentPattern = /\/\/[^\n]*/y;
const blockCommentPattern = /\/\*[\s\S]*?(?:\*\/|$)/y;
const wordPattern = /[\p{L}_@][\p{L}\p{N}_-]*/uy;
const pathPartPattern = /[\p{L}\p{N}_@][\p{L}\p{N}_-]*/uy;
const parameterPattern = /\$[\p{L}\p{N}_-]*/uy;
const numberPattern = /-?\d[\d_]*(\.\d*)?/y;
const punctuationPattern = /==|!=|<>|<=|>=|[()[\]{},.*=<>]/y;
const escapePattern = /\\(u[0-9a-f]{4}|[\s\S])|''|""/gi;

const escapeMeanings: Readonly<Record<string, string>> = {
  "'": "'",
  '"': '"',
  "\\": "\\",
  t: "\t",
  n: "\n",
  r: "\r",
  f: "\f",
  b: "\b",
};

/** Context in which a slash in JavaScript is no division and so begins a regex literal. */
const beforeRegexPattern = /(?:[(,=:[!&|?{};+\-*%<>~^]|\b(?:return|typeof|case|in|of))\s*$/;
/** Characters before a slash that are examined for this. */
const regexContextLength = 64;
const regexPattern = /\/(?:[^/\\[\n]|\\.|\[(?:[^\]\\\n]|\\.)*\])+\//y;

/** A position to return to: `lexer.reset(lexer.mark())` changes nothing. */
type Mark = number;

export class Lexer {
  readonly text: string;
  readonly opaqueSpans: OpaqueSpan[] = [];
  private position = 0;
  private peeked: Token | null = null;
  private lastMatch = "";
  /** Tokens that may still be consumed. */
  private tokensLeft: number;

  /** `tokensMax`: maximum number of tokens; tokens read again count again. */
  constructor(text: string, tokensMax = Number.POSITIVE_INFINITY) {
    this.text = text;
    this.tokensLeft = tokensMax;
  }

  /** Returns the next token, without consuming it. Cost: O(its length). @throws query-syntax, invalid-format */
  peek(): Token {
    this.peeked ??= this.read();
    return this.peeked;
  }

  /** Consumes and returns the next token. */
  next(): Token {
    const token = this.peek();
    this.position = token.end;
    this.peeked = null;
    if (--this.tokensLeft < 0) throw tooManyClauses();
    return token;
  }

  mark(): Mark {
    return this.position;
  }

  reset(mark: Mark): void {
    this.position = mark;
    this.peeked = null;
  }

  /** End of the last consumed token: for messages that point before white space. */
  get offsetAfter(): number {
    return this.position;
  }

  placeOf(offset: number): Place {
    return placeOf(this.text, offset, this.opaqueSpans);
  }

  /**
   * Reads the name after a point of a path: a word that may begin with a digit, or a string. Returns null for any other
   * token; nothing is consumed then.
   */
  pathPart(): Token | null {
    this.peeked = null;
    this.skipSpace();
    const start = this.position;
    if (this.matches(pathPartPattern)) return this.take("word", start, this.lastMatch);
    const token = this.peek();
    return token.kind === "string" ? this.next() : null;
  }

  /**
   * Reads from the next opening bracket to its closing one.
   *
   * @param isJavaScript whether template and regex literals may hide brackets, besides strings and comments, which
   * always may.
   * @returns null when the bracket is never closed; nothing is consumed.
   */
  script(isJavaScript: boolean): Token | null {
    const opening = this.peek();
    const end = scriptEnd(this.text, opening.offset, isJavaScript, 0);
    if (end === -1) return null;
    if (opening.text === "{") this.addSpan({ start: opening.offset, end, kind: "script" });
    this.position = end;
    this.peeked = null;
    const { offset } = opening;
    return { kind: "punctuation", text: this.text.slice(offset, end), offset, end };
  }

  private matches(pattern: RegExp): boolean {
    pattern.lastIndex = this.position;
    const found = pattern.exec(this.text);
    this.lastMatch = found?.[0] ?? "";
    return found !== null;
  }

  private take(kind: TokenKind, start: number, text: string, length = text.length): Token {
    this.position = start + length;
    return { kind, text, offset: start, end: this.position };
  }

  private addSpan(span: OpaqueSpan): void {
    const last = this.opaqueSpans.at(-1);
    if (last === undefined || span.start >= last.end) this.opaqueSpans.push(span);
  }

  private skipSpace(): void {
    for (;;) {
      if (this.matches(spacePattern)) {
        this.position += this.lastMatch.length;
      } else if (this.matches(blockCommentPattern)) {
        const start = this.position;
        this.position += this.lastMatch.length;
        this.addSpan({ start, end: this.position, kind: "comment" });
      } else if (this.matches(lineCommentPattern)) {
        this.position += this.lastMatch.length;
      } else {
        return;
      }
    }
  }

  /** Returns the next token; `position` is unchanged, so that messages can point before white space. */
  private read(): Token {
    const before = this.position;
    this.skipSpace();
    const token = this.readToken();
    this.position = before;
    return token;
  }

  private readToken(): Token {
    const start = this.position;
    if (start >= this.text.length) return { kind: "end", text: "", offset: start, end: start };
    if (this.matches(wordPattern)) return this.readWord(start);
    if (this.matches(numberPattern)) return this.readNumber(start);
    const afterString = stringEnd(this.text, start);
    if (afterString !== -1) return this.readString(start, afterString);
    if (this.matches(punctuationPattern)) return this.take("punctuation", start, this.lastMatch);
    if (this.matches(parameterPattern)) {
      return this.take("parameter", start, this.lastMatch.slice(1), this.lastMatch.length);
    }
    return this.take("unknown", start, this.text.charAt(start));
  }

  private readWord(start: number): Token {
    const word = this.lastMatch;
    const isUnderscoreAt = word === "_" && this.text.charAt(start + 1) === "@";
    if (word === "@" || isUnderscoreAt) {
      const first = isUnderscoreAt ? "_" : "@";
      throw this.lexicalError(`Illegal identifier detected starting with ${first}@ in`, start);
    }
    return this.take("word", start, word);
  }

  private readNumber(start: number): Token {
    const written = this.lastMatch;
    const hasPoint = written.includes(".");
    if (hasPoint && written.includes("_")) {
      const message = `The input string '${written}' was not in a correct format.`;
      throw new EngineError("invalid-format", message);
    }
    const isFollowedByPoint = this.text.charAt(start + written.length) === ".";
    if (isFollowedByPoint) return this.take("unknown", start, written);
    const digits = written.replaceAll("_", "");
    return this.take(hasPoint ? "double" : "long", start, digits, written.length);
  }

  private readString(start: number, end: number): Token {
    const written = this.text.slice(start, end);
    if (written.includes("\n")) this.addSpan({ start, end, kind: "string" });
    const text = written.slice(1, -1).replace(escapePattern, (sequence) => {
      if (sequence.charAt(0) !== "\\") {
        return sequence.charAt(0) === written.charAt(0) ? sequence.charAt(0) : sequence;
      }
      const letter = sequence.charAt(1).toLowerCase();
      if (sequence.length > 2) return String.fromCharCode(Number.parseInt(sequence.slice(2), 16));
      const meaning = escapeMeanings[letter];
      if (meaning !== undefined) return meaning;
      throw this.lexicalError("unrecognized escape character found in string in", end);
    });
    return this.take("string", start, text, written.length);
  }

  /** In these messages the column precedes the line. */
  private lexicalError(complaint: string, offset: number): EngineError {
    const { line, column } = this.placeOf(offset);
    const message = `${column}:${line} ${complaint} query: '${this.text}'`;
    return new EngineError("query-syntax", message);
  }
}

/**
 * Returns the end of the string that begins at `start`, or -1 when none begins there or it is unterminated. A loop and
 * not a pattern: strings may be long, and patterns need memory for each character.
 */
function stringEnd(text: string, start: number): number {
  const quote = text.charAt(start);
  if (quote !== "'" && quote !== '"') return -1;
  for (let position = start + 1; position < text.length; position += 1) {
    const character = text.charAt(position);
    if (character === "\\") position += 1;
    else if (character === quote) {
      if (text.charAt(position + 1) !== quote) return position + 1;
      position += 1; // a doubled quote is a quote in the text
    }
  }
  return -1;
}

/** Maximum nesting of template literals; deeper ones count as unterminated. */
const templateDepthMax = 32;

/** Returns the end of the bracket pair that begins at `start`, or -1. */
function scriptEnd(text: string, start: number, isJavaScript: boolean, templates: number): number {
  const opening = text.charAt(start);
  const closing = opening === "{" ? "}" : ")";
  let depth = 0;
  let position = start;
  while (position < text.length) {
    const character = text.charAt(position);
    const behind = hiddenEnd(text, start, position, isJavaScript, templates);
    if (behind === -1) return -1;
    if (behind > position) {
      position = behind;
      continue;
    }
    if (character === opening) depth += 1;
    if (character === closing) depth -= 1;
    position += 1;
    if (depth === 0) return position;
  }
  return -1;
}

/**
 * Returns the end of the literal or comment that begins at `position` in the script that begins at `start`; `position`
 * itself when none begins there; -1 when it is unterminated.
 */
function hiddenEnd(
  text: string,
  start: number,
  position: number,
  isJavaScript: boolean,
  templates: number,
): number {
  const character = text.charAt(position);
  if (character === "'" || character === '"') return quotedEnd(text, position);
  if (character === "`" && isJavaScript) return templateEnd(text, position, templates);
  if (character !== "/") return position;
  if (text.startsWith("//", position)) return indexBehind(text, "\n", position);
  if (text.startsWith("/*", position)) return indexBehind(text, "*/", position + 2);
  const before = text.slice(Math.max(start, position - regexContextLength), position);
  if (!isJavaScript || !beforeRegexPattern.test(before)) return position;
  regexPattern.lastIndex = position;
  return regexPattern.test(text) ? regexPattern.lastIndex : position;
}

function indexBehind(text: string, sought: string, from: number): number {
  const index = text.indexOf(sought, from);
  return index === -1 ? -1 : index + sought.length;
}

function quotedEnd(text: string, start: number): number {
  const quote = text.charAt(start);
  for (let position = start + 1; position < text.length; position += 1) {
    if (text.charAt(position) === "\\") position += 1;
    else if (text.charAt(position) === quote) return position + 1;
  }
  return -1;
}

function templateEnd(text: string, start: number, templates: number): number {
  if (templates === templateDepthMax) return -1;
  for (let position = start + 1; position < text.length; position += 1) {
    if (text.charAt(position) === "\\") position += 1;
    else if (text.charAt(position) === "`") return position + 1;
    else if (text.startsWith("${", position)) {
      const end = scriptEnd(text, position + 1, true, templates + 1);
      if (end === -1) return -1;
      position = end - 1;
    }
  }
  return -1;
}
