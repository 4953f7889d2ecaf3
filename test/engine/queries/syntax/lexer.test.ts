import { describe, expect, it } from "vitest";
import { Lexer } from "../../../../engine/queries/syntax/lexer.ts";

function tokens(text: string): string[] {
  const lexer = new Lexer(text);
  const found: string[] = [];
  for (;;) {
    const { kind, text: token } = lexer.next();
    if (kind === "end") return found;
    found.push(`${kind} ${token}`);
  }
}

describe("Lexer", () => {
  it("reads words with dashes, a leading `@` and letters of any script", () => {
    expect(tokens("a-b _c @id Åsa")).toEqual(["word a-b", "word _c", "word @id", "word Åsa"]);
  });

  it("resolves escapes in any case, code points and doubled quotes", () => {
    expect(tokens(`'it''s' "a\\T\\"b" 'x\\u0041' "it''s"`)).toEqual([
      "string it's",
      'string a\t"b',
      "string xA",
      "string it''s",
    ]);
  });

  it("rejects an unknown escape, with the column after the string first", () => {
    expect(() => tokens("from A where B = '\\q'")).toThrow(
      "22:1 unrecognized escape character found in string in query: 'from A where B = '\\q''",
    );
  });

  it("treats an unclosed quote as a token of its own", () => {
    expect(tokens("'abc")).toEqual(["unknown '", "word abc"]);
  });

  it("reads a string of a million characters", () => {
    const text = "x".repeat(1_000_000);
    expect(new Lexer(`'${text}'`).next().text.length).toBe(text.length);
  });

  it("distinguishes integers from doubles and rejects `_` in doubles", () => {
    expect(tokens("1_000 -5 1.50 7.")).toEqual([
      "long 1000",
      "long -5",
      "double 1.50",
      "double 7.",
    ]);
    expect(() => tokens("1_0.5")).toThrow("The input string '1_0.5' was not in a correct format.");
  });

  it("skips comments of both styles", () => {
    expect(tokens("a /* b\nc */ d // e\nf /* never closed")).toEqual([
      "word a",
      "word d",
      "word f",
    ]);
  });

  it("rejects a lone `@` and `_@`", () => {
    expect(() => tokens("a @ b")).toThrow("3:1 Illegal identifier detected starting with @@ in");
    expect(() => tokens("_@a")).toThrow("1:1 Illegal identifier detected starting with _@ in");
  });

  it("reads path segments that begin with a digit, where requested", () => {
    const lexer = new Lexer("0b.'c'.=");
    expect(lexer.pathPart()?.text).toBe("0b");
    lexer.next();
    expect(lexer.pathPart()?.text).toBe("c");
    lexer.next();
    expect(lexer.pathPart()).toBeNull();
    expect(lexer.next().text).toBe("=");
  });

  it.each([
    ["{ a: '}' }", "{ a: '}' }"],
    ['{ a: "\\"}" } x', '{ a: "\\"}" }'],
    ["{ /* } */ } x", "{ /* } */ }"],
    ["{ // }\n } x", "{ // }\n }"],
    ["{ a: `}` } x", "{ a: `}` }"],
    // biome-ignore lint/suspicious/noTemplateCurlyInString: a template literal of the script
    ["{ a: `${`}${1}`}` } x", "{ a: `${`}${1}`}` }"],
    ["{ a: /[/}]}/.test(b) } x", "{ a: /[/}]}/.test(b) }"],
    ["{ a: b / c / d } x", "{ a: b / c / d }"],
  ])("finds the end of the script %s", (text, script) => {
    expect(new Lexer(text).script(true)?.text).toBe(script);
  });

  it.each(["{ a", "{ '", "{ `${", "{ /*"])("finds no end of %s", (text) => {
    expect(new Lexer(text).script(true)).toBeNull();
  });
});
