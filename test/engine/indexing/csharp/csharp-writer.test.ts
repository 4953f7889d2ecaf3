import { expect, test } from "vitest";
import { parseCSharp } from "../../../../engine/indexing/csharp/csharp-parser.ts";
import { CSharpWriter } from "../../../../engine/indexing/csharp/csharp-writer.ts";

const written = (text: string, ...names: string[]) =>
  new CSharpWriter(text, false).write(parseCSharp(text), new Set(names));

test("prefixes bound names, and refuses others with their position", () => {
  expect(written("a.B + a.C", "a")).toBe('csAdd(csGet(v_a, "B"), csGet(v_a, "C"))');
  expect(() => written("a.B + b", "a")).toThrow("(1,7): The name 'b' does not exist");
});

test("enumerates the source of a map once", () => {
  const text = "docs.A";
  const writer = new CSharpWriter(text, false);
  expect(writer.enumerate(parseCSharp("x.A"))).toBe(false);
  expect(writer.source).toBeNull();
  expect(writer.enumerate(parseCSharp(text))).toBe(true);
  expect(writer.source).toMatchObject({ declaration: "map", collections: ["A"], item: null });
  expect(() => writer.enumerate(parseCSharp(text))).toThrow("'docs' may be enumerated once only");
});

test("declares the variables of patterns, and reports loads and computed names", () => {
  const text = 'a is int n ? LoadDocument(a, "Cities") : CreateField("b", n)';
  const writer = new CSharpWriter(text, false);
  writer.write(parseCSharp(text), new Set(["a"]));
  expect(writer.declarations).toBe("let v_n;\n");
  expect(writer.loads).toEqual(["Cities"]);
  expect(writer.isDynamic).toBe(true);
});
