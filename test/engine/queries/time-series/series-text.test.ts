import { expect, it } from "vitest";
import { WorkBudget } from "../../../../engine/base/scheduling/work-budget.ts";
import type { SeriesFunction } from "../../../../engine/queries/time-series/analyze-series.ts";
import { SeriesText } from "../../../../engine/queries/time-series/series-text.ts";

const series = { aggregates: [], scale: 1, offsetMs: null } as unknown as SeriesFunction;

it("a long text is whole, and its chunks share few buffers", () => {
  const budget = new WorkBudget();
  const text = new SeriesText(series, budget);
  const count = 60_000;
  const values = new Float64Array(1);
  for (let time = 0; time < count; time++) {
    values[0] = time;
    const tag = "İ".repeat(time % 7);
    text.entry({ time, tag, values, start: 0, end: 1, loaded: null, isRollup: false });
  }
  text.finish();
  const whole = Buffer.concat(text.pieces);
  expect(whole).toHaveLength(text.bytes);
  expect(budget.heldBytes).toBe(text.bytes);
  const entries = JSON.parse(`[${whole.toString()}]`) as { Tag: string; Values: number[] }[];
  expect(entries).toHaveLength(count);
  entries.forEach(({ Tag, Values }, time) => {
    if (Values[0] !== time || Tag.length !== time % 7) expect.fail(`entry ${time} is wrong`);
  });
  // The first megabyte is in small buffers; with them, the memory of the rest would not return to the system.
  const rest = text.pieces.slice(-10);
  expect(text.bytes).toBeGreaterThan(4 * 1024 * 1024);
  expect(new Set(rest.map(({ buffer }) => buffer)).size).toBe(1);
  budget.close();
});
