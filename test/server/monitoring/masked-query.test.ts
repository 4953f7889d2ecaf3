/** Query texts without values that may come from documents. */
import { expect, test } from "vitest";
import { maskedQuery } from "../../../server/monitoring/masked-query.ts";

test.each([
  [
    "from Users where name = 'x' and age > 4.5 limit 3",
    "from Users where name = ? and age > ? limit ?",
  ],
  ["from Users where a = 'it''s' or b = 'a\\'b' // x's", "from Users where a = ? or b = ?"],
  ['from "A B" where id() = $p1 /* secret */', "from ? where id() = $p1"],
  ["declare function f(x) { return 'secret' } from Users", "declare function f(x) {…}"],
  ["from Users where a = 'no end secret", "from Users where a = ?"],
  [`from Users where a = '${"s".repeat(5000)}'`, "from Users where a = ?"],
  ["from Users\nwhere x1 = -5\n\tselect n", "from Users where x1 = ? select n"],
])("%s", (text, masked) => {
  expect(maskedQuery(text)).toBe(masked);
});
