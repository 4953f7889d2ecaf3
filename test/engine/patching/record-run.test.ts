import fc from "fast-check";
import { expect, test } from "vitest";
import { sealRecord, verifyRecord } from "../../../engine/base/record.ts";
import { RecordPatch } from "../../../engine/patching/record-patch.ts";
import { RecordRun, type RunTarget } from "../../../engine/patching/record-run.ts";
import {
  DocumentFields,
  documentRecordLength,
  encodeDocumentRecord,
} from "../../../engine/state/documents/document-encoding.ts";
import { MetadataWriter } from "../../../engine/state/documents/document-metadata.ts";
import { DocumentParser } from "../../../engine/state/documents/document-parser.ts";
import { ShapeTable } from "../../../engine/state/documents/shapes.ts";

const shapes = new ShapeTable();
const parser = new DocumentParser(shapes);
const writer = new MetadataWriter();
const firstEtag = 2 ** 32 - 2;
const firstModified = 1_764_000_000_123_456;

/** Consecutive records, as in a segment. */
function encoded(bodies: readonly object[]): { memory: Buffer; starts: number[] } {
  const memory = Buffer.from(new ArrayBuffer(64 * 1024));
  const starts: number[] = [];
  let at = 64;
  for (const [n, body] of bodies.entries()) {
    const text = Buffer.from(JSON.stringify({ ...body, "@metadata": { "@collection": "Cs" } }));
    const parsed = parser.parse(text, 0, text.length);
    const metadata = writer.fromParsed(parsed, []);
    const fields = new DocumentFields();
    fields.setId(`users/${n}`);
    fields.setChangeVector("");
    fields.setMetadata(metadata.text, 0, metadata.length);
    fields.setBody(parsed);
    fields.etag = n + 1;
    fields.lastModified = n + 7;
    fields.collectionId = 3;
    fields.flags = 2;
    encodeDocumentRecord(memory, at, fields);
    sealRecord(memory, at);
    starts.push(at);
    at += documentRecordLength(fields);
  }
  return { memory, starts };
}

class Target implements RunTarget {
  readonly scratch = {
    bytes: Buffer.from(new ArrayBuffer(64 * 1024)),
    length: 0,
    reserve: (): number => this.scratch.length,
  };
  readonly state = {
    takeEtags: (count: number) => {
      this.#etag += count;
      return this.#etag - count + 1;
    },
    takeTimes: (count: number) => {
      this.#modified += count;
      return this.#modified - count + 1;
    },
  };
  readonly rows: number[][] = [];
  #etag = firstEtag;
  #modified = firstModified;

  stageDocument(...row: [number, number, number, number, number]): void {
    this.rows.push(row);
    this.scratch.length += row[2];
  }
}

test("writes the same as patches of single records, with correct checksums", () => {
  const body = fc.record({
    n: fc.integer({ min: 10, max: 99 }),
    text: fc.constantFrom("x", "some more", "y".repeat(1200)),
    m: fc.integer({ min: 100_000, max: 999_999 }),
  });
  const change = fc.record({
    n: fc.integer({ min: 10, max: 99 }),
    m: fc.integer({ min: 100_000, max: 999_999 }),
    isMet: fc.boolean(),
  });
  fc.assert(
    fc.property(fc.array(fc.tuple(body, change), { minLength: 1, maxLength: 12 }), (documents) => {
      const { memory, starts } = encoded(documents.map(([each]) => each));
      const quick = new Target();
      const slow = new Target();
      const run = new RecordRun();
      const record = new RecordPatch();
      const texts = Buffer.alloc(1024);
      let length = 0;
      for (const [n, [, { n: first, m: second, isMet }]] of documents.entries()) {
        if (!isMet) continue;
        record.open(memory, starts[n]!);
        const shape = shapes.get(record.shapeId);
        for (const [name, value] of [
          ["n", first],
          ["m", second],
        ] as const) {
          const index = shape.indexByName.get(name)!;
          const from = length;
          length += texts.write(String(value), length);
          record.replace(
            index,
            record.valueStart(index),
            record.valueEnd(index, shape),
            from,
            length,
          );
        }
        record.patches.source = texts;
        record.patches.isAscii = true;
        expect(record.isOverwrite).toBe(true);
        if (!run.takes(memory)) run.flush(quick, texts);
        run.add(n, memory, starts[n]!, record.length);
        for (let k = 0; k < 2; k++) {
          run.replace(
            record.replacedAt(k) - starts[n]!,
            record.patches.froms[k]!,
            record.patches.tos[k]!,
          );
        }
        const bytes = record.patchedLength(shape);
        const at = slow.scratch.length;
        const etag = slow.state.takeEtags(1);
        record.write(slow.scratch.bytes, at, bytes, shape, etag, slow.state.takeTimes(1));
        sealRecord(slow.scratch.bytes, at);
        expect(verifyRecord(slow.scratch.bytes, at, bytes)).toBe(true);
        slow.stageDocument(n, etag, bytes, 3, 2);
      }
      run.flush(quick, texts);
      expect(quick.rows).toEqual(slow.rows);
      expect(quick.scratch.bytes.equals(slow.scratch.bytes)).toBe(true);
    }),
    { numRuns: 200 },
  );
});
