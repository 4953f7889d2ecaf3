/**
 * Parses C# expressions of indexes to trees: queries (`from … select …`), lambdas, anonymous objects and the
 * expressions inside them. One method for each grammar rule, with the rule as its docstring.
 *
 * Purely syntactic: it resolves no names and no types.
 *
 * Invariants:
 * - Nothing but `csharpError` is thrown, for any text; nesting is limited (`depthMax`).
 */
import { csharpError } from "./csharp-error.ts";
import { type Token, tokensOf } from "./csharp-tokens.ts";
import type {
  Clause,
  Expression,
  Member,
  Pattern,
  QueryExpression,
  Statement,
  SwitchArm,
} from "./csharp-tree.ts";

const depthMax = 150;
/** Each clause is nested in the one before it. */
const clausesMax = 100;

/** Parses the whole text as one expression. @throws EngineError index-compilation */
export function parseCSharp(text: string): Expression {
  const parser = new Parser(text, tokensOf(text), 0);
  const expression = parser.expression();
  parser.skip(";");
  parser.requireEnd();
  return expression;
}

/** Type names of the language: one of them in parentheses is a cast. */
const typeWords: ReadonlySet<string> = new Set([
  "bool",
  "byte",
  "char",
  "decimal",
  "double",
  "dynamic",
  "float",
  "int",
  "long",
  "object",
  "sbyte",
  "short",
  "string",
  "uint",
  "ulong",
  "ushort",
]);

/** Binary operators, lowest precedence first. */
const levels: readonly (readonly string[])[] = [
  ["||"],
  ["&&"],
  ["|"],
  ["^"],
  ["&"],
  ["==", "!="],
  ["<", ">", "<=", ">="],
  ["<<"],
  ["+", "-"],
  ["*", "/", "%"],
];

class Parser {
  readonly #text: string;
  readonly #tokens: readonly Token[];
  #depth: number;
  #position = 0;
  /** Loops around the statement, inside its function. */
  #loops = 0;

  constructor(text: string, tokens: readonly Token[], depth: number) {
    this.#text = text;
    this.#tokens = tokens;
    this.#depth = depth;
  }

  get #token(): Token {
    return this.#tokens[this.#position] as Token;
  }

  #ahead(count: number): Token {
    return this.#tokens[Math.min(this.#position + count, this.#tokens.length - 1)] as Token;
  }

  #fail(reason: string, at = this.#token.at): never {
    throw csharpError(this.#text, at, reason);
  }

  #is(text: string): boolean {
    const { kind, text: found } = this.#token;
    return found === text && (kind === "punctuation" || kind === "name");
  }

  skip(text: string): boolean {
    if (!this.#is(text)) return false;
    this.#position += 1;
    return true;
  }

  #expect(text: string): void {
    if (!this.skip(text)) this.#fail(`${text} expected, but found ${this.#shown()}`);
  }

  #shown(): string {
    const { kind, at, to } = this.#token;
    return kind === "end" ? "the end of the text" : `'${this.#text.slice(at, to).slice(0, 40)}'`;
  }

  requireEnd(): void {
    if (this.#token.kind !== "end") this.#fail(`Unexpected ${this.#shown()}`);
  }

  #name(): string {
    const { kind, text } = this.#token;
    if (kind !== "name") this.#fail(`Identifier expected, but found ${this.#shown()}`);
    this.#position += 1;
    return text.replace("@", "");
  }

  /** Returns a recursive rule. */
  #nested<Result>(read: () => Result): Result {
    if (this.#depth >= depthMax) this.#fail("The expression is nested too deeply");
    this.#depth += 1;
    const result = read();
    this.#depth -= 1;
    return result;
  }

  /** expression: query | lambda | conditional */
  expression(): Expression {
    return this.#nested(() => {
      if (this.#isQuery()) return this.#query();
      if (this.#isLambda()) return this.#lambda();
      return this.#conditional();
    });
  }

  /** Returns whether a query begins: `from x in`, `from T x in`; `from` alone is a name. */
  #isQuery(): boolean {
    if (!this.#is("from") || this.#ahead(1).kind !== "name") return false;
    return this.#ahead(2).text === "in" || this.#ahead(2).kind === "name";
  }

  /** query: `from` [type] name `in` expression clause… */
  #query(): QueryExpression {
    const { at } = this.#token;
    const clauses: Clause[] = [];
    for (;;) {
      if (clauses.length >= clausesMax) this.#fail("The query has too many clauses");
      const clause = this.#clause();
      clauses.push(clause);
      if (clause.kind !== "select" && clause.kind !== "group") continue;
      if (clause.into === null) return { kind: "query", clauses, at };
    }
  }

  #clause(): Clause {
    const { at } = this.#token;
    if (this.skip("from")) {
      const first = this.#name();
      const name = this.#is("in") ? first : this.#name();
      this.#expect("in");
      return { kind: "from", name, source: this.expression(), at };
    }
    if (this.skip("let")) {
      const name = this.#name();
      this.#expect("=");
      return { kind: "let", name, value: this.expression(), at };
    }
    if (this.skip("where")) return { kind: "where", test: this.expression(), at };
    if (this.skip("orderby")) return this.#order(at);
    if (this.skip("select")) {
      const value = this.expression();
      return { kind: "select", value, into: this.#into(), at };
    }
    if (this.skip("group")) {
      const element = this.expression();
      this.#expect("by");
      const key = this.expression();
      return { kind: "group", element, key, into: this.#into(), at };
    }
    if (this.skip("join")) return this.#join(at);
    return this.#fail(
      `A query body must end with a select clause or a group clause, but found ${this.#shown()}`,
    );
  }

  #into(): string | null {
    return this.skip("into") ? this.#name() : null;
  }

  /** join: `join` [type] name `in` expression `on` expression `equals` expression [`into` name] */
  #join(at: number): Clause {
    const first = this.#name();
    const name = this.#is("in") ? first : this.#name();
    this.#expect("in");
    const source = this.expression();
    this.#expect("on");
    const outer = this.expression();
    this.#expect("equals");
    return { kind: "join", name, source, outer, inner: this.expression(), into: this.#into(), at };
  }

  #order(at: number): Clause {
    const keys: { value: Expression; isDescending: boolean }[] = [];
    do {
      const value = this.expression();
      const isDescending = this.skip("descending");
      if (!isDescending) this.skip("ascending");
      keys.push({ value, isDescending });
    } while (this.skip(","));
    const to = this.#ahead(-1).to;
    return { kind: "orderby", keys, text: this.#text.slice(at, to), at };
  }

  /** `x =>`, `(x, y) =>` */
  #isLambda(): boolean {
    if (this.#token.kind === "name") return this.#ahead(1).text === "=>";
    if (!this.#is("(")) return false;
    let open = 0;
    for (let i = 0; ; i += 1) {
      const { kind, text } = this.#ahead(i);
      if (kind === "end") return false;
      if (kind !== "punctuation") {
        if (kind !== "name") return false;
      } else if (text === "(") open += 1;
      else if (text === ")") {
        open -= 1;
        if (open === 0) return this.#ahead(i + 1).text === "=>";
      } else if (!/^[,<>?[\].]$/.test(text)) return false;
    }
  }

  /** lambda: (name | `(` [[type] name {`,` [type] name}] `)`) `=>` expression */
  #lambda(): Expression {
    const { at } = this.#token;
    const parameters: string[] = [];
    if (this.skip("(")) {
      while (!this.#is(")")) {
        const isTyped = this.#ahead(1).text !== "," && this.#ahead(1).text !== ")";
        if (isTyped) this.#type();
        parameters.push(this.#name());
        if (!this.skip(",")) break;
      }
      this.#expect(")");
    } else parameters.push(this.#name());
    this.#expect("=>");
    const loops = this.#loops;
    this.#loops = 0;
    const body = this.#is("{") ? this.#block() : this.expression();
    this.#loops = loops;
    return { kind: "lambda", parameters, body, at };
  }

  /** block: `{` {statement} `}` */
  #block(): Extract<Statement, { kind: "block" }> {
    const { at } = this.#token;
    this.#expect("{");
    const statements: Statement[] = [];
    while (!this.#is("}")) {
      if (statements.length >= clausesMax) this.#fail("The function has too many statements");
      if (!this.skip(";")) statements.push(this.#statement());
    }
    this.#expect("}");
    return { kind: "block", statements, at };
  }

  /** statement: block | `if` … | `foreach` … | `for` … | `while` … | (`return` value | `break` | `continue` | simple) `;` */
  #statement(): Statement {
    return this.#nested(() => {
      const { at, text, kind } = this.#token;
      if (this.#is("{")) return this.#block();
      if (kind === "name" && /^(?:switch|try|throw|do|using|lock|goto|yield|await)$/.test(text)) {
        this.#fail(`The statement '${text}' is not supported in indexes`);
      }
      if (this.skip("if")) return this.#if(at);
      if (this.skip("foreach")) return this.#foreach(at);
      if (this.skip("for")) return this.#for(at);
      if (this.skip("while")) {
        this.#expect("(");
        const test = this.expression();
        this.#expect(")");
        return { kind: "loop", first: [], test, step: [], body: this.#looped(), at };
      }
      const statement = this.#ending(at);
      this.#expect(";");
      return statement;
    });
  }

  #ending(at: number): Statement {
    const isBreak = this.#is("break");
    if (isBreak || this.#is("continue")) {
      if (this.#loops === 0) this.#fail("No enclosing loop out of which to break or continue");
      this.#position += 1;
      return { kind: isBreak ? "break" : "continue", at };
    }
    if (this.skip("return")) return { kind: "return", value: this.expression(), at };
    return this.#simple();
  }

  /** Returns the body of a loop. */
  #looped(): Statement {
    this.#loops += 1;
    const body = this.#statement();
    this.#loops -= 1;
    return body;
  }

  #if(at: number): Statement {
    this.#expect("(");
    const test = this.expression();
    this.#expect(")");
    const yes = this.#statement();
    return { kind: "if", test, yes, no: this.skip("else") ? this.#statement() : null, at };
  }

  /** foreach: `foreach` `(` type name `in` expression `)` statement */
  #foreach(at: number): Statement {
    this.#expect("(");
    this.#type();
    const name = this.#name();
    this.#expect("in");
    const source = this.expression();
    this.#expect(")");
    return { kind: "foreach", name, source, body: this.#looped(), at };
  }

  /** for: `for` `(` [simple] `;` [expression] `;` [simple {`,` simple}] `)` statement */
  #for(at: number): Statement {
    this.#expect("(");
    const first = this.#is(";") ? [] : [this.#simple()];
    this.#expect(";");
    const test = this.#is(";") ? null : this.expression();
    this.#expect(";");
    const step: Statement[] = [];
    while (!this.#is(")")) {
      step.push(this.#simple());
      if (!this.skip(",")) break;
    }
    this.#expect(")");
    return { kind: "loop", first, test, step, body: this.#looped(), at };
  }

  /** simple: type name [`=` expression] | target (`=` | `+=` | …) expression | target (`++` | `--`) | expression */
  #simple(): Statement {
    const { at } = this.#token;
    const start = this.#position;
    const type = this.#tryType();
    const { kind } = this.#token;
    const after = this.#ahead(1).text;
    if (type !== null && kind === "name" && (after === "=" || after === ";")) {
      const name = this.#name();
      const value = this.skip("=") ? this.expression() : null;
      return { kind: "declare", type: type === "var" ? null : type, name, value, at };
    }
    this.#position = start;
    const sign = this.skip("++") ? "+" : this.skip("--") ? "-" : null;
    const target = this.expression();
    const { text } = this.#token;
    const one: Expression = { kind: "literal", value: 1, isDouble: false, at };
    if (sign !== null) return { kind: "assign", target, operator: sign, value: one, at };
    if (this.skip("++")) return { kind: "assign", target, operator: "+", value: one, at };
    if (this.skip("--")) return { kind: "assign", target, operator: "-", value: one, at };
    if (!/^(?:[-+*/%]|\?\?)?=$/.test(text)) return { kind: "run", value: target, at };
    this.#position += 1;
    const operator = text === "=" ? "=" : text.slice(0, -1);
    return { kind: "assign", target, operator, value: this.expression(), at };
  }

  /** conditional: coalescing [`?` expression `:` expression] */
  #conditional(): Expression {
    const test = this.#coalescing();
    if (!this.skip("?")) return test;
    const yes = this.expression();
    this.#expect(":");
    return { kind: "conditional", test, yes, no: this.expression(), at: test.at };
  }

  /** coalescing: binary [`??` coalescing] */
  #coalescing(): Expression {
    const left = this.#binary(0);
    if (!this.skip("??")) return left;
    const right = this.#nested(() => this.#coalescing());
    return { kind: "binary", operator: "??", left, right, at: left.at };
  }

  /** Binary operators, `is` and `as`. */
  #binary(level: number): Expression {
    const operators = levels[level];
    if (operators === undefined) {
      const value = this.#unary();
      return this.#is("switch") ? this.#switch(value) : value;
    }
    let left = this.#binary(level + 1);
    for (let count = 0; ; count += 1) {
      const { kind, text, at } = this.#token;
      if (kind === "name" && text === "as" && operators.includes("<")) {
        this.#position += 1;
        left = { kind: "cast", type: `${this.#type()}?`, value: left, at };
        continue;
      }
      if (kind === "name" && text === "is" && operators.includes("<")) {
        this.#position += 1;
        left = { kind: "is", value: left, pattern: this.#pattern(), at };
        continue;
      }
      if (kind !== "punctuation" || !operators.includes(text)) return left;
      if (count >= depthMax) this.#fail("The expression is nested too deeply");
      this.#position += 1;
      left = { kind: "binary", operator: text, left, right: this.#binary(level + 1), at: left.at };
    }
  }

  /** pattern: conjunction {`or` conjunction}; conjunction: test {`and` test} */
  #pattern(): Pattern {
    return this.#nested(() => {
      let left = this.#conjunction();
      for (let count = 0; this.#is("or"); count += 1) {
        if (count >= depthMax) this.#fail("The expression is nested too deeply");
        const { at } = this.#token;
        this.skip("or");
        left = { kind: "or", left, right: this.#conjunction(), at };
      }
      return left;
    });
  }

  #conjunction(): Pattern {
    let left = this.#patternTest();
    for (let count = 0; this.#is("and"); count += 1) {
      if (count >= depthMax) this.#fail("The expression is nested too deeply");
      const { at } = this.#token;
      this.skip("and");
      left = { kind: "and", left, right: this.#patternTest(), at };
    }
    return left;
  }

  /** test: `not` test | `(` pattern `)` | `_` | `var` name | (`<` | `<=` | `>` | `>=`) value | type [name] | value */
  #patternTest(): Pattern {
    const { at, kind, text } = this.#token;
    if (this.skip("not")) {
      return { kind: "not", pattern: this.#nested(() => this.#patternTest()), at };
    }
    if (this.skip("(")) {
      const pattern = this.#pattern();
      this.#expect(")");
      return pattern;
    }
    if (this.skip("_")) return { kind: "any", name: null, at };
    if (kind === "name" && text === "var" && this.#ahead(1).kind === "name") {
      this.skip("var");
      return { kind: "any", name: this.#name(), at };
    }
    if (kind === "punctuation" && /^[<>]=?$/.test(text)) {
      this.#position += 1;
      return { kind: "relation", operator: text, value: this.#binary(shiftLevel), at };
    }
    if (kind === "name" && !constants.has(text)) {
      const type = this.#type();
      const { kind: next, text: name } = this.#token;
      const isNamed = next === "name" && !patternWords.has(name) && !infixWords.has(name);
      return { kind: "type", type, name: isNamed ? this.#name() : null, at };
    }
    return { kind: "constant", value: this.#binary(shiftLevel), at };
  }

  /** switch: value `switch` `{` [pattern [`when` expression] `=>` expression {`,` …}] `}` */
  #switch(value: Expression): Expression {
    const { at } = this.#token;
    this.#expect("switch");
    this.#expect("{");
    const arms: SwitchArm[] = [];
    while (!this.#is("}")) {
      if (arms.length >= clausesMax) this.#fail("The switch has too many arms");
      const pattern = this.#pattern();
      const guard = this.skip("when") ? this.#conditional() : null;
      this.#expect("=>");
      arms.push({ pattern, guard, value: this.expression() });
      if (!this.skip(",")) break;
    }
    this.#expect("}");
    return { kind: "switch", value, arms, at };
  }

  /** unary: (`!` | `-` | `+` | `~`) unary | cast unary | postfix */
  #unary(): Expression {
    const { kind, text, at } = this.#token;
    if (kind === "punctuation" && (text === "!" || text === "-" || text === "+" || text === "~")) {
      this.#position += 1;
      return { kind: "unary", operator: text, value: this.#nested(() => this.#unary()), at };
    }
    const type = this.#castType();
    if (type !== null) {
      const value = this.#nested(() => (this.#isLambda() ? this.#lambda() : this.#unary()));
      return { kind: "cast", type, value, at };
    }
    return this.#postfix();
  }

  /** Consumes the type of a cast `(type)value`; null when there is no cast. */
  #castType(): string | null {
    if (!this.#is("(") || this.#ahead(1).kind !== "name") return null;
    const start = this.#position;
    this.#position += 1;
    const type = this.#tryType();
    if (type !== null && this.skip(")")) {
      const { kind, text } = this.#token;
      const isWord = typeWords.has(type.replace(/[?[\]]+$/, "")) || /[<?[]/.test(type);
      const isOperand = kind !== "punctuation" && kind !== "end";
      const isOpening = text === "(" || text === "!" || text === "~";
      const isInfix = kind === "name" && infixWords.has(text);
      if (!isInfix && (isOperand || isOpening || (isWord && /^[-+]$/.test(text)))) return type;
    }
    this.#position = start;
    return null;
  }

  #type(): string {
    return this.#tryType() ?? this.#fail(`Type expected, but found ${this.#shown()}`);
  }

  /**
   * type: name {`.` name} [`<` type {`,` type} `>`] [`?`] {`[]`}; null if no type follows, possibly after consuming
   * tokens
   */
  #tryType(): string | null {
    if (this.#token.kind !== "name") return null;
    let type = this.#name();
    while (this.#is(".") && this.#ahead(1).kind === "name") {
      this.#position += 1;
      type += `.${this.#name()}`;
    }
    if (this.skip("<")) {
      const types: string[] = [];
      do {
        const inner = this.#nested(() => this.#tryType());
        if (inner === null) return null;
        types.push(inner);
      } while (this.skip(","));
      if (!this.skip(">")) return null;
      type += `<${types.join(",")}>`;
    }
    if (this.#is("?") && /^[)\]>,]$/.test(this.#ahead(1).text)) {
      this.#position += 1;
      type += "?";
    }
    while (this.#is("[") && this.#ahead(1).text === "]") {
      this.#position += 2;
      type += "[]";
    }
    return type;
  }

  /** postfix: primary {`.` name | `?.` name | `(` … `)` | `[` expression `]` | `?[` expression `]` | `!`} */
  #postfix(): Expression {
    let value = this.#primary();
    for (let count = 0; ; count += 1) {
      const { at } = this.#token;
      if (count >= depthMax) this.#fail("The expression is nested too deeply");
      if (this.skip(".") || this.skip("?.")) {
        const nameAt = this.#token.at;
        value = { kind: "member", object: value, name: this.#name(), at: nameAt };
      } else if (this.skip("[") || this.skip("?[")) {
        const index = this.expression();
        this.#expect("]");
        value = { kind: "index", object: value, index, at };
      } else if (this.#is("(")) {
        value = this.#call(value, null);
      } else {
        const type = this.#is("<") ? this.#typeArgument() : null;
        if (type === null) return value;
        value = this.#call(value, type);
      }
    }
  }

  #call(callee: Expression, type: string | null): Expression {
    const args = this.#arguments();
    return { kind: "call", callee, type, args, at: startOf(callee), to: this.#ahead(-1).to };
  }

  /** Returns the first type of `<T, …>` before `(`, or null when it is a comparison. */
  #typeArgument(): string | null {
    const start = this.#position;
    this.#position += 1;
    const type = this.#tryType();
    while (type !== null && this.skip(",")) if (this.#tryType() === null) break;
    if (type !== null && this.skip(">") && this.#is("(")) return type;
    this.#position = start;
    return null;
  }

  /** arguments: `(` [[name `:`] expression {`,` …}] `)` */
  #arguments(): Expression[] {
    this.#expect("(");
    const args: Expression[] = [];
    while (!this.#is(")")) {
      if (this.#token.kind === "name" && this.#ahead(1).text === ":") this.#position += 2;
      args.push(this.#argument());
      if (!this.skip(",")) break;
    }
    this.#expect(")");
    return args;
  }

  /** argument: expression | `out` [type | `var`] name */
  #argument(): Expression {
    const { at } = this.#token;
    if (!this.#is("out") || this.#ahead(1).kind !== "name") return this.expression();
    this.skip("out");
    if (this.#ahead(1).text !== ")" && this.#ahead(1).text !== ",") this.#type();
    return { kind: "out", name: this.#name(), at };
  }

  /** primary: literal | name | `(` expression `)` | `new` … */
  #primary(): Expression {
    const token = this.#token;
    const { at } = token;
    switch (token.kind) {
      case "text":
        this.#position += 1;
        return { kind: "literal", value: token.text, isDouble: false, at };
      case "number":
        this.#position += 1;
        return { kind: "literal", value: Number(token.text), isDouble: token.isDouble, at };
      case "interpolated":
        return this.#interpolated(token);
      case "end":
        return this.#fail("Expression expected, but the text ends");
      case "punctuation": {
        if (!this.skip("(")) return this.#fail(`Invalid expression term '${token.text}'`);
        const value = this.expression();
        this.#expect(")");
        return value;
      }
      case "name":
        return this.#named(token.text, at);
    }
  }

  #named(text: string, at: number): Expression {
    if (text === "new") return this.#new();
    if (text === "typeof" || text === "switch") this.#fail(`'${text}' is not supported`);
    this.#position += 1;
    if (text === "default") return this.#default(at);
    if (text === "nameof" && this.#is("(")) return this.#nameOf(at);
    const value = constants.get(text);
    if (value !== undefined) return { kind: "literal", value, isDouble: false, at };
    return { kind: "name", name: text.replace("@", ""), at };
  }

  /** default: `default` [`(` type `)`] */
  #default(at: number): Expression {
    const isTyped = this.skip("(");
    const type = isTyped ? this.#type() : "object";
    if (isTyped) this.#expect(")");
    const value = defaultOf(type);
    return { kind: "literal", value, isDouble: /^(?:double|float|decimal)$/.test(type), at };
  }

  /** nameof: `nameof` `(` expression `)` */
  #nameOf(at: number): Expression {
    const args = this.#arguments();
    const [value] = args;
    const name = args.length === 1 && value !== undefined ? inferredName(value) : null;
    if (name === null) this.#fail("nameof needs the name of a value", at);
    return { kind: "literal", value: name, isDouble: false, at };
  }

  #interpolated(token: Extract<Token, { kind: "interpolated" }>): Expression {
    this.#position += 1;
    const parts = token.pieces.map((piece) => {
      if (piece.kind === "text") return piece.text;
      const tokens = tokensOf(this.#text, piece.from, piece.to);
      const parser = new Parser(this.#text, tokens, this.#depth + 1);
      const value = parser.expression();
      parser.requireEnd();
      return { value, format: piece.format };
    });
    return { kind: "interpolated", parts, at: token.at };
  }

  /** new: `new` (`{` members `}` | `[]` items | type [`[]` items | arguments] [initializer]) */
  #new(): Expression {
    const { at } = this.#token;
    this.#expect("new");
    if (this.#is("{")) return { kind: "object", type: null, members: this.#members(), at };
    if (this.skip("[")) {
      this.#expect("]");
      return { kind: "array", items: this.#items(), at };
    }
    const type = this.#type();
    if (type.endsWith("[]")) return { kind: "array", items: this.#items(), at };
    if (this.skip("[")) {
      const size = this.expression();
      this.#expect("]");
      if (this.#is("{")) return { kind: "array", items: this.#items(), at };
      return { kind: "sized", type, size, at };
    }
    const args = this.#is("(") ? this.#arguments() : [];
    if (!this.#is("{")) return { kind: "construction", type, args, at };
    if (/\bDictionary</.test(type)) return { kind: "dictionary", entries: this.#entries(), at };
    if (/\b(?:List|HashSet)</.test(type)) return { kind: "array", items: this.#items(), at };
    return { kind: "object", type, members: this.#members(), at };
  }

  /** items: `{` [expression {`,` expression}] `}` */
  #items(): Expression[] {
    this.#expect("{");
    const items: Expression[] = [];
    while (!this.#is("}")) {
      items.push(this.expression());
      if (!this.skip(",")) break;
    }
    this.#expect("}");
    return items;
  }

  /** members: `{` [[name `=`] expression {`,` …}] `}` */
  #members(): Member[] {
    this.#expect("{");
    const members: Member[] = [];
    while (!this.#is("}")) {
      const { at, kind } = this.#token;
      const isNamed = kind === "name" && this.#ahead(1).text === "=";
      const given = isNamed ? this.#name() : null;
      if (isNamed) this.#expect("=");
      const value = this.expression();
      if (value.kind === "literal" && value.value === null) {
        this.#fail("Cannot assign <null> to anonymous type property", value.at);
      }
      const name = given ?? inferredName(value);
      if (name === null) {
        const text = this.#text.slice(at, this.#ahead(-1).to);
        this.#fail(`Cannot extract field name from: ${text}`, at);
      }
      if (members.some((one) => one.name === name)) {
        this.#fail(
          `An anonymous type cannot have multiple properties with the same name '${name}'`,
          at,
        );
      }
      members.push({ name, value, at });
      if (!this.skip(",")) break;
    }
    this.#expect("}");
    return members;
  }

  /** entries: `{` {(`{` key `,` value `}` | `[` key `]` `=` value) `,`} `}` */
  #entries(): [Expression, Expression][] {
    this.#expect("{");
    const entries: [Expression, Expression][] = [];
    while (!this.#is("}")) {
      const isIndexed = this.skip("[");
      if (!isIndexed) this.#expect("{");
      const key = this.expression();
      if (isIndexed) this.#expect("]");
      this.#expect(isIndexed ? "=" : ",");
      entries.push([key, this.expression()]);
      if (!isIndexed) this.#expect("}");
      if (!this.skip(",")) break;
    }
    this.#expect("}");
    return entries;
  }
}

const constants: ReadonlyMap<string, boolean | null> = new Map<string, boolean | null>([
  ["true", true],
  ["false", false],
  ["null", null],
]);

/** Returns the value of `default(T)`; null for everything but numbers and truth values. */
export function defaultOf(type: string): number | boolean | null {
  const name = type.replace(/^System\./, "");
  if (/^(?:bool|Boolean)$/.test(name)) return false;
  const isNumber =
    /^(?:s?byte|u?short|u?int|u?long|U?Int(?:16|32|64)|[dD]ouble|float|Single|[dD]ecimal)$/.test(
      name,
    );
  return isNumber ? 0 : null;
}

/** The level of `binary` that reads the value in a pattern: operators that bind tighter than a comparison. */
const shiftLevel = levels.findIndex((operators) => operators.includes("<<"));

/** Words that follow a type in a pattern. */
const patternWords: ReadonlySet<string> = new Set(["and", "or", "not", "when"]);

/** Words that, after a value in parentheses, do not begin another value. */
const infixWords: ReadonlySet<string> = new Set([
  "as",
  "is",
  "in",
  "by",
  "into",
  "from",
  "let",
  "where",
  "select",
  "group",
  "orderby",
  "join",
  "on",
  "equals",
  "ascending",
  "descending",
  "switch",
]);

/** Returns the start of a chain of calls. */
function startOf(node: Expression): number {
  let first = node;
  while (first.kind === "member" || first.kind === "index") first = first.object;
  return first.at;
}

/** Returns the implied name of a member without one. */
function inferredName(value: Expression): string | null {
  if (value.kind === "name" || value.kind === "member") return value.name;
  return null;
}
