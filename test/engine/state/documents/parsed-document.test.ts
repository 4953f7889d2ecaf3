import { describe, expect, it } from "vitest";
import { finish } from "../../../../engine/base/scheduling/work-budget.ts";
import {
  DocumentFields,
  documentRecordLength,
  encodeDocumentRecord,
} from "../../../../engine/state/documents/document-encoding.ts";
import { MetadataWriter } from "../../../../engine/state/documents/document-metadata.ts";
import { DocumentParser } from "../../../../engine/state/documents/document-parser.ts";
import { bodyTextOf, idOf } from "../../../../engine/state/documents/document-record.ts";

const none = Buffer.alloc(0);

function parse(parser: DocumentParser, text: string) {
  return parser.parse(Buffer.from(text), 0, Buffer.byteLength(text));
}

describe("parse results", () => {
  it("says what its own text says, until its parser parses another", () => {
    const parser = new DocumentParser(null);
    const first = parse(parser, '{"a":1}');
    const other = parse(new DocumentParser(null), '{"b":2}');
    expect(first.body.toString()).toBe('{"a":1}');
    expect(other.body.toString()).toBe('{"b":2}');
    const second = parse(parser, '{"c":3}');
    expect(() => first.found).toThrow("before their parser parses another");
    expect(() => first.body).toThrow("before their parser parses another");
    expect(second.body.toString()).toBe('{"c":3}');
    const value = parser.parseValue(Buffer.from("[4]"), 0, 3);
    expect(() => second.found).toThrow("before their parser parses another");
    expect(value.body.toString()).toBe("[4]");
    expect(value.endAt).toBe(3);
    expect(() => parse(parser, "{")).toThrow("JSON ends too early");
    expect(() => value.body).toThrow("before their parser parses another");
    expect(() => value.endAt).toThrow("before their parser parses another");
  });

  it("remains equal after a move", () => {
    const parser = new DocumentParser(null);
    const text = Buffer.from('{ "a" : 1 }');
    const parsed = finish(parser.parseInSlices(text, 0, text.length, Buffer.alloc(text.length)));
    const bytes = Buffer.from('....{"a":1}');
    const moved = parser.moved(parsed, { bytes, bodyStart: 4, bodyCrc: 0 });
    expect(moved.body.toString()).toBe('{"a":1}');
    expect(() => parsed.body).toThrow("before their parser parses another");
    expect(() => parser.moved(parsed, { bytes, bodyStart: 4, bodyCrc: 0 })).toThrow();
  });

  it("belongs to one text: a paused parser accepts no other", () => {
    const parser = new DocumentParser(null);
    const text = Buffer.from(`{"a":"${"x".repeat(100)}"}`);
    const work = parser.parseInSlices(text, 0, text.length, Buffer.alloc(text.length), 10);
    work.next();
    expect(() => parse(parser, "{}")).toThrow("parses no other meanwhile");
    expect(() => parser.parseValue(text, 0, text.length)).toThrow("parses no other meanwhile");
    expect(() => finish(parser.parseInSlices(text, 0, text.length, none))).toThrow("meanwhile");
    expect(finish(work).body.toString()).toBe(text.toString());
  });
});

describe("composed metadata", () => {
  it("is cached until other metadata is composed", () => {
    const writer = new MetadataWriter();
    const parser = new DocumentParser(null);
    const users = '{"a":1,"@metadata":{"@collection":"Users"}}';
    const first = writer.fromParsed(parse(parser, users), []);
    // The next document has the same metadata, so the same value is returned.
    expect(writer.fromParsed(parse(parser, users), [])).toBe(first);
    const second = writer.fromParsed(parse(parser, '{"@metadata":{"@collection":"Posts"}}'), []);
    expect(() => first.text).toThrow("before other is composed");
    expect(() => first.isOnly(Buffer.from('"@collection":"Users"'))).toThrow("before other");
    expect(second.text.toString("utf8", 0, second.length)).toBe('"@collection":"Posts"');
    writer.fromStored(Buffer.from('"k":1'), 0, 5, []);
    expect(() => second.text).toThrow("before other is composed");
  });
});

describe("the fields of a record", () => {
  function encode(fields: DocumentFields): Buffer {
    const record = Buffer.from(new ArrayBuffer(documentRecordLength(fields)));
    encodeDocumentRecord(record, 0, fields);
    return record;
  }

  function fill(fields: DocumentFields, id: string, parser: DocumentParser, text: string): void {
    fields.setId(id);
    fields.setChangeVector("");
    fields.setMetadata(none, 0, 0);
    fields.setBody(parse(parser, text));
  }

  it("belong to that record, and none is left from the previous one", () => {
    const fields = new DocumentFields();
    const parser = new DocumentParser(null);
    fill(fields, "a", parser, '{"a":1}');
    expect(bodyTextOf(encode(fields), 0)).toBe('{"a":1}');
    expect(() => encode(fields)).toThrow("each part of a record is set for it alone");
    fields.setId("b");
    fields.setChangeVector("");
    fields.setMetadata(none, 0, 0);
    expect(() => encode(fields)).toThrow("each part of a record is set for it alone");
    fill(fields, "b", parser, '{"b":2}');
    const record = encode(fields);
    expect([idOf(record, 0), bodyTextOf(record, 0)]).toEqual(["b", '{"b":2}']);
  });

  it("are cleared when another record was written in between", () => {
    const fields = new DocumentFields();
    const parser = new DocumentParser(null);
    fields.setId("a");
    fill(fields, "b", parser, "{}");
    encode(fields);
    fields.setChangeVector("");
    fields.setMetadata(none, 0, 0);
    fields.setBody(parse(parser, "{}"));
    expect(() => encode(fields)).toThrow("each part of a record is set for it alone");
  });
});
