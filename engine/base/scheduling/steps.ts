/**
 * Work that may have to wait, but mostly does not: a generator that yields each promise it waits for, and is resumed
 * with its value. If it waits for nothing, it creates no promise and costs a call; an `async` function costs several
 * microtasks each.
 */
export type Steps<Result> = Generator<Promise<unknown>, Result, unknown>;

/**
 * Runs steps to their end. @returns the result itself if they wait for nothing. @throws the errors that they throw
 * before the first wait
 */
export function runSteps<Result>(steps: Steps<Result>): Result | Promise<Result> {
  const step = steps.next();
  return step.done === true ? step.value : continueSteps(steps, step.value);
}

async function continueSteps<Result>(
  steps: Steps<Result>,
  first: Promise<unknown>,
): Promise<Result> {
  for (let waiting = first; ; ) {
    const step = await waiting.then(
      (value) => steps.next(value),
      (error: unknown) => steps.throw(error),
    );
    if (step.done === true) return step.value;
    waiting = step.value;
  }
}

/** Continues with a value, synchronously if it is not a promise. */
export function andThen<Value, Result>(
  given: Value | Promise<Value>,
  next: (value: Value) => Result | Promise<Result>,
): Result | Promise<Result> {
  return given instanceof Promise ? given.then(next) : next(given);
}
