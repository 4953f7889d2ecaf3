/** Text of callers that must be one JSON object, checked by the parser of documents. */
import { nextTurn, turnIsOver } from "../base/turns.ts";
import { DocumentParser } from "../documents/document-parser.ts";

/** Bytes from which a text is parsed in slices, and bytes per slice. */
const slicedBytesMin = 64 * 1024;
const pauseBytes = 32 * 1024;

const parser = new DocumentParser(null);

/** The minified text of the JSON object in `text`. A long one is parsed in slices. @throws EngineError json-… */
export function minifiedObject(text: Buffer): Buffer | Promise<Buffer> {
  if (text.length >= slicedBytesMin) return minifiedInSlices(text);
  parser.parse(text, 0, text.length);
  // A copy: everybody's texts are parsed into the same buffer.
  return Buffer.from(parser.body.subarray(0, parser.bodyLength));
}

async function minifiedInSlices(text: Buffer): Promise<Buffer> {
  const own = new DocumentParser(null);
  const target = Buffer.allocUnsafeSlow(text.length);
  const work = own.parseInSlices(text, 0, text.length, target, pauseBytes);
  while (work.next().done !== true) await turnIsOver();
  await nextTurn();
  return own.source.subarray(0, own.bodyLength);
}
