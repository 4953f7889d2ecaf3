import { expect, test } from "vitest";
import { IdHash } from "../../../../engine/base/tree/id-hash.ts";
import { IdKey } from "../../../../engine/base/tree/id-key.ts";
import { IdSlab } from "../../../../engine/base/tree/id-slab.ts";
import { ByteReader } from "../../../../engine/base/tree/sections.ts";

/** A table of ids; `hashOf` replaces the real hash, so that ids collide. */
class Ids {
  readonly key = new IdKey(1);
  readonly slab = new IdSlab(4096, 16);
  readonly hash = new IdHash(this.slab, 16);
  readonly hashOf: ((id: string) => number) | undefined;

  constructor(hashOf?: (id: string) => number) {
    this.hashOf = hashOf;
  }

  #set(id: string): void {
    this.key.set(id);
    if (this.hashOf !== undefined) this.key.hash = this.hashOf(id);
  }

  add(id: string): void {
    this.#set(id);
    const place = this.slab.add(this.key.bytes, this.key.length);
    this.hash.insert(this.key.hash, place, this.slab.count - 1);
  }

  remove(id: string): void {
    this.#set(id);
    const docNum = this.hash.find(this.key);
    this.hash.remove(this.key.hash, this.slab.placeOf(docNum));
    this.slab.remove(docNum);
  }

  find(id: string): number {
    this.#set(id);
    const found = this.hash.find(this.key);
    const candidate = this.hash.candidate(this.key);
    if (candidate < 0) expect(found).toBe(-1);
    else expect(this.hash.isCandidate(this.key)).toBe(candidate === found);
    return found;
  }
}

/** The offset of the first document number in the dump of a single page. */
function numbersAt(dump: Buffer): number[] {
  for (let at = 12 + 16; at < dump.length; at += 12) {
    if (dump.readInt32LE(at + 4) !== 0) return [at + 8];
  }
  return [];
}

test("finds exactly the stored ids while its pages split", () => {
  const ids = new Ids();
  for (let at = 0; at < 3000; at++) {
    expect(ids.find(`users/${at}`)).toBe(-1);
    ids.add(`users/${at}`);
    if (at % 100 === 0) ids.hash.checkInvariants();
  }
  for (let at = 0; at < 3000; at++) expect(ids.find(`USERS/${at}`)).toBe(at);
  expect(ids.find("users/3000")).toBe(-1);
  ids.hash.checkInvariants();
});

test("accepts any number of ids with one hash, by growing their page", () => {
  for (const hash of [0, -1, 0x12345678]) {
    const ids = new Ids((id) => (id.startsWith("same") ? hash : id.length));
    for (let at = 0; at < 100; at++) ids.add(`same/${at}`);
    ids.add("other");
    for (let at = 0; at < 100; at++) expect(ids.find(`same/${at}`)).toBe(at);
    expect(ids.find("other")).toBe(100);
    ids.hash.checkInvariants();
  }
});

test("forgets removed ids, and its pages shrink and merge again", () => {
  const hashes: (((id: string) => number) | undefined)[] = [
    undefined,
    (id) => id.length,
    (id) => (id.length % 2 === 0 ? 15 : -1),
  ];
  for (const hashOf of hashes) {
    const ids = new Ids(hashOf);
    const count = hashOf === undefined ? 3000 : 200;
    for (let at = 0; at < count; at++) ids.add(`users/${at}`);
    const most = ids.hash.memoryBytes();
    for (let tick = 0; tick < count; tick++) {
      const at = (tick * 7) % count;
      ids.remove(`users/${at}`);
      expect(ids.find(`users/${at}`)).toBe(-1);
      const other = (at + 7) % count;
      if (tick < count - 1) expect(ids.find(`users/${other}`)).toBe(other);
      if (tick % 50 === 0) ids.hash.checkInvariants();
    }
    expect(ids.hash.count).toBe(0);
    expect(ids.hash.memoryBytes()).toBeLessThan(most / 8);
  }
});

test("does not change its pages while it is frozen", () => {
  const ids = new Ids();
  for (let at = 0; at < 500; at++) ids.add(`users/${at}`);
  ids.hash.freeze();
  const parts = ids.hash.parts();
  const before = Buffer.concat(parts);
  const slab = Buffer.concat(ids.slab.parts());
  for (let at = 500; at < 1500; at++) {
    if (at === 700) ids.hash.freeze();
    if (at === 900) ids.hash.thaw();
    ids.add(`users/${at}`);
  }
  expect(Buffer.concat(parts).equals(before)).toBe(true);
  ids.hash.thaw();
  ids.hash.checkInvariants();
  for (let at = 0; at < 1500; at++) expect(ids.find(`users/${at}`)).toBe(at);

  const restored = new Ids();
  restored.slab.restore(new ByteReader("ids", [slab]));
  restored.hash.restore(new ByteReader("hash", [before]));
  restored.hash.checkInvariants();
  for (let at = 0; at < 500; at++) expect(restored.find(`users/${at}`)).toBe(at);
  for (let at = 500; at < 900; at++) restored.add(`users/${at}`);
  restored.hash.checkInvariants();
});

test("rejects inconsistent pages", () => {
  const ids = new Ids();
  for (let at = 0; at < 100; at++) ids.add(`users/${at}`);
  ids.hash.freeze();
  const whole = Buffer.concat(ids.hash.parts());
  const damages: [number, number][] = [
    [0, 30], // depth of the directory
    [4, 1], // pages
    [8, 99], // ids
    [12, 21], // depth of the first page
    [16, 3], // its count
    [20, 17], // its capacity
    [20, 2 ** 30],
    ...numbersAt(whole).map((at): [number, number] => [at, 100]),
  ];
  for (const [at, value] of damages) {
    const damaged = Buffer.from(whole);
    damaged.writeInt32LE(value, at);
    const hash = new IdHash(ids.slab, 16);
    const restore = () => hash.restore(new ByteReader("hash", [damaged]));
    expect(restore, `${value} at ${at}`).toThrow(
      expect.objectContaining({ code: "database-damaged" }),
    );
  }
});
