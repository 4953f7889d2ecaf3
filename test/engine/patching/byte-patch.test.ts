import fc from "fast-check";
import { afterEach, describe, expect, it } from "vitest";
import type { OpenDatabase } from "../../../engine/api/database/open-database.ts";
import { type BytePatchOutcome, compileBytePatch } from "../../../engine/patching/byte-patch.ts";
import { patchDocument } from "../../../engine/patching/patch.ts";
import { scriptCache } from "../../../engine/scripting/script-cache.ts";
import { closeDatabases, openDatabase } from "../../support/open-database.ts";

afterEach(closeDatabases);

const member = '"@metadata":{"@collection":"Cs","Owner":"x"}';

/** The text of a document after the byte patch, and the flags that it returned. */
async function byBytes(
  database: OpenDatabase,
  body: string,
  script: string,
  parameters = "{}",
): Promise<{ readonly outcome: BytePatchOutcome | null; readonly text: string | null }> {
  await database.put("c/bytes", `${body.slice(0, -1)},${member}}`);
  const patch = compileBytePatch(scriptCache.get(script, { kind: "patch" }), parameters);
  if (patch === null) return { outcome: null, text: null };
  const outcome = await database.write((transaction) =>
    patch.apply(transaction, transaction.find("c/bytes")),
  );
  return { outcome, text: await database.bodyText("c/bytes") };
}

/** The text of the document after the script. */
async function byScript(
  database: OpenDatabase,
  body: string,
  script: string,
  values = "{}",
): Promise<string | null> {
  await database.put("c/script", `${body.slice(0, -1)},${member}}`);
  await database.write((transaction) =>
    patchDocument(transaction, { id: "c/script", patch: { script, values } }),
  );
  return await database.bodyText("c/script");
}

/**
 * Checks that the byte patch, if it applies, produces the same text as the script. @returns whether
 * it applied.
 */
async function isPatchedAlike(
  database: OpenDatabase,
  body: string,
  source: string,
  values: string,
): Promise<boolean> {
  const { outcome, text } = await byBytes(database, body, source, values);
  if (outcome === null || outcome === "unsure") return false;
  expect(text).toBe(await byScript(database, body, source, values));
  return outcome === "patched";
}

describe("a patch on bytes", () => {
  it("produces the same text as the script for each document", async () => {
    const database = await openDatabase();
    const number = fc.oneof(
      fc.integer({ min: -1000, max: 1000 }).map(String),
      fc.constantFrom("0", "-0", "1.50", "1e3", "2.0", "-3.5E-7", "9007199254740993"),
      fc.constantFrom("4611686018427387904", "1e300", "0.1", "123456789012345678"),
    );
    const scalar = fc.oneof(
      { weight: 4, arbitrary: number },
      fc.string({ maxLength: 8 }).map((text) => JSON.stringify(text)),
      fc.constantFrom("true", "false", "null", '"NaN"', "[1,2]", '{"B":7.50}', '"é\\u0001"'),
    );
    const field = fc.constantFrom("A", "B", "C", "D");
    const leaf = fc.oneof(
      { weight: 3, arbitrary: field.map((name) => `this.${name}`) },
      fc.constantFrom(
        "1",
        "0",
        "-2",
        "0.5",
        "2.0",
        "'x'",
        "true",
        "null",
        "$p",
        "args.q",
        "this.D.B",
      ),
    );
    const value = fc.oneof(
      leaf,
      fc
        .tuple(leaf, fc.constantFrom("+", "-", "*", "/", "%"), leaf)
        .map(([left, operator, right]) => `(${left} ${operator} ${right})`),
      fc.tuple(leaf, leaf, leaf).map(([a, b, c]) => `${a} * ${b} + ${c}`),
    );
    const assignment = fc
      .tuple(field, fc.constantFrom("=", "+=", "-=", "*=", "/="), value)
      .map(([name, operator, text]) => `this.${name} ${operator} ${text};`);
    const script = fc.array(assignment, { minLength: 1, maxLength: 3 }).map((all) => all.join(" "));
    const parameters = fc.tuple(scalar, number).map(([p, q]) => `{"p":${p},"q":${q}}`);
    let patchedCount = 0;
    await fc.assert(
      fc.asyncProperty(
        fc.tuple(scalar, scalar, number, scalar),
        script,
        parameters,
        async ([a, b, c, d], source, values) => {
          const body = `{"A":${a},"B":${b},"C":${c},"D":${d}}`;
          if (await isPatchedAlike(database, body, source, values)) patchedCount++;
        },
      ),
      { numRuns: 600 },
    );
    expect(patchedCount).toBeGreaterThan(100);
  });

  it("computes with numbers as the script does, in any spelling", async () => {
    const database = await openDatabase();
    const special = [
      ["0", "-0", "0.0", "-0.0", "1.0", "1E+3", "1e-400", "5e-324", "1e-320", "1e308", "-1e300"],
      ["9007199254740991", "9007199254740993", "9223372036854775807", "18446744073709551616"],
      ["123456789012345.678", "3.141592653589793238462643", "100000000000000000000", "1e21"],
    ];
    const number = fc.oneof(
      fc.integer({ min: -1000, max: 1000 }).map(String),
      fc.constantFrom(...special.flat()),
      fc.double({ noNaN: true, noDefaultInfinity: true }).map(String),
    );
    const field = fc.constantFrom("A", "B", "C", "D");
    const leaf = fc.oneof(
      { weight: 3, arbitrary: field.map((name) => `this.${name}`) },
      fc.constantFrom("0", "-0", "-1", "2.0", "0.5", "7", "1e300", "1e-300", "$p", "args.q"),
    );
    const operator = fc.constantFrom("+", "-", "*", "/", "%");
    const { value } = fc.letrec<{ value: string }>((tie) => ({
      value: fc.oneof(
        { depthSize: "small" },
        leaf,
        fc.tuple(tie("value"), operator, tie("value")).map((parts) => `(${parts.join(" ")})`),
      ),
    }));
    const assignment = fc.oneof(
      {
        weight: 4,
        arbitrary: fc
          .tuple(field, fc.constantFrom("=", "+=", "-=", "*=", "/=", "%="), value)
          .map(([name, sign, text]) => `this.${name} ${sign} ${text};`),
      },
      field.map((name) => `this.${name}++;`),
    );
    const script = fc.array(assignment, { minLength: 1, maxLength: 4 }).map((all) => all.join(" "));
    let patchedCount = 0;
    await fc.assert(
      fc.asyncProperty(
        fc.array(number, { minLength: 4, maxLength: 4 }),
        script,
        fc.tuple(number, number).map(([p, q]) => `{"p":${p},"q":${q}}`),
        async ([a, b, c, d], source, values) => {
          const body = `{"A":${a},"B":${b},"C":${c},"D":${d}}`;
          if (await isPatchedAlike(database, body, source, values)) patchedCount++;
        },
      ),
      { numRuns: 500 },
    );
    expect(patchedCount).toBeGreaterThan(100);
  });

  it("gives a zero the same sign as the script", async () => {
    const database = await openDatabase();
    const body = '{"A":0.0,"B":0,"C":-0}';
    const script = "this.A *= -1; this.B *= -1; this.C += 0;";
    const { outcome, text } = await byBytes(database, body, script);
    expect(outcome).toBe("patched");
    expect(text).toBe(await byScript(database, body, script));
    expect(text).toContain('"A":-0.0');
  });

  it("keeps a double a double, and the rest of the document unchanged", async () => {
    const database = await openDatabase();
    const body = '{"A":1.50,"B":{"x":1e3},"C":2,"D":"é"}';
    const { outcome, text } = await byBytes(database, body, "this.A *= 2; this.C += 0.5;");
    expect([outcome, text]).toEqual(["patched", '{"A":3.0,"B":{"x":1e3},"C":2.5,"D":"é"}']);
    const whole = (await database.getText("c/bytes"))?.toString();
    expect(whole).toContain('"@metadata":{"@collection":"Cs","Owner":"x","@change-vector":"A:');
  });

  it("does not write a document whose values do not change", async () => {
    const database = await openDatabase();
    const body = '{"A":9007199254740993,"B":1.50}';
    const { outcome, text } = await byBytes(database, body, "this.A += 0; this.B = 1.5;");
    expect([outcome, text]).toEqual(["unchanged", body]);
  });

  it("leaves uncertain cases to the script", async () => {
    const database = await openDatabase();
    const outcomeOf = async (script: string, parameters = "{}") =>
      (await byBytes(database, '{"A":1,"S":"x","L":[1]}', script, parameters)).outcome;
    expect(await outcomeOf("this.New = 1")).toBe("unsure");
    expect(await outcomeOf("this.A = this.S + 1")).toBe("unsure");
    expect(await outcomeOf("this.L = 1")).toBe("unsure");
    expect(await outcomeOf("this.A = this.A / 0")).toBe("unsure");
    expect(await outcomeOf("this.A = $p", '{"p":[1]}')).toBe(null);
    expect(await outcomeOf("if (this.A) this.A = 2")).toBe(null);
    expect(await outcomeOf("this.A.B = 2")).toBe(null);
  });
});
