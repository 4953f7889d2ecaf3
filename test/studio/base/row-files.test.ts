/** Documents in files, whatever the sizes of the pieces in which they are read. */
import { expect, test } from "vitest";
import { rowsOf } from "../../../studio/base/row-files.ts";

/** A file that is read in pieces of `size` bytes. */
function fileOf(name: string, text: string, size: number) {
  const bytes = new TextEncoder().encode(text);
  const stream = () =>
    new ReadableStream({
      start(controller) {
        for (let at = 0; at < bytes.length; at += size)
          controller.enqueue(bytes.slice(at, at + size));
        controller.close();
      },
    });
  return Object.assign(new Blob([bytes]), { name, stream });
}

async function textsIn(text: string, size: number, name = "a.json"): Promise<string[]> {
  const found: string[] = [];
  for await (const row of rowsOf(fileOf(name, text, size), false, () => undefined)) {
    found.push(`${row.line} ${row.text}`);
  }
  return found;
}

const sizes = [1, 2, 3, 7, 1000];

test.each(sizes)(
  "objects of an array and objects one after the other, in pieces of %s",
  async (size) => {
    const first = '{"a":"]}\\"{\\\\","ü":[{"b":[1.50]}]}';
    expect(await textsIn(`[${first},\n{"c":{}} ]\n`, size)).toEqual([`1 ${first}`, '2 {"c":{}}']);
    expect(await textsIn(`\uFEFF${first}\n\n{}{"d":1}`, size)).toEqual([
      `1 ${first}`,
      "3 {}",
      '3 {"d":1}',
    ]);
    expect(await textsIn(" [ ] ", size)).toEqual([]);
    expect(await textsIn(`${first}\r\n\n{}`, size, "a.jsonl")).toEqual([`1 ${first}`, "3 {}"]);
  },
);

test.each([
  ["[{},]", "Line 1: expected a JSON object, but found ]"],
  ["[{}\n{}]", "Line 2: expected a JSON object, but found {"],
  ["[1]", "Line 1: expected a JSON object, but found 1"],
  ["[{}] {}", "Line 1: expected a JSON object, but found {"],
  ["[{}", "The array is not closed at line 1."],
  ['\n{"a":"}', "The text ends in the document at line 2."],
  ["[{\n}, {a}]", "Line 2 is not valid JSON"],
])("a malformed file is refused with the line: %j", async (text, message) => {
  for (const size of sizes) await expect(textsIn(text, size)).rejects.toThrow(message);
});
