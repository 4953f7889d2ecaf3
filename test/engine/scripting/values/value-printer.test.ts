/**
 * Documents after a script: those read in stored form, compared with those read from arbitrary
 * text.
 */

import { readdirSync, readFileSync } from "node:fs";
import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { EngineError } from "../../../../engine/base/errors.ts";
import {
  defaultLimits,
  Run,
  ScriptObject,
} from "../../../../engine/scripting/language/script-values.ts";
import { compileScript } from "../../../../engine/scripting/script.ts";
import { ScriptDocument } from "../../../../engine/scripting/values/script-document.ts";
import type { ShapeHint } from "../../../../engine/scripting/values/shape-hint.ts";
import { printer } from "../../../../engine/scripting/values/value-printer.ts";
import { projectRoot } from "../../../support/project-root.ts";
import { storedDocument, storedForm } from "../stored-document.ts";
import { stubHost } from "../stub-host.ts";

const metadata = '{"@collection":"Users","@id":"users/1"}';

/** Runs a patch on a document in stored form. The result must be what the parser would store. */
function patchedAsStored(body: string, script: string, hint?: ShapeHint): string {
  const document = storedDocument(body, metadata, "users/1", hint);
  compileScript(script, { kind: "patch" }).run({
    host: stubHost(),
    document,
    limits: defaultLimits,
  });
  const printed = document.printedBody();
  if (printed === null) return document.bodyText();
  const { text } = printed;
  const stored = storedForm(text);
  if (!printed.isStored) return stored.text;
  expect(text).toBe(stored.text);
  expect(printed.isAscii || Buffer.byteLength(text) >= text.length).toBe(true);
  const fields = fieldsOf(printed.bytes);
  // It lists no names if there are too many.
  if (stored.names.length > 0) expect(fields).toEqual(stored.names);
  return text;
}

/** Names of the fields that the printer recorded; each is followed by its value. */
function fieldsOf(bytes: Buffer): string[] {
  const names: string[] = [];
  for (let i = 0; i < printer.fieldCount; i += 1) {
    const [from, to] = printer.keySpans.subarray(2 * i, 2 * i + 2);
    names.push(JSON.parse(bytes.toString("utf8", from, to)) as string);
    expect(printer.valueStarts[i]).toBe((to ?? 0) + 1);
  }
  return names;
}

function patchedAsText(body: string, script: string): string {
  const document = ScriptDocument.fromText(body, metadata, "users/1");
  compileScript(script, { kind: "patch" }).run({
    host: stubHost(),
    document,
    limits: defaultLimits,
  });
  return storedForm(document.bodyText()).text;
}

/** Returns the result, or the code of the error. */
function outcome(work: () => string): string {
  try {
    return work();
  } catch (error) {
    if (error instanceof EngineError) return error.code;
    throw error;
  }
}

const folder = `${projectRoot}test/cases/scripts/`;

describe("documents in stored form", () => {
  for (const file of readdirSync(folder).filter((name) => name.endsWith(".txt"))) {
    it(`have the same results of the scripts in ${file} as other documents`, () => {
      let body = "{}";
      for (const line of readFileSync(folder + file, "utf8").split("\n")) {
        if (line.startsWith("document ")) body = storedForm(line.slice(9)).text;
        if (!line.startsWith("script ")) continue;
        const script = line.slice(7).replaceAll("⏎", "\n");
        expect(
          outcome(() => patchedAsStored(body, script)),
          script,
        ).toBe(outcome(() => patchedAsText(body, script)));
      }
    });
  }

  it("have the same results for any content, whatever was read before", () => {
    const value = fc.jsonValue({ maxDepth: 3 });
    const key = fc.constantFrom("a", "b", "c", "é", '"', "a\\b", "n");
    const body = fc.dictionary(key, value).map((one) => storedForm(JSON.stringify(one)).text);
    const path = fc
      .array(fc.constantFrom("a", "b", "n", "é", "0", "1"), { minLength: 1, maxLength: 3 })
      .map((names) => names.map((name) => `[${JSON.stringify(name)}]`).join(""));
    const statement = fc.oneof(
      fc.tuple(path, value).map(([at, one]) => `this${at} = ${JSON.stringify(one)}`),
      fc.tuple(path, path).map(([at, from]) => `this${at} = this${from}`),
      path.map((at) => `delete this${at}`),
      path.map((at) => `this${at} += 1`),
      path.map((at) => `this${at}.push(this, {k: this${at}[0]})`),
      path.map((at) => `for (const x of this${at}) { x.n += 1; x.s = x.a + 'ü' }`),
      path.map((at) => `this${at} = [this${at}, 1.0, "x\\u0001"]`),
    );
    const script = fc
      .array(statement, { minLength: 1, maxLength: 4 })
      .map((list) => list.map((one) => `try { ${one} } catch {}`).join("\n"));
    fc.assert(
      fc.property(fc.array(body, { minLength: 1, maxLength: 4 }), script, (bodies, source) => {
        const { hint } = compileScript(source, { kind: "patch" });
        for (const one of bodies) {
          expect(outcome(() => patchedAsStored(one, source, hint))).toBe(
            outcome(() => patchedAsText(one, source)),
          );
        }
      }),
      { numRuns: 300 },
    );
  });

  it("keep their spelling if nothing changed", () => {
    const body = '{"a":1.50,"b":[{"n":1E3,"m":2.0,"s":"\\u001F"},{"n":7}],"c":"é"}';
    expect(patchedAsStored(body, "for (const x of this.b) x.n += 1")).toBe(
      '{"a":1.50,"b":[{"n":1001.0,"m":2.0,"s":"\\u001F"},{"n":8}],"c":"é"}',
    );
    expect(patchedAsStored(body, "this.b[0].m = 2; this.c = this.c + this.b[0].s")).toBe(
      '{"a":1.50,"b":[{"n":1E3,"m":2.0,"s":"\\u001F"},{"n":7}],"c":"é\\u001F"}',
    );
  });

  it("can be read on after another document was read", () => {
    const { hint } = compileScript("this", { kind: "patch" });
    const texts = ['{"a":{"x":1,"y":"é"},"b":2}', '{"a":{"x":5},"b":"six"}'] as const;
    const [first, second] = texts.map((text) => storedDocument(text, metadata, "users/1", hint));
    const keep = compileScript("this.a.y", { kind: "patch" });
    const change = compileScript("this.a.x = this.b; this.c = 1; this.a.y", { kind: "patch" });
    keep.run({ host: stubHost(), document: first as ScriptDocument });
    change.run({ host: stubHost(), document: second as ScriptDocument });
    change.run({ host: stubHost(), document: first as ScriptDocument });
    expect(second?.bodyText()).toBe('{"a":{"x":"six"},"b":"six","c":1}');
    expect(first?.bodyText()).toBe('{"a":{"x":2,"y":"é"},"b":2,"c":1}');
  });

  it("may have more keys, and more key lists, than are cached", () => {
    const { hint } = compileScript("this", { kind: "patch" });
    const script = "for (const k in this) this[k].n += 1; this.x.n";
    for (let i = 0; i < 60; i += 1) {
      const names = Array.from({ length: i < 2 ? 700 : 3 }, (_, k) => `k${(i * 7 + k * 31) % 997}`);
      const members = [...new Set(names)].map((name, k) => `"${name}":{"n":${k},"m${i}":"é"}`);
      const body = `{${members.join()},"x":{"n":1.5}}`;
      expect(patchedAsStored(body, script, hint)).toBe(patchedAsText(body, script));
    }
  });
});

describe("printing", () => {
  it("writes strings of any length in stored form", () => {
    const created = new ScriptObject([], false, []);
    const run = new Run({ ...defaultLimits, msMax: 60_000 }, null, created);
    fc.assert(
      fc.property(
        fc.string({ unit: "binary", maxLength: 40 }),
        fc.constantFrom(0, 1, 40, 5_000),
        fc.constantFrom("", "\ud800", '"', "\u0001", "é", "😀"),
        (text, length, last) => {
          const value = text + "x".repeat(length) + last;
          printer.printValue(run, [value].join(), new Set());
          expect(`{"a":${printer.text}}`).toBe(storedForm(`{"a":${JSON.stringify(value)}}`).text);
        },
      ),
      { numRuns: 200 },
    );
  });

  it("is charged if it is of more than the document", () => {
    const big = JSON.stringify({ a: { b: "x".repeat(1_000_000) }, list: [] });
    const script = "for (let i = 0; i < 200; i++) this.list.push(this.a)";
    const document = storedDocument(big, metadata, "users/1");
    compileScript(script, { kind: "patch" }).run({ host: stubHost(), document });
    expect(outcome(() => document.bodyText())).toBe("script-failed");
  });
});
