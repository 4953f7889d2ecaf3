import fc from "fast-check";
import { expect, test } from "vitest";
import { RecordPatch } from "../../../engine/patching/record-patch.ts";
import {
  DocumentFields,
  documentRecordLength,
  encodeDocumentRecord,
  FieldPatches,
  patchedRecordLength,
  patchFields,
} from "../../../engine/state/documents/document-encoding.ts";
import { MetadataWriter } from "../../../engine/state/documents/document-metadata.ts";
import { DocumentParser } from "../../../engine/state/documents/document-parser.ts";
import { fieldEndOf, fieldStartOf } from "../../../engine/state/documents/document-record.ts";
import { collectionMemberOf } from "../../../engine/state/documents/document-text.ts";
import { ShapeTable } from "../../../engine/state/documents/shapes.ts";

const shapes = new ShapeTable();
const parser = new DocumentParser(shapes);
const writer = new MetadataWriter();
const fields = new DocumentFields();
const noVector = Buffer.alloc(0);
const record = new RecordPatch();

/** The record of a document at offset `before` of its memory. */
function encoded(body: object, vector: string, before: number, isAligned: boolean): Buffer {
  const text = Buffer.from(JSON.stringify({ ...body, "@metadata": { "@collection": "Cs", k: 1 } }));
  const parsed = parser.parse(text, 0, text.length);
  const metadata = writer.fromParsed(parsed, []);
  expect(collectionMemberOf(metadata.collection).length).toBeGreaterThan(0);
  fields.setId("users/1");
  fields.setChangeVector(vector);
  fields.setMetadata(metadata.text, 0, metadata.length);
  fields.setBody(parsed);
  fields.etag = 2 ** 33 + 5;
  fields.lastModified = 1_764_000_000_123_456;
  fields.collectionId = 300;
  fields.flags = 66;
  const length = documentRecordLength(fields);
  const memory = Buffer.from(new ArrayBuffer(before + length));
  encodeDocumentRecord(memory, before, fields);
  if (!isAligned) return Buffer.concat([Buffer.alloc(3), memory]).subarray(3);
  return memory;
}

/** The results of `patchFields` and of the in-place patch. */
function both(
  body: object,
  changes: ReadonlyMap<string, string>,
  vector: string,
  isAligned: boolean,
) {
  const start = 16;
  const bytes = encoded(body, vector, start, isAligned);
  record.open(bytes, start);
  const shape = shapes.get(record.shapeId);
  const patches = new FieldPatches();
  const source = Buffer.from([...changes.values()].join(""));
  patches.source = source;
  patches.isAscii = /^\p{ASCII}*$/u.test([...changes.values()].join(""));
  record.patches.source = source;
  record.patches.isAscii = patches.isAscii;
  let at = 0;
  const starts = new Map<string, number>();
  for (const [name, text] of changes) {
    starts.set(name, at);
    at += Buffer.byteLength(text);
  }
  for (const [index, name] of shape.names.entries()) {
    const from = starts.get(name);
    if (from === undefined) continue;
    const to = from + Buffer.byteLength(changes.get(name) ?? "");
    patches.indexes.push(index);
    patches.froms.push(from);
    patches.tos.push(to);
    patches.count++;
    const valueStart = record.valueStart(index);
    const valueEnd = record.valueEnd(index, shape);
    expect([valueStart, valueEnd]).toEqual([
      fieldStartOf(bytes, start, index),
      fieldEndOf(bytes, start, index, shape),
    ]);
    record.replace(index, valueStart, valueEnd, from, to);
  }
  const length = patchedRecordLength(bytes, start, patches, shape, 0);
  const slow = Buffer.from(new ArrayBuffer(length + 24)).fill(0xee);
  const quick = Buffer.from(new ArrayBuffer(length + 24)).fill(0xee);
  patchFields(slow, 8, bytes, start, patches, shape, 2 ** 40 + 1, 2 ** 50 + 3, noVector);
  expect(record.patchedLength(shape)).toBe(length);
  record.write(quick, 8, length, shape, 2 ** 40 + 1, 2 ** 50 + 3);
  return { slow, quick };
}

test("writes the same as patchFields, at any alignment", () => {
  const name = fc.constantFrom("a", "bb", "ccc", "é", "long name");
  const value = fc.oneof(
    { weight: 6, arbitrary: fc.jsonValue({ maxDepth: 1 }) },
    { weight: 6, arbitrary: fc.string({ maxLength: 40 }) },
    // Around and beyond the size from which offsets take 4 bytes.
    fc.integer({ min: 65_300, max: 66_000 }).map((length) => "x".repeat(length)),
  );
  const document = fc.dictionary(name, value, { minKeys: 1, noNullPrototype: true });
  const vector = fc.constantFrom("", "", "A:1-abcdefghijklmnopqrstuv");
  fc.assert(
    fc.property(
      document,
      fc.dictionary(name, value, { noNullPrototype: true }),
      vector,
      fc.boolean(),
      (body, drawn, changeVector, isAligned) => {
        const changes = new Map<string, string>();
        for (const [key, changed] of Object.entries(drawn)) {
          if (Object.hasOwn(body, key)) changes.set(key, JSON.stringify(changed));
        }
        const { slow, quick } = both(body, changes, changeVector, isAligned);
        expect(quick.equals(slow)).toBe(true);
      },
    ),
    { numRuns: 400 },
  );
});

test("overwrites values in place if all lengths are unchanged", () => {
  const { slow, quick } = both(
    { a: 41, bb: "xyz", ccc: [1, 2] },
    new Map([
      ["a", "42"],
      ["bb", '"abc"'],
    ]),
    "",
    true,
  );
  expect(quick.equals(slow)).toBe(true);
});
