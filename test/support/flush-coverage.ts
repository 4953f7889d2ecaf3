/** c8 reads what V8 writes at exit, and vitest ends its workers before that: so write it after each file. */
import { takeCoverage } from "node:v8";
import { afterAll } from "vitest";

afterAll(() => takeCoverage());
