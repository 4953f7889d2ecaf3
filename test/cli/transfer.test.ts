/** Documents as JSON lines and CSV, imported and exported. */
import { existsSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { Readable } from "node:stream";
import { gunzipSync, gzipSync } from "node:zlib";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { failureCodes } from "../../cli/failure.ts";
import { cellsOf, csvRows, jsonArray, jsonLines, linesOf } from "../../cli/row-files.ts";
import { type CommandLine, startCommandLine } from "../support/command-line.ts";

let line: CommandLine;
const jackdaw: CommandLine["jackdaw"] = (words, more) => line.jackdaw(words, more);
const json: CommandLine["json"] = (words) => line.json(words);
const path = (name: string) => join(line.folder, name);

beforeAll(async () => {
  line = await startCommandLine();
});
afterAll(() => line.stop());

async function all<T>(items: AsyncIterable<T>): Promise<T[]> {
  const found: T[] = [];
  for await (const item of items) found.push(item);
  return found;
}

/** In chunks of two bytes, so that every boundary is crossed. */
function inPieces(text: string): Readable {
  const bytes = Buffer.from(text);
  const pieces: Buffer[] = [];
  for (let at = 0; at < bytes.length; at += 2) pieces.push(bytes.subarray(at, at + 2));
  return Readable.from(pieces);
}

describe("files", () => {
  test("have lines that end with a line feed only", async () => {
    const lines = await all(linesOf(inPieces("\uFEFFä\u2028b\r\n\n日本")));
    expect(lines).toEqual([
      { line: 1, text: "ä\u2028b" },
      { line: 2, text: "" },
      { line: 3, text: "日本" },
    ]);
  });

  test("of JSON lines preserve the spelling of numbers", async () => {
    const [row] = await all(jsonLines(inPieces('{"n":1.50,"big":12345678901234567890}\n\n')));
    expect(row).toMatchObject({ line: 1, text: '{"n":1.50,"big":12345678901234567890}' });
    await expect(all(jsonLines(inPieces('{"a":1}\n{"a":\n')))).rejects.toThrow(
      "line 2 is not valid JSON",
    );
    await expect(all(jsonLines(inPieces("[1]")))).rejects.toThrow("line 1 is not a JSON object");
  });

  test("of JSON are an array, or objects one after the other", async () => {
    const array = '\uFEFF [\n {"a":"}],[{\\"","n":1.50},\n\n{"b":[{},[]]}\n]\n';
    const rows = await all(jsonArray(inPieces(array)));
    expect(rows.map(({ line, text }) => [line, text])).toEqual([
      [2, '{"a":"}],[{\\"","n":1.50}'],
      [4, '{"b":[{},[]]}'],
    ]);
    const objects = await all(jsonArray(inPieces('{\n"a":1\n}\n{"b":2}')));
    expect(objects.map(({ line, text }) => [line, text])).toEqual([
      [1, '{\n"a":1\n}'],
      [4, '{"b":2}'],
    ]);
    expect(await all(jsonArray(inPieces("[]")))).toEqual([]);
  });

  test.each([
    ['[{"a":1},\n1]', "line 2 is not a JSON object"],
    ['[{"a":1},\n{"a":}]', "line 2 is not valid JSON"],
    ['[{"a":1},\n{"a":1', "line 2 is not valid JSON"],
    ['[{"a":1},\n', "the array is not closed"],
    ['[{"a":1}\n{"b":1}]', "line 2: a comma is missing between two values"],
    ['[{"a":1},\n,{"b":1}]', "line 2: a value of the array is missing"],
    ['[{"a":1},\n]', "line 2: a value of the array is missing"],
    ["[,]", "line 1: a value of the array is missing"],
    ['[{"_id":{"$oid":"1"}}]', "line 1 is MongoDB extended JSON; convert it with --mongodb"],
  ])("of malformed JSON are reported with the line: %j", async (text, message) => {
    await expect(all(jsonArray(inPieces(text)))).rejects.toThrow(message);
  });

  test("of MongoDB have their ids and types converted", async () => {
    const text = '{"_id":{"$oid":"5f"},"n":{"$numberLong":"9007199254740993"}}\n{"_id":7}\n{"a":1}';
    const rows = await all(jsonLines(inPieces(text), true));
    expect(rows.map(({ id, text }) => [id, text])).toEqual([
      ["5f", '{"n":9007199254740993}'],
      ["7", "{}"],
      [undefined, '{"a":1}'],
    ]);
    const ids =
      '{"_id":{"$numberLong":"9007199254740993"}}\n{"_id":{"year":2026,"n":{"$numberInt":"1"}}}';
    expect((await all(jsonLines(inPieces(ids), true))).map(({ id, text }) => [id, text])).toEqual([
      ["9007199254740993", "{}"],
      [undefined, '{"_id":{"year":2026,"n":1}}'],
    ]);
  });

  test("of CSV have types by their spelling, texts in quotes, and objects by dots", async () => {
    const text =
      '@id,Name,Age,Zip,Ok,Nothing,Address.City,Address.No,Tags,"a ""b"""\r\n' +
      'users/1,Ann,1.50,"00123",true,null,Rome,7,"[1,2]","two\nlines"\r\n' +
      'users/2,007,,"",True,,,,"{no",x\r\n';
    const rows = await all(csvRows(inPieces(text), false));
    expect(rows.map(({ id }) => id)).toEqual(["users/1", "users/2"]);
    expect(rows[0]?.text).toBe(
      '{"Name":"Ann","Age":1.50,"Zip":"00123","Ok":true,"Nothing":null,"Address":{"City":"Rome","No":7},"Tags":[1,2],"a \\"b\\"":"two\\nlines"}',
    );
    expect(rows[1]?.text).toBe('{"Name":"007","Zip":"","Ok":true,"Tags":"{no","a \\"b\\"":"x"}');
    const texts = await all(csvRows(inPieces("a,b\n1,true\n"), true));
    expect(texts[0]?.text).toBe('{"a":"1","b":"true"}');
  });

  test.each([
    ["a,b\n1,2\n1,2,3\n", "line 3"],
    ['a,b\n1,"2\n', "line"],
    ['a,b\n1,2\nx"y,1\n', "line 3"],
    ["a,a\n1,2\n", "duplicate column 'a'"],
    ["a,\n1,2\n", "a column has no name"],
  ])("of malformed CSV are reported with the line: %j", async (text, message) => {
    await expect(all(csvRows(inPieces(text), false))).rejects.toThrow(message);
  });

  test("of CSV convert to documents and back unchanged", async () => {
    const document = {
      Name: 'say "x", y',
      Code: "007",
      Flag: "true",
      Age: 1.5,
      Ok: false,
      Nothing: null,
      Empty: "",
      None: {},
      List: [1, { a: "b" }],
      Deep: { Er: { Most: "x" } },
    };
    const cells = cellsOf(
      JSON.stringify({ ...document, "@metadata": { "@id": "a/1", "@collection": "As" } }),
    );
    const text = `${[...cells.keys()].join(",")}\n${[...cells.values()].join(",")}\n`;
    const [row] = await all(csvRows(inPieces(text), false));
    expect([row?.id, row?.collection]).toEqual(["a/1", "As"]);
    const { "@metadata": _, ...found } = JSON.parse(row?.text ?? "") as Record<string, unknown>;
    expect(found).toEqual(document);
  });
});

describe("a database", () => {
  test("imports and exports JSON lines", async () => {
    const given =
      '{"Name":"Ann","Big":12345678901234567890}\n{"Name":"Bob","@metadata":{"@id":"people/bob","@collection":"People"}}\n';
    writeFileSync(path("in.jsonl"), given);
    const words = ["import", path("in.jsonl"), "-c", "Users"];
    expect((await jackdaw(words)).out).toBe("2 documents\n");
    expect(await json(["get", "people/bob"])).toMatchObject({
      "@metadata": { "@collection": "People" },
    });
    const { out } = await jackdaw(["query", "from Users", "--jsonl"]);
    expect(out).toMatch(/"@id":"users\/[0-9a-f-]{36}"/);
    expect(await json(["export", path("out.jsonl"), "-c", "Users"])).toMatchObject({
      Documents: 1,
    });
    expect(readFileSync(path("out.jsonl"), "utf8")).toMatch(
      /^\{"Name":"Ann","Big":12345678901234567890,"@metadata":\{.*\}\}\n$/,
    );
    expect((await jackdaw(["export", path("all.jsonl.gz")])).out).toContain("2 documents");
    const zipped = gunzipSync(readFileSync(path("all.jsonl.gz"))).toString();
    expect(zipped.trim().split("\n")).toHaveLength(2);
    await jackdaw(["databases", "create", "copy"]);
    expect((await jackdaw(["import", path("all.jsonl.gz"), "-d", "copy"])).out).toBe(
      "2 documents\n",
    );
    expect(await json(["get", "people/bob", "-d", "copy"])).toMatchObject({ Name: "Bob" });
  });

  test("imports a JSON array of MongoDB, and exports JSON", async () => {
    const given = '[{"_id":{"$oid":"a1"},"at":{"$date":"2026-01-02T03:04:05Z"}},{"_id":"x"}]';
    writeFileSync(path("mongo.json"), given);
    const words = ["import", path("mongo.json"), "-c", "Things", "--id-prefix", "things/"];
    expect((await jackdaw(words)).err).toContain("convert it with --mongodb");
    expect((await jackdaw([...words, "--mongodb"])).out).toBe("2 documents\n");
    expect(await json(["get", "things/a1"])).toMatchObject({ at: "2026-01-02T03:04:05Z" });
    await jackdaw(["export", path("things.json"), "-c", "Things"]);
    const things = JSON.parse(readFileSync(path("things.json"), "utf8")) as object[];
    expect(things.map((one) => Object.keys(one))).toEqual([["at", "@metadata"], ["@metadata"]]);
    await jackdaw(["export", path("one.json"), "--query", "from Things where at > '2026'"]);
    expect(JSON.parse(readFileSync(path("one.json"), "utf8"))).toHaveLength(1);
    await jackdaw(["export", path("none.json"), "-c", "Nothing"]);
    expect(readFileSync(path("none.json"), "utf8")).toBe("[\n]\n");
  });

  test("imports CSV with ids from a field, and exports every column of every document", async () => {
    writeFileSync(path("cities.csv"), "Code,Name,Size\nRM,Rome,2.8\nOS,Oslo,0.7\n");
    const words = [
      "import",
      path("cities.csv"),
      "-c",
      "Cities",
      "--id-field",
      "Code",
      "--id-prefix",
      "cities/",
    ];
    expect((await jackdaw(words)).out).toBe("2 documents\n");
    await jackdaw(["put", "cities/XX", "-c", "Cities"], {
      input: '{"Extra":{"a":[1]},"Name":"X"}',
    });
    expect((await jackdaw(["export", path("out.csv"), "-c", "Cities"])).code).toBe(0);
    expect(readFileSync(path("out.csv"), "utf8").split("\n")).toEqual([
      "@id,@metadata.@collection,Code,Name,Size,Extra.a",
      '"cities/RM","Cities","RM","Rome",2.8,',
      '"cities/OS","Cities","OS","Oslo",0.7,',
      '"cities/XX","Cities",,"X",,"[1]"',
      "",
    ]);
    const query = "from Cities where Size > 1 select Name";
    await jackdaw(["export", path("query.csv"), "--query", query]);
    expect(readFileSync(path("query.csv"), "utf8")).toContain('"Rome"');
    expect(readFileSync(path("query.csv"), "utf8")).not.toContain("Oslo");
  });

  test("keeps the documents before a malformed line, and reports the line", async () => {
    writeFileSync(path("bad.csv"), "Name\nAnn\nBob\nx,y\n");
    const bad = await jackdaw(["import", path("bad.csv"), "-c", "Bad"]);
    expect([bad.code, bad.err]).toEqual([
      failureCodes.failed,
      expect.stringMatching(/bad\.csv: line 4 has .*; the preceding 2 documents were stored\.\n$/),
    ]);
    expect((await jackdaw(["query", "from Bad"])).err).toContain("2 of 2 rows");
    writeFileSync(path("none.jsonl"), '{"a":1}\n');
    expect((await jackdaw(["import", path("none.jsonl")])).err).toContain(
      "line 1 has no collection",
    );
    const field = await jackdaw(["import", path("none.jsonl"), "-c", "X", "--id-field", "b"]);
    expect(field.err).toContain("line 1 has no 'b' for its id");
    writeFileSync(path("cut.jsonl.gz"), gzipSync('{"a":1}\n'.repeat(100)).subarray(0, 20));
    expect((await jackdaw(["import", path("cut.jsonl.gz"), "-c", "X"])).code).toBe(
      failureCodes.failed,
    );
  });

  test("rejects invalid exports, and leaves no file", async () => {
    const both = ["export", path("no.csv"), "-c", "Cities", "--query", "from Cities"];
    expect((await jackdaw(both)).code).toBe(failureCodes.usage);
    expect((await jackdaw(["export", path("no.csv"), "--query", "form X"])).code).toBe(1);
    const interrupted = { signal: AbortSignal.abort() };
    expect((await jackdaw(["export", path("no.jsonl")], interrupted)).code).toBe(130);
    for (const name of [
      "no.csv",
      "no.csv.partial",
      "no.csv.partial.rows",
      "no.jsonl",
      "no.jsonl.partial",
    ]) {
      expect(existsSync(path(name)), name).toBe(false);
    }
    expect((await jackdaw(["export", path("x"), "--format", "xml"])).code).toBe(failureCodes.usage);
    expect((await jackdaw(["import", path("nowhere.csv"), "-c", "X"])).code).toBe(
      failureCodes.usage,
    );
  });
});
