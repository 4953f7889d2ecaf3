/** Compared with a simple model that compares every live entry. */
import { describe, expect, it } from "vitest";
import { EngineError } from "../../../../engine/base/errors.ts";
import { vectorBytesMax } from "../../../../engine/base/limits.ts";
import { FreeBudget, finish } from "../../../../engine/base/scheduling/work-budget.ts";
import { EntrySet } from "../../../../engine/indexing/columns/entry-set.ts";
import { EntryStore } from "../../../../engine/indexing/columns/entry-store.ts";
import { EntryView } from "../../../../engine/indexing/columns/entry-view.ts";
import type { FieldColumn } from "../../../../engine/indexing/columns/field-column.ts";
import { vectorColumnOf } from "../../../../engine/indexing/vectors/vector-column.ts";
import {
  dimensionsOf,
  type VectorForm,
  vectorsOf,
} from "../../../../engine/indexing/vectors/vector-form.ts";
import {
  addVectorText,
  checkVectorText,
} from "../../../../engine/indexing/vectors/vector-terms.ts";
import { SeededRandom } from "../../../support/random.ts";
import { seedOfRun } from "../../../support/seed.ts";

const budget = new FreeBudget();
const seed = seedOfRun();
const forms: readonly VectorForm[] = [
  { source: "Single", stored: "Single" },
  { source: "Single", stored: "Int8" },
  { source: "Single", stored: "Binary" },
];

function cosine(a: readonly number[], b: readonly number[]): number {
  let product = 0;
  let left = 0;
  let right = 0;
  for (const [i, one] of a.entries()) {
    product += one * (b[i] as number);
    left += one * one;
    right += (b[i] as number) ** 2;
  }
  return product / Math.sqrt(left * right);
}

function sameSigns(a: readonly number[], b: readonly number[]): number {
  const equal = a.filter((one, i) => one >= 0 === (b[i] as number) >= 0).length;
  return (equal + ((8 - (a.length % 8)) % 8)) / (Math.ceil(a.length / 8) * 8);
}

class Model {
  store = new EntryStore(1);
  readonly form: VectorForm;
  readonly documents = new Map<number, readonly (readonly number[])[]>();

  constructor(form: VectorForm) {
    this.form = form;
  }

  get column(): FieldColumn {
    return this.store.columns[0] as FieldColumn;
  }

  put(document: number, vectors: readonly (readonly number[])[]): void {
    this.remove(document);
    addVectorText(this.column, JSON.stringify({ $vector: vectors }), this.form);
    this.store.endEntry(document);
    this.documents.set(document, vectors);
  }

  remove(document: number): void {
    this.store.remove(document);
    this.documents.delete(document);
  }

  nearest(
    sought: readonly number[],
    count: number,
    { minimum = 0, isExact = false, within = null as EntrySet | null } = {},
  ): { document: number; score: number }[] {
    const nearest = vectorColumnOf(this.column, this.form.stored);
    const view = new EntryView(this.store);
    finish(nearest.refresh(budget));
    const search = { vectors: vectorsOf(sought, this.form), count, minimum, isExact, within };
    return [...finish(nearest.find(search, view, budget))]
      .map(([entry, score]) => ({ document: view.documents[entry] as number, score }))
      .sort((a, b) => b.score - a.score || a.document - b.document);
  }

  expected(sought: readonly number[]): { document: number; score: number }[] {
    const compare = this.form.stored === "Binary" ? sameSigns : cosine;
    return [...this.documents]
      .filter(([, vectors]) => vectors.length > 0)
      .map(([document, vectors]) => ({
        document,
        score: Math.max(...vectors.map((vector) => compare(vector, sought))),
      }))
      .sort((a, b) => b.score - a.score || a.document - b.document);
  }
}

function vectorOf(random: SeededRandom, dimensions: number): number[] {
  return Array.from({ length: dimensions }, () => Math.fround(random.below(2001) / 1000 - 1));
}

describe("the nearest vectors", () => {
  it.each(forms)("are the same as in a full comparison: $stored", (form) => {
    const random = new SeededRandom(seed);
    const model = new Model(form);
    for (let round = 0; round < 40; round++) {
      for (let i = 0; i < 20; i++) {
        const document = random.below(200);
        if (random.below(4) === 0) model.remove(document);
        else {
          const count = random.below(4);
          model.put(
            document,
            Array.from({ length: count }, () => vectorOf(random, 9)),
          );
        }
      }
      if (model.store.needsCompaction)
        model.store = model.store.compact(() => false) ?? model.store;
      const sought = vectorOf(random, 9);
      const found = model.nearest(sought, 7);
      const expected = model.expected(sought).slice(0, 7);
      expect(found.length).toBe(expected.length);
      // Scaled bytes differ from floats by their rounding.
      const digits = form.stored === "Int8" ? 1 : 5;
      for (const [i, { score }] of expected.entries()) {
        expect(found[i]?.score).toBeCloseTo(score, digits);
      }
      if (form.stored === "Single") {
        expect(found.map(({ document }) => document)).toEqual(
          expected.map(({ document }) => document),
        );
      }
    }
  });

  it("are found by sketches: alone, with a filter, and after most were replaced", () => {
    const random = new SeededRandom(seed);
    const model = new Model(forms[0] as VectorForm);
    const centers = Array.from({ length: 50 }, () => vectorOf(random, 64));
    const near = () => {
      const center = centers[random.below(centers.length)] as number[];
      // Far from zero, so that the sketches are not all equal.
      return center.map((one) => Math.fround(3 + one + random.below(1000) / 1000));
    };
    const check = () => {
      let found = 0;
      for (let round = 0; round < 10; round++) {
        const sought = near();
        const best = new Set(
          model
            .expected(sought)
            .slice(0, 10)
            .map(({ document }) => document),
        );
        for (const { document } of model.nearest(sought, 10)) if (best.has(document)) found++;
        const exact = model.nearest(sought, 10, { isExact: true });
        expect(exact.map(({ document }) => document)).toEqual([...best]);
      }
      expect(found).toBeGreaterThanOrEqual(95);
    };
    for (let document = 0; document < 9000; document++) model.put(document, [near()]);
    check();
    const even = Uint32Array.from({ length: 4500 }, (_, i) => i * 2);
    const few = model.nearest(near(), 10, { within: EntrySet.ofSorted(even) });
    expect(few.length).toBe(10);
    expect(few.every(({ document }) => document % 2 === 0)).toBe(true);
    for (let document = 0; document < 6000; document++) {
      if (document % 3 === 0) model.remove(document);
      else model.put(document, [near()]);
    }
    check();
    model.store = model.store.compact(() => false) as EntryStore;
    check();
  });

  it("have at least the requested similarity", () => {
    const model = new Model(forms[0] as VectorForm);
    for (const [i, vector] of [
      [1, 0],
      [0, 1],
      [-1, 0],
      [0, 0],
    ].entries())
      model.put(i, [vector]);
    const documents = (minimum: number) =>
      model.nearest([1, 0], 10, { minimum }).map(({ document }) => document);
    expect(documents(0)).toEqual([0, 1, 2]);
    expect(documents(-1)).toEqual([0, 1, 2]);
    expect(documents(0.5)).toEqual([0, 1]);
    expect(documents(1)).toEqual([0]);
    expect(documents(1.5)).toEqual([]);
  });

  it("may be many, of many entries with the same vector, in steps", () => {
    const random = new SeededRandom(seed);
    const model = new Model(forms[0] as VectorForm);
    const [same, other] = [vectorOf(random, 8), vectorOf(random, 8)] as [number[], number[]];
    for (let i = 0; i < 5000; i++) model.put(i, [i % 5 === 0 ? other : same]);
    const found = model.nearest(same, 1500);
    expect(found.map(({ document }) => document)).toEqual(
      Array.from({ length: 1875 }, (_, i) => i)
        .filter((i) => i % 5 !== 0)
        .slice(0, 1500),
    );
    const nearest = vectorColumnOf(model.column, "Single");
    const vectors = vectorsOf(same, model.form);
    const search = { vectors, count: 1500, minimum: 0, isExact: false, within: null };
    class Eager extends FreeBudget {
      override get isDue(): boolean {
        return true;
      }
    }
    let steps = 0;
    const work = nearest.find(search, new EntryView(model.store), new Eager());
    while (work.next().done !== true) steps++;
    expect(steps).toBeGreaterThan(5000);
  });

  it("are found in steps of a few milliseconds", () => {
    const random = new SeededRandom(seed);
    const model = new Model(forms[0] as VectorForm);
    for (let i = 0; i < 5000; i++) model.put(i, [vectorOf(random, 64)]);
    class Eager extends FreeBudget {
      override get isDue(): boolean {
        return true;
      }
    }
    const nearest = vectorColumnOf(model.column, "Single");
    let steps = 0;
    for (const work = nearest.refresh(new Eager()); work.next().done !== true; ) steps++;
    expect(steps).toBeGreaterThan(150);
    const vectors = vectorsOf(vectorOf(random, 64), model.form);
    const search = { vectors, count: 5, minimum: 0, isExact: true, within: null };
    const work = nearest.find(search, new EntryView(model.store), new Eager());
    for (steps = 0; work.next().done !== true; ) steps++;
    expect(steps).toBeGreaterThan(70);
  });
});

describe("values", () => {
  const complaint = (value: unknown, form = forms[0] as VectorForm): string => {
    try {
      vectorsOf(value, form);
    } catch (error) {
      if (error instanceof EngineError) return `${error.code}: ${error.message}`;
      throw error;
    }
    return "none";
  };
  const floats = (...numbers: number[]) => Buffer.from(Float32Array.from(numbers).buffer);

  it("become vectors", () => {
    const [single, int8, binary] = forms as [VectorForm, VectorForm, VectorForm];
    expect(vectorsOf([1, 0.5, 0], single)).toEqual([floats(1, 0.5, 0)]);
    expect(vectorsOf([1, null, true], single)).toEqual([floats(1, 0, 1)]);
    expect(vectorsOf({ "@vector": [1, 2] }, single)).toEqual([floats(1, 2)]);
    expect(vectorsOf("AACAPwAAAAAAAAAA", single)).toEqual([floats(1, 0, 0)]);
    expect(vectorsOf([[1], ["AACAPw=="]], single)).toEqual([floats(1), floats(1)]);
    expect(vectorsOf(null, single)).toEqual([]);
    // Halves are rounded away from zero.
    const scaled = Buffer.concat([Buffer.from([127, 64, 192]), floats(1)]);
    expect(vectorsOf([1, 0.5, -0.5], int8)).toEqual([scaled]);
    expect(vectorsOf([0, -1, 1], binary)).toEqual([Buffer.from([0b10100000])]);
    expect(vectorsOf([255, 1], { source: "Binary", stored: "Binary" })).toEqual([
      Buffer.from([255, 1]),
    ]);
    expect(dimensionsOf(12, "Single")).toBe(3);
    expect(dimensionsOf(7, "Int8")).toBe(3);
    expect(dimensionsOf(1, "Binary")).toBe(1);
  });

  it("are rejected if they are not vectors", () => {
    const none = (type: string) =>
      `json-invalid: We expected to get vector(s), however got: ${type}`;
    expect(complaint([])).toBe(none("BlittableJsonReaderArray"));
    expect(complaint([[[1]]])).toBe(none("BlittableJsonReaderArray"));
    expect(complaint(5)).toBe(none("Int64"));
    expect(complaint({ a: 1 })).toBe("json-invalid: Cannot find vector property in the object.");
    expect(complaint("%%")).toBe(
      "json-invalid: Expected array encoded with base64, however got: '%%'. ",
    );
    expect(complaint([1e300])).toContain("not finite");
    expect(complaint(floats(Number.NaN).toString("base64"))).toContain("not finite");
    expect(complaint(Array.from({ length: vectorBytesMax }, () => 1))).toContain("at most");
    let deep: unknown = [1];
    for (let i = 0; i < 100; i++) deep = { "@vector": deep };
    expect(complaint(deep)).toContain("Cannot find vector property");
  });

  it("with a dimension other than the configured one are a map error", () => {
    const form = forms[0] as VectorForm;
    expect(() => checkVectorText('{"$vector":[1,2]}', "V", form, 3)).toThrow(
      "Attempted to index embedding with 2 dimensions, but field V already contains indexed embedding with 3 dimensions",
    );
    expect(() => checkVectorText('{"$vector":[1,2,3]}', "V", form, 3)).not.toThrow();
  });
});
