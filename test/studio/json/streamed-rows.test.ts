import { expect, test } from "vitest";
import { StreamedRows } from "../../../studio/json/streamed-rows.ts";

const rows = ['{"a":"}]\\"{","b":[{"c":1}]}', "{}", '{"Results":[{"no":1}]}', '{"x":"\\\\"}'];
const reply = `{"ResultEtag":1,"Other":[{"not":1}],"Results":[${rows.join(",\n")}],"After":[{"y":[]}]}`;

test("finds rows at any chunk boundaries", () => {
  for (let size = 1; size <= reply.length; size++) {
    const streamed = new StreamedRows();
    const found: string[] = [];
    for (let at = 0; at < reply.length; at += size)
      found.push(...streamed.push(reply.slice(at, at + size)));
    expect(found, `pieces of ${size}`).toEqual(rows);
  }
});
