import { expect, test } from "vitest";
import { csvLine, valueAt } from "../../../studio/json/csv.ts";
import { type JsonMembers, parseSource } from "../../../studio/json/json-source.ts";

const values = (text: string) => parseSource(text) as ReturnType<typeof parseSource>[];

test("formula-like texts get a leading quote, numbers do not", () => {
  const row = values('["=1+1","+a","-b","@c","\\td","\\re","-",-5,"a=b"]');
  expect(csvLine(row, false)).toBe("'=1+1,'+a,'-b,'@c,'\td,\"'\re\",'-,-5,a=b\r\n");
  expect(csvLine(row, true)).toBe('=1+1,+a,-b,@c,\td,"\re",-,-5,a=b\r\n');
});

test("quotes, commas and line ends are quoted, and numbers keep their digits", () => {
  const row = values('["a\\"b","c,d","e\\nf",12345678901234567890.10,null,true,[1,{"x":"y"}]]');
  expect(csvLine(row, false)).toBe(
    '"a""b","c,d","e\nf",12345678901234567890.10,,true,"[1,{""x"":""y""}]"\r\n',
  );
});

test("a path leads into objects", () => {
  const members = parseSource('{"a":{"b":1},"a.c":2}') as JsonMembers;
  expect(valueAt(members, "a.b")).toMatchObject({ digits: "1" });
  expect(valueAt(members, "a.c")).toMatchObject({ digits: "2" });
  expect(valueAt(members, "a.b.c")).toBeUndefined();
});
