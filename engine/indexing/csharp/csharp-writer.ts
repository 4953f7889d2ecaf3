/**
 * Writes the expressions, queries and functions of a C# text as text of a script.
 *
 * Invariants:
 * - A name of the C# text appears in the script only with the prefix `v_` or as a JSON string: it cannot collide with
 *   another name.
 * - Every name is bound in the text, or is refused with its position.
 */
import { foldedName } from "../../base/case-folding.ts";
import { csharpError, csharpRefusal, noSelect } from "./csharp-error.ts";
import {
  functionNames,
  methodNames,
  staticNames,
  staticValues,
  tryParseOf,
} from "./csharp-names.ts";
import { defaultOf } from "./csharp-parser.ts";
import { isOfSource, isSource, type Source, sourceOf } from "./csharp-source.ts";
import type {
  Call,
  Clause,
  Expression,
  Pattern,
  QueryExpression,
  Statement,
} from "./csharp-tree.ts";
import { cast, constantType, patternTypes, summing } from "./csharp-types.ts";

/** Names that are bound where an expression stands. */
type Scope = ReadonlySet<string>;

export class CSharpWriter {
  readonly #text: string;
  readonly #loads = new Set<string | null>();
  #isDynamic = false;
  #source: Source | null = null;
  #group: Expression | string | null = null;
  #listCount = 0;
  readonly #isReduce: boolean;
  /** Names that patterns and `out` declare: variables of the whole script, assigned before they are read. */
  readonly #declared = new Set<string>();
  /** The values of `let` clauses, by name. */
  readonly #lets = new Map<string, Expression>();
  #operandCount = 0;
  /** Variables that statements declare: they can be assigned. */
  readonly #locals = new Set<string>();

  constructor(text: string, isReduce: boolean) {
    this.#text = text;
    this.#isReduce = isReduce;
  }

  /** The source that the written text enumerates. */
  get source(): Source | null {
    return this.#source;
  }

  /** Whether the written text produces fields with computed names. */
  get isDynamic(): boolean {
    return this.#isDynamic;
  }

  /** Collections whose documents the written text loads; null as a member: any. */
  get loads(): readonly (string | null)[] {
    return [...this.#loads];
  }

  /** Declarations of variables that must precede the written text. */
  get declarations(): string {
    return [...this.#declared].map((name) => `let v_${name};\n`).join("");
  }

  /** Sets the call that groups the results of a reduce, written as a list of the one group; in query syntax, the group's name. */
  setGroup(group: Expression | string): void {
    this.#group = group;
  }

  /** Enumerates the source of a map. @returns false if the expression is not a source @throws EngineError index-compilation */
  enumerate(node: Expression): boolean {
    const source = sourceOf(this.#text, node);
    if (source === null) return false;
    if (this.#source !== null) {
      this.#fail(node.at, `'${source.name}' may be enumerated once only`);
    }
    this.#source = source;
    return true;
  }

  #fail(at: number, reason: string): never {
    throw csharpError(this.#text, at, reason);
  }

  // Queries.

  /** Returns a function of one item that returns the result of the clauses. */
  itemFunction(name: string, clauses: readonly Clause[]): string {
    const inner = new Set([name]);
    if (!clauses.some(({ kind }) => kind === "from")) {
      const body = this.clauses(clauses, inner, (value, at) => `return ${this.write(value, at)};`);
      return `(v_${name}) => { ${body} }`;
    }
    const list = this.#newList();
    const body = this.clauses(clauses, inner, (value, at) => this.#push(list, value, at));
    return `(v_${name}) => { const ${list} = []; ${body} return ${list}; }`;
  }

  #newList(): string {
    this.#listCount += 1;
    return `list${this.#listCount}`;
  }

  #push(list: string, value: Expression, scope: Scope): string {
    return `csPush(${list}, ${this.write(value, scope)});`;
  }

  /** Returns the statements of clauses; `end` writes the last value. */
  clauses(
    clauses: readonly Clause[],
    scope: Scope,
    end: (value: Expression, scope: Scope) => string,
  ): string {
    const [clause, ...rest] = clauses;
    if (clause === undefined) throw csharpRefusal(noSelect);
    const within = (name: string) => this.clauses(rest, new Set([...scope, name]), end);
    switch (clause.kind) {
      case "from": {
        const source = this.write(clause.source, scope);
        return `csEach(${source}, (v_${clause.name}) => { ${within(clause.name)} });`;
      }
      case "let": {
        const value = this.write(clause.value, scope);
        this.#lets.set(clause.name, clause.value);
        return `{ const v_${clause.name} = ${value}; ${within(clause.name)} }`;
      }
      case "where":
        return `if (${this.write(clause.test, scope)}) { ${this.clauses(rest, scope, end)} }`;
      case "join": {
        const source = this.write(clause.source, scope);
        const outer = this.write(clause.outer, scope);
        const inner = this.write(clause.inner, new Set([clause.name]));
        const found = `csJoined(${source}, ${outer}, (v_${clause.name}) => ${inner})`;
        if (clause.into !== null) {
          return `{ const v_${clause.into} = ${found}; ${within(clause.into)} }`;
        }
        return `csEach(${found}, (v_${clause.name}) => { ${within(clause.name)} });`;
      }
      case "orderby":
        throw csharpRefusal(orderRefusal(clause.text));
      case "select": {
        if (clause.into === null) return end(clause.value, scope);
        const value = this.write(clause.value, scope);
        const body = this.clauses(rest, new Set([clause.into]), end);
        return `{ const v_${clause.into} = ${value}; ${body} }`;
      }
      case "group":
        return this.#fail(clause.at, "A group clause is not supported here");
    }
  }

  /** Returns a query whose result is an array. */
  #query({ clauses, at }: QueryExpression, scope: Scope): string {
    const groupAt = clauses.findIndex(({ kind }) => kind === "group");
    const group = clauses[groupAt];
    if (group?.kind === "group") {
      const list = this.#newList();
      const pairs = this.clauses(
        [...clauses.slice(0, groupAt), { kind: "select", value: group.key, into: null, at }],
        scope,
        (key, inner) =>
          `csPush(${list}, [${this.write(key, inner)}, ${this.write(group.element, inner)}]);`,
      );
      const groups = `csGroups(csQuery((${list}) => { ${pairs} }))`;
      const { into } = group;
      if (into === null) return groups;
      const outer = this.#newList();
      const rest = this.clauses(
        clauses.slice(groupAt + 1),
        new Set([...scope, into]),
        (value, inner) => this.#push(outer, value, inner),
      );
      return `csQuery((${outer}) => { csEach(${groups}, (v_${into}) => { ${rest} }); })`;
    }
    const orderAt = clauses.findIndex(({ kind }) => kind === "orderby");
    const order = clauses[orderAt];
    if (order?.kind === "orderby") return this.#orderedQuery(clauses, orderAt, order, scope);
    const list = this.#newList();
    const body = this.clauses(clauses, scope, (value, inner) => this.#push(list, value, inner));
    return `csQuery((${list}) => { ${body} })`;
  }

  /**
   * Returns a query with `orderby`: rows of its keys and the names bound so far are sorted, and the rest follows for
   * each.
   */
  #orderedQuery(
    clauses: readonly Clause[],
    at: number,
    { keys, at: position }: Extract<Clause, { kind: "orderby" }>,
    scope: Scope,
  ): string {
    const list = this.#newList();
    let bound: readonly string[] = [];
    const before: Clause[] = clauses.slice(0, at);
    const marker: Expression = { kind: "literal", value: null, isDouble: false, at: position };
    const rows = this.clauses(
      [...before, { kind: "select", value: marker, into: null, at: position }],
      scope,
      (_value, inner) => {
        bound = [...inner].filter((name) => boundBy(before).has(name));
        const values = keys.map(({ value }) => this.write(value, inner));
        return `csPush(${list}, [${[...values, ...bound.map((name) => `v_${name}`)].join(", ")}]);`;
      },
    );
    const signs = keys.map(({ isDescending }) => (isDescending ? -1 : 1)).join(", ");
    const outer = this.#newList();
    const rest = this.clauses(
      clauses.slice(at + 1),
      new Set([...scope, ...bound]),
      (value, inner) => this.#push(outer, value, inner),
    );
    const names = bound.map((name, i) => `const v_${name} = row[${keys.length + i}];`).join(" ");
    const sorted = `csOrdered(csQuery((${list}) => { ${rows} }), [${signs}])`;
    return `csQuery((${outer}) => { csEach(${sorted}, (row) => { ${names} ${rest} }); })`;
  }

  // Expressions.

  write(node: Expression, scope: Scope): string {
    if (node === this.#group) return "[g1]";
    switch (node.kind) {
      case "name":
        return this.#name(node, scope);
      case "literal":
        if (typeof node.value !== "number") return JSON.stringify(node.value);
        return this.#number(node.value, node.isDouble, node.at);
      case "interpolated":
        return `csConcat(${this.#parts(node, scope).join(", ")})`;
      case "member":
        return this.#member(node, scope);
      case "index": {
        const source = this.#sourceItem(node, scope);
        if (source !== null) return source;
        return `csAt(${this.write(node.object, scope)}, ${this.write(node.index, scope)})`;
      }
      case "call":
        return this.#call(node, scope);
      case "unary":
        return this.#unary(node, scope);
      case "binary":
        return this.#binary(node, scope);
      case "conditional": {
        const [test, yes, no] = [node.test, node.yes, node.no].map((one) => this.write(one, scope));
        return `(${test} ? ${yes} : ${no})`;
      }
      case "cast":
        return this.#cast(node.type, this.write(node.value, scope), node.at);
      case "lambda": {
        const inner = new Set([...scope, ...node.parameters]);
        const parameters = node.parameters.map((name) => `v_${name}`).join(", ");
        if (node.body.kind === "block") {
          for (const name of node.parameters) this.#locals.add(name);
        }
        if (node.body.kind === "block")
          return `((${parameters}) => ${this.#body(node.body, inner)})`;
        return `((${parameters}) => ${this.write(node.body, inner)})`;
      }
      case "object": {
        const members = node.members.map(
          ({ name, value }) => `${JSON.stringify(name)}: ${this.write(value, scope)}`,
        );
        return `({ ${members.join(", ")} })`;
      }
      case "array":
        return `[${node.items.map((item) => this.write(item, scope)).join(", ")}]`;
      case "dictionary": {
        const parts = node.entries.flat().map((part) => this.write(part, scope));
        return `csDictionary(${parts.join(", ")})`;
      }
      case "construction":
        return this.#construction(node, scope);
      case "query":
        return this.#query(node, scope);
      case "is": {
        const test = (operand: string) => this.#pattern(node.pattern, operand, node.value, scope);
        return this.#matched(node.value, scope, test);
      }
      case "switch":
        return this.#matched(node.value, scope, (operand) => {
          const arms = node.arms.map(({ pattern, guard, value }) => {
            const test = this.#pattern(pattern, operand, node.value, scope);
            const also = guard === null ? "" : ` && ${this.write(guard, scope)}`;
            return `${test}${also} ? ${this.write(value, scope)} : `;
          });
          return `${arms.join("")}csUnmatched(${operand})`;
        });
      case "block":
        return this.#body(node, scope);
      case "out":
        return this.#fail(node.at, "An 'out' argument is not supported here");
      case "sized": {
        const value = JSON.stringify(defaultOf(node.type));
        return `csRepeat(${value}, ${this.write(node.size, scope)})`;
      }
    }
  }

  /** Writes a number; a number that a double cannot represent is written with its original digits. */
  #number(value: number, isDouble: boolean, at: number): string {
    if (!Number.isFinite(value)) return this.#fail(at, "The number is too large");
    const digits = /^[\d_]*\.?[\d_]*(?:[eE][+-]?\d+)?/.exec(this.#text.slice(at))?.[0] ?? "";
    const text = digits.replaceAll("_", "");
    const isHere = text !== "" && Number(text) === value;
    if (isHere && /^[mM]/.test(this.#text.slice(at + digits.length))) {
      return `csLiteral("${text}", true)`;
    }
    if (isDouble) return `csDouble(${value})`;
    return Number.isSafeInteger(value) || !isHere ? String(value) : `csLiteral("${text}", false)`;
  }

  // Statements.

  /** `{ … }` of statements. */
  #body({ statements }: Extract<Statement, { kind: "block" }>, scope: Scope): string {
    let inner = scope;
    const written = statements.map((statement) => {
      const text = this.#statement(statement, inner);
      if (statement.kind === "declare") inner = new Set([...inner, statement.name]);
      return text;
    });
    return `{ ${written.join(" ")} }`;
  }

  #statement(statement: Statement, scope: Scope): string {
    switch (statement.kind) {
      case "block":
        return this.#body(statement, scope);
      case "declare": {
        const { type, name, value, at } = statement;
        if (scope.has(name)) this.#fail(at, `A variable named '${name}' is already defined`);
        this.#locals.add(name);
        if (value === null) return `let v_${name};`;
        const written = this.write(value, scope);
        return `let v_${name} = ${type === null ? written : this.#cast(type, written, at)};`;
      }
      case "assign":
        return this.#assignment(statement, scope);
      case "run":
        return `${this.write(statement.value, scope)};`;
      case "return":
        return `return ${this.write(statement.value, scope)};`;
      case "if": {
        const { test, yes, no } = statement;
        const otherwise = no === null ? "" : ` else { ${this.#statement(no, scope)} }`;
        return `if (${this.write(test, scope)}) { ${this.#statement(yes, scope)} }${otherwise}`;
      }
      case "foreach": {
        const source = this.write(statement.source, scope);
        const body = this.#statement(statement.body, new Set([...scope, statement.name]));
        return `for (const v_${statement.name} of csItems(${source})) { ${body} }`;
      }
      case "loop":
        return this.#loop(statement, scope);
      case "break":
      case "continue":
        return `${statement.kind};`;
    }
  }

  #loop({ first, test, step, body }: Extract<Statement, { kind: "loop" }>, scope: Scope): string {
    const names = first.flatMap((one) => (one.kind === "declare" ? [one.name] : []));
    const before = first.map((one) => this.#statement(one, scope)).join(" ");
    const inner = new Set([...scope, ...names]);
    const condition = test === null ? "true" : this.write(test, inner);
    const steps = step.map((one) => this.#statement(one, inner).replace(/;$/, "")).join(", ");
    return `{ ${before} for (; ${condition}; ${steps}) { ${this.#statement(body, inner)} } }`;
  }

  #assignment(
    { target, operator, value, at }: Extract<Statement, { kind: "assign" }>,
    scope: Scope,
  ): string {
    const joined: Expression =
      operator === "=" ? value : { kind: "binary", operator, left: target, right: value, at };
    const written = this.write(joined, scope);
    if (target.kind === "index") {
      const [object, index] = [target.object, target.index].map((one) => this.write(one, scope));
      return `csSetAt(${object}, ${index}, ${written});`;
    }
    if (target.kind !== "name" || !scope.has(target.name) || !this.#locals.has(target.name)) {
      return this.#fail(at, "Only variables and items can be assigned");
    }
    return `v_${target.name} = ${written};`;
  }

  // Patterns.

  /** Evaluates a value once and tests it. */
  #matched(value: Expression, scope: Scope, test: (operand: string) => string): string {
    this.#operandCount += 1;
    const operand = `p${this.#operandCount}`;
    return `csMatch(${this.write(value, scope)}, (${operand}) => (${test(operand)}))`;
  }

  #pattern(pattern: Pattern, operand: string, value: Expression, scope: Scope): string {
    const inner = (one: Pattern) => this.#pattern(one, operand, value, scope);
    switch (pattern.kind) {
      case "not":
        return `!(${inner(pattern.pattern)})`;
      case "and":
        return `(${inner(pattern.left)} && ${inner(pattern.right)})`;
      case "or":
        return `(${inner(pattern.left)} || ${inner(pattern.right)})`;
      case "any":
        return this.#declare(pattern.name, operand, pattern.at);
      case "type": {
        const type = patternTypes[pattern.type.replace(/^System\.|\?$/g, "").replace(/<.*$/, "")];
        if (type === undefined) {
          this.#fail(pattern.at, `The type or namespace name '${pattern.type}' could not be found`);
        }
        const origin = JSON.stringify(this.#originOf(value));
        const test = `csIs(${operand}, "${type}", ${origin})`;
        if (pattern.name === null) return test;
        return `(${test} && ${this.#declare(pattern.name, operand, pattern.at)})`;
      }
      case "constant":
      case "relation": {
        const constant = this.write(pattern.value, scope);
        const type = JSON.stringify(constantType(this.#text, pattern.value));
        const origin = JSON.stringify(this.#originOf(value));
        if (pattern.kind === "constant") {
          return `csIsConstant(${operand}, ${constant}, ${type}, ${origin})`;
        }
        return `csIsRelation(${operand}, "${pattern.operator}", ${constant}, ${type}, ${origin})`;
      }
    }
  }

  /** Assigns a variable that a pattern declares; true. */
  #declare(name: string | null, value: string, at: number): string {
    if (name === null) return "true";
    if (this.#declared.size >= declaredMax) this.#fail(at, "The text has too many variables");
    this.#declared.add(name);
    return `csTrue(v_${name} = ${value})`;
  }

  /** Returns whether a value is read from a document, else the type to which it is cast, or "computed". */
  #originOf(value: Expression): string {
    switch (value.kind) {
      case "name": {
        const known = this.#lets.get(value.name);
        return known === undefined ? "document" : this.#originOf(known);
      }
      case "member":
        return /^(?:Length|Count)$/.test(value.name) ? "int" : "document";
      case "index":
        return "document";
      case "cast": {
        const type = value.type.replace(/^System\.|\?$/g, "");
        if (/^(?:object|dynamic|Object)$/.test(type)) return this.#originOf(value.value);
        return patternTypes[type] ?? "computed";
      }
      case "call": {
        const { callee } = value;
        if (callee.kind === "name") return /^Load/.test(callee.name) ? "document" : "computed";
        const isItem =
          callee.kind === "member" && /^(?:First|Last|Single|ElementAt)/.test(callee.name);
        return isItem ? "document" : "computed";
      }
      default:
        return "computed";
    }
  }

  #name(node: Extract<Expression, { kind: "name" }>, scope: Scope): string {
    if (scope.has(node.name) || this.#declared.has(node.name)) return `v_${node.name}`;
    const source = this.#sourceItem(node, scope);
    if (source !== null) return source;
    return this.#fail(node.at, `The name '${node.name}' does not exist in the current context`);
  }

  /** Returns the source of a map, as a list of the current item; null for other expressions. */
  #sourceItem(node: Expression, scope: Scope): string | null {
    let base = node.kind === "call" ? node.callee : node;
    while (base.kind === "member" || base.kind === "index") base = base.object;
    if (base.kind !== "name" || scope.has(base.name)) return null;
    return this.enumerate(node) ? "[d0]" : null;
  }

  #parts(node: Extract<Expression, { kind: "interpolated" }>, scope: Scope): string[] {
    return node.parts.map((part) =>
      typeof part === "string"
        ? JSON.stringify(part)
        : `csText(${this.write(part.value, scope)}, ${JSON.stringify(part.format)})`,
    );
  }

  #member(node: Extract<Expression, { kind: "member" }>, scope: Scope): string {
    const { object, name } = node;
    const type = this.#typeName(object, scope);
    if (type !== null) {
      const known = staticValues(type, name);
      if (known !== null) return known;
      if (/^DateTime(?:Offset)?$/.test(type) && /^(?:Utc)?Now$/.test(name)) {
        throw csharpRefusal(unrepeatable(`${dotted(object)}.${name}`));
      }
    }
    const source = this.#sourceItem(node, scope);
    if (source !== null) return source;
    return `csGet(${this.write(object, scope)}, ${JSON.stringify(name)})`;
  }

  /** Returns a type name in the position of a value: `Math`, `System.Math`. */
  #typeName(node: Expression, scope: Scope): string | null {
    if (node.kind === "name") return scope.has(node.name) ? null : node.name;
    return node.kind === "member" && /^System\./.test(dotted(node)) ? node.name : null;
  }

  #call(node: Call, scope: Scope): string {
    const { callee, args } = node;
    if (callee.kind === "name") return this.#function(callee.name, node, scope);
    if (callee.kind !== "member") return this.#fail(node.at, "Only methods can be called");
    const { object, name, at } = callee;
    if (object.kind === "name" && object.name === "this" && !scope.has("this")) {
      return this.#function(name, node, scope);
    }
    const source = this.#sourceItem(node, scope);
    if (source !== null) return source;
    const type = this.#typeName(object, scope);
    const values = () => args.map((arg) => this.write(arg, scope));
    if (name === "TryParse" && type !== null) return this.#tryParse(type, node, scope);
    if (object.kind === "construction" && /(?:^|\.)Regex$/.test(object.type)) {
      const known = staticNames.get(`regex.${name}`.toLowerCase());
      if (known === undefined || name === "Escape") {
        this.#fail(at, `The method '${name}' of Regex is not supported in indexes`);
      }
      // Only a replacement stands between the pattern and its options.
      const [pattern = '""', ...options] = object.args.map((arg) => this.write(arg, scope));
      const [input, ...rest] = values();
      return `${known}(${[input ?? "null", pattern, ...rest, ...options].join(", ")})`;
    }
    if (type !== null && !isSource(type)) {
      const known = staticNames.get(`${type}.${name}`.toLowerCase());
      if (known !== undefined) {
        const written = values();
        const last = args.at(-1);
        const isAmbiguous = written.length === (known === "csJoin" ? 2 : 1) && isDynamic(last);
        if (isAmbiguous && (known === "csJoin" || known === "csConcat")) {
          written.push(`csRequired(${written.pop()}, "${known.slice(2)}")`);
        }
        return `${known}(${written.join(", ")})`;
      }
      const isSequence = type === "Enumerable" || type === "DynamicEnumerable";
      if (isSequence && methodNames.has(name)) {
        return `${summing(name, args[1])}(${values().join(", ")})`;
      }
      this.#fail(at, `The method '${type}.${name}' is not supported in indexes`);
    }
    if (name === "Count" && object.kind === "name" && object.name === this.#group) {
      throw csharpRefusal("Reduce cannot contain Count() methods in grouping.");
    }
    if (/^(?:Order|Then)By/.test(name) && isOfSource(object)) {
      throw csharpRefusal(orderRefusal(this.#text.slice(node.at, node.to)));
    }
    if (/^OrderBy/.test(name) && !this.#isReduce) {
      const found = this.#text.slice(node.at, node.to);
      if (!/^\s*\.\s*\w+\s*[(<]/.test(this.#text.slice(node.to)))
        throw csharpRefusal(orderRefusal(found));
    }
    if (!methodNames.has(name)) {
      this.#fail(at, `The method '${name}' is not supported in indexes`);
    }
    // `csJoin` is string.Join.
    const written = name === "Join" ? "csJoinItems" : summing(name, args[0]);
    return `${written}(${[this.write(object, scope), ...values()].join(", ")})`;
  }

  /** `int.TryParse(text, out var n)`; n is 0 when it is no number. */
  #tryParse(type: string, { args, at }: Call, scope: Scope): string {
    const known = tryParseOf(type);
    const [value, result] = args;
    if (known === null || value === undefined || result?.kind !== "out" || args.length !== 2) {
      return this.#fail(
        at,
        `The method '${type}.TryParse' is not supported in indexes with these arguments`,
      );
    }
    const [tried, otherwise] = known;
    this.#operandCount += 1;
    const found = `p${this.#operandCount}`;
    const isFound = this.#declare(result.name, found, result.at);
    const isNone = this.#declare(result.name, otherwise, result.at);
    return `csMatch(${tried}(${this.write(value, scope)}), (${found}) => (${found} !== null ? ${isFound} : !${isNone}))`;
  }

  /** Returns a function of the index itself: `LoadDocument(…)`. */
  #function(name: string, node: Call, scope: Scope): string {
    const { args, at } = node;
    const known = functionNames.get(name);
    if (known === undefined || scope.has(name)) {
      this.#fail(at, `The function '${name}' is not supported in indexes`);
    }
    if (name === "LoadDocument") {
      const collection = args[1];
      if (args.length !== 2 || collection === undefined) {
        this.#fail(
          at,
          `LoadDocument method is expecting two arguments, the document's id and its collection, but was invoked with ${args.length} arguments.`,
        );
      }
      const isName = collection.kind === "literal" && typeof collection.value === "string";
      if (!isName) this.#fail(collection.at, "LoadDocument's collection must be a constant string");
      const name = foldedName(String(collection.value));
      const isAny = name === "@all_docs";
      this.#loads.add(isAny ? null : String(collection.value));
      const only = isAny ? "" : `, ${JSON.stringify(name)}`;
      return `${known}(${this.write(args[0] as Expression, scope)}${only})`;
    }
    if (name === "CreateField") this.#isDynamic = true;
    return `${known}(${args.map((arg) => this.write(arg, scope)).join(", ")})`;
  }

  #unary(node: Extract<Expression, { kind: "unary" }>, scope: Scope): string {
    const value = this.write(node.value, scope);
    if (node.operator === "!") return `csNot(${value})`;
    if (node.operator === "-") return `csNegate(${value})`;
    if (node.operator === "+") return value;
    if (node.operator === "~") return `csComplement(${value})`;
    return this.#fail(node.at, `The operator '${node.operator}' is not supported`);
  }

  #binary(node: Extract<Expression, { kind: "binary" }>, scope: Scope): string {
    const { operator } = node;
    const left = this.write(node.left, scope);
    const right = this.write(node.right, scope);
    if (operator === "??") return `(${left} ?? ${right})`;
    if (operator === "&&" || operator === "||") return `(${left} ${operator} (${right} ?? false))`;
    const known = operators[operator];
    if (known === undefined) {
      return this.#fail(node.at, `The operator '${operator}' is not supported`);
    }
    return `${known}(${left}, ${right})`;
  }

  #cast(type: string, value: string, at: number): string {
    return cast(type, value) ?? this.#fail(at, `A cast to '${type}' is not supported in indexes`);
  }

  #construction(node: Extract<Expression, { kind: "construction" }>, scope: Scope): string {
    const { type, args, at } = node;
    const values = args.map((arg) => this.write(arg, scope)).join(", ");
    const name = type.replace(/^System\./, "");
    if (name === "DateTime") return `csNewDate(${values})`;
    if (name === "TimeSpan") return `csNewSpan(${values})`;
    if (/^(?:List|HashSet)</.test(name)) return args.length === 0 ? "[]" : `csToArray(${values})`;
    if (/^Dictionary</.test(name) && args.length === 0) return "({})";
    return this.#fail(at, `new ${type}(…) is not supported in indexes`);
  }
}

/** Maximum variables that the patterns of a text declare. */
const declaredMax = 100;

/** Returns whether the expression is read from a document, without a cast. */
function isDynamic(node: Expression | undefined): boolean {
  return node?.kind === "member" || node?.kind === "index" || node?.kind === "name";
}

/** Returns the names that clauses bind. */
function boundBy(clauses: readonly Clause[]): ReadonlySet<string> {
  const names = new Set<string>();
  for (const clause of clauses) {
    if (clause.kind === "from" || clause.kind === "let" || clause.kind === "join") {
      names.add(clause.name);
    }
    if (clause.kind === "join" || clause.kind === "select" || clause.kind === "group") {
      if (clause.into !== null) names.add(clause.into);
    }
  }
  return names;
}

/** Returns `System.DateTime` for a chain of names; empty for other expressions. */
function dotted(node: Expression): string {
  if (node.kind === "name") return node.name;
  if (node.kind !== "member") return "";
  const before = dotted(node.object);
  return before === "" ? "" : `${before}.${node.name}`;
}

function unrepeatable(name: string): string {
  return (
    `Cannot use ${name} during a map or reduce phase.\r\nThe map or reduce functions must be referentially ` +
    "transparent, that is, for the same set of values, they always return the same results.\r\n" +
    `Using ${name} invalidate that premise, and is not allowed`
  );
}

function orderRefusal(text: string): string {
  return (
    "OrderBy calls are not valid during map or reduce phase, but the following was found:\r\n" +
    `'${text}'\r\nOrderBy calls modify the indexing output, but doesn't actually impact the order of results ` +
    "returned from the database.\r\nYou should be calling OrderBy on the QUERY, not on the index, if you want to specify ordering."
  );
}

const operators: Readonly<Record<string, string>> = {
  "&": "csBitAnd",
  "|": "csBitOr",
  "^": "csBitXor",
  "<<": "csShiftLeft",
  "+": "csAdd",
  "-": "csSubtract",
  "*": "csMultiply",
  "/": "csDivide",
  "%": "csRemainder",
  "==": "csEquals",
  "!=": "csDiffers",
  "<": "csLess",
  "<=": "csLessOrEqual",
  ">": "csGreater",
  ">=": "csGreaterOrEqual",
};
