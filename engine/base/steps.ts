/**
 * Work that may have to wait, but mostly does not: a generator that yields each promise it waits for, and is resumed with its
 * value. Where it waits for nothing it makes no promise and costs a call; an `async` function costs several turns of the
 * microtask queue each.
 */
export type Steps<Result> = Generator<Promise<unknown>, Result, unknown>;

/** Runs steps to their end. @returns the result itself where they wait for nothing. @throws what they throw before that */
export function runSteps<Result>(steps: Steps<Result>): Result | Promise<Result> {
  const step = steps.next();
  return step.done === true ? step.value : goOn(steps, step.value);
}

async function goOn<Result>(steps: Steps<Result>, first: Promise<unknown>): Promise<Result> {
  for (let waiting = first; ; ) {
    const step = await waiting.then(
      (value) => steps.next(value),
      (error: unknown) => steps.throw(error),
    );
    if (step.done === true) return step.value;
    waiting = step.value;
  }
}

/** Goes on with a value that may be there already, and then at once. */
export function andThen<Value, Result>(
  given: Value | Promise<Value>,
  next: (value: Value) => Result | Promise<Result>,
): Result | Promise<Result> {
  return given instanceof Promise ? given.then(next) : next(given);
}

/** Waits for a value that may be there already. */
export function* awaited<Value>(given: Value | Promise<Value>): Steps<Value> {
  return given instanceof Promise ? ((yield given) as Value) : given;
}
