/**
 * Tokens -> syntax tree, by recursive descent: one method per grammar rule, with the rule as its docstring. In the
 * rules, words in quotes match in any case, `?` `*` `+` have their usual meaning.
 *
 * The parser resolves no names of documents, indexes or methods: that is analyze.ts.
 *
 * Invariants:
 * - Parentheses, and calls inside calls, nest at most `nestingMax` deep.
 * - The size limit of texts keeps parsing within some milliseconds (query-size.ts).
 * - A method that returns null has not found the start of its rule; the caller reports what it expected. Every other
 *   failure throws.
 */
import { EngineError } from "../../base/errors.ts";
import { queryDeclarationsMax, queryItemsMax } from "../../base/limits.ts";
import { workLimits } from "../../base/scheduling/work-budget.ts";
import {
  checkTextLength,
  tokensMax,
  tooManyClauses,
  tooManyItems,
} from "../analysis/query-size.ts";
import type {
  Argument,
  Between,
  Call,
  ComparisonOperator,
  Declaration,
  Expression,
  Field,
  GroupKey,
  In,
  Literal,
  LoadItem,
  Operand,
  OrderItem,
  OrderType,
  Paging,
  Parameter,
  PathPart,
  Query,
  Script,
  Select,
  SelectItem,
  Source,
  Value,
} from "./ast.ts";
import { Lexer } from "./lexer.ts";
import { fieldText, pathText } from "./print.ts";
import { invalidQuery, syntaxError, wordAt } from "./syntax-error.ts";
import { reservedWords, type Token } from "./token.ts";

/** Maximum nesting of parentheses in a condition. */
const nestingMax = 128;

const comparisonOperators: Readonly<Record<string, ComparisonOperator>> = {
  "=": "=",
  "==": "=",
  "!=": "!=",
  "<>": "!=",
  "<": "<",
  "<=": "<=",
  ">": ">",
  ">=": ">=",
};

const orderTypes: Readonly<Record<string, OrderType>> = {
  string: "string",
  long: "long",
  double: "double",
  alphanumeric: "alphaNumeric",
};

/**
 * Parses a read query; a delete query has the same grammar.
 *
 * @throws query-syntax with line and column; query-invalid for a few errors that clients expect under that code.
 */
export function parseQuery(text: string): Query {
  return new Parser(text).query(false);
}

/**
 * Returns the condition at the beginning of a text; whatever follows it is ignored. @throws query-syntax, query-invalid
 */
export function parseCondition(text: string): Expression | null {
  return new Parser(text).leadingCondition();
}

/** Parses a query that ends in `update { script }`. @throws query-syntax, query-invalid */
export function parsePatchQuery(text: string): Query {
  return new Parser(text).query(true);
}

/** Series queries are parsed by a class derived from it. */
export class Parser {
  protected readonly lexer: Lexer;
  protected readonly text: string;
  private nesting = 0;
  private clauseCount = 0;

  constructor(text: string) {
    checkTextLength(text);
    this.text = text;
    this.lexer = new Lexer(text, tokensMax());
  }

  /**
   * declaration* source groupBy? where? orderBy? load? filter? tail paging include? end
   * tail := select? include? (read), update (patch)
   */
  query(isPatch: boolean): Query {
    const declarations = this.declarations();
    const source = this.source();
    const groupBy = this.groupBy();
    const where = this.clause("where", "WHERE");
    const orderBy = this.orderBy();
    const load = this.load();
    const filter = this.clause("filter", "FILTER");
    const update = isPatch ? this.update() : null;
    const select = isPatch ? null : this.select();
    let include = isPatch ? [] : this.include();
    if (include.length > 0) this.refuseSecondInclude();
    const paging = this.paging();
    if (include.length > 0) this.refuseSecondInclude();
    else if (!isPatch) include = this.include();
    if (this.peek().kind !== "end") throw this.unexpected("Expected end of query");
    const kind = "query";
    return {
      kind,
      offset: source.offset,
      declarations,
      source,
      groupBy,
      where,
      orderBy,
      load,
      filter,
      select,
      update,
      include,
      paging,
    };
  }

  /** 'declare' ('function' | 'timeseries') word '(' text ')' '{' text '}' */
  private declarations(): Declaration[] {
    const declarations: Declaration[] = [];
    const names = new Set<string>();
    for (;;) {
      const { offset } = this.peek();
      if (!this.tryWord("declare")) return declarations;
      this.refuseLong(declarations, "'declare'", queryDeclarationsMax);
      const isFunction = this.tryWord("function");
      if (!isFunction && !this.tryWord("timeseries")) {
        throw this.unexpected("DECLARE clause found but missing 'function' keyword");
      }
      const declaration = this.declaration(offset, isFunction ? "function" : "timeseries");
      const { name } = declaration;
      if (names.has(name)) {
        throw this.unexpected(
          `${name} function was declared multiple times`,
          this.lexer.offsetAfter,
        );
      }
      names.add(name);
      declarations.push(declaration);
    }
  }

  private declaration(offset: number, form: Declaration["form"]): Declaration {
    if (this.peek().kind !== "word") {
      throw this.unexpected("DECLARE functions require a name and cannot be anonymous");
    }
    const name = this.lexer.next().text;
    if (!this.isPunctuation("(")) throw this.unexpected(`Unable to parse  ${name} signature`);
    const signature = this.lexer.script(false);
    if (signature === null) throw this.unexpected("parsing method, expected an argument");
    const parameters = signature.text.slice(1, -1).trim();
    if (!this.isPunctuation("{")) throw this.unexpected(`Unable to get body for ${name}`);
    const body = this.script(`Unable to get body for ${name}`, form === "function");
    return { kind: "declaration", offset, form, name, parameters, body };
  }

  /** 'from' ( 'index' name | name ( '(' condition ')' )? ) ( 'as'? alias )? */
  private source(): Source {
    const { offset } = this.peek();
    if (!this.tryWord("from")) throw this.unexpected("Expected FROM clause");
    const isIndex = this.tryWord("index");
    const nameField = this.field();
    if (nameField === null) {
      throw this.unexpected(
        isIndex
          ? "Invalid syntax. Expected 'INDEX source' expression."
          : "Unable to parse identifier in FROM clause",
      );
    }
    let filter: Expression | null = null;
    if (!isIndex && this.tryPunctuation("(")) {
      filter = this.expression();
      if (filter === null) throw this.unexpected("Expected filter in filtered FROM clause");
      if (!this.tryPunctuation(")")) {
        throw this.unexpected("Expected closing parenthesis in filtered FORM clause after filter");
      }
    }
    const alias = this.optionalAlias();
    const form = isIndex ? "index" : "collection";
    return { kind: "source", offset, form, name: fieldText(nameField), filter, alias };
  }

  /** 'as'? name; a bare word `filter` is an alias only when a clause follows it */
  private optionalAlias(): string | null {
    const mark = this.lexer.mark();
    if (this.tryWord("filter")) {
      const { kind, text } = this.peek();
      if (kind === "word" && reservedWords.has(text.toLowerCase())) return "filter";
      this.lexer.reset(mark);
      return null;
    }
    const explicit = this.alias();
    if (explicit !== null) return explicit;
    const name = this.field();
    return name === null ? null : fieldText(name);
  }

  /** 'as' name */
  protected alias(): string | null {
    if (!this.tryWord("as")) return null;
    const name = this.field();
    if (name === null) throw this.unexpected("Expected field alias after AS in SELECT");
    return fieldText(name);
  }

  /** 'group' 'by' ( (path | value | call) ('as'? alias)? ) list */
  private groupBy(): GroupKey[] {
    const keys: GroupKey[] = [];
    if (!this.tryTwoWords("group", "by", "GROUP BY")) return keys;
    do {
      this.refuseLong(keys, "'group by'");
      const isQuoted = this.peek().kind === "string";
      const expression = isQuoted ? this.field() : this.operand();
      if (expression === null) throw this.unexpected("Unable to get field for GROUP BY");
      const { offset } = expression;
      keys.push({ kind: "group-key", offset, expression, alias: this.optionalAlias() });
    } while (this.tryPunctuation(","));
    return keys;
  }

  /** ('where' | 'filter') expression */
  protected clause(word: "where" | "filter", name: string): Expression | null {
    if (!this.tryWord(word)) {
      if (word === "filter") this.refuseFilterLimit();
      return null;
    }
    const expression = this.expression();
    if (expression === null) throw this.unexpected(`Unable to parse ${name} clause`);
    return expression;
  }

  /** In place of `filter`, RavenDB reads `filter_limit` as a filter on a field `_limit`. */
  private refuseFilterLimit(): void {
    if (this.tryWord("filter_limit")) throw this.operatorMissing("_limit");
  }

  /** 'order' 'by' ( (path | call) ('as' type?)? direction? ('nulls' ('first' | 'last'))? ) list */
  private orderBy(): OrderItem[] {
    const items: OrderItem[] = [];
    if (!this.tryTwoWords("order", "by", "ORDER BY")) return items;
    do {
      this.refuseLong(items, "'order by'");
      items.push(this.orderItem());
    } while (this.tryPunctuation(","));
    return items;
  }

  private orderItem(): OrderItem {
    const expression = this.fieldOrCall();
    if (expression === null) throw this.unexpected("Unable to get field for ORDER BY");
    let type: OrderType | null = null;
    if (this.tryWord("as")) {
      const word = this.peek();
      type = word.kind === "word" ? (orderTypes[word.text.toLowerCase()] ?? null) : null;
      if (type !== null) this.lexer.next();
    }
    const isDescending = this.tryWord("desc") || this.tryWord("descending");
    if (!isDescending && !this.tryWord("asc")) this.tryWord("ascending");
    let nulls: OrderItem["nulls"] = null;
    if (this.tryWord("nulls")) {
      if (this.tryWord("first")) nulls = "first";
      else if (this.tryWord("last")) nulls = "last";
      else throw this.unexpected("Expected FIRST or LAST after NULLS in ORDER BY clause");
    }
    return { kind: "order-item", offset: expression.offset, expression, type, isDescending, nulls };
  }

  /** 'load' ( operand ('as'? alias '[]'?)? ) list */
  private load(): LoadItem[] {
    const items: LoadItem[] = [];
    if (!this.tryWord("load")) return items;
    do {
      this.refuseLong(items, "'load'");
      const expression = this.operand();
      if (expression === null) throw this.unexpected("Unable to get field for LOAD");
      const written = this.optionalAlias();
      const isArray = written?.endsWith("[]") ?? false;
      const alias = isArray ? (written as string).slice(0, -2) : written;
      items.push({ kind: "load-item", offset: expression.offset, expression, alias, isArray });
    } while (this.tryPunctuation(","));
    return items;
  }

  /** 'select' 'distinct'? ( '*' | script | item list ) */
  private select(): Select | null {
    const { offset } = this.peek();
    if (!this.tryWord("select")) return null;
    const isDistinct = this.tryWord("distinct");
    if (this.tryPunctuation("*")) return { kind: "select", offset, isDistinct, body: null };
    if (this.isPunctuation("{")) {
      const body = this.script("Unable to get field for SELECT", true);
      return { kind: "select", offset, isDistinct, body };
    }
    const items: SelectItem[] = [];
    do {
      this.refuseLong(items, "'select'");
      items.push(this.selectItem());
    } while (this.tryPunctuation(","));
    return { kind: "select", offset, isDistinct, body: items };
  }

  /** ( operand | 'timeseries' '(' text ')' ) ('as' alias)? */
  private selectItem(): SelectItem {
    const { offset } = this.peek();
    const expression = this.timeSeries() ?? this.operand();
    if (expression === null) throw this.unexpected("Unable to get field for SELECT");
    return { kind: "select-item", offset, expression, alias: this.alias() };
  }

  private timeSeries(): SelectItem["expression"] | null {
    const { offset } = this.peek();
    if (!this.tryWord("timeseries")) return null;
    if (!this.isPunctuation("(")) {
      throw this.unexpected("Failed to find open parentheses ( for time series select function");
    }
    return {
      kind: "time-series",
      offset,
      body: this.script("Unable to get body for timeseries", false),
    };
  }

  /** 'update' script */
  private update(): Script {
    if (!this.tryWord("update"))
      throw this.unexpected("Update operations must end with UPDATE clause");
    const complaint = "Update clause must have a single function body";
    if (!this.isPunctuation("{")) throw this.unexpected(complaint);
    return this.script(complaint, true);
  }

  /** 'include' operand list */
  private include(): Operand[] {
    const items: Operand[] = [];
    if (!this.tryWord("include")) return items;
    do {
      this.refuseLong(items, "'include'");
      const item = this.operand();
      if (item === null) throw this.unexpected("Unable to understand include clause expression");
      items.push(item);
    } while (this.tryPunctuation(","));
    return items;
  }

  protected refuseLong(
    items: readonly unknown[],
    clause: string,
    countMax: number = queryItemsMax,
  ): void {
    if (items.length >= countMax) throw tooManyItems(clause, countMax);
  }

  private refuseSecondInclude(): void {
    if (!this.tryWord("include")) return;
    const complaint = "Query already has an include statement, but encountered a second one";
    throw this.unexpected(complaint, this.lexer.offsetAfter);
  }

  /** filterLimit? ( 'limit' value (',' value)? )? filterLimit? ( 'offset' value )? filterLimit? */
  private paging(): Paging {
    const { offset } = this.peek();
    let skip: Value | null = null;
    let take: Value | null = null;
    let filterTake = this.pagingValue("filter_limit", "FILTER_LIMIT");
    take = this.pagingValue("limit", "Limit");
    const hasSecond = take !== null && this.tryPunctuation(",");
    if (hasSecond) {
      skip = take;
      take = this.value();
      if (take === null) throw invalidQuery("Limit must contain a second value", this.text);
    }
    filterTake ??= this.pagingValue("filter_limit", "FILTER_LIMIT");
    const offsetValue = this.pagingValue("offset", "Offset");
    if (offsetValue !== null && hasSecond) {
      throw invalidQuery("Cannot use 'offset' after 'limit $skip,$take'", this.text);
    }
    skip ??= offsetValue;
    filterTake ??= this.pagingValue("filter_limit", "FILTER_LIMIT");
    return { kind: "paging", offset, skip, take, filterTake };
  }

  private pagingValue(word: string, name: string): Value | null {
    if (!this.tryWord(word)) return null;
    const value = this.value();
    if (value === null) throw invalidQuery(`${name} must contain a value`, this.text);
    return value;
  }

  /** andExpression ( 'or' 'not'? andExpression )* where `not` applies only to the first term */
  protected expression(): Expression | null {
    return this.chain("or", (isNegated) => this.andExpression(isNegated), false);
  }

  /** term ( 'and' 'not'? term )* */
  private andExpression(isNegated: boolean): Expression | null {
    return this.chain("and", (isTermNegated) => this.term(isTermNegated), isNegated);
  }

  private chain(
    kind: "and" | "or",
    next: (isNegated: boolean) => Expression | null,
    isNegated: boolean,
  ): Expression | null {
    const { offset } = this.peek();
    const first = next(isNegated);
    if (first === null) return null;
    const operands = [first];
    while (this.tryWord(kind)) {
      const operand = next(this.tryWord("not"));
      if (operand === null) {
        const name = kind === "and" ? "And" : "Or";
        throw this.unexpected(`Failed to find second part of ${name} expression`);
      }
      operands.push(operand);
    }
    return operands.length === 1 ? first : { kind, offset, operands };
  }

  /** 'true' | '(' expression ')' | condition */
  private term(isNegated: boolean): Expression | null {
    const token = this.peek();
    const operand = this.termWithin(token);
    if (operand === null || !isNegated) return operand;
    return { kind: "not", offset: token.offset, operand };
  }

  private termWithin(token: Token): Expression | null {
    if (this.tryWord("true")) return { kind: "true", offset: token.offset };
    if (!this.isPunctuation("(")) return this.condition();
    return this.nested(token, () => {
      this.lexer.next();
      const expression = this.expression();
      if (expression === null) return null;
      if (!this.tryPunctuation(")")) throw this.unexpected("Unmatched parenthesis, expected ')'");
      return expression;
    });
  }

  private nested<Node>(token: Token, parse: () => Node): Node {
    if (this.nesting === nestingMax) {
      const { line, column } = this.lexer.placeOf(token.offset);
      const complaint = `Query is too complex, over ${nestingMax} nested clauses are not allowed`;
      throw new EngineError("query-syntax", `${column}:${line} ${complaint}`);
    }
    this.nesting += 1;
    const node = parse();
    this.nesting -= 1;
    return node;
  }

  /**
   * (path | call) ( operator operand | 'between' value 'and' value | 'all'? 'in' '(' value list? ')' )
   * | call
   */
  private condition(): Expression | null {
    if (++this.clauseCount > workLimits.clausesMax) throw tooManyClauses();
    const left = this.fieldOrCall();
    if (left === null) return null;
    const operator = this.tryComparisonOperator();
    if (operator !== null) {
      const right = this.operand();
      if (right === null) return null;
      return { kind: "comparison", offset: left.offset, operator, left, right };
    }
    if (this.tryWord("between")) return this.between(left);
    if (this.tryWord("in")) return this.in(left, false);
    if (this.tryTwoWords("all", "in", null)) return this.in(left, true);
    if (left.kind === "call") return left;
    throw this.operatorMissing(fieldText(left));
  }

  private between(left: Field | Call): Between {
    const low = this.value();
    if (low === null) throw this.unexpected("parsing Between, expected value (1st)");
    if (!this.tryWord("and")) throw this.unexpected("parsing Between, expected AND");
    const high = this.value();
    if (high === null) throw this.unexpected("parsing Between, expected value (2nd)");
    return { kind: "between", offset: left.offset, left, low, high };
  }

  private in(left: Field | Call, isAll: boolean): In {
    if (!this.tryPunctuation("(")) throw this.unexpected("parsing In, expected '('");
    const values: Value[] = [];
    if (!this.tryPunctuation(")")) {
      do {
        const value = this.value();
        if (value === null) throw this.unexpected("parsing In, expected a value");
        values.push(value);
      } while (this.tryPunctuation(","));
      if (!this.tryPunctuation(")")) throw this.unexpected("parsing In expression, expected ','");
    }
    return { kind: "in", offset: left.offset, left, isAll, values };
  }

  /** path | value | call */
  protected operand(): Operand | null {
    const token = this.peek();
    if (token.kind === "string") {
      const mark = this.lexer.mark();
      const literal = this.value();
      if (!this.isPunctuation(".") && !this.isPunctuation("[")) return literal;
      this.lexer.reset(mark);
      return this.field();
    }
    return this.value() ?? this.fieldOrCall();
  }

  /** string | number | 'true' | 'false' | 'null' | '$' name */
  protected value(): Literal | Parameter | null {
    const { kind, text, offset } = this.peek();
    if (kind === "string" || kind === "long" || kind === "double") {
      this.lexer.next();
      return { kind: "literal", offset, type: kind, text };
    }
    if (kind === "parameter") {
      this.lexer.next();
      if (text === "") throw this.unexpected("Expected parameter name");
      return { kind: "parameter", offset, name: text };
    }
    const word = kind === "word" ? text.toLowerCase() : "";
    if (word !== "true" && word !== "false" && word !== "null") return null;
    this.lexer.next();
    return { kind: "literal", offset, type: word === "null" ? "null" : "boolean", text: word };
  }

  private fieldOrCall(): Field | Call | null {
    const field = this.field();
    return field === null ? null : (this.callOf(field) ?? field);
  }

  /** (word | string) ( '[' number? ']' )* ( '.' part ( '[' number? ']' )* )* */
  protected field(): Field | null {
    const first = this.peek();
    const isQuoted = first.kind === "string";
    const isWord = first.kind === "word" && !reservedWords.has(first.text.toLowerCase());
    if (!isQuoted && !isWord) return null;
    this.lexer.next();
    const path: PathPart[] = [];
    this.pathPart(path, first.text);
    while (this.isPunctuation(".")) {
      this.lexer.next();
      const part = this.lexer.pathPart();
      if (part === null) return null;
      this.pathPart(path, part.text);
    }
    return { kind: "field", offset: first.offset, path, isQuoted };
  }

  /** One name and its brackets: `[]` counts on the part, `[0]` is a part of its own. */
  private pathPart(path: PathPart[], name: string): void {
    let part: { name: string; arrays: number } = { name, arrays: 0 };
    path.push(part);
    while (this.tryPunctuation("[")) {
      const token = this.peek();
      if (token.kind === "long") {
        this.lexer.next();
        part = { name: token.text, arrays: 0 };
        path.push(part);
        if (!this.tryPunctuation("]")) throw this.unexpected("Expected to find closing ]");
      } else if (this.tryPunctuation("]")) {
        part.arrays += 1;
      } else {
        throw invalidQuery(`Expected to find closing ']' after '${pathText(path)}['.`, this.text);
      }
    }
  }

  /** path '(' argument list? ')', after the path */
  private callOf(field: Field): Call | null {
    if (field.isQuoted || !this.isPunctuation("(")) return null;
    return this.nested(this.lexer.next(), () => {
      const args: Argument[] = [];
      if (!this.tryPunctuation(")")) {
        do args.push(this.argument());
        while (this.tryPunctuation(","));
        if (!this.tryPunctuation(")")) {
          throw this.unexpected("parsing method expression, expected ','");
        }
      }
      return { kind: "call", offset: field.offset, name: fieldText(field), args };
    });
  }

  /** value | path | expression */
  private argument(): Argument {
    const mark = this.lexer.mark();
    const operand = this.value();
    if (operand !== null) {
      const isComplete = this.isArgumentEnd();
      const isText =
        operand.kind === "literal" && operand.type !== "long" && operand.type !== "double";
      if (isComplete || !isText) return operand;
      this.lexer.reset(mark); // 'a b' = 1: a path in quotes, not a value
    }
    const argument = this.lonePath() ?? this.expression();
    if (argument === null) throw this.unexpected("parsing method, expected an argument");
    return this.aliasedArgument(argument);
  }

  /** argument ('as' alias)? */
  private aliasedArgument(argument: Argument): Argument {
    const alias = this.alias();
    if (alias === null) return argument;
    if (argument.kind === "call") return { ...argument, alias };
    const complaint = `Alias '${alias}' can only be applied on method, but was applied on`;
    throw invalidQuery(`${complaint} 'Binary'`, this.text);
  }

  /** Parses the condition at the beginning of the text; null if the text does not begin with a condition. */
  leadingCondition(): Expression | null {
    return this.expression();
  }

  /** Returns a path that is the whole argument. */
  private lonePath(): Argument | null {
    const mark = this.lexer.mark();
    const field = this.field();
    if (field !== null && this.isArgumentEnd()) return field;
    this.lexer.reset(mark);
    return null;
  }

  private isArgumentEnd(): boolean {
    return this.isPunctuation(",") || this.isPunctuation(")");
  }

  /** Returns the opening bracket that is next and everything up to its closing one. */
  private script(complaint: string, isJavaScript: boolean): Script {
    const opening = this.peek();
    const token = this.lexer.script(isJavaScript);
    if (token !== null) return { kind: "script", offset: token.offset, text: token.text };
    const { line, column } = this.lexer.placeOf(opening.offset);
    const word = wordAt(this.text, opening.offset);
    throw syntaxError(complaint, { line, column: column + 1 }, this.text, word);
  }

  protected peek(): Token {
    return this.lexer.peek();
  }

  protected isPunctuation(text: string): boolean {
    const token = this.lexer.peek();
    return token.kind === "punctuation" && token.text === text;
  }

  protected tryPunctuation(text: string): boolean {
    if (!this.isPunctuation(text)) return false;
    this.lexer.next();
    return true;
  }

  protected tryWord(word: string): boolean {
    const token = this.lexer.peek();
    if (token.kind !== "word" || token.text.toLowerCase() !== word) return false;
    this.lexer.next();
    return true;
  }

  /** Consumes a keyword of two words. @throws query-syntax if only the first is present and `clause` is given */
  protected tryTwoWords(first: string, second: string, clause: string | null): boolean {
    const mark = this.lexer.mark();
    if (!this.tryWord(first)) return false;
    if (this.tryWord(second)) return true;
    if (clause !== null) throw this.unexpected(`Unable to get field for ${clause}`);
    this.lexer.reset(mark);
    return false;
  }

  private tryComparisonOperator(): ComparisonOperator | null {
    const token = this.lexer.peek();
    if (token.kind !== "punctuation") return null;
    const operator = comparisonOperators[token.text] ?? null;
    if (operator !== null) this.lexer.next();
    return operator;
  }

  /** Returns the error for an unexpected text at `offset`, by default at the next token. */
  protected unexpected(complaint: string, offset = this.peek().offset): EngineError {
    const word = wordAt(this.text, this.peek().offset);
    return syntaxError(complaint, this.lexer.placeOf(offset), this.text, word);
  }

  private operatorMissing(name: string): EngineError {
    const { offset } = this.peek();
    const found = offset < this.text.length ? `'${this.text.charAt(offset)}'` : "nothing";
    return invalidQuery(
      `Expected operator after '${name}' field, but found ${found}. Valid operators are: ` +
        "'in', 'between', =, <, >, <=, >=, !=",
      this.text,
    );
  }
}
