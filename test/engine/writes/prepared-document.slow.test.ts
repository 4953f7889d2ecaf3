import { crc32 } from "node:zlib";
import fc from "fast-check";
import { describe, expect, it, vi } from "vitest";
import { combinedCrc, crcAround } from "../../../engine/base/crc-combine.ts";
import { preparedBytesMin } from "../../../engine/base/limits.ts";
import { startCollection } from "../../../engine/base/memory/gc-hints.ts";
import { recordLengthAt, verifyRecord } from "../../../engine/base/record.ts";
import { bodyTextOf } from "../../../engine/state/documents/document-record.ts";
import { putParsed } from "../../../engine/writes/documents.ts";
import { prepareDocument } from "../../../engine/writes/prepared-document.ts";
import { openTestDatabase } from "../../support/open-test-database.ts";

const rows = (count: number) =>
  Array.from({ length: count }, (_, n) => ({ Name: `row ${n}`, Number: n / 8, Tags: ["é", "b"] }));

/** A document of more than a megabyte, formatted with spaces. */
function largeText(count: number, metadata: object): string {
  return JSON.stringify({ Rows: rows(count), Last: "x", "@metadata": metadata }, null, 1);
}

function withoutMetadata(text: string): unknown {
  const { "@metadata": _, ...rest } = JSON.parse(text) as Record<string, unknown>;
  return rest;
}

describe("a large document", () => {
  it.each([
    { "@collection": "Larges" },
    { "@collection": "Larges", Own: "x" },
    { "@collection": "Larges", Own: "x".repeat(100_000) },
    {},
  ])("is stored like a small one, with metadata %#", async (metadata) => {
    const database = await openTestDatabase();
    for (const id of ["large/1", "larges/", "größe"]) {
      const text = largeText(20_000, metadata);
      expect(text.length).toBeGreaterThan(preparedBytesMin);
      const stored = await database.put(id, Buffer.from(text));
      const position = database.state.documents.positionOf(stored.document);
      const length = database.state.documents.lengthOf(stored.document);
      const record = database.state.log.peek(position, length);
      if (record === null) throw new Error("the newest record is in memory");
      expect(record.readUInt32LE(recordLengthAt)).toBe(length);
      expect(verifyRecord(record, 0, length)).toBe(true);
      expect(JSON.parse(bodyTextOf(record, 0))).toEqual(withoutMetadata(text));
    }
  });

  it("can be read, replaced and read again before it is durable, beside other documents", async () => {
    const database = await openTestDatabase();
    const writes: Promise<unknown>[] = [];
    for (let n = 0; n < 4; n++) {
      writes.push(database.put("a", Buffer.from(largeText(80_000 + n, { Own: n }))));
      writes.push(database.put(`small/${n}`, `{"N":${n}}`));
    }
    await Promise.all(writes);
    const { Rows } = JSON.parse((await database.bodyText("a")) ?? "null") as { Rows: unknown[] };
    expect(Rows.length).toBeGreaterThanOrEqual(80_000);
  });

  it("leaves nothing in memory once it is stored", async () => {
    const database = await openTestDatabase();
    // Each deref of a WeakRef would keep its target alive through a concurrent collection.
    const collected = new Set<string>();
    const registry = new FinalizationRegistry<string>((id) => collected.add(id));
    const put = (id: string) => {
      const bytes = Buffer.allocUnsafeSlow(40 * 1024 * 1024).fill("x");
      bytes.write('{"Text":"');
      bytes.write('"}', bytes.length - 2);
      registry.register(bytes, id);
      return database.putBytes(id, bytes);
    };
    for (const id of ["a", "b"]) {
      const { document } = await put(id);
      const position = database.state.documents.positionOf(document);
      const length = database.state.documents.lengthOf(document);
      // A large heap is marked in steps, which are driven by allocations.
      const isCollected = () => {
        startCollection();
        expect(collected).toContain(id);
      };
      await vi.waitFor(isCollected, { timeout: 20_000 });
      // The image of its segment is released with the empty frame that follows.
      const isGone = () => expect(database.state.log.peek(position, length) === null).toBe(true);
      await vi.waitFor(isGone, { timeout: 20_000 });
      expect((await database.bodyText(id))?.length).toBe(40 * 1024 * 1024);
    }
    // The comparison of stored and original documents at the end of each test is for smaller
    // documents.
    for (const id of ["a", "b"]) await database.delete(id);
  });

  it("is complete for the next transaction, although it is copied to the log later", async () => {
    const database = await openTestDatabase();
    const bytes = Buffer.from(largeText(120_000, {}));
    const text = { bytes, from: 0, to: bytes.length };
    const prepared = await prepareDocument(database.state, text, "a");
    const written = database.write((transaction) => putParsed(transaction, "a", prepared));
    const isWhole = database.write((transaction) => {
      const record = transaction.recordOf(transaction.find("a"));
      const length = record.bytes.readUInt32LE(record.start + recordLengthAt);
      return length > 4 * 1024 * 1024 && verifyRecord(record.bytes, record.start, length);
    });
    await written;
    expect(await isWhole).toBe(true);
  });

  it("may be short after its spaces and duplicate keys are removed", async () => {
    const database = await openTestDatabase();
    const text = `{"a":${" ".repeat(2 * preparedBytesMin)}1,"b":2${',"b":3'.repeat(100_000)}}`;
    await database.put("a", Buffer.from(text));
    expect(await database.bodyText("a")).toBe('{"a":1,"b":3}');
  });

  it("is rejected with the same error as a small one, and has no effect", async () => {
    const database = await openTestDatabase();
    const text = Buffer.from(`${largeText(20_000, {}).slice(0, -2)},}`);
    await expect(database.put("a", text)).rejects.toThrow(/Not JSON at \d+:\d+: a key/);
    expect(database.find("a")).toBe(-1);
  });
});

describe("combinedCrc", () => {
  it("is the CRC of both texts concatenated", () => {
    const bytes = fc.uint8Array({ maxLength: 70_000 }).map((one) => Buffer.from(one));
    fc.assert(
      fc.property(bytes, bytes, bytes, (first, second, third) => {
        const whole = Buffer.concat([first, second, third]);
        expect(combinedCrc(crc32(first), crc32(second), second.length)).toBe(
          crc32(Buffer.concat([first, second])),
        );
        const from = first.length;
        const to = from + second.length;
        expect(crcAround(whole, 0, whole.length, from, to, crc32(second))).toBe(crc32(whole));
      }),
    );
  });
});
