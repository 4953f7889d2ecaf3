import { expect, test } from "vitest";
import {
  FieldSample,
  histogram,
  rangeType,
  schemaRows,
  topValues,
} from "../../../studio/json/schema.ts";

function sampleOf(documents: readonly unknown[]): FieldSample {
  const sample = new FieldSample();
  for (const document of documents) sample.add(document);
  return sample;
}

const rowsOf = (sample: FieldSample) =>
  schemaRows(sample, () => true, 100).map(
    ({ path, level, field, of }) =>
      `${path} ${level} ${field.count}/${of} ${[...field.types].join(" ")}`,
  );

test("counts fields, types and elements of lists", () => {
  const sample = sampleOf([
    { A: 1, "@metadata": { "@id": "x" }, Lines: [{ P: "products/1-A" }, { P: "b", Q: true }] },
    { A: "text", Lines: [] },
    { A: null },
  ]);
  expect(rowsOf(sample)).toEqual([
    "A 0 3/3 number,1 text,1 null,1",
    "Lines 0 2/3 list,2",
    "Lines[] 1 2/2 object,2",
    "Lines[].P 2 2/2 id,1 text,1",
    "Lines[].Q 2 1/2 bool,1",
  ]);
});

test("has ranges, histograms and repeated values", () => {
  const sample = sampleOf([0, 1, 2, 3, 10].map((N) => ({ N, Kind: N < 2 ? "low" : `other ${N}` })));
  const number = sample.fields.get("N") as FieldSample;
  expect([number.low, number.high, rangeType(number)]).toEqual([0, 10, "number"]);
  expect(histogram(number, 5)).toEqual([2, 2, 0, 0, 1]);
  expect(topValues(sample.fields.get("Kind") as FieldSample, 3)).toEqual([["low", 2]]);
});

test("has no range for numbers of several types", () => {
  const sample = sampleOf([{ N: 1 }, { N: "2020-01-01T00:00:00" }]);
  expect(rangeType(sample.fields.get("N") as FieldSample)).toBeNull();
});

test("is bounded in fields, depth and distinct values", () => {
  const wide = Object.fromEntries(Array.from({ length: 1000 }, (_, n) => [`f${n}`, n]));
  let deep: unknown = 1;
  for (let n = 0; n < 1000; n++) deep = { deep };
  const sample = sampleOf([wide, deep]);
  for (let n = 0; n < 5000; n++) sample.add({ f0: `value ${n}` });
  expect(sample.fields.size).toBe(200);
  expect(sample.hasMoreFields).toBe(true);
  const first = sample.fields.get("f0") as FieldSample;
  expect(first.values.size).toBe(1000);
  expect(first.hasMoreValues).toBe(true);
  expect(rowsOf(sampleOf([deep]))).toHaveLength(8);
});
