/**
 * Random documents and queries, compared with a slow, simple interpreter of the rules of conditions
 * and orders.
 */
import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { ArrayDatabase, rowIds } from "./execute-array-host.ts";

type Json = null | boolean | number | string | Json[] | { [key: string]: Json };
interface Document {
  readonly id: string;
  readonly body: Record<string, Json>;
}

const scalar: fc.Arbitrary<Json> = fc.oneof(
  fc.constantFrom<Json>(null, true, false, "", "a", "A", "b", "Ab", "18", "2024-01-02", "ÅS"),
  fc.constantFrom<Json>(0, 1, 2, 18, 18.5, -3, -3.5, 1000),
);
const value: fc.Arbitrary<Json> = fc.oneof(
  { weight: 5, arbitrary: scalar },
  { weight: 1, arbitrary: fc.array(scalar, { maxLength: 3 }) },
  { weight: 1, arbitrary: fc.constant<Json>({ X: 1 }) },
);
const body = fc.dictionary(fc.constantFrom("F", "G", "H"), value);

const literal = fc.constantFrom(
  ...["'a'", "'A'", "'ab'", "''", "'18'", "'b'", "'ås'", "'2024-01-02'", "'2024-01-02T00:00:00'"],
  ...["0", "1", "18", "-3", "18.0", "18.5", "true", "false", "null"],
);
const comparable = fc.constantFrom(
  "'a'",
  "'ab'",
  "'18'",
  "''",
  "0",
  "1",
  "18",
  "-3",
  "18.5",
  "-3.5",
);
const field = fc.constantFrom("F", "G", "H");

const condition: fc.Arbitrary<string> = fc.letrec<{ one: string; many: string }>((tie) => ({
  one: fc.oneof(
    fc.tuple(field, fc.constantFrom("=", "!="), literal).map((parts) => parts.join(" ")),
    fc
      .tuple(field, fc.constantFrom("<", "<=", ">", ">="), comparable)
      .map((parts) => parts.join(" ")),
    fc
      .tuple(field, fc.constantFrom("1 and 18", "'a' and 'b'", "-3.5 and 18.5"))
      .map(([f, range]) => `${f} between ${range}`),
    fc
      .tuple(field, fc.constantFrom("('a', 'b')", "(18, 1)", "('18', null)", "()"))
      .map(([f, list]) => `${f} in ${list}`),
    fc
      .tuple(field, fc.constantFrom("('a', 'b')", "(18, 1)"))
      .map(([f, list]) => `${f} all in ${list}`),
    fc
      .tuple(
        fc.constantFrom("startsWith", "endsWith"),
        field,
        fc.constantFrom("'a'", "'B'", "'1'", "''"),
      )
      .map(([call, f, text]) =>
        call === "endsWith" && text === "''" ? `exists(${f})` : `${call}(${f}, ${text})`,
      ),
    field.map((f) => `exists(${f})`),
    fc
      .tuple(field, fc.constantFrom("'a'", "'A'", "'Ab'"))
      .map(([f, text]) => `exact(${f} = ${text})`),
  ),
  many: fc.oneof(
    { weight: 3, arbitrary: tie("one") },
    { weight: 1, arbitrary: fc.tuple(tie("one"), tie("one")).map(([a, b]) => `(${a} and ${b})`) },
    { weight: 1, arbitrary: fc.tuple(tie("one"), tie("one")).map(([a, b]) => `(${a} or ${b})`) },
    {
      weight: 1,
      arbitrary: fc.tuple(tie("one"), tie("one")).map(([a, b]) => `(${a} and not ${b})`),
    },
  ),
})).many;

// The interpreter: a value is a list of scalars; a condition is a function of a document.

function valuesOf(document: Document, name: string): Json[] {
  const flat = (one: Json | undefined): Json[] =>
    one === undefined ? [] : Array.isArray(one) ? one.flatMap(flat) : [one];
  return flat(document.body[name]);
}

const datePattern = /^\d{4}-\d\d-\d\d(T\d\d:\d\d:\d\d)?$/;
function instant(text: string): number {
  return datePattern.test(text) ? Date.parse(text.length === 10 ? text : `${text}Z`) : Number.NaN;
}
function termOf(one: Json, isExact: boolean): string | null {
  if (one === null) return null;
  if (typeof one === "object") return isExact ? "JSON_VALUE" : "json_value";
  if (typeof one === "string") return isExact ? one : one.toLowerCase();
  return String(one);
}
function parse(text: string): Json {
  return text.startsWith("'") ? text.slice(1, -1) : (JSON.parse(text) as Json);
}
function compareText(a: string, b: string): number {
  return Buffer.compare(Buffer.from(a), Buffer.from(b));
}

function equals(one: Json, text: string, isExact: boolean): boolean {
  const sought = parse(text);
  if (sought === null) return one === null;
  if (typeof sought === "number") {
    if (typeof one !== "number") return false;
    return text.includes(".") ? one === sought : Math.trunc(one) === sought;
  }
  if (typeof sought === "boolean") return termOf(one, false) === String(sought);
  const date = instant(sought as string);
  if (!Number.isNaN(date)) return typeof one === "string" && instant(one) === date;
  return termOf(one, isExact) === (isExact ? sought : (sought as string).toLowerCase());
}

function listed(one: Json, text: string): boolean {
  const sought = parse(text);
  return typeof sought === "number"
    ? termOf(one, false) === String(sought)
    : equals(one, text, false);
}

/** Negative, 0 or positive; null if the two cannot be compared. */
function order(one: Json, text: string): number | null {
  const sought = parse(text);
  if (typeof sought === "number") {
    // Dates are numbers of ticks, larger than all of these.
    if (typeof one === "string" && !Number.isNaN(instant(one))) return 1;
    if (typeof one !== "number") return null;
    return (text.includes(".") ? one : Math.trunc(one)) - sought;
  }
  const term = termOf(one, false);
  return term === null ? null : compareText(term, (sought as string).toLowerCase());
}

function test(document: Document, source: string): boolean {
  let match = /^\((.*)\)$/s.exec(source);
  if (match) {
    const inner = match[1] as string;
    for (const [joint, join] of [
      [" and not ", (a: boolean, b: boolean) => a && !b],
      [" and ", (a: boolean, b: boolean) => a && b],
      [" or ", (a: boolean, b: boolean) => a || b],
    ] as const) {
      for (let at = inner.indexOf(joint); at >= 0; at = inner.indexOf(joint, at + 1)) {
        const left = inner.slice(0, at);
        if (/between \S+$/.test(left) || left.split("(").length !== left.split(")").length)
          continue;
        return join(test(document, left), test(document, inner.slice(at + joint.length)));
      }
    }
  }
  match = /^exact\((\w) = (.*)\)$/.exec(source);
  if (match)
    return valuesOf(document, match[1] as string).some((one) =>
      equals(one, (match as string[])[2] as string, true),
    );
  match = /^exists\((\w)\)$/.exec(source);
  if (match) return valuesOf(document, match[1] as string).length > 0;
  match = /^(startsWith|endsWith)\((\w), '(.*)'\)$/.exec(source);
  if (match) {
    const [, call, name, text] = match as unknown as [string, string, string, string];
    const sought = text.toLowerCase();
    return valuesOf(document, name).some((one) => {
      const isDate = typeof one === "string" && !Number.isNaN(instant(one));
      const term = isDate ? (one as string) : termOf(one, false);
      if (term === null) return false;
      if (call === "endsWith") return term.endsWith(sought);
      return sought === "" ? term === "" : term.startsWith(sought);
    });
  }
  match = /^(\w) between (\S+) and (\S+)$/.exec(source);
  if (match) {
    const [, name, low, high] = match as unknown as [string, string, string, string];
    return valuesOf(document, name).some((one) => {
      const above = order(one, low);
      const below = order(one, high);
      return above !== null && below !== null && above >= 0 && below <= 0;
    });
  }
  match = /^(\w) (all )?in \((.*)\)$/.exec(source);
  if (match) {
    const [, name, all, list] = match as unknown as [string, string, string | undefined, string];
    const items = list === "" ? [] : list.split(", ");
    const has = (item: string) => valuesOf(document, name).some((one) => listed(one, item));
    return items.length > 0 && (all === undefined ? items.some(has) : items.every(has));
  }
  match = /^(\w) (\S+) (.*)$/.exec(source);
  const [, name, operator, text] = match as unknown as [string, string, string, string];
  const values = valuesOf(document, name);
  if (operator === "=") return values.some((one) => equals(one, text, false));
  if (operator === "!=") return !values.some((one) => equals(one, text, false));
  return values.some((one) => {
    const compared = order(one, text);
    if (compared === null) return false;
    if (operator === "<") return compared < 0;
    if (operator === "<=") return compared <= 0;
    return operator === ">" ? compared > 0 : compared >= 0;
  });
}

function store(database: ArrayDatabase, document: Document): void {
  const text = JSON.stringify({ ...document.body, "@metadata": { "@collection": "Things" } });
  database.put(document.id, text);
}

describe("conditions", () => {
  it("match the interpreter's result while documents are added, changed and removed", async () => {
    const step = fc.record({
      id: fc.integer({ min: 0, max: 9 }),
      body: fc.option(body, { freq: 5 }),
    });
    await fc.assert(
      fc.asyncProperty(
        fc.array(fc.tuple(fc.array(step, { maxLength: 12 }), condition), {
          minLength: 1,
          maxLength: 4,
        }),
        async (rounds) => {
          const database = new ArrayDatabase();
          const documents = new Map<string, Document>();
          for (const [steps, where] of rounds) {
            for (const { id, body: next } of steps) {
              const name = `things/${id}`;
              if (next === null) {
                documents.delete(name);
                database.remove(name);
              } else {
                documents.set(name, { id: name, body: next });
                store(database, { id: name, body: next });
              }
            }
            const { rows, outcome } = await database.query(`from Things where ${where}`);
            const expected = [...documents.values()]
              .filter((document) => test(document, where))
              .map((document) => document.id);
            // Without `order by` a document keeps its position as long as its values are unchanged.
            expect(rowIds(rows).sort()).toEqual(expected.sort());
            expect(outcome.totalResults).toBe(expected.length);
            expect(outcome.isStale).toBe(false);
          }
          database.indexes.checkInvariants();
          database.indexes.close();
        },
      ),
      { numRuns: 300 },
    );
  });
});

describe("orders", () => {
  const rank = (
    document: Document,
    form: string,
    isOnly: boolean,
    hasText: boolean,
    hasSeveral: boolean,
  ): [number, number | string] => {
    const values = valuesOf(document, "F");
    const isTied = !isOnly || hasSeveral || (form !== "string" && hasText);
    if (values.length === 0) return [isTied ? 1 : 0, 0];
    if (form === "string") {
      const terms = values.map((one) => termOf(one, false));
      if (terms.includes(null)) return [1, 0];
      return [2, (terms as string[]).sort(compareText)[0] as string];
    }
    const numbers = values.filter((one) => typeof one === "number");
    if (numbers.length === 0) return [1, 0];
    return [2, Math.min(...numbers.map((one) => (form === "long" ? Math.trunc(one) : one)))];
  };
  const compare = (a: [number, number | string], b: [number, number | string]): number => {
    if (a[0] !== b[0]) return a[0] - b[0];
    if (typeof a[1] === "number") return a[1] - (b[1] as number);
    return compareText(a[1], b[1] as string);
  };
  const plain = body.filter((one) => !JSON.stringify(one).includes("2024"));

  it("match the interpreter's order, page by page", async () => {
    await fc.assert(
      fc.asyncProperty(
        fc.array(plain, { maxLength: 14 }),
        fc.constantFrom("string", "long", "double"),
        fc.boolean(),
        fc.boolean(),
        fc.nat(5),
        fc.nat(6),
        async (bodies, form, isDescending, isOnly, skip, take) => {
          const database = new ArrayDatabase();
          const documents = bodies.map((one, i) => ({ id: `things/${i}`, body: one }));
          for (const document of documents) store(database, document);
          const as = form === "string" ? "" : ` as ${form}`;
          const direction = isDescending ? " desc" : "";
          const second = isOnly ? "" : ", id() desc";
          const text = `from Things order by F${as}${direction}${second} limit ${skip}, ${take}`;
          const { rows } = await database.query(text);
          const isText = (one: Json) => one !== null && typeof one !== "number";
          const hasText = documents.some((document) => valuesOf(document, "F").some(isText));
          const hasSeveral = documents.some((document) => valuesOf(document, "F").length > 1);
          const sorted = documents
            .map((document, i) => ({ document, i }))
            .sort((a, b) => {
              const first = compare(
                rank(a.document, form, isOnly, hasText, hasSeveral),
                rank(b.document, form, isOnly, hasText, hasSeveral),
              );
              if (first !== 0) return isDescending ? -first : first;
              return isOnly ? a.i - b.i : compareText(b.document.id, a.document.id);
            })
            .map(({ document }) => document.id);
          expect(rowIds(rows)).toEqual(sorted.slice(skip, skip + take));
          database.indexes.close();
        },
      ),
      { numRuns: 200 },
    );
  });
});

describe("plans", () => {
  // The rules common to indexes and scans: no letter case, arrays, nulls or whole numbers.
  const common = fc.constantFrom<Json>("a", "b", "ab", "zz", 0.5, 1.5, 18.5, -3.5);
  const bodies = fc.array(fc.dictionary(field, common), { maxLength: 12 });
  const simple: fc.Arbitrary<string> = fc.oneof(
    fc
      .tuple(field, fc.constantFrom("=", "!="), fc.constantFrom("'a'", "'ab'", "1.5", "-3.5"))
      .map((parts) => parts.join(" ")),
    fc
      .tuple(field, fc.constantFrom("<", "<=", ">", ">="), fc.constantFrom("1.5", "-3.5", "0.5"))
      .map((parts) => parts.join(" ")),
    fc.tuple(field, fc.constantFrom("('a', 'b')", "()")).map(([f, list]) => `${f} in ${list}`),
    field.map((f) => `exists(${f})`),
  );
  const joined = fc.oneof(
    simple,
    fc
      .tuple(simple, fc.constantFrom("and", "or", "and not", "or not"), simple)
      .map(([a, word, b]) => `${a} ${word} (${b})`),
    fc.tuple(simple, simple, simple).map(([a, b, c]) => `(${a} or ${b}) and not (${c})`),
  );

  it("with an index, with an extended index, and without one agree", async () => {
    await fc.assert(
      fc.asyncProperty(bodies, joined, joined, async (all, where, other) => {
        const database = new ArrayDatabase();
        for (const [i, one] of all.entries()) store(database, { id: `things/${i}`, body: one });
        const ids = async (text: string) => rowIds((await database.query(text)).rows);
        const found = await ids(`from Things where ${where}`);
        await ids(`from Things where ${other} order by H, G`);
        await ids("from Things where search(F, 'a') or exact(G = 'a')");
        expect(await ids(`from Things where ${where}`)).toEqual(found);
        expect(await ids(`from Things filter ${where}`)).toEqual(found);
        database.indexes.close();
      }),
      { numRuns: 150 },
    );
  });

  it("for ids agree with a scan of all documents", async () => {
    const database = new ArrayDatabase();
    const names = ["things/1", "Things/2", "things/10", "other/1", "things/é"];
    for (const [i, id] of names.entries()) store(database, { id, body: { F: i } });
    const ids = async (text: string) => rowIds((await database.query(text)).rows).sort();
    for (const condition of [
      "id() = 'THINGS/1'",
      "id() in ('things/2', 'nope', 'things/1')",
      "startsWith(id(), 'things/1')",
      "startsWith(id(), 'Things/É')",
    ]) {
      const scanned = await ids(`from Things where ${condition}`);
      expect(await ids(`from Things where exists(F) and ${condition}`)).toEqual(scanned);
    }
    database.indexes.close();
  });
});
