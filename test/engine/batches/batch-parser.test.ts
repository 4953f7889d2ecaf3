import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { EngineError } from "../../../engine/base/errors.ts";
import { parseBatch } from "../../../engine/batches/batch-parser.ts";
import { DocumentParser } from "../../../engine/state/documents/document-parser.ts";

const documentParser = new DocumentParser(null);

/** The commands with their documents parsed; null if the text is rejected. */
async function read(
  text: string,
): Promise<{ type: string; id: string | null; document: string | null }[] | null> {
  const bytes = Buffer.from(text);
  try {
    return (await parseBatch(bytes)).commands.map((command) => {
      const span = command.span("Document");
      const document =
        span === undefined
          ? null
          : documentParser.parseValue(bytes, span.from, span.to).body.toString();
      return { type: command.type, id: command.text("Id"), document };
    });
  } catch (error) {
    if (error instanceof EngineError) return null;
    throw error;
  }
}

function isJson(text: string): boolean {
  try {
    JSON.parse(text);
    return true;
  } catch {
    return false;
  }
}

const text = fc.string({
  unit: fc.constantFrom('"', "\\", "{", "]", ",", ":", "é", "a", "😀", "\n"),
});
const commands = fc.array(
  fc.record({
    Id: fc.option(text),
    Type: text,
    Document: fc.jsonValue({ maxDepth: 2 }),
    Other: fc.jsonValue({ maxDepth: 2 }),
  }),
  { maxLength: 4 },
);

describe("parseBatch", () => {
  test("returns the same as JSON.parse, with any spacing", async () => {
    await fc.assert(
      fc.asyncProperty(
        commands,
        fc.constantFrom(0, 1, "\t"),
        fc.boolean(),
        async (list, indent, hasMark) => {
          const body = `${hasMark ? "\uFEFF" : ""}${JSON.stringify({ Commands: list, Rest: [1] }, null, indent)} \n`;
          expect(await read(body)).toEqual(
            list.map(({ Id, Type, Document }) => ({
              type: Type,
              id: Id,
              document: Document === null ? null : JSON.stringify(Document),
            })),
          );
        },
      ),
    );
  });

  test("accepts only valid JSON, however a batch is damaged", async () => {
    await fc.assert(
      fc.asyncProperty(
        commands,
        fc.array(
          fc.tuple(
            fc.nat(),
            fc.constantFrom("", '"', "{", "}", "[", "]", ",", ":", "\\", "x", "1", " "),
          ),
          { minLength: 1, maxLength: 3 },
        ),
        async (list, damages) => {
          let body = JSON.stringify({ Commands: list, TransactionMode: "SingleNode" });
          for (const [place, replacement] of damages) {
            const at = place % body.length;
            body = body.slice(0, at) + replacement + body.slice(at + 1);
          }
          if ((await read(body)) !== null) expect(isJson(body), body).toBe(true);
        },
      ),
      { numRuns: 1000 },
    );
  });

  test("reports a truncated body as truncated", async () => {
    const body =
      '{"Commands":[{"Type":"PUT","Id":"a","Document":{"b":[1,"}"]}}],"TransactionMode":"SingleNode"}';
    expect(await read(body)).toHaveLength(1);
    for (let length = 0; length < body.length; length++) {
      try {
        await parseBatch(Buffer.from(body.slice(0, length)));
        expect.fail(`took ${body.slice(0, length)}`);
      } catch (error) {
        expect((error as EngineError).code, body.slice(0, length)).toBe("json-truncated");
      }
    }
  });

  test("returns the same members as JSON.parse, with any duplicates and order", async () => {
    const key = fc.constantFrom("Id", "Type", "Document", "ChangeVector", "\\u0049d", "Other");
    const value = fc.constantFrom(
      '"PUT"',
      '"a/1"',
      '"\\u0061\\ud800"',
      "null",
      "1e3",
      "true",
      '{"a":[1]}',
      `["${"x".repeat(20_000)}"]`,
    );
    const members = fc.array(fc.tuple(key, value), { maxLength: 8 });
    await fc.assert(
      fc.asyncProperty(members, async (list) => {
        const command = `{${list.map(([name, one]) => `"${name}": ${one}`).join(" ,")}}`;
        const expected = JSON.parse(command) as Record<string, unknown>;
        const parsed = parseBatch(Buffer.from(`{"Commands":[${command}]}`));
        if (typeof expected["Type"] !== "string") {
          await expect(parsed).rejects.toMatchObject({ code: "invalid-operation" });
          return;
        }
        const [found] = (await parsed).commands;
        expect(found?.type).toBe(expected["Type"]);
        for (const name of ["Id", "Type", "ChangeVector", "Other"]) {
          const own = expected[name];
          expect(found?.value(name)).toEqual(own);
          if (typeof own === "string" || own == null) expect(found?.text(name)).toBe(own ?? null);
          else expect(() => found?.text(name)).toThrow(/^Expected String , but got /);
        }
        const { from, to } = found?.span("Document") ?? { from: 0, to: 0 };
        const text = found?.bytes.toString("utf8", from, to) ?? "";
        expect(text === "" ? null : JSON.parse(text)).toEqual(expected["Document"] ?? null);
      }),
      { numRuns: 500 },
    );
  });

  test("uses the last of duplicate members", async () => {
    expect(await read('{"Commands":[{"Type":"PUT","Id":"a","Type":"DELETE","Id":null}]}')).toEqual([
      { type: "DELETE", id: null, document: null },
    ]);
  });

  test("rejects a long member that is not JSON, also if a later one replaces it", async () => {
    const long = `["${"x".repeat(40_000)}"`;
    const command = (first: string, last: string) =>
      `{"Commands":[{"Type":"DELETE","Id":"a","Other":${first},"Other":${last}}]}`;
    expect(await read(command(`${long}]`, "1"))).toHaveLength(1);
    expect(await read(command(`${long} nonsense]`, "1"))).toBeNull();
    const { commands } = await parseBatch(Buffer.from(command(`${long}]`, "[2]")));
    expect(commands[0]?.value("Other")).toEqual([2]);
    const last = await parseBatch(Buffer.from(command("1", `${long},3]`)));
    expect(last.commands[0]?.value("Other")).toEqual(["x".repeat(40_000), 3]);
  });

  test("rejects a duplicate document that is not JSON, also if a later one replaces it", async () => {
    expect(await read('{"Commands":[{"Type":"PUT","Document":[{1]},"Document":{}}]}')).toBeNull();
    expect(await read('{"Commands":[{"Type":"PUT","Document":[1],"Document":{}}]}')).not.toBeNull();
  });
});

test("rejects too many commands and names the setting", async () => {
  const body = (count: number) =>
    Buffer.from(`{"Commands":[${new Array(count).fill('{"Type":"DELETE","Id":"a"}').join(",")}]}`);
  expect((await parseBatch(body(3), 3)).commands.length).toBe(3);
  await expect(parseBatch(body(4), 3)).rejects.toThrow("setting Http.MaxBatchCommands");
});
