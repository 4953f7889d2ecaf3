/**
 * One pass over the text of a JSON value: checks it, and produces the stored text. For a document it also finds
 * `@metadata`, the shape, and the offset of each top-level value.
 *
 * Stored text is minified. Numbers keep their spelling (`1.50`, `1E5`, thirty digits) except `-0`, which becomes `0`;
 * keys keep their order; strings are spelled as in escape.ts. Of a repeated key, the last value is kept, at its last
 * place, at every depth. RavenDB 7.2.7 stores the same.
 *
 * It is strict where RavenDB is lenient (single quotes, trailing commas, control characters in strings, text after the
 * value, invalid UTF-8, `1.`, NaN): only JSON is accepted. One leading byte order mark is dropped, as RFC 8259 allows.
 * A number too large for a double is refused.
 *
 * Independent of ids, collections, and the meaning of metadata keys.
 *
 * Hot: bench/document-text.bench.ts. Most text is minified and needs no change, so the loop only scans it, and copies
 * it in runs: a run ends where something is left out or respelled.
 *
 *   input   {"a": 1,"b":"x\/y"}
 *           |----|             first run; the space is left out
 *                 |-------|    second run; `\/` is written as `/`
 *                          |-| ...
 *   Output position of input position i in the present run: i - shift.
 *
 * Invariants:
 * - No call is recursive: nesting uses an explicit stack, at most `documentDepthMax` high.
 * - The output is never longer than the input.
 * - The results of a parse are a value that is good until the next one: see parsed-document.ts.
 */
import { assert } from "../../base/assert.ts";
import { EngineError, type ErrorCode } from "../../base/errors.ts";
import {
  bytesEqual,
  copyBytes,
  stringByteClasses as importedStringByteClasses,
  skipSpace,
  utf8SequenceLength,
} from "../../base/json/bytes.ts";
import { escapeCut, escapeUnknown, rewriteEscape } from "../../base/json/escape.ts";
import {
  mayRepeat,
  removeRepeatedInSlices,
  removeRepeatedKeys,
  type Shortened,
} from "../../base/json/repeated-keys.ts";
import { documentBytesMax, documentDepthMax, shapeFieldCountMax } from "../../base/limits.ts";
import type { OwnedBytes } from "../../base/memory/borrowed-bytes.ts";
import type { Work } from "../../base/scheduling/work-budget.ts";
import { ParsedDocument, ParsedValue, ParserMemory, type PlacedBody } from "./parsed-document.ts";
import type { ShapeNode, ShapeTable } from "./shapes.ts";

// Declared here, not imported: V8 folds a module's own constants into the code, but loads an imported
// (or exported) one from its cell each time, which made this file 2.5 times slower.
const byteArrayClose = 0x5d;
const byteArrayOpen = 0x5b;
const byteBackslash = 0x5c;
const byteColon = 0x3a;
const byteComma = 0x2c;
const byteDot = 0x2e;
const byteMinus = 0x2d;
const byteNewline = 0x0a;
const byteNine = 0x39;
const byteObjectClose = 0x7d;
const byteObjectOpen = 0x7b;
const bytePlus = 0x2b;
const byteQuote = 0x22;
const byteSpace = 0x20;
const byteZero = 0x30;
const stringEscape = 2;
const stringHigh = 3;
const stringPlain = 0;
const stringQuote = 1;
const stringByteClasses = importedStringByteClasses;

/** Slots of one member on the member stack: start and end of its key in the output, and a hash. */
const memberSlots = 3;
/** Slots of one member in `metadataSpans`. */
export const metadataSpanSlots = 4;
/** Scratch memory above this is released before the next parse. */
const scratchBytesKept = 4 * 1024 * 1024;
const scratchBytesMin = 16 * 1024;
const membersMin = 256 * memberSlots;
/**
 * Total moves of text for removing repeated keys, as a multiple of its length. Each level of nesting that repeats a key
 * around the rest moves it once: without a bound the work would be quadratic.
 */
const repeatedMovesMax = 64;
/** Characters of one number: far more than a double needs, and few enough to be scanned in one go. */
const numberLengthMax = 64 * 1024;
/** Slots of an object's members from which on a parse in slices compares their keys in slices. */
const slicedMembersMin = 4096 * memberSlots;
/** A number with at most so many digits is certainly in the range of a double. */
const safeDigits = 300;

const metadataKey = Buffer.from('"@metadata"', "latin1");
const wordNull = Buffer.from("null", "latin1");
const wordTrue = Buffer.from("true", "latin1");
const wordFalse = Buffer.from("false", "latin1");

/**
 * Bytes of input that a parse in slices scans before it pauses: a third of a millisecond, ten times as much at first.
 */
const sliceBytes = 128 * 1024;

/** The state of a paused parse: the local variables of the loop. */
interface Paused {
  readonly memberTop: number;
  readonly fieldCount: number;
  readonly depth: number;
  readonly base: number;
  readonly out: Buffer;
  readonly isAscii: boolean;
  readonly node: ShapeNode | null;
  readonly bodyKept: number;
  readonly bodyIsAscii: boolean;
  readonly movedBytes: number;
  readonly textFrom: number;
  readonly i: number;
  readonly shift: number;
  readonly expect: number;
  /** The byte to resume with: a quote within a string, a bracket after a value; 0: the byte at `i`. */
  readonly resumeByte: number;
  readonly textStart: number;
  readonly textOut: number;
  readonly isRewritten: boolean;
  /** Whether it paused at the end of an object with many members, whose keys must be compared before it resumes. */
  readonly isToBeChecked: boolean;
}

const busy = "a parser that has paused in a text parses no other meanwhile";
/** Bytes in which lines are counted for an error: some milliseconds. */
const countedBytesMax = 4 * 1024 * 1024;

/** Token that the loop expects at the current position. */
const expectValue = 0;
const expectValueOrClose = 1;
const expectKey = 2;
const expectKeyOrClose = 3;

/** Parses documents and other JSON text, one after the other: each parse overwrites the results of the previous one. */
export class DocumentParser {
  readonly #found = new ParserMemory(scratchBytesMin, shapeFieldCountMax);
  /**
   * The last document. Hot: without another reference to it, V8 replaces it by scalars and rebuilds it, which costs a
   * put in memory a fifth of its time.
   */
  #last: ParsedDocument | null = null;
  /** Length and member count of the text in `metadata`, if it is a whole object; else 0. */
  #keptLength = 0;
  #keptCount = 0;
  readonly #shapes: ShapeTable | null;
  readonly #frames = new Int32Array(documentDepthMax + 1);
  #members = new Int32Array(membersMin);
  /** Bytes of input until the next pause; 0: the parse is not in slices. */
  #sliceBytes = 0;
  #paused: Paused | null = null;
  /** Result of the sliced comparison of an object's keys, until it is used; undefined: there was none. */
  #checked: Shortened | null | undefined;

  /** @param shapes the table of document shapes; null = documents get none. */
  constructor(shapes: ShapeTable | null) {
    this.#shapes = shapes;
  }

  /**
   * Parses the document in `bytes[start, end)`.
   * @throws EngineError `json-truncated` (empty, or ends too early), `json-not-object`,
   *   `json-escape`, `json-invalid` (with line and column), `too-large` (size or depth),
   *   `invalid-format` (`@metadata` is not an object).
   */
  parse(bytes: Buffer, start: number, end: number): ParsedDocument {
    assert(this.#sliceBytes === 0, busy);
    this.#run(bytes, start, end, true);
    this.#requireMetadataObject();
    this.#requireEnd(bytes, start, end);
    this.#last = new ParsedDocument(this.#found);
    return this.#last;
  }

  /**
   * As `parse`, in slices: it pauses after every `pauseBytes` bytes, and copies the scanned bytes to `target`, which in
   * the end contains the whole stored text. The parser must not be used in the meantime, which is asserted; `bytes`
   * must not change.
   * @param target a buffer of at least `end - start` bytes. @throws as `parse`
   */
  *parseInSlices(
    bytes: OwnedBytes,
    start: number,
    end: number,
    target: Buffer,
    pauseBytes = sliceBytes,
  ): Work<ParsedDocument> {
    assert(this.#sliceBytes === 0, busy);
    this.#found.own = target;
    this.#sliceBytes = pauseBytes;
    try {
      for (;;) {
        this.#run(bytes, start, end, true);
        const paused = this.#pausedAt();
        if (paused === null) break;
        yield;
        if (!paused.isToBeChecked) continue;
        const { out, base, memberTop, i, shift } = paused;
        const members = this.#members;
        this.#checked = yield* removeRepeatedInSlices(out, members, base, memberTop, i - shift);
      }
    } finally {
      this.#sliceBytes = 0;
      this.#paused = null;
      this.#checked = undefined;
    }
    this.#requireMetadataObject();
    this.#requireEnd(bytes, start, end);
    this.#last = new ParsedDocument(this.#found);
    return this.#last;
  }

  #pausedAt(): Paused | null {
    return this.#paused;
  }

  /** The body of `parsed`, the last document of this parser, was moved to `placed`. @returns it, as a new value */
  moved(parsed: ParsedDocument, placed: PlacedBody): ParsedDocument {
    const found = this.#found;
    assert(parsed === this.#last, "the moved text is the last text of this parser");
    found.own = placed.bytes.subarray(placed.bodyStart, placed.bodyStart + found.bodyLength);
    found.source = found.own;
    found.sourceStart = 0;
    found.version++;
    this.#last = new ParsedDocument(found, placed);
    return this.#last;
  }

  #requireMetadataObject(): void {
    const { metadata, metadataLength } = this.#found;
    if (metadataLength > 0 && metadata[0] !== byteObjectOpen) {
      const text = metadata.toString("utf8", 0, Math.min(metadataLength, 100));
      // RavenDB 7.2.7 answers with this type, too.
      const code = text === "null" ? "null-reference" : "invalid-format";
      throw new EngineError(code, `@metadata must be an object, not ${text}`);
    }
  }

  /**
   * Parses any JSON value in `bytes[start, end)`. `@metadata` is an ordinary key, and there is no shape.
   * @throws EngineError as `parse`, without `json-not-object` and `invalid-format`.
   */
  parseValue(bytes: Buffer, start: number, end: number): ParsedValue {
    const value = this.parseFirstValue(bytes, start, end);
    this.#requireEnd(bytes, start, end);
    return value;
  }

  /** As `parseValue`, but other text may follow: `endAt` is the end of the value. */
  parseFirstValue(bytes: Buffer, start: number, end: number): ParsedValue {
    assert(this.#sliceBytes === 0, busy);
    this.#run(bytes, start, end, false);
    return new ParsedValue(this.#found);
  }

  #requireEnd(bytes: Buffer, start: number, end: number): void {
    const at = skipSpace(bytes, this.#found.endAt, end);
    if (at < end) throw jsonError(bytes, start, end, at, "text behind the value");
  }

  // biome-ignore lint/complexity/noExcessiveLinesPerFunction: the hot loop; its state is in locals
  #run(bytes: Buffer, start: number, end: number, isDocument: boolean): void {
    const found = this.#found;
    const paused = this.#paused;
    if (paused === null) this.#prepare(start, end);
    else this.#paused = null;
    const frames = this.#frames;
    let members = this.#members;
    let memberTop = 0;
    /** Number of members of the document itself. */
    let fieldCount = 0;
    let depth = 0;
    /** Start of the innermost object's members on the member stack, or -1 in an array. */
    let base = -1;
    let out = found.own;
    let isAscii = true;
    let node: ShapeNode | null = null;
    if (isDocument && this.#shapes !== null) node = this.#shapes.root;
    /** The body's length so far, while `@metadata` is being read; else -1. */
    let bodyKept = -1;
    let bodyIsAscii = true;
    let movedBytes = 0;
    let i = skipByteOrderMark(bytes, start, end);
    if (isDocument && paused === null) requireObject(bytes, start, end, skipSpace(bytes, i, end));
    let runStart = i;
    let shift = i;
    /** Whether the text before `@metadata` is still only in the input. */
    let isBodyInInput = false;
    let expect = expectValue;
    let isWhole = false;
    let isToBeChecked = false;
    let isPauseDue = false;
    let resumeByte = 0;
    let textStart = 0;
    let textOut = 0;
    let isRewritten = false;
    const isSliced = this.#sliceBytes > 0;
    if (paused !== null) {
      ({ memberTop, fieldCount, depth, base, out, isAscii, node, bodyKept, bodyIsAscii } = paused);
      ({ movedBytes, i, shift, expect, resumeByte, textStart, textOut, isRewritten } = paused);
      runStart = i;
    }
    const textFrom = paused === null ? i : paused.textFrom;
    /** Where it pauses, unless the text ends first: at the next resumable place. */
    const stop = isSliced ? Math.min(end, i + this.#sliceBytes) : end;

    for (;;) {
      let byte = i < end ? (bytes[i] as number) : -1;
      if (i >= stop) {
        if (i < end) break;
      } else if (resumeByte !== 0) byte = resumeByte;
      else if (byte <= byteSpace) {
        const next = skipSpace(bytes, i, stop);
        copyBytes(out, runStart - shift, bytes, runStart, i);
        shift += next - i;
        i = next;
        runStart = next;
        if (i >= stop) continue;
        byte = bytes[i] as number;
      }

      if (byte === byteQuote) {
        let isPredicted = false;
        if (resumeByte === 0) {
          textStart = i;
          textOut = i - shift;
          isRewritten = false;
        }
        if (
          resumeByte === 0 &&
          expect >= expectKey &&
          depth === 1 &&
          node !== null &&
          node.predicted !== null
        ) {
          // Most likely the document continues like the previous one: a comparison suffices.
          const name = node.predicted.name;
          const length = name.length;
          let k = 1;
          if (length <= end - i) while (k < length && bytes[i + k] === name[k]) k++;
          if (k === length) {
            i += length;
            node = node.predicted;
            isPredicted = true;
            if (!node.isAscii) isAscii = false;
          }
        }
        if (!isPredicted) {
          if (resumeByte === 0) i++;
          resumeByte = 0;
          for (;;) {
            i = plainEnd(bytes, i, stop);
            if (i >= stop) {
              if (i >= end) throw jsonError(bytes, start, end, end, "a string has no end");
              resumeByte = byteQuote;
              break;
            }
            const kind = stringByteClasses[bytes[i] as number] as number;
            if (kind === stringQuote) {
              i++;
              break;
            } else if (kind === stringHigh) {
              isAscii = false;
              const length = utf8SequenceLength(bytes, i, end);
              if (length <= 0) throw utf8Error(bytes, start, end, i, length);
              i += length;
            } else if (kind === stringEscape) {
              copyBytes(out, runStart - shift, bytes, runStart, i);
              const outAt = i - shift;
              const both = rewriteEscape(bytes, i, end, out, outAt);
              if (both < 0) throw escapeError(bytes, start, end, i, both);
              if ((out[outAt] as number) >= 0x80) isAscii = false;
              i += both >> 3;
              shift = i - outAt - (both & 7);
              runStart = i;
              isRewritten = true;
            } else throw jsonError(bytes, start, end, i, "a control character is not escaped");
          }
          if (resumeByte !== 0) break;
        }

        if (expect >= expectKey) {
          const keyOutEnd = i - shift;
          let isMetadata = false;
          if (isRewritten) {
            copyBytes(out, runStart - shift, bytes, runStart, i);
            runStart = i;
          }
          if (depth === 1 && isDocument && !isPredicted) {
            const text = isRewritten ? out : bytes;
            const from = isRewritten ? textOut : textStart;
            const length = keyOutEnd - textOut;
            isMetadata =
              length === metadataKey.length && bytesEqual(text, from, metadataKey, 0, length);
            if (!isMetadata && node !== null) node = node.find(text, from, from + length);
          }
          if (!isMetadata) {
            if (memberTop + memberSlots > members.length) members = this.#growMembers();
            members[memberTop] = textOut;
            members[memberTop + 1] = keyOutEnd;
            members[memberTop + 2] = isRewritten
              ? keyHash(out, textOut, keyOutEnd)
              : keyHash(bytes, textStart, i);
            memberTop += memberSlots;
          }
          if (i >= end || bytes[i] !== byteColon) {
            const next = skipSpace(bytes, i, end);
            if (next >= end || bytes[next] !== byteColon) {
              throw jsonError(bytes, start, end, next, "a colon is missing");
            }
            copyBytes(out, runStart - shift, bytes, runStart, i);
            shift += next - i;
            i = next;
            runStart = next;
          }
          i++;
          if (isMetadata) {
            // Its value is written to a buffer of its own; the key and the comma before it are dropped.
            bodyKept = Math.max(textOut - 1, 1);
            isBodyInInput = !isSliced && runStart === textFrom;
            if (!isBodyInInput) copyBytes(out, runStart - shift, bytes, runStart, i);
            bodyIsAscii = isAscii;
            isAscii = true;
            shift = i;
            runStart = i;
            if (this.#isMetadataAt(bytes, i, end)) {
              i += this.#keptLength;
              runStart = i;
              out = found.metadata;
              found.metadataCount = this.#keptCount;
            } else out = this.#prepareMetadata(end - i);
          }
          expect = expectValue;
          if (!isMetadata || runStart === shift) continue;
          // The whole metadata was skipped: the value has ended.
        }
      } else if (expect >= expectKey) {
        if (byte !== byteObjectClose || expect === expectKey) {
          throw jsonError(bytes, start, end, i, "a key in double quotes is missing");
        }
        // The brace closes the empty object, below.
      } else if (byte === byteObjectOpen || byte === byteArrayOpen) {
        if (depth === documentDepthMax) throw depthError();
        base = byte === byteObjectOpen ? memberTop : -1;
        expect = byte === byteObjectOpen ? expectKeyOrClose : expectValueOrClose;
        frames[depth++] = base;
        i++;
        continue;
      } else if ((byte >= byteZero && byte <= byteNine) || byte === byteMinus) {
        const numberStart = i;
        // One more byte is scanned, to determine whether the number continues.
        const numberEnd = Math.min(end, i + numberLengthMax + 1);
        let hasExponent = false;
        if (byte === byteMinus) byte = ++i < numberEnd ? (bytes[i] as number) : -1;
        const first = byte;
        let digits = i;
        while (byte >= byteZero && byte <= byteNine)
          byte = ++i < numberEnd ? (bytes[i] as number) : -1;
        if (i === digits || (first === byteZero && i > digits + 1)) {
          throw jsonError(bytes, start, end, i, "a number is not well formed");
        }
        if (byte === byteDot) {
          byte = ++i < numberEnd ? (bytes[i] as number) : -1;
          digits = i;
          while (byte >= byteZero && byte <= byteNine)
            byte = ++i < numberEnd ? (bytes[i] as number) : -1;
          if (i === digits) throw jsonError(bytes, start, end, i, "a fraction has no digits");
        }
        if (byte === 0x65 || byte === 0x45) {
          hasExponent = true;
          byte = ++i < numberEnd ? (bytes[i] as number) : -1;
          if (byte === bytePlus || byte === byteMinus)
            byte = ++i < numberEnd ? (bytes[i] as number) : -1;
          digits = i;
          while (byte >= byteZero && byte <= byteNine)
            byte = ++i < numberEnd ? (bytes[i] as number) : -1;
          if (i === digits) throw jsonError(bytes, start, end, i, "an exponent has no digits");
        }
        if (i === numberEnd && i < end) {
          const what = `a number has more than ${numberLengthMax} characters`;
          throw jsonError(bytes, start, end, numberStart, what);
        }
        if (hasExponent || i - numberStart > safeDigits) {
          if (!Number.isFinite(Number(bytes.latin1Slice(numberStart, i)))) {
            throw jsonError(bytes, start, end, numberStart, "a number is out of range");
          }
        } else if (first === byteZero && i === numberStart + 2 && bytes[i - 2] === byteMinus) {
          copyBytes(out, runStart - shift, bytes, runStart, numberStart);
          shift++;
          runStart = numberStart + 1;
        }
      } else if (byte !== byteArrayClose || expect !== expectValueOrClose) {
        const word = byte === 0x6e ? wordNull : byte === 0x74 ? wordTrue : wordFalse;
        let k = 0;
        while (k < word.length && i < end && bytes[i] === word[k]) {
          i++;
          k++;
        }
        if (k < word.length) throw jsonError(bytes, start, end, i, "a value is missing");
      } // Else the bracket closes the empty array, below.

      // A value has ended. Determines the next token, and how many enclosing values end with it.
      resumeByte = 0;
      while (depth > 0) {
        byte = i < end ? (bytes[i] as number) : -1;
        if (byte <= byteSpace) {
          const next = skipSpace(bytes, i, stop);
          copyBytes(out, runStart - shift, bytes, runStart, i);
          shift += next - i;
          i = next;
          runStart = next;
          byte = i < end ? (bytes[i] as number) : -1;
          if (i >= stop && i < end) {
            // Resume as after an empty array: only the bracket precedes the next token.
            resumeByte = byteArrayClose;
            expect = expectValueOrClose;
            break;
          }
        }
        if (bodyKept >= 0 && depth === 1) {
          // That was the value of `@metadata`; back to the body.
          copyBytes(out, runStart - shift, bytes, runStart, i);
          found.metadataLength = i - shift;
          this.#keptLength = out[0] === byteObjectOpen ? found.metadataLength : 0;
          this.#keptCount = found.metadataCount;
          out = found.own;
          if (isBodyInInput && byte !== byteObjectClose) {
            copyBytes(out, 0, bytes, textFrom, textFrom + bodyKept);
            isBodyInInput = false;
          }
          // If it was the first member, the comma after it is dropped too; else the one before it already was.
          const dropped = bodyKept === 1 && byte === byteComma ? 1 : 0;
          runStart = i + dropped;
          shift = runStart - bodyKept;
          isAscii = bodyIsAscii;
          bodyKept = -1;
        }
        if (byte === byteComma) {
          expect = base < 0 ? expectValue : expectKey;
          i++;
          break;
        }
        if (byte !== (base < 0 ? byteArrayClose : byteObjectClose)) {
          throw jsonError(bytes, start, end, i, "a comma or a closing bracket is missing");
        }
        if (base >= 0) {
          const isShape = depth === 1 && node !== null && node.shapeId !== 0;
          const isMany = isSliced && memberTop - base >= slicedMembersMin;
          if (!isShape && isMany && this.#checked === undefined) {
            // The loop reaches this point again, with the result of the comparison.
            isToBeChecked = true;
            resumeByte = byteArrayClose;
            expect = expectValueOrClose;
            break;
          }
          if (!isShape && mayRepeat(members, base, memberTop)) {
            if (depth === 1 && isBodyInInput) {
              copyBytes(out, 0, bytes, textFrom, textFrom + i - shift);
              isBodyInInput = false;
            }
            copyBytes(out, runStart - shift, bytes, runStart, i);
            runStart = i;
            const shorter = isMany
              ? (this.#checked ?? null)
              : removeRepeatedKeys(out, members, base, memberTop, i - shift);
            this.#checked = undefined;
            if (shorter !== null) {
              const moved = i - shift - (members[base] as number);
              movedBytes += moved;
              isPauseDue = isSliced && moved >= this.#sliceBytes;
              if (movedBytes > repeatedMovesMax * (end - start)) throw repeatedError();
              memberTop = shorter.memberTop;
              shift = i - shorter.textEnd;
              if (depth === 1) node = null;
            }
          }
          if (depth === 1) fieldCount = (memberTop - base) / memberSlots;
          if (depth === 2 && bodyKept >= 0) this.#keepMetadata(base, memberTop, i - shift);
          memberTop = base;
        }
        i++;
        depth--;
        base = depth > 0 ? (frames[depth - 1] as number) : -1;
        if (isPauseDue && depth > 0 && i < end) {
          isPauseDue = false;
          resumeByte = byteArrayClose;
          expect = expectValueOrClose;
          break;
        }
      }
      isWhole = depth === 0;
      if (isWhole || resumeByte !== 0) break;
    }

    if (!isWhole) {
      copyBytes(out, runStart - shift, bytes, runStart, i);
      this.#paused = {
        memberTop,
        fieldCount,
        depth,
        base,
        out,
        isAscii,
        node,
        bodyKept,
        bodyIsAscii,
        movedBytes,
        textFrom,
        i,
        shift,
        expect,
        resumeByte,
        textStart,
        textOut,
        isRewritten,
        isToBeChecked,
      };
      return;
    }
    found.bodyLength = i - shift;
    found.endAt = i;
    found.isAscii = isAscii;
    if (isDocument && !isSliced && (isBodyInInput || runStart === textFrom)) {
      found.source = bytes;
      found.sourceStart = textFrom;
    } else copyBytes(out, runStart - shift, bytes, runStart, i);
    if (isDocument) this.#setFields(node, fieldCount);
  }

  #prepare(start: number, end: number): void {
    const found = this.#found;
    found.version++;
    const length = Math.max(end - start, 0);
    if (length > documentBytesMax) {
      throw new EngineError(
        "too-large",
        `JSON of ${length} bytes; ${documentBytesMax} are allowed`,
      );
    }
    if (this.#sliceBytes === 0) this.#reserve(length);
    found.source = found.own;
    found.sourceStart = 0;
    found.bodyLength = 0;
    found.shapeId = 0;
    found.fieldCount = 0;
    found.metadataLength = 0;
    found.metadataCount = 0;
  }

  /** Makes room for a text of `length` bytes, and releases the memory that a much longer one needed. */
  #reserve(length: number): void {
    const found = this.#found;
    if (found.own.length < length) {
      found.own = Buffer.allocUnsafeSlow(Math.max(length, 2 * found.own.length));
    } else if (found.own.length > scratchBytesKept && length <= scratchBytesKept) {
      found.own = Buffer.allocUnsafeSlow(Math.max(length, scratchBytesMin));
      this.#members = new Int32Array(membersMin);
    }
  }

  /** Returns whether the text at `at` begins with the metadata of the previous document. Most often it does. */
  #isMetadataAt(bytes: Buffer, at: number, end: number): boolean {
    const length = this.#keptLength;
    const { metadata } = this.#found;
    return length > 0 && length <= end - at && bytesEqual(bytes, at, metadata, 0, length);
  }

  #prepareMetadata(length: number): Buffer {
    const found = this.#found;
    this.#keptLength = 0;
    found.metadataVersion++;
    found.metadataCount = 0;
    if (found.metadata.length < length || found.metadata.length > 2 * length + scratchBytesKept) {
      found.metadata = Buffer.allocUnsafeSlow(length + scratchBytesMin);
    }
    return found.metadata;
  }

  #growMembers(): Int32Array<ArrayBuffer> {
    const longer = new Int32Array(2 * this.#members.length);
    longer.set(this.#members);
    this.#members = longer;
    return longer;
  }

  /** Stores the spans of the members of `@metadata`; `textEnd` is the position of its closing brace. */
  #keepMetadata(base: number, memberTop: number, textEnd: number): void {
    const found = this.#found;
    const members = this.#members;
    found.metadataCount = (memberTop - base) / memberSlots;
    const slots = found.metadataCount * metadataSpanSlots;
    if (found.metadataSpans.length < slots) found.metadataSpans = new Int32Array(2 * slots);
    let to = 0;
    for (let at = base; at < memberTop; at += memberSlots) {
      const next = at + memberSlots;
      found.metadataSpans[to++] = members[at] as number;
      found.metadataSpans[to++] = members[at + 1] as number;
      found.metadataSpans[to++] = (members[at + 1] as number) + 1;
      found.metadataSpans[to++] = next < memberTop ? (members[next] as number) - 1 : textEnd;
    }
  }

  #setFields(node: ShapeNode | null, fieldCount: number): void {
    if (this.#shapes === null) return;
    const found = this.#found;
    const members = this.#members;
    found.shapeId =
      node !== null && node.shapeId !== 0
        ? node.shapeId
        : this.#shapes.define(found.body(), members, 0, memberSlots, fieldCount);
    if (found.shapeId === 0) return;
    found.fieldCount = fieldCount;
    for (let k = 0; k < fieldCount; k++) {
      found.fieldOffsets[k] = (members[k * memberSlots + 1] as number) + 1;
    }
  }
}

/** Returns the first position from `at` that is not a plain string character, at most `end`. */
function plainEnd(bytes: Uint8Array, at: number, end: number): number {
  let i = at;
  while (i < end && stringByteClasses[bytes[i] as number] === stringPlain) i++;
  return i;
}

/** Returns a cheap hash that only distinguishes keys. All bytes are compared if two hashes are equal. */
function keyHash(text: Uint8Array, from: number, to: number): number {
  return (
    (to - from) ^
    ((text[from + 1] as number) << 24) ^
    ((text[to - 2] as number) << 16) ^
    ((text[(from + to) >> 1] as number) << 8)
  );
}

function skipByteOrderMark(bytes: Uint8Array, start: number, end: number): number {
  const has = end - start >= 3 && bytes[start] === 0xef && bytes[start + 1] === 0xbb;
  return has && bytes[start + 2] === 0xbf ? start + 3 : start;
}

const words = [wordTrue, wordFalse, wordNull];

function requireObject(bytes: Uint8Array, start: number, end: number, at: number): void {
  if (at >= end) throw jsonError(bytes, start, end, at, "no text");
  const byte = bytes[at] as number;
  if (byte === byteObjectOpen) return;
  if (end === bytes.length && isCut(bytes, at, end))
    throw jsonError(bytes, start, end, end, "a value has no end");
  const word = words.find((one) => one[0] === byte);
  const isWord = word?.every((letter, n) => bytes[at + n] === letter) ?? false;
  if (isWord || '["-0123456789'.includes(String.fromCharCode(byte))) {
    const where = lineAndColumn(bytes, start, at);
    throw new EngineError("json-not-object", `A document must be a JSON object (at ${where})`);
  }
  throw jsonError(bytes, start, end, at, "a document must be an object");
}

/** Returns whether the text ends within the scalar value that begins at `at`. A number could go on. */
function isCut(bytes: Uint8Array, at: number, end: number): boolean {
  const first = bytes[at] as number;
  let i = at + 1;
  if (first === byteQuote) {
    while (i < end && bytes[i] !== byteQuote) i += bytes[i] === byteBackslash ? 2 : 1;
    return i >= end;
  }
  const word = words.find((one) => one[0] === first);
  if (word !== undefined) {
    while (i < end && bytes[i] === word[i - at]) i++;
    return i === end && i - at < word.length;
  }
  if (first !== byteMinus && (first < byteZero || first > byteNine)) return false;
  while (i < end && "0123456789+-.eE".includes(String.fromCharCode(bytes[i] as number))) i++;
  return i === end;
}

/**
 * Returns `line:column` of a position, both from 1; a column is a byte. Returns `byte` far into a large text, where
 * counting lines would take long.
 */
function lineAndColumn(bytes: Uint8Array, start: number, at: number): string {
  if (at - start > countedBytesMax) return `byte ${at - start + 1}`;
  let line = 1;
  let lineStart = start;
  for (let i = start; i < at; i++) {
    if (bytes[i] !== byteNewline) continue;
    line++;
    lineStart = i + 1;
  }
  return `${line}:${at - lineStart + 1}`;
}

/** Returns the error for invalid text at `at`; at the end of the text something is missing. */
function jsonError(
  bytes: Uint8Array,
  start: number,
  end: number,
  at: number,
  what: string,
  code: ErrorCode = "json-invalid",
): EngineError {
  const where = lineAndColumn(bytes, start, at);
  if (at >= end)
    return new EngineError("json-truncated", `JSON ends too early at ${where}: ${what}`);
  return new EngineError(code, `Not JSON at ${where}: ${what}`);
}

function utf8Error(
  bytes: Uint8Array,
  start: number,
  end: number,
  at: number,
  length: number,
): EngineError {
  return jsonError(bytes, start, end, length < 0 ? end : at, "a byte that is not UTF-8");
}

function escapeError(
  bytes: Uint8Array,
  start: number,
  end: number,
  at: number,
  found: number,
): EngineError {
  if (found === escapeCut) return jsonError(bytes, start, end, end, "an escape is cut");
  if (found === escapeUnknown) {
    return jsonError(bytes, start, end, at, "this character cannot be escaped", "json-escape");
  }
  return jsonError(bytes, start, end, at, "four hexadecimal digits must follow \\u");
}

function repeatedError(): EngineError {
  return new EngineError("too-large", "objects with repeated keys are too many levels deep");
}

function depthError(): EngineError {
  return new EngineError("too-large", `JSON is nested deeper than ${documentDepthMax} levels`);
}
