/** Documents as the database passes them to scripts: bytes inside a larger buffer. */

import { ScriptDocument } from "../../../engine/scripting/values/script-document.ts";
import type { ShapeHint } from "../../../engine/scripting/values/shape-hint.ts";
import { DocumentParser } from "../../../engine/state/documents/document-parser.ts";
import { ShapeTable } from "../../../engine/state/documents/shapes.ts";

const shapes = new ShapeTable();
const parser = new DocumentParser(shapes);

/** The stored form of `text`. */
export function storedForm(text: string): { text: string; names: readonly string[] } {
  const bytes = Buffer.from(text);
  const parsed = parser.parse(bytes, 0, bytes.length);
  const { shapeId } = parsed.found;
  const names = shapeId === 0 ? [] : shapes.get(shapeId).names;
  return { text: parsed.body.toString(), names };
}

/** A document with a body in stored form. */
export function storedDocument(
  text: string,
  metadata: string,
  id: string,
  hint?: ShapeHint,
): ScriptDocument {
  const bytes = Buffer.from(`,"x"${text},"y":`);
  const to = bytes.length - 5;
  const isAscii = bytes.length === text.length + 9;
  return ScriptDocument.fromStored(
    { bytes, from: 4, to, isAscii, id, metadataText: metadata, fieldEnd: () => -1 },
    hint,
  );
}
