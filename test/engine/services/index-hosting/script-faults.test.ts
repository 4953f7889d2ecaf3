/** Errors in the text of JavaScript indexes. All expected values were observed on RavenDB 7.2.7. */
import { afterEach, describe, expect, it } from "vitest";
import { EngineError } from "../../../../engine/base/errors.ts";
import { StaticIndex } from "../../../../engine/indexing/static-index.ts";
import { closeDatabases, openDatabase, putAll, query } from "../../../support/open-database.ts";

afterEach(closeDatabases);

const users = { "u/1": { Name: "Ann", N: 5, Nul: null, Ref: "u/2" }, "u/2": { Name: "Bob", N: 7 } };

interface Outcome {
  readonly errors: readonly string[];
  readonly isErrored: boolean;
  readonly entryCount: number;
}

async function deployed(Maps: readonly string[], Reduce?: string): Promise<Outcome> {
  const database = await openDatabase();
  await putAll(database, "Us", users);
  const definition = { Name: "I", Maps, ...(Reduce === undefined ? {} : { Reduce }) };
  await database.queries.administration.deploy([definition], true);
  await database.queries.indexes.waitForNonStale("I", 20_000);
  const index = database.queries.indexes.byName("I");
  if (!(index instanceof StaticIndex)) throw new Error("there is no such index");
  const errors = index.errors.list.map(({ action, document }) => `${action} ${document}`);
  const isErrored = index.errors.invalidity("I", Reduce !== undefined) !== null;
  if (isErrored) return { errors, isErrored, entryCount: 0 };
  const { ids, rows } = await query(database, "from index 'I'");
  return { errors, isErrored, entryCount: Reduce === undefined ? ids.length : rows.length };
}

const ofMap = (body: string) => deployed([`map('Us', u => ${body})`]);
const allFail: Outcome = { errors: ["Map u/1", "Map u/2"], isErrored: true, entryCount: 0 };
const entries = (entryCount: number): Outcome => ({ errors: [], isErrored: false, entryCount });

describe("the text of a map that throws while declaring its maps", () => {
  it.each([
    ["throw new Error('broken'); map('Us', u => ({ A: 1 }))", /compile index 'I'.*broken/s],
    ["throw 'broken'", /compile index 'I'.*broken/s],
    ["const a = 1; a = 2; map('Us', u => ({ A: 1 }))", /Assignment to constant variable/],
  ])("is rejected: %s", async (text, message) => {
    const fault = await deployed([text]).catch((error: unknown) => error);
    expect(fault).toBeInstanceOf(EngineError);
    expect((fault as EngineError).code).toBe("index-compilation");
    expect((fault as EngineError).message).toMatch(message);
  });
});

describe("the result of a map", () => {
  it.each([
    ["5", 0],
    ["'x'", 0],
    ["true", 0],
    ["new Date()", 0],
    ["null", 0],
    ["[{ A: 1 }, 5, null, 'x']", 2],
  ])("%s has entries only for its objects", async (body, count) => {
    expect(await ofMap(`{ return ${body}; }`)).toEqual(entries(count));
  });

  it.each(["[[{ A: 1 }]]", "function () {}"])("%s is an error", async (body) => {
    expect(await ofMap(`{ return ${body}; }`)).toEqual(allFail);
  });
});

describe("unavailable functions", () => {
  it.each([
    "{ const c = load('u/99', 'Us'); return { A: c && c.City }; }",
    "{ const c = load('u/99', 'Us'); return { A: c }; }",
    "({ A: load('u/99', 'Us') && 1 })",
    "({ A: load(null, 'Us') && 1 })",
    "({ A: load(null, 'Us') })",
    "({ A: cmpxchg('x') })",
    "({ A: cmpxchg(null) })",
    "({ A: cmpxchg(u.Nope) })",
  ])("is not a value of an entry: %s", async (body) => {
    expect(await ofMap(body)).toEqual(entries(0));
  });

  it.each([
    "({ A: load('u/99', 'Us') || null })",
    "({ A: load('u/99', 'Us') ?? null })",
    "{ const c = load('u/99', 'Us'); return { A: c ? c.City : null }; }",
    "({ A: u.Ref === undefined ? 1 : u.Nul && u.Nul.City })",
  ])("is null if the map returns null: %s", async (body) => {
    expect(await ofMap(body)).toEqual(entries(2));
  });
});

describe("arguments and options of functions in maps", () => {
  it.each([
    "({ _: createField('F', u.Name) })",
    "({ _: createField('F') })",
    "({ _: createField('F', u.Name, 5) })",
    "({ _: createField('F', u.Name, { indexing: 'Nope' }) })",
    "({ _: createField('F', u.Name, { indexing: 5 }) })",
    "({ _: createField('F', u.Name, { storage: 'Nope' }) })",
    "({ _: createField('F', u.Name, { storage: 1 }) })",
    "({ A: { $value: u.N, $name: 5, $options: {} } })",
    "({ A: { $value: u.N, $name: 'Z', $options: { indexing: 'Nope' } } })",
    "({ A: load(u.Ref, 5) })",
    "({ A: load(u.Name, null) })",
    "({ A: attachmentsFor() })",
    "({ A: timeSeriesNamesFor() })",
    "({ A: cmpxchg(5) })",
    "({ A: cmpxchg('a', 'b') })",
  ])("are checked: %s", async (body) => {
    expect(await ofMap(body)).toEqual(allFail);
  });
});

describe("a failing reduce", () => {
  const map = "map('Us', u => ({ Name: u.Name, C: 1 }))";

  it.each([
    ["throw new Error('x')", "x => x.Name", "'Name' : Ann", "'Name' : Bob"],
    ["return 5", "x => x.Name", "'Name' : Ann", "'Name' : Bob"],
    ["return null", "x => x.Name", "'Name' : Ann", "'Name' : Bob"],
    ["return undefined", "x => x.Name", "'Name' : Ann", "'Name' : Bob"],
    [
      "throw new Error('x')",
      "x => ({ Name: x.Name, C: x.C })",
      "'Name' : Ann'C' : 1.0",
      "'Name' : Bob'C' : 1.0",
    ],
  ])(
    "reports the key, and few failures do not stop an index: %s by %s",
    async (body, key, ...keys) => {
      const { errors, isErrored } = await deployed(
        [map],
        `groupBy(${key}).aggregate(g => { ${body} })`,
      );
      expect([...errors].sort()).toEqual(keys.map((one) => `Reduce Reduce key: { ${one} }`));
      expect(isErrored).toBe(false);
    },
  );
});
