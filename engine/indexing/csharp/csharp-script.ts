/**
 * Translates a C# map or reduce to a script for the compiler of JavaScript indexes: `map("Users", (v_user) => …)`.
 * Where the semantics of C# differ from JavaScript (members of missing values, integer arithmetic, sequences), the
 * script calls functions of scripting/csharp/csharp-functions.ts, so that the limits and sandbox of all scripts apply.
 *
 * The output is text, not a tree, so that it passes through the parser, the whitelist and the limits of scripts.
 *
 * Invariants:
 * - A name of the C# text appears in the script only with the prefix `v_` or as a JSON string: it cannot collide with
 *   another name.
 * - Every name is bound in the text, or is refused with its position.
 */
import { foldedName } from "../../base/case-folding.ts";
import { csharpError, csharpRefusal } from "./csharp-error.ts";
import {
  functionNames,
  methodNames,
  staticNames,
  staticValues,
  tryParseOf,
} from "./csharp-names.ts";
import { defaultOf, parseCSharp } from "./csharp-parser.ts";
import type { Clause, Expression, Pattern, QueryExpression, Statement } from "./csharp-tree.ts";

/** The translation of a C# text. */
export interface CSharpScript {
  readonly script: string;
  /** Names of the output fields, in order. */
  readonly names: readonly string[];
  /** Whether it produces fields with computed names. */
  readonly isDynamic: boolean;
  /** Collections whose documents it loads; null as a member: any. */
  readonly loads: readonly (string | null)[];
}

/** The enumerated source: `docs.Users`, `counters.Users.Likes`. No collections, and `item` null: all. */
interface Root {
  readonly source: keyof typeof declarations;
  readonly collections: readonly string[];
  readonly item: string | null;
}

/** The function that declares a map of each source. */
const declarations = { docs: "map", counters: "counters.map", timeSeries: "timeSeries.map" };

/** Returns the source of this name, in any case except for documents; undefined if the name is not a source. */
function sourceNamed(name: string): keyof typeof declarations | undefined {
  if (name === "docs") return name;
  const lower = name.toLowerCase();
  if (lower === "counters") return lower;
  return lower === "timeseries" ? "timeSeries" : undefined;
}

type Call = Extract<Expression, { kind: "call" }>;
type Scope = ReadonlySet<string>;

const noObject = "Indexing function must return an anonymous object or Dictionary<string, object>.";
const noSelect = `${noObject} Did you forget to add 'new' in last select clause?`;
/** Calls whose result is a sequence of the same objects. */
const passing: ReadonlySet<string> = new Set([
  "AsEnumerable",
  "Boost",
  "Cast",
  "Distinct",
  "ToArray",
  "ToList",
  "Where",
]);

/** @throws EngineError index-compilation, not-supported */
export function csharpMap(text: string): CSharpScript {
  return new Writer(text, false).map();
}

/** @throws EngineError index-compilation, not-supported */
export function csharpReduce(text: string): CSharpScript {
  return new Writer(text, true).reduce();
}

class Writer {
  readonly #text: string;
  readonly #loads = new Set<string | null>();
  #isDynamic = false;
  #root: Root | null = null;
  /** The call or clause that groups the results of a reduce; written as a list of the one group. */
  #group: Expression | null = null;
  #listCount = 0;
  /** The name of a reduce's groups, in query syntax. */
  #groupName: string | null = null;
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

  #fail(at: number, reason: string): never {
    throw csharpError(this.#text, at, reason);
  }

  #refuse(reason: string): never {
    throw csharpRefusal(reason);
  }

  map(): CSharpScript {
    const tree = parseCSharp(this.#text);
    this.#refuseStatements(tree);
    const names = this.#namesOf(tree);
    if (this.#startsElsewhere(tree)) this.#refuse(noRoot);
    const written = this.#mapFunction(tree);
    const root = this.#root as Root | null;
    if (root === null) this.#refuse(noRoot);
    const item = root.item === null ? "" : `, ${JSON.stringify(root.item)}`;
    const declaration = declarations[root.source];
    const collections = root.collections.length === 0 ? ["@all_docs"] : root.collections;
    const maps = collections.map(
      (collection) => `${declaration}(${JSON.stringify(collection)}${item}, mapped);`,
    );
    return this.#result(`const mapped = ${written};\n${maps.join("\n")}`, names);
  }

  reduce(): CSharpScript {
    const tree = parseCSharp(this.#text);
    const names = this.#namesOf(tree);
    const script = tree.kind === "query" ? this.#reduceOfQuery(tree) : this.#reduceOfCalls(tree);
    return this.#result(script, names);
  }

  #result(script: string, names: readonly string[]): CSharpScript {
    const declared = [...this.#declared].map((name) => `let v_${name};\n`).join("");
    return {
      script: declared + script,
      names,
      isDynamic: this.#isDynamic,
      loads: [...this.#loads],
    };
  }

  // Output fields.

  #namesOf(tree: Expression): string[] {
    const isEmpty = this.#rootOf(tree) !== null;
    const value = tree.kind === "query" ? this.#selectedOf(tree) : this.#resultOf(tree);
    const object = value === null ? null : unboosted(value);
    const names = object === null ? null : memberNames(object);
    if (names === null && !isEmpty) this.#refuse(tree.kind === "query" ? noSelect : noObject);
    if (names === null || names.length === 0)
      this.#refuse(`Could not extract any fields from '${this.#text}'.`);
    return names;
  }

  #selectedOf(query: QueryExpression): Expression | null {
    const last = query.clauses.at(-1);
    return last?.kind === "select" ? last.value : null;
  }

  /** Returns the value that the last call of a chain computes for each item. */
  #resultOf(tree: Expression): Expression | null {
    if (tree.kind === "query") return this.#selectedOf(tree);
    if (tree.kind !== "call" || tree.callee.kind !== "member") return null;
    const { name, object } = tree.callee;
    if (passing.has(name)) return this.#resultOf(object);
    const lambda = tree.args.at(-1);
    if (lambda?.kind !== "lambda") return null;
    if (name === "Select")
      return lambda.body.kind === "block" ? returned(lambda.body) : lambda.body;
    if (name !== "SelectMany") return null;
    return tree.args.length === 2 ? lambda.body : this.#resultOf(lambda.body);
  }

  // Maps.

  /** Returns whether the outermost clause enumerates something else than the documents, counters or time series. */
  #startsElsewhere(tree: Expression): boolean {
    const first = tree.kind === "query" ? tree.clauses[0] : undefined;
    if (first?.kind !== "from") return false;
    let base = first.source;
    for (;;) {
      if (base.kind === "call") base = base.callee;
      else if (base.kind === "member" || base.kind === "index") base = base.object;
      else if (base.kind === "cast") base = base.value;
      else return base.kind !== "name" || sourceNamed(base.name) === undefined;
    }
  }

  #mapFunction(tree: Expression): string {
    if (tree.kind === "query" && !tree.clauses.some(({ kind }) => kind === "group")) {
      const [first, ...rest] = tree.clauses;
      if (first?.kind === "from") {
        const root = this.#rootOf(first.source);
        const join = rest.find(({ kind }) => kind === "join");
        // The compiler of RavenDB 7.2.7 finds its names inaccessible.
        if (join !== undefined) {
          this.#fail(join.at, "join is supported in queries inside a map only");
        }
        if (root !== null) {
          this.#root = root;
          return this.#perItem(first.name, rest, new Set());
        }
      }
    }
    const isSelect = tree.kind === "call" && tree.callee.kind === "member";
    if (isSelect && tree.callee.name === "Select" && tree.args.length === 1) {
      const [lambda] = tree.args;
      const root = this.#rootOf(tree.callee.object);
      if (root !== null && lambda?.kind === "lambda" && lambda.parameters.length === 1) {
        this.#root = root;
        return this.#write(lambda, new Set());
      }
    }
    return `(d0) => ${this.#write(tree, new Set())}`;
  }

  /** Returns a function of one item that returns the result of the clauses. */
  #perItem(name: string, clauses: readonly Clause[], scope: Scope): string {
    const inner = new Set([...scope, name]);
    if (!clauses.some(({ kind }) => kind === "from")) {
      const body = this.#clauses(
        clauses,
        inner,
        (value, at) => `return ${this.#write(value, at)};`,
      );
      return `(v_${name}) => { ${body} }`;
    }
    const list = this.#newList();
    const body = this.#clauses(clauses, inner, (value, at) => this.#push(list, value, at));
    return `(v_${name}) => { const ${list} = []; ${body} return ${list}; }`;
  }

  #newList(): string {
    this.#listCount += 1;
    return `list${this.#listCount}`;
  }

  #push(list: string, value: Expression, scope: Scope): string {
    return `csPush(${list}, ${this.#write(value, scope)});`;
  }

  /** Returns the source of a map, or null. @throws EngineError not-supported */
  #rootOf(source: Expression): Root | null {
    if (source.kind === "call") return entitiesOf(source);
    const path: string[] = [];
    let at: Expression = source as Expression;
    while (at.kind !== "name") {
      if (at.kind === "member") path.unshift(at.name);
      else if (at.kind === "index" && at.index.kind === "literal") {
        path.unshift(String(at.index.value));
      } else return null;
      at = at.object;
    }
    const { name } = at;
    const known = sourceNamed(name);
    if (known === undefined) return null;
    const [collection, item, more] = path;
    const pathMax = known === "docs" ? 1 : 2;
    if (path.length > pathMax || more !== undefined) {
      this.#fail(at.at, `'${name}' has no such member`);
    }
    const collections = collection === undefined ? [] : [collection];
    return { source: known, collections, item: item ?? null };
  }

  // Reduces.

  #reduceOfQuery(query: QueryExpression): string {
    const [first, ...clauses] = query.clauses;
    const at = clauses.findIndex(({ kind }) => kind === "group");
    const group = clauses[at];
    const isOfResults =
      first?.kind === "from" && first.source.kind === "name" && first.source.name === "results";
    if (!isOfResults || group?.kind !== "group" || group.into === null) {
      return this.#refuse(ungrouped);
    }
    const before = clauses.slice(0, at);
    const other = before.find(({ kind }) => kind !== "let");
    if (other !== undefined) this.#refuse(ungrouped);
    const scope = new Set([first.name]);
    const give = (given: Expression) =>
      `(v_${first.name}) => { ${this.#clauses([...before, { kind: "select", value: given, into: null, at: 0 }], scope, (value, inner) => `return ${this.#write(value, inner)};`)} }`;
    const isPlain = group.element.kind === "name" && group.element.name === first.name;
    const element = isPlain ? "" : `, ${give(group.element)}`;
    const inner = new Set([group.into]);
    this.#groupName = group.into;
    // There is one group, which no order changes.
    const after = clauses.slice(at + 1).filter(({ kind }) => kind !== "orderby");
    const body = this.#clauses(
      after,
      inner,
      (value, innermost) => `return ${this.#write(value, innermost)};`,
    );
    const values = `const v_${group.into} = csGroupOf(g0${element});`;
    return `groupBy(${give(group.key)}).aggregate((g0) => { ${values} ${body} });`;
  }

  #reduceOfCalls(tree: Expression): string {
    let call: Expression = tree;
    for (;;) {
      if (call.kind !== "call" || call.callee.kind !== "member") return this.#refuse(ungrouped);
      const { object, name } = call.callee;
      // The order of results changes no group.
      const source = name === "GroupBy" ? unordered(object) : object;
      if (source.kind === "name" && source.name === "results") {
        if (name !== "GroupBy") this.#refuse(ungrouped);
        break;
      }
      call = object;
    }
    const [key, element] = call.args;
    if (key?.kind === "lambda" && key.body.kind === "block") {
      this.#refuse("Could not extract group by fields");
    }
    const isKey = key?.kind === "lambda";
    if (!isKey || call.args.length > 2 || (element && element.kind !== "lambda")) {
      return this.#fail(
        call.at,
        "GroupBy must be called with functions of the key and the element",
      );
    }
    const none = new Set<string>();
    const mapped = element === undefined ? "" : `, ${this.#write(element, none)}`;
    this.#group = call;
    const chain = this.#write(tree, none);
    const values = `const g1 = csGroupOf(g0${mapped});`;
    return `groupBy(${this.#write(key, none)}).aggregate((g0) => { ${values} return csFirstOrDefault(${chain}); });`;
  }

  // Queries.

  /** Returns the statements of clauses; `end` writes the last value. */
  #clauses(
    clauses: readonly Clause[],
    scope: Scope,
    end: (value: Expression, scope: Scope) => string,
  ): string {
    const [clause, ...rest] = clauses;
    if (clause === undefined) return this.#refuse(noSelect);
    const within = (name: string) => this.#clauses(rest, new Set([...scope, name]), end);
    switch (clause.kind) {
      case "from": {
        const source = this.#write(clause.source, scope);
        return `csEach(${source}, (v_${clause.name}) => { ${within(clause.name)} });`;
      }
      case "let": {
        const value = this.#write(clause.value, scope);
        this.#lets.set(clause.name, clause.value);
        return `{ const v_${clause.name} = ${value}; ${within(clause.name)} }`;
      }
      case "where":
        return `if (${this.#write(clause.test, scope)}) { ${this.#clauses(rest, scope, end)} }`;
      case "join": {
        const source = this.#write(clause.source, scope);
        const outer = this.#write(clause.outer, scope);
        const inner = this.#write(clause.inner, new Set([clause.name]));
        const found = `csJoined(${source}, ${outer}, (v_${clause.name}) => ${inner})`;
        if (clause.into !== null) {
          return `{ const v_${clause.into} = ${found}; ${within(clause.into)} }`;
        }
        return `csEach(${found}, (v_${clause.name}) => { ${within(clause.name)} });`;
      }
      case "orderby":
        return this.#refuse(orderRefusal(clause.text));
      case "select": {
        if (clause.into === null) return end(clause.value, scope);
        const value = this.#write(clause.value, scope);
        const body = this.#clauses(rest, new Set([clause.into]), end);
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
      const pairs = this.#clauses(
        [...clauses.slice(0, groupAt), { kind: "select", value: group.key, into: null, at }],
        scope,
        (key, inner) =>
          `csPush(${list}, [${this.#write(key, inner)}, ${this.#write(group.element, inner)}]);`,
      );
      const groups = `csGroups(csQuery((${list}) => { ${pairs} }))`;
      const { into } = group;
      if (into === null) return groups;
      const outer = this.#newList();
      const rest = this.#clauses(
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
    const body = this.#clauses(clauses, scope, (value, inner) => this.#push(list, value, inner));
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
    const rows = this.#clauses(
      [...before, { kind: "select", value: marker, into: null, at: position }],
      scope,
      (_value, inner) => {
        bound = [...inner].filter((name) => boundBy(before).has(name));
        const values = keys.map(({ value }) => this.#write(value, inner));
        return `csPush(${list}, [${[...values, ...bound.map((name) => `v_${name}`)].join(", ")}]);`;
      },
    );
    const signs = keys.map(({ isDescending }) => (isDescending ? -1 : 1)).join(", ");
    const outer = this.#newList();
    const rest = this.#clauses(
      clauses.slice(at + 1),
      new Set([...scope, ...bound]),
      (value, inner) => this.#push(outer, value, inner),
    );
    const names = bound.map((name, i) => `const v_${name} = row[${keys.length + i}];`).join(" ");
    const sorted = `csOrdered(csQuery((${list}) => { ${rows} }), [${signs}])`;
    return `csQuery((${outer}) => { csEach(${sorted}, (row) => { ${names} ${rest} }); })`;
  }

  // Expressions.

  #write(node: Expression, scope: Scope): string {
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
        const root = this.#rootItem(node, scope);
        if (root !== null) return root;
        return `csAt(${this.#write(node.object, scope)}, ${this.#write(node.index, scope)})`;
      }
      case "call":
        return this.#call(node, scope);
      case "unary":
        return this.#unary(node, scope);
      case "binary":
        return this.#binary(node, scope);
      case "conditional": {
        const [test, yes, no] = [node.test, node.yes, node.no].map((one) =>
          this.#write(one, scope),
        );
        return `(${test} ? ${yes} : ${no})`;
      }
      case "cast":
        return this.#cast(node.type, this.#write(node.value, scope), node.at);
      case "lambda": {
        const inner = new Set([...scope, ...node.parameters]);
        const parameters = node.parameters.map((name) => `v_${name}`).join(", ");
        if (node.body.kind === "block") {
          for (const name of node.parameters) this.#locals.add(name);
        }
        if (node.body.kind === "block")
          return `((${parameters}) => ${this.#body(node.body, inner)})`;
        return `((${parameters}) => ${this.#write(node.body, inner)})`;
      }
      case "object": {
        const members = node.members.map(
          ({ name, value }) => `${JSON.stringify(name)}: ${this.#write(value, scope)}`,
        );
        return `({ ${members.join(", ")} })`;
      }
      case "array":
        return `[${node.items.map((item) => this.#write(item, scope)).join(", ")}]`;
      case "dictionary": {
        const parts = node.entries.flat().map((part) => this.#write(part, scope));
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
            const also = guard === null ? "" : ` && ${this.#write(guard, scope)}`;
            return `${test}${also} ? ${this.#write(value, scope)} : `;
          });
          return `${arms.join("")}csUnmatched(${operand})`;
        });
      case "block":
        return this.#body(node, scope);
      case "out":
        return this.#fail(node.at, "An 'out' argument is not supported here");
      case "sized": {
        const value = JSON.stringify(defaultOf(node.type));
        return `csRepeat(${value}, ${this.#write(node.size, scope)})`;
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
        const written = this.#write(value, scope);
        return `let v_${name} = ${type === null ? written : this.#cast(type, written, at)};`;
      }
      case "assign":
        return this.#assignment(statement, scope);
      case "run":
        return `${this.#write(statement.value, scope)};`;
      case "return":
        return `return ${this.#write(statement.value, scope)};`;
      case "if": {
        const { test, yes, no } = statement;
        const otherwise = no === null ? "" : ` else { ${this.#statement(no, scope)} }`;
        return `if (${this.#write(test, scope)}) { ${this.#statement(yes, scope)} }${otherwise}`;
      }
      case "foreach": {
        const source = this.#write(statement.source, scope);
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
    const condition = test === null ? "true" : this.#write(test, inner);
    const steps = step.map((one) => this.#statement(one, inner).replace(/;$/, "")).join(", ");
    return `{ ${before} for (; ${condition}; ${steps}) { ${this.#statement(body, inner)} } }`;
  }

  #assignment(
    { target, operator, value, at }: Extract<Statement, { kind: "assign" }>,
    scope: Scope,
  ): string {
    const joined: Expression =
      operator === "=" ? value : { kind: "binary", operator, left: target, right: value, at };
    const written = this.#write(joined, scope);
    if (target.kind === "index") {
      const [object, index] = [target.object, target.index].map((one) => this.#write(one, scope));
      return `csSetAt(${object}, ${index}, ${written});`;
    }
    if (target.kind !== "name" || !scope.has(target.name) || !this.#locals.has(target.name)) {
      return this.#fail(at, "Only variables and items can be assigned");
    }
    return `v_${target.name} = ${written};`;
  }

  /** Refuses statements in the functions of a map's own chain; they are allowed in nested functions. */
  #refuseStatements(tree: Expression): void {
    for (let at = tree; at.kind === "call" && at.callee.kind === "member"; at = at.callee.object) {
      if (at.args.some((arg) => arg.kind === "lambda" && arg.body.kind === "block")) {
        this.#refuse(statementRefusal);
      }
    }
  }

  // Patterns.

  /** Evaluates a value once and tests it. */
  #matched(value: Expression, scope: Scope, test: (operand: string) => string): string {
    this.#operandCount += 1;
    const operand = `p${this.#operandCount}`;
    return `csMatch(${this.#write(value, scope)}, (${operand}) => (${test(operand)}))`;
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
        const constant = this.#write(pattern.value, scope);
        const type = JSON.stringify(this.#constantType(pattern.value));
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

  /** Returns the C# type of a constant in a pattern. */
  #constantType(value: Expression): string {
    if (value.kind === "unary") return this.#constantType(value.value);
    if (value.kind !== "literal") return "int";
    if (typeof value.value === "string") return "string";
    if (typeof value.value === "boolean") return "bool";
    const [, suffix = ""] = /^[\w.]*?([lLmM]?)(?![\w.])/.exec(this.#text.slice(value.at)) ?? [];
    if (/[mM]/.test(suffix)) return "decimal";
    if (value.isDouble) return "double";
    return /[lL]/.test(suffix) ? "long" : "int";
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
    const root = this.#rootItem(node, scope);
    if (root !== null) return root;
    return this.#fail(node.at, `The name '${node.name}' does not exist in the current context`);
  }

  /** Returns the source of a map, as a list of the current item; null for other expressions. */
  #rootItem(node: Expression, scope: Scope): string | null {
    let base = node.kind === "call" ? node.callee : node;
    while (base.kind === "member" || base.kind === "index") base = base.object;
    if (base.kind !== "name" || scope.has(base.name)) return null;
    const root = this.#rootOf(node);
    if (root === null) return null;
    if (this.#root !== null) this.#fail(node.at, `'${base.name}' may be enumerated once only`);
    this.#root = root;
    return "[d0]";
  }

  #parts(node: Extract<Expression, { kind: "interpolated" }>, scope: Scope): string[] {
    return node.parts.map((part) =>
      typeof part === "string"
        ? JSON.stringify(part)
        : `csText(${this.#write(part.value, scope)}, ${JSON.stringify(part.format)})`,
    );
  }

  #member(node: Extract<Expression, { kind: "member" }>, scope: Scope): string {
    const { object, name } = node;
    const type = this.#typeName(object, scope);
    if (type !== null) {
      const known = staticValues(type, name);
      if (known !== null) return known;
      if (/^DateTime(?:Offset)?$/.test(type) && /^(?:Utc)?Now$/.test(name)) {
        this.#refuse(unrepeatable(`${dotted(object)}.${name}`));
      }
    }
    const root = this.#rootItem(node, scope);
    if (root !== null) return root;
    return `csGet(${this.#write(object, scope)}, ${JSON.stringify(name)})`;
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
    const root = this.#rootItem(node, scope);
    if (root !== null) return root;
    const type = this.#typeName(object, scope);
    const values = () => args.map((arg) => this.#write(arg, scope));
    if (name === "TryParse" && type !== null) return this.#tryParse(type, node, scope);
    if (object.kind === "construction" && /(?:^|\.)Regex$/.test(object.type)) {
      const known = staticNames.get(`regex.${name}`.toLowerCase());
      if (known === undefined || name === "Escape") {
        this.#fail(at, `The method '${name}' of Regex is not supported in indexes`);
      }
      // Only a replacement stands between the pattern and its options.
      const [pattern = '""', ...options] = object.args.map((arg) => this.#write(arg, scope));
      const [input, ...rest] = values();
      return `${known}(${[input ?? "null", pattern, ...rest, ...options].join(", ")})`;
    }
    if (type !== null && sourceNamed(type) === undefined) {
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
    if (name === "Count" && object.kind === "name" && object.name === this.#groupName) {
      this.#refuse("Reduce cannot contain Count() methods in grouping.");
    }
    if (/^(?:Order|Then)By/.test(name) && isOfRoot(object)) {
      this.#refuse(orderRefusal(this.#text.slice(node.at, node.to)));
    }
    if (/^OrderBy/.test(name) && !this.#isReduce) {
      const found = this.#text.slice(node.at, node.to);
      if (!/^\s*\.\s*\w+\s*[(<]/.test(this.#text.slice(node.to))) this.#refuse(orderRefusal(found));
    }
    if (!methodNames.has(name)) {
      this.#fail(at, `The method '${name}' is not supported in indexes`);
    }
    // `csJoin` is string.Join.
    const written = name === "Join" ? "csJoinItems" : summing(name, args[0]);
    return `${written}(${[this.#write(object, scope), ...values()].join(", ")})`;
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
    return `csMatch(${tried}(${this.#write(value, scope)}), (${found}) => (${found} !== null ? ${isFound} : !${isNone}))`;
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
      return `${known}(${this.#write(args[0] as Expression, scope)}${only})`;
    }
    if (name === "CreateField") this.#isDynamic = true;
    return `${known}(${args.map((arg) => this.#write(arg, scope)).join(", ")})`;
  }

  #unary(node: Extract<Expression, { kind: "unary" }>, scope: Scope): string {
    const value = this.#write(node.value, scope);
    if (node.operator === "!") return `csNot(${value})`;
    if (node.operator === "-") return `csNegate(${value})`;
    if (node.operator === "+") return value;
    if (node.operator === "~") return `csComplement(${value})`;
    return this.#fail(node.at, `The operator '${node.operator}' is not supported`);
  }

  #binary(node: Extract<Expression, { kind: "binary" }>, scope: Scope): string {
    const { operator } = node;
    const left = this.#write(node.left, scope);
    const right = this.#write(node.right, scope);
    if (operator === "??") return `(${left} ?? ${right})`;
    if (operator === "&&" || operator === "||") return `(${left} ${operator} (${right} ?? false))`;
    const known = operators[operator];
    if (known === undefined) {
      return this.#fail(node.at, `The operator '${operator}' is not supported`);
    }
    return `${known}(${left}, ${right})`;
  }

  #cast(type: string, value: string, at: number): string {
    const isNullable = type.endsWith("?");
    const name = type.replace(/^System\./, "").replace("?", "");
    if (integerTypes.test(name)) {
      return `csInteger(${value}, ${isNullable}, ${integerBits(name)})`;
    }
    if (/^[dD]ecimal$/.test(name)) return `csToDecimal(${value}, ${isNullable})`;
    if (/^(?:float|double|Single|Double)$/.test(name)) {
      return `csToDouble(${value}, ${isNullable})`;
    }
    if (/^(?:string|String)$/.test(name)) {
      return isNullable ? `csAsString(${value})` : `csString(${value})`;
    }
    if (/^(?:bool|Boolean)$/.test(name)) return isNullable ? value : `csBoolean(${value})`;
    const isSame =
      /^(?:dynamic|object|Object|char|DateTime|DateTimeOffset|TimeSpan|DateOnly|TimeOnly|Guid)$/.test(
        name,
      ) ||
      /[<[]/.test(name) ||
      name === "IEnumerable";
    if (isSame) return isNullable ? `(${value} ?? null)` : value;
    return this.#fail(at, `A cast to '${type}' is not supported in indexes`);
  }

  #construction(node: Extract<Expression, { kind: "construction" }>, scope: Scope): string {
    const { type, args, at } = node;
    const values = args.map((arg) => this.#write(arg, scope)).join(", ");
    const name = type.replace(/^System\./, "");
    if (name === "DateTime") return `csNewDate(${values})`;
    if (name === "TimeSpan") return `csNewSpan(${values})`;
    if (/^(?:List|HashSet)</.test(name)) return args.length === 0 ? "[]" : `csToArray(${values})`;
    if (/^Dictionary</.test(name) && args.length === 0) return "({})";
    return this.#fail(at, `new ${type}(…) is not supported in indexes`);
  }
}

const integerTypes = /^(?:s?byte|u?short|u?int|u?long|U?Int(?:16|32|64))$/;

/** Bits of an integer type, negative for an unsigned one. */
function integerBits(name: string): number {
  const [, unsigned = "", word = ""] = /^(u|s)?(byte|short|int\d*|long)$/i.exec(name) ?? [];
  const kind = word.toLowerCase();
  const bits =
    kind === "byte"
      ? 8
      : /^(?:short|int16)$/.test(kind)
        ? 16
        : /^(?:long|int64)$/.test(kind)
          ? 64
          : 32;
  const isSigned = kind === "byte" ? unsigned === "s" : unsigned === "";
  return isSigned ? bits : -bits;
}

const noRoot =
  "An index map must start its enumeration from 'docs', e.g. 'from item in docs.CollectionName' or " +
  "'docs.CollectionName.Select(...)'. The outer-most clause of the given map enumerates over a different source, " +
  "which cannot be compiled into an index.";

/** Maximum variables that the patterns of a text declare. */
const declaredMax = 100;

/** The types that patterns can name, without `System.` and type arguments. */
const patternTypes: Readonly<Record<string, string>> = {
  string: "string",
  String: "string",
  ...Object.fromEntries(["int", "Int32"].map((name) => [name, "int"])),
  ...Object.fromEntries(["long", "Int64"].map((name) => [name, "long"])),
  ...Object.fromEntries(
    ["short", "Int16", "byte", "sbyte", "uint", "ulong", "ushort", "float", "char", "Single"].map(
      (name) => [name, name],
    ),
  ),
  double: "double",
  Double: "double",
  decimal: "decimal",
  Decimal: "decimal",
  bool: "bool",
  Boolean: "bool",
  object: "object",
  Object: "object",
  DateTime: "DateTime",
  DateTimeOffset: "DateTimeOffset",
  TimeSpan: "TimeSpan",
  IEnumerable: "IEnumerable",
  DynamicArray: "DynamicArray",
  DynamicBlittableJson: "DynamicBlittableJson",
  DynamicNullObject: "DynamicNullObject",
};

const statementRefusal =
  "Unable to cast object of type 'Microsoft.CodeAnalysis.CSharp.Syntax.BlockSyntax' to type " +
  "'Microsoft.CodeAnalysis.CSharp.Syntax.ExpressionSyntax'.";

/** Returns the object of the last `return` statement; null if the statements do not end with an object. */
function returned(block: Extract<Statement, { kind: "block" }>): Expression | null {
  const last = block.statements.findLast(({ kind }) => kind === "return");
  return last?.kind === "return" ? last.value : null;
}

/** Returns whether the expression is read from a document, without a cast. */
function isDynamic(node: Expression | undefined): boolean {
  return node?.kind === "member" || node?.kind === "index" || node?.kind === "name";
}

/** Returns a sequence without the calls that order it. */
function unordered(node: Expression): Expression {
  const isOrdered =
    node.kind === "call" &&
    node.callee.kind === "member" &&
    /^(?:Order|Then)By(?:Descending)?$/.test(node.callee.name);
  return isOrdered ? unordered((node.callee as { object: Expression }).object) : node;
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

const ungrouped =
  "A reduce must group its results: 'from result in results group result by … into g select new { … }' or " +
  "'results.GroupBy(…).Select(g => new { … })'.";

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

/** `docs.WhereEntityIs("Cats", "Dogs")`, or null. */
function entitiesOf({ callee, args }: Call): Root | null {
  if (callee.kind !== "member" || callee.name !== "WhereEntityIs") return null;
  const names = args.flatMap((arg) => (arg.kind === "array" ? arg.items : [arg]));
  const collections = names.flatMap((arg) =>
    arg.kind === "literal" && typeof arg.value === "string" ? [arg.value] : [],
  );
  const isOfDocs = callee.object.kind === "name" && callee.object.name === "docs";
  const count = new Set(collections.map((one) => foldedName(one))).size;
  const isWhole = names.length > 0 && count === names.length;
  return isOfDocs && isWhole ? { source: "docs", collections, item: null } : null;
}

/** Returns the function of a method: integers and decimals have different sums and averages. */
function summing(name: string, selector: Expression | undefined): string {
  if (name === "Sum") return isInteger(selector) ? "csSum" : "csTotal";
  return name === "Average" && isInteger(selector) ? "csMean" : `cs${name}`;
}

/** Returns whether the selector is a function that syntactically returns integers. */
function isInteger(selector: Expression | undefined): boolean {
  if (selector?.kind !== "lambda") return false;
  const { body } = selector;
  if (body.kind === "cast") return integerTypes.test(body.type.replace(/^System\.|\?/g, ""));
  return body.kind === "literal" && !body.isDouble;
}

/** Returns whether the expression is derived from the enumerated source of the index. */
function isOfRoot(node: Expression): boolean {
  let base = node;
  for (;;) {
    if (base.kind === "call") base = base.callee;
    else if (base.kind === "member" || base.kind === "index") base = base.object;
    else return base.kind === "name" && (base.name === "docs" || base.name === "results");
  }
}

/** Returns the value without `Boost(…)` and casts around it: `new { … }.Boost(2)`. */
function unboosted(value: Expression): Expression {
  if (value.kind === "cast") return unboosted(value.value);
  const isBoost =
    value.kind === "call" && value.callee.kind === "member" && value.callee.name === "Boost";
  return isBoost ? unboosted((value.callee as { object: Expression }).object) : value;
}

/** Returns the names of the members of an anonymous object or a dictionary; null for other expressions. */
function memberNames(value: Expression): string[] | null {
  if (value.kind === "object" && value.type === null) return value.members.map(({ name }) => name);
  if (value.kind !== "dictionary") return null;
  const keys = value.entries.map(([key]) => (key.kind === "literal" ? String(key.value) : null));
  return keys.every((key) => key !== null) ? (keys as string[]) : null;
}
