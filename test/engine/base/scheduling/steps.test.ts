import { expect, test } from "vitest";
import { runSteps, type Steps } from "../../../../engine/base/scheduling/steps.ts";

function* awaited(given: number | Promise<number>): Steps<number> {
  return typeof given === "number" ? given : ((yield given) as number);
}

function* sum(...given: (number | Promise<number>)[]): Steps<number> {
  let total = 0;
  for (const one of given) total += yield* awaited(one);
  return total;
}

test("steps that never wait return their result synchronously", () => {
  expect(runSteps(sum(1, 2, 3))).toBe(6);
});

test("steps resume with the awaited value", async () => {
  const running = runSteps(sum(1, Promise.resolve(2), 3, Promise.resolve(4)));
  expect(running).toBeInstanceOf(Promise);
  expect(await running).toBe(10);
});

test("throws synchronously before the first wait, rejects afterwards, and steps can catch both", async () => {
  const ended: string[] = [];
  function* failing(first: Promise<number> | number): Steps<void> {
    try {
      if ((yield* awaited(first)) === 1) throw new Error("one");
      try {
        yield Promise.reject(new Error("inner"));
      } catch (error) {
        ended.push((error as Error).message);
      }
      yield Promise.reject(new Error("outer"));
    } finally {
      ended.push("closed");
    }
  }
  expect(() => runSteps(failing(1))).toThrow("one");
  await expect(runSteps(failing(Promise.resolve(1)))).rejects.toThrow("one");
  await expect(runSteps(failing(2))).rejects.toThrow("outer");
  expect(ended).toEqual(["closed", "closed", "inner", "closed"]);
});
