/** Cron expressions: the next times, and the messages for rejected expressions. */
import { expect, test } from "vitest";
import { CronSchedule } from "../../../server/backups/cron-schedule.ts";
import { RequestError } from "../../../server/http/request-error.ts";

function at(year: number, month: number, day: number, hour = 0, minute = 0): number {
  return new Date(year, month - 1, day, hour, minute).getTime();
}

test.each([
  ["0 2 * * *", at(2026, 3, 1, 2), at(2026, 3, 2, 2)],
  ["*/15 * * * *", at(2026, 3, 1, 2, 7), at(2026, 3, 1, 2, 15)],
  ["0 0 * * SUN", at(2026, 11, 23), at(2026, 11, 29)],
  ["0 0 1 jan ?", at(2026, 11, 23), at(2027, 1, 1)],
  ["30 4 L * *", at(2027, 2, 1), at(2027, 2, 28, 4, 30)],
  ["0 0 29 2 *", at(2026, 1, 1), at(2028, 2, 29)],
])("%s", (expression, after, expected) => {
  expect(new CronSchedule(expression).nextMs(after)).toBe(expected);
});

test("a day of the month and a day of the week must both match", () => {
  expect(new CronSchedule("0 0 13 * 5").nextMs(at(2026, 11, 23))).toBe(at(2027, 8, 13));
});

test.each([
  ["whenever", "The provided cron string <whenever> has too few parameters"],
  ["", "The provided cron string <> has too few parameters"],
  ["0 2 * * * *", "The provided cron string <0 2 * * * *> has too many parameters"],
  ["99 2 * * *", "There was an error parsing '99' for the Minute field"],
  ["0 2 * * friday", "There was an error parsing 'friday' for the DayOfWeek field"],
  ["0 1-0-3 * * *", "There was an error parsing '1-0-3' for the Hour field"],
  ["0 2 30 2 *", "The provided cron string <0 2 30 2 *> matches no time"],
])("rejects %s", (expression, message) => {
  try {
    void new CronSchedule(expression);
    expect.unreachable();
  } catch (error) {
    expect(error).toBeInstanceOf(RequestError);
    expect(error).toMatchObject({
      type: "NCrontab.Advanced.Exceptions.CrontabException",
      message,
    });
  }
});

test("rejects an absurd expression quickly", () => {
  const started = performance.now();
  for (const expression of [`${"1,".repeat(100_000)}1 * * * *`, `0 0 * * ${"*/".repeat(50)}`]) {
    expect(() => new CronSchedule(expression)).toThrow(RequestError);
  }
  expect(performance.now() - started).toBeLessThan(500);
});
