import fc from "fast-check";
import { describe, expect, it } from "vitest";
import {
  type ComposedMetadata,
  MetadataWriter,
  managedKeys,
  type ServerMember,
} from "../../../../engine/state/documents/document-metadata.ts";
import { DocumentParser } from "../../../../engine/state/documents/document-parser.ts";
import { collectionMemberOf } from "../../../../engine/state/documents/document-text.ts";
import type { ParsedDocument } from "../../../../engine/state/documents/parsed-document.ts";

const writer = new MetadataWriter();
const parser = new DocumentParser(null);

function parsed(metadata: string): ParsedDocument {
  const bytes = Buffer.from(`{"@metadata":${metadata}}`);
  return parser.parse(bytes, 0, bytes.length);
}

function composed(metadata: string): ComposedMetadata {
  return writer.fromParsed(parsed(metadata), []);
}

function textOf({ text, length }: ComposedMetadata): string {
  return text.toString("utf8", 0, length);
}

function stored(metadata: string, serverMembers: readonly ServerMember[] = []): string {
  return textOf(writer.fromParsed(parsed(metadata), serverMembers));
}

function again(text: string, serverMembers: readonly ServerMember[]): string {
  const bytes = Buffer.from(`xx${text},"y":1}`);
  return textOf(writer.fromStored(bytes, 2, Buffer.byteLength(text), serverMembers));
}

describe("stored metadata", () => {
  it("is sorted by the bytes of its keys, as in RavenDB 7.2.7", () => {
    const sent =
      '{"z":{"b":1,"a":2},"Zed":[3,1],"abc":1,"@collection":"U","é":1,"a\\nb":2,"a\\u0041":5,"x":1,"x":2}';
    expect(stored(sent)).toBe(
      '"@collection":"U","Zed":[3,1],"a\\nb":2,"aA":5,"abc":1,"x":2,"z":{"b":1,"a":2},"é":1',
    );
  });

  it("has no members that only the server sets", () => {
    const forged = managedKeys.map((key) => `${JSON.stringify(key)}:"forged"`);
    expect(stored(`{${forged.join(",")},"@Id":1,"@projection":true}`)).toBe(
      '"@Id":1,"@projection":true',
    );
  });

  it("has the server's attachments, not the client's", () => {
    const list = Buffer.from('[{"Name":"x"}]');
    const server = [
      { key: "@counters", valueText: Buffer.from('["likes"]') },
      { key: "@attachments", valueText: list },
      { key: "@timeseries", valueText: null },
    ];
    const expected = '"@attachments":[{"Name":"x"}],"@collection":"U","@counters":["likes"],"k":1';
    expect(stored('{"k":1,"@attachments":[],"@collection":"U"}', server)).toBe(expected);
    expect(again(expected, [{ key: "@counters", valueText: null }])).toBe(
      '"@attachments":[{"Name":"x"}],"@collection":"U","k":1',
    );
    expect(again('"@collection":"U","k":1', server)).toBe(expected);
    expect(again("", server)).toBe('"@attachments":[{"Name":"x"}],"@counters":["likes"]');
  });

  it("is unchanged after another write", () => {
    fc.assert(
      fc.property(fc.dictionary(fc.string({ unit: "grapheme" }), fc.jsonValue()), (members) => {
        const once = stored(JSON.stringify(members));
        expect(again(once, [])).toBe(once);
        const keys = Object.keys(JSON.parse(`{${once}}`) as object);
        const sent = Object.keys(JSON.parse(JSON.stringify(members)) as object);
        expect(keys.toSorted()).toEqual(
          sent.filter((key) => !managedKeys.includes(key)).toSorted(),
        );
        const written = [...once.matchAll(/./gsu)].length > 0 ? keysInOrder(once) : [];
        expect(written).toEqual(
          written.toSorted((a, b) => Buffer.compare(Buffer.from(a), Buffer.from(b))),
        );
      }),
      { numRuns: 500 },
    );
  });
});

/** The texts of the members' keys, in order. */
function keysInOrder(text: string): string[] {
  const keys: string[] = [];
  const { metadata, metadataCount, metadataSpans } = parsed(`{${text}}`).found;
  for (let k = 0; k < metadataCount; k++) {
    const [from, to] = metadataSpans.subarray(4 * k, 4 * k + 2);
    keys.push(JSON.parse(metadata.toString("utf8", from, to)) as string);
  }
  return keys;
}

describe("the collection", () => {
  it.each([
    ["{}", "@empty"],
    ['{"@collection":null}', "@empty"],
    ['{"@collection":5}', "@empty"],
    ['{"@collection":""}', ""],
    ['{"@collection":"Users"}', "Users"],
    ['{"@collection":"Us\\u0065rs é\\n"}', "Users é\n"],
    ['{"@Collection":"Users"}', "@empty"],
  ])("of %s is '%s'", (metadata, collection) => {
    expect(composed(metadata).collection).toBe(collection);
  });

  it("is not stored when it is the only metadata and spelled as the collection", () => {
    const isOnly = (metadata: string, collection: string) =>
      composed(metadata).isOnly(collectionMemberOf(collection));
    expect(isOnly('{"@collection":"Users"}', "Users")).toBe(true);
    expect(isOnly('{"@collection":"Users"}', "users")).toBe(false);
    expect(isOnly("{}", "@empty")).toBe(true);
    expect(isOnly('{"@collection":"Users","k":1}', "Users")).toBe(false);
    expect(isOnly('{"@collection":null}', "@empty")).toBe(false);
  });
});

it("does not depend on earlier results", () => {
  const texts = [
    "{}",
    '{"@collection":"Users"}',
    '{"@collection":"Posts"}',
    '{"@collection":5}',
    '{"@id":"users/1"}',
    '{"@collection":"Users","k":1}',
    '{"k":"@collection"}',
  ];
  const lists: ServerMember[][] = [[], [{ key: "@counters", valueText: Buffer.from("[]") }]];
  fc.assert(
    fc.property(
      fc.array(fc.tuple(fc.constantFrom(...texts), fc.constantFrom(...lists)), { maxLength: 8 }),
      (calls) => {
        for (const [text, members] of calls) {
          const sent = parsed(text);
          const created = writer.fromParsed(sent, members);
          const fresh = new MetadataWriter().fromParsed(sent, members);
          expect(textOf(created)).toBe(textOf(fresh));
          expect(created.collection).toBe(fresh.collection);
        }
      },
    ),
  );
});
