import { expect, test } from "vitest";
import { withoutUpdate } from "../../cli/update-clause.ts";

test.each([
  ["from Users update { this.A = 1 }", "from Users"],
  [
    "from Users as u where u.Name = 'update {' UPDATE{ u.A = 1 }",
    "from Users as u where u.Name = 'update {'",
  ],
  [
    "declare function f(u) { var update = {}; } from Users as u update { f(u) }",
    "declare function f(u) { var update = {}; } from Users as u",
  ],
  [
    "from Updates where update = 1 // update {\nupdate { }",
    "from Updates where update = 1 // update {",
  ],
  ["from 'it\\'s' update { }", "from 'it\\'s'"],
])("finds the query before the update clause: %s", (text, query) => {
  expect(withoutUpdate(text)).toBe(query);
});

test("a query without one is not a patch", () => {
  expect(() => withoutUpdate("from Users select 'update { }'")).toThrow("no 'update");
});
