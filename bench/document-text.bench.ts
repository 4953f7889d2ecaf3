/**
 * Nanoseconds per document for parsing, encoding, composing, and finding and patching a field. One fixed document of
 * 155 bytes (and pretty-printed, large and non-ASCII variants); each figure is the best of several rounds, since
 * other load on the machine can only slow a round down. The last line is a hash of the output, to verify that two
 * revisions do the same work.
 */

import { createHash } from "node:crypto";
import { decodeNumber } from "../engine/base/json/field-access.ts";
import { ChangeOrigin } from "../engine/state/documents/change-origin.ts";
import {
  DocumentFields,
  encodeDocumentRecord,
  FieldPatches,
  patchFields,
} from "../engine/state/documents/document-encoding.ts";
import { MetadataWriter } from "../engine/state/documents/document-metadata.ts";
import { DocumentParser } from "../engine/state/documents/document-parser.ts";
import { fieldEndOf, fieldStartOf } from "../engine/state/documents/document-record.ts";
import {
  collectionMemberOf,
  composeDocument,
  composedLength,
} from "../engine/state/documents/document-text.ts";
import { ShapeTable } from "../engine/state/documents/shapes.ts";

const plain = {
  Name: "Customer 4711",
  Email: "c4711@example.com",
  Age: 34,
  Active: true,
  City: "Berlin",
  Balance: 1234.56,
  Tags: ["a", "bb"],
  Address: { Street: "Main 12", Zip: "10115" },
};
const metadata = { "@collection": "Customers" };
const lines = Array.from({ length: 40 }, (_, i) => ({
  Product: `products/${i}`,
  Quantity: i,
  Price: i * 1.5,
  Note: "a short note",
}));

/** Returns the best time of one call, in nanoseconds. */
function measure(calls: number, rounds: number, work: () => void): number {
  let best = Number.POSITIVE_INFINITY;
  for (let round = 0; round < rounds; round++) {
    const begin = process.hrtime.bigint();
    for (let call = 0; call < calls; call++) work();
    best = Math.min(best, Number(process.hrtime.bigint() - begin) / calls);
  }
  return best;
}

/** Runs the bench. @param size smoke: only checks that everything runs; full: measures */
export function run(size: "smoke" | "full"): void {
  const calls = size === "smoke" ? 20 : 50_000;
  const rounds = size === "smoke" ? 1 : 12;
  const hash = createHash("sha256");
  const report = (name: string, bytes: number, work: () => void, share = 1): void => {
    const ns = measure(Math.max(10, Math.floor(calls * share)), rounds, work);
    console.log(
      `${name.padEnd(34)} ${bytes} B  ${ns.toFixed(0)} ns  ${(ns / bytes).toFixed(2)} ns/B`,
    );
  };

  const shapes = new ShapeTable();
  const parser = new DocumentParser(shapes);
  const texts: readonly (readonly [string, Buffer, number])[] = [
    ["parse, body only", Buffer.from(JSON.stringify(plain)), 1],
    ["parse, with @metadata", Buffer.from(JSON.stringify({ ...plain, "@metadata": metadata })), 1],
    ["parse, pretty-printed", Buffer.from(JSON.stringify(plain, null, 2)), 1],
    ["parse, 40 order lines", Buffer.from(JSON.stringify({ ...plain, lines })), 0.05],
    ["parse, non-ASCII", Buffer.from(JSON.stringify({ ...plain, Name: "日本語テキスト" })), 1],
  ];
  for (const [name, text, share] of texts) {
    report(name, text.length, () => parser.parse(text, 0, text.length), share);
    hash.update(parser.parse(text, 0, text.length).body);
    const asText = text.toString("utf8");
    report("  JSON.parse of its string", text.length, () => JSON.parse(asText), share);
  }

  const text = Buffer.from(JSON.stringify({ ...plain, "@metadata": metadata }));
  const none = Buffer.alloc(0);
  const member = collectionMemberOf("Customers");
  const writer = new MetadataWriter();
  const fields = new DocumentFields();
  const record = Buffer.alloc(4096);
  const parsed = parser.parse(text, 0, text.length);
  report("metadata", text.length, () => writer.fromParsed(parsed, []));
  let recordLength = 0;
  const encode = (): void => {
    fields.setId("customers/4711-A");
    fields.setChangeVector("");
    fields.setMetadata(none, 0, 0);
    fields.setBody(parsed);
    fields.etag = 4711;
    fields.lastModified = 1_764_000_000_123_456;
    recordLength = encodeDocumentRecord(record, 0, fields);
  };
  encode();
  report("encode", recordLength, encode);
  hash.update(record.subarray(0, recordLength));

  const origin = new ChangeOrigin("A", "SujxUHKKb0KlgkspLLr2KQ");
  const reply = Buffer.alloc(4096);
  const length = composedLength(record, 0, member, origin, none);
  report("composed length", length, () => composedLength(record, 0, member, origin, none));
  report("compose", length, () => composeDocument(reply, 0, record, 0, member, origin, none));
  hash.update(reply.subarray(0, length));

  const shape = shapes.get(parsed.found.shapeId);
  const age = shape.indexByName.get("Age") as number;
  let sum = 0;
  report("read a number by the table", 1, () => {
    const from = fieldStartOf(record, 0, age);
    sum += decodeNumber(record, from, fieldEndOf(record, 0, age, shape));
  });
  const patches = new FieldPatches();
  patches.count = 1;
  patches.indexes.push(age);
  patches.source = Buffer.from("135");
  patches.froms.push(0);
  patches.tos.push(3);
  const patched = Buffer.alloc(4096);
  report("patch one field", recordLength, () =>
    patchFields(patched, 0, record, 0, patches, shape, 4712, 1_764_000_000_123_457, none),
  );
  hash.update(patched.subarray(0, recordLength));
  hash.update(`${sum > 0}`);
  console.log(`result ${hash.digest("hex").slice(0, 16)}`);
}
