/**
 * c8 reads what V8 writes at exit, but vitest ends its workers earlier: coverage is written after each file instead.
 */
import { takeCoverage } from "node:v8";
import { afterAll } from "vitest";

afterAll(() => takeCoverage());
