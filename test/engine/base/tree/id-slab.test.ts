import fc from "fast-check";
import { expect, test } from "vitest";
import { nameBytesMax } from "../../../../engine/base/limits.ts";
import { IdSlab } from "../../../../engine/base/tree/id-slab.ts";
import { ByteReader } from "../../../../engine/base/tree/sections.ts";

const chunkBytes = 1024;
const text = fc.oneof(
  fc.string({ unit: "grapheme", maxLength: 12 }),
  fc.integer({ min: 400, max: nameBytesMax }).map((length) => "x".repeat(length)),
);

function fill(texts: readonly string[]): { slab: IdSlab; places: number[] } {
  const slab = new IdSlab(chunkBytes, 4);
  const places = texts.map((each) => {
    const bytes = Buffer.from(each);
    return slab.add(bytes, bytes.length);
  });
  return { slab, places };
}

test("returns every stored id, and orders ids by their bytes", () => {
  fc.assert(
    fc.property(fc.array(text, { minLength: 1, maxLength: 60 }), (texts) => {
      const { slab, places } = fill(texts);
      slab.checkInvariants();
      expect(slab.count).toBe(texts.length);
      for (const [docNum, each] of texts.entries()) {
        const bytes = Buffer.from(each);
        const first = Buffer.from(texts[0]!);
        expect(slab.textOf(docNum)).toBe(each);
        expect(slab.has(places[docNum]!, bytes, bytes.length)).toBe(true);
        const other = Buffer.from(`${each}!`);
        expect(slab.has(places[docNum]!, other, other.length)).toBe(false);
        other[0] = other[0]! ^ 1;
        expect(slab.has(places[docNum]!, other, bytes.length)).toBe(bytes.length === 0);
        expect(Math.sign(slab.compare(docNum, 0))).toBe(Buffer.compare(bytes, first));
        expect(Math.sign(slab.compareTo(docNum, first))).toBe(Buffer.compare(bytes, first));
        expect(slab.covers(places[docNum]!)).toBe(true);
      }
      expect(slab.covers(places.at(-1)! + chunkBytes)).toBe(false);
    }),
  );
});

test("is unchanged by a dump and restore, and accepts more ids then", () => {
  fc.assert(
    fc.property(
      fc.array(text, { maxLength: 30 }),
      fc.array(text, { maxLength: 30 }),
      (texts, more) => {
        const { slab } = fill(texts);
        for (let docNum = 0; docNum < texts.length; docNum += 3) slab.remove(docNum);
        const parts = slab.parts();
        for (let docNum = 0; docNum < texts.length; docNum += 3)
          slab.add(Buffer.from("x"), 1, docNum);
        const bytes = Buffer.from("added after the dump");
        slab.add(bytes, bytes.length);
        const restored = new IdSlab(chunkBytes, 4);
        const reader = new ByteReader("ids", parts);
        restored.restore(reader);
        reader.end();
        for (const each of more) restored.add(Buffer.from(each), Buffer.byteLength(each));
        restored.checkInvariants();
        const all = Array.from({ length: restored.count }, (_, docNum) => restored.textOf(docNum));
        const kept = texts.map((each, docNum) => (docNum % 3 === 0 ? "" : each));
        expect(all).toEqual([...kept, ...more]);
      },
    ),
  );
});

test("frees the space of removed ids, and moves the remaining ones", () => {
  const step = fc.record({ text, isRemoval: fc.boolean(), pick: fc.nat() });
  fc.assert(
    fc.property(fc.array(step, { maxLength: 80 }), (steps) => {
      const slab = new IdSlab(chunkBytes, 4);
      const model = new Map<number, string>();
      for (const { text: each, isRemoval, pick } of steps) {
        const numbers = [...model.keys()];
        if (isRemoval && numbers.length > 0) {
          const docNum = numbers[pick % numbers.length]!;
          slab.remove(docNum);
          model.delete(docNum);
        } else {
          const free = Array.from({ length: slab.count }, (_, at) => at).find(
            (at) => !model.has(at),
          );
          const docNum = free ?? slab.count;
          slab.add(Buffer.from(each), Buffer.byteLength(each), docNum);
          model.set(docNum, each);
        }
        if (slab.isSparse || pick % 5 === 0) {
          slab.condense((chunk, start, end, from, to) => {
            const moved = chunk.toString("utf8", start, end);
            const [docNum] = [...model].find(([at]) => slab.placeOf(at) === from)!;
            expect(moved).toBe(model.get(docNum));
            expect(slab.covers(to)).toBe(true);
            return docNum;
          });
        }
        slab.checkInvariants();
      }
      const restored = new IdSlab(chunkBytes, 4);
      const reader = new ByteReader("ids", slab.parts());
      restored.restore(reader);
      reader.end();
      restored.checkInvariants();
      for (const each of [slab, restored]) {
        expect(each.idCount).toBe(model.size);
        for (let docNum = 0; docNum < each.count; docNum++) {
          expect(each.hasNumber(docNum)).toBe(model.has(docNum));
          expect(each.textOf(docNum)).toBe(model.get(docNum) ?? "");
        }
      }
    }),
  );
});

test("reads the previous format: no lengths of chunks, and the bytes of the last in the header", () => {
  const texts = ["", "a".repeat(500), "b".repeat(500), "c".repeat(400), "", "d".repeat(100), "e"];
  const { slab, places } = fill(texts);
  const chunks = [0, 1, 2].map(() => Buffer.alloc(chunkBytes));
  let used = 0;
  for (const [docNum, place] of places.entries()) {
    const chunk = chunks[Math.floor((place * 2) / chunkBytes)]!;
    const at = (place * 2) % chunkBytes;
    chunk.writeUInt16LE(texts[docNum]!.length, at);
    chunk.write(texts[docNum]!, at + 2);
    used = at + ((3 + texts[docNum]!.length) & ~1);
  }
  const count = Math.floor((places.at(-1)! * 2) / chunkBytes) + 1;
  const head = Buffer.from(Uint32Array.of(texts.length, count, used, chunkBytes).buffer);
  const numbers = Buffer.from(Uint32Array.from(places).buffer);
  const last = chunks[count - 1]!.subarray(0, used);
  const old = new IdSlab(chunkBytes, 4);
  const reader = new ByteReader("ids", [head, ...chunks.slice(0, count - 1), last, numbers]);
  old.restore(reader, true);
  reader.end();
  old.checkInvariants();
  for (const docNum of texts.keys()) expect(old.textOf(docNum)).toBe(slab.textOf(docNum));
});

test("rejects bytes in which ids do not follow one another", () => {
  const parts = fill(["a", "bc", "def"]).slab.parts();
  const whole = Buffer.concat(parts);
  for (const at of [0, 4, 8, 12, 16 + 2, 16 + 3, whole.length - 1]) {
    const damaged = Buffer.from(whole);
    damaged[at] = damaged[at]! ^ 0x81;
    const restore = () => new IdSlab(chunkBytes, 4).restore(new ByteReader("ids", [damaged]));
    expect(restore, `byte ${at}`).toThrow(expect.objectContaining({ code: "database-damaged" }));
  }
});
