/**
 * Setup for every test file: buffers are compared as bytes. Comparing elements takes seconds for
 * 100 KB.
 */
import { expect } from "vitest";

expect.addEqualityTesters([
  (one: unknown, other: unknown) =>
    Buffer.isBuffer(one) && Buffer.isBuffer(other) ? one.equals(other) : undefined,
]);
