/**
 * Static analysis of route handlers: which query parameters and headers a handler reads and how, which body it
 * accepts, and which statuses it replies with. TypeScript's compiler follows the functions that the handler calls, so
 * that the description cannot name anything that the code does not read.
 *
 * Invariants:
 * - A name that cannot be determined statically is an error, never omitted.
 * - Results are in the order of the code: the same source gives the same result.
 */
import { relative } from "node:path";
import ts from "typescript";

/** Methods of `QueryString` that read a parameter. */
type Reader =
  | "get"
  | "all"
  | "has"
  | "required"
  | "requiredFirst"
  | "int"
  | "long"
  | "float"
  | "bool"
  | "strictBool"
  | "timeSpanMs"
  | "dateMs";

export interface ReadParameter {
  readonly name: string;
  readonly reader: Reader;
  /** Default value, if it is a literal number, boolean or string. */
  readonly fallback: string | number | boolean | undefined;
  /** True if every request without the parameter is rejected. */
  readonly isRequired: boolean;
}

interface Reply {
  readonly status: number;
  /** Undefined for a reply without a body. */
  readonly contentType: string | undefined;
}

export interface Reading {
  /** Comment above the handler, or "". */
  readonly comment: string;
  readonly parameters: ReadParameter[];
  /** Names of request headers, in lower case. */
  readonly headers: string[];
  /** json: parsed as one JSON object; other: parsed by the handler; undefined: no body is accepted. */
  body: "json" | "other" | undefined;
  /** Members of a JSON body that are read by name. */
  readonly members: string[];
  readonly replies: Reply[];
}

/** Methods of an exchange that read the body. */
const bodyReaders: Readonly<Record<string, "json" | "other">> = {
  jsonBytes: "json",
  body: "other",
  bufferedBody: "other",
  bodyStream: "other",
};
/** Functions of http/json-body.ts that return the object in the body. */
const parsers = ["jsonBody", "parseObject"];
/** Folders of `server/` whose functions read requests and send replies. */
const analyzedFolders = ["endpoints/", "replies/", "http/", "databases/"];

/** Argument expressions for the parameters of a called function. */
type Bindings = ReadonlyMap<ts.Symbol, Bound>;
interface Bound {
  readonly expression: ts.Expression;
  readonly bindings: Bindings;
}

/** The source, parsed and type-checked. */
export class HandlerReader {
  private readonly program: ts.Program;
  private readonly checker: ts.TypeChecker;
  private readonly server: string;

  /** `root` is the folder of tsconfig.json, with a trailing slash. */
  constructor(root: string) {
    this.server = `${root}server/`;
    const { config } = ts.readConfigFile(`${root}tsconfig.json`, ts.sys.readFile);
    const { options } = ts.parseJsonConfigFileContent(config, ts.sys, root);
    const table = `${root}server/endpoints/route-table.ts`;
    this.program = ts.createProgram([table], { ...options, noEmit: true });
    this.checker = this.program.getTypeChecker();
  }

  /** Returns the header comment of a resource's file. */
  fileComment(file: string): string {
    const source = this.source(file);
    const [range] = ts.getLeadingCommentRanges(source.text, 0) ?? [];
    return range === undefined ? "" : commentText(source.text.slice(range.pos, range.end));
  }

  /** Analyzes a handler. @throws when the file has no function of that name, or several */
  read(file: string, handler: string): Reading {
    const found = functionsNamed(this.source(file), handler);
    const [one] = found;
    if (one === undefined || found.length > 1) {
      throw new Error(
        `${file} has ${found.length} functions "${handler}": each handler needs a unique name`,
      );
    }
    const reading: Reading = {
      comment: commentOf(one),
      parameters: [],
      headers: [],
      body: undefined,
      members: [],
      replies: [],
    };
    new Walk(this.checker, this.server, reading).enter(one, new Map(), true);
    return reading;
  }

  private source(file: string): ts.SourceFile {
    const source = this.program.getSourceFile(`${this.server}endpoints/${file}`);
    if (source === undefined) throw new Error(`${file} is not in the program`);
    return source;
  }
}

/** Traversal of the functions that a handler calls. */
class Walk {
  private readonly checker: ts.TypeChecker;
  private readonly server: string;
  private readonly reading: Reading;
  private readonly entered = new Set<string>();

  constructor(checker: ts.TypeChecker, server: string, reading: Reading) {
    this.checker = checker;
    this.server = server;
    this.reading = reading;
  }

  /** Visits a function or class once for the same arguments. `isCertain`: every request runs it. */
  enter(node: ts.Node, bindings: Bindings, isCertain: boolean): void {
    const given = [...bindings].map(([{ name }, bound]) => `${name}=${this.texts(bound) ?? ""}`);
    const key = [node.getSourceFile().fileName, node.pos, isCertain, ...given].join(" ");
    if (this.entered.has(key)) return;
    this.entered.add(key);
    this.walkInto(node, bindings, isCertain);
  }

  private walkInto(node: ts.Node, bindings: Bindings, isCertain: boolean): void {
    let isStill = isCertain;
    ts.forEachChild(node, (child) => {
      this.walk(child, bindings, isStill && isAlwaysRun(node, child));
      // Code after a return is not run by every request.
      if (ts.isBlock(node) && hasReturn(child)) isStill = false;
    });
  }

  private walk(node: ts.Node, bindings: Bindings, isCertain: boolean): void {
    this.walkInto(node, bindings, isCertain);
    if (ts.isCallExpression(node) || ts.isNewExpression(node)) {
      this.call(node, bindings, isCertain);
    }
  }

  private call(
    node: ts.CallExpression | ts.NewExpression,
    bindings: Bindings,
    isCertain: boolean,
  ): void {
    const { expression } = node;
    const args = node.arguments ?? ([] as readonly ts.Expression[]);
    if (ts.isPropertyAccessExpression(expression)) {
      const owner = this.classOf(expression.expression);
      const method = expression.name.text;
      if (owner === "QueryString") {
        this.parameter(method, args, bindings, isCertain);
        return;
      }
      if (owner === "Exchange" || owner === "Conditional") {
        this.exchanged(method, args, bindings);
        return;
      }
    }
    const declaration = this.declarationOf(expression);
    if (declaration === undefined) return;
    const [, status] = args;
    if (ts.isClassDeclaration(declaration) && declaration.name?.text === "StreamedReply") {
      // The reply is described by the arguments of the constructor.
      if (status !== undefined) this.replied(status, bindings, "application/json");
      return;
    }
    const inner = new Map<ts.Symbol, Bound>();
    for (const [at, { name }] of parametersOf(declaration).entries()) {
      const symbol = this.checker.getSymbolAtLocation(name);
      const given = args[at];
      if (symbol !== undefined && given !== undefined) {
        inner.set(symbol, { expression: given, bindings });
      }
    }
    this.enter(declaration, inner, isCertain && !ts.isClassDeclaration(declaration));
    if (ts.isFunctionDeclaration(declaration) && parsers.includes(declaration.name?.text ?? "")) {
      this.reading.body = "json";
      this.members(node);
    }
  }

  private parameter(
    method: string,
    [first, second]: readonly ts.Expression[],
    bindings: Bindings,
    isCertain: boolean,
  ): void {
    if (first === undefined || method === "hasOnly") return;
    const fallback = second === undefined ? undefined : this.literalValue(second);
    const isRequired = isCertain && (method === "required" || method === "requiredFirst");
    for (const name of this.names(first, bindings)) {
      this.reading.parameters.push({ name, reader: method as Reader, fallback, isRequired });
    }
  }

  private exchanged(method: string, args: readonly ts.Expression[], bindings: Bindings): void {
    const { reading } = this;
    const body = bodyReaders[method];
    if (body !== undefined) {
      reading.body = reading.body === "json" ? "json" : body;
      return;
    }
    const [first, second, third] = args;
    if (first === undefined) return;
    if (method === "header") {
      reading.headers.push(...this.names(first, bindings));
      return;
    }
    const replies = ["reply", "replyJson", "stream", "replyPieces"];
    if (!replies.includes(method)) return;
    const isJson = method !== "reply";
    const headers = method === "stream" || method === "reply" ? second : args.at(-1);
    const own = headers === undefined ? undefined : this.contentType(headers);
    const contentType =
      method === "reply" && third === undefined
        ? undefined
        : (own ?? (isJson ? "application/json" : "*/*"));
    this.replied(first, bindings, contentType);
  }

  private replied(
    expression: ts.Expression,
    bindings: Bindings,
    contentType: string | undefined,
  ): void {
    for (const status of this.statuses(expression, bindings)) {
      this.reading.replies.push({ status, contentType });
    }
  }

  /** Returns the `content-type` in an object literal, or in the object literal of a constant. */
  private contentType(headers: ts.Expression): string | undefined {
    let found: string | undefined;
    const visit = (node: ts.Node): void => {
      if (ts.isPropertyAssignment(node) && /^"?content-type"?$/.test(node.name.getText())) {
        const type = this.checker.getTypeAtLocation(node.initializer);
        found = type.isStringLiteral() ? type.value.replace(/;.*/, "") : "*/*";
      } else if (ts.isCallExpression(node)) {
        found ??= "*/*"; // determined at run time
      } else if (ts.isIdentifier(node)) {
        const declaration = this.checker.getSymbolAtLocation(node)?.valueDeclaration;
        if (declaration !== undefined && ts.isVariableDeclaration(declaration)) {
          if (declaration.initializer !== undefined) visit(declaration.initializer);
        }
      } else ts.forEachChild(node, visit);
    };
    visit(headers);
    return found;
  }

  /**
   * Records members that are read by name from the object that a call returns, also in functions that receive the
   * object.
   */
  private members(call: ts.Node): void {
    let node = call;
    while (ts.isAwaitExpression(node.parent) || ts.isParenthesizedExpression(node.parent)) {
      node = node.parent;
    }
    this.membersAt(node, new Set());
  }

  private membersAt(node: ts.Node, seen: Set<ts.Symbol>): void {
    const { parent } = node;
    if (ts.isElementAccessExpression(parent) && parent.expression === node) {
      const type = this.checker.getTypeAtLocation(parent.argumentExpression);
      if (type.isStringLiteral()) this.reading.members.push(type.value);
    } else if (ts.isPropertyAccessExpression(parent) && parent.expression === node) {
      this.reading.members.push(parent.name.text);
    } else if (ts.isVariableDeclaration(parent)) this.membersOf(parent.name, seen);
    else if (ts.isCallExpression(parent)) {
      const at = parent.arguments.indexOf(node as ts.Expression);
      const declaration = this.declarationOf(parent.expression);
      const parameter = declaration === undefined ? undefined : parametersOf(declaration)[at];
      if (parameter !== undefined) this.membersOf(parameter.name, seen);
    }
  }

  private membersOf(name: ts.BindingName, seen: Set<ts.Symbol>): void {
    if (ts.isObjectBindingPattern(name)) {
      for (const { propertyName, name: own, dotDotDotToken } of name.elements) {
        if (dotDotDotToken === undefined)
          this.reading.members.push((propertyName ?? own).getText());
      }
      return;
    }
    const symbol = this.checker.getSymbolAtLocation(name);
    if (symbol === undefined || seen.has(symbol)) return;
    seen.add(symbol);
    const visit = (node: ts.Node): void => {
      if (ts.isIdentifier(node) && node !== name) {
        if (this.checker.getSymbolAtLocation(node) === symbol) this.membersAt(node, seen);
      }
      ts.forEachChild(node, visit);
    };
    visit(ts.findAncestor(name, ts.isFunctionLike) ?? name.getSourceFile());
  }

  /** Returns the name of the class or interface of an expression, for example `QueryString` or `Exchange`. */
  private classOf(expression: ts.Expression): string | undefined {
    return this.checker.getTypeAtLocation(expression).getSymbol()?.name;
  }

  /** Returns the declaration of a called function or class, if it is in an analyzed folder. */
  private declarationOf(called: ts.Expression): ts.Node | undefined {
    let symbol = this.checker.getSymbolAtLocation(called);
    if (symbol !== undefined && symbol.flags & ts.SymbolFlags.Alias) {
      symbol = this.checker.getAliasedSymbol(symbol);
    }
    const declaration = symbol?.valueDeclaration;
    if (declaration === undefined) return undefined;
    const path = relative(this.server, declaration.getSourceFile().fileName);
    const isAnalyzed = analyzedFolders.some((folder) => path.startsWith(folder));
    if (!isAnalyzed || path === "http/exchange.ts") return undefined;
    if (ts.isVariableDeclaration(declaration)) return declaration.initializer;
    return ts.isParameter(declaration) ? undefined : declaration;
  }

  private names(expression: ts.Expression, bindings: Bindings): string[] {
    const found = this.texts({ expression, bindings });
    if (found !== undefined) return found;
    const { fileName, text } = expression.getSourceFile();
    const line = text.slice(0, expression.pos).split("\n").length;
    throw new Error(
      `${fileName}:${line}: the value of "${expression.getText()}" cannot be determined statically`,
    );
  }

  /** Returns the possible string values of an expression, or undefined if they are unknown. */
  private texts({ expression, bindings }: Bound): string[] | undefined {
    const type = this.checker.getTypeAtLocation(expression);
    const types = type.isUnion() ? type.types : [type];
    if (types.every((one) => one.isStringLiteral())) return types.map(({ value }) => value);
    const bound = this.boundTo(expression, bindings);
    return bound === undefined ? undefined : this.texts(bound);
  }

  private statuses(expression: ts.Expression, bindings: Bindings): number[] {
    const type = this.checker.getTypeAtLocation(expression);
    const types = type.isUnion() ? type.types : [type];
    if (types.every((one) => one.isNumberLiteral())) return types.map(({ value }) => value);
    const bound = this.boundTo(expression, bindings);
    return bound === undefined ? [] : this.statuses(bound.expression, bound.bindings);
  }

  private boundTo(expression: ts.Expression, bindings: Bindings): Bound | undefined {
    const symbol = this.checker.getSymbolAtLocation(expression);
    return symbol === undefined ? undefined : bindings.get(symbol);
  }

  private literalValue(expression: ts.Expression): string | number | boolean | undefined {
    if (expression.kind === ts.SyntaxKind.TrueKeyword) return true;
    if (expression.kind === ts.SyntaxKind.FalseKeyword) return false;
    const type = this.checker.getTypeAtLocation(expression);
    return type.isNumberLiteral() || type.isStringLiteral() ? type.value : undefined;
  }
}

/** Returns true if every request that runs `node` also runs its part `child`. */
function isAlwaysRun(node: ts.Node, child: ts.Node): boolean {
  if (ts.isIfStatement(node)) return child === node.expression;
  if (ts.isConditionalExpression(node)) return child === node.condition;
  if (ts.isBinaryExpression(node)) {
    const { kind } = node.operatorToken;
    const isEither =
      kind === ts.SyntaxKind.AmpersandAmpersandToken ||
      kind === ts.SyntaxKind.BarBarToken ||
      kind === ts.SyntaxKind.QuestionQuestionToken;
    return !isEither || child === node.left;
  }
  if (ts.isIterationStatement(node, false)) return false;
  if (ts.isCaseOrDefaultClause(node) || ts.isCatchClause(node)) return false;
  // A nested function may never be called.
  return !ts.isFunctionLike(child);
}

function hasReturn(node: ts.Node): boolean {
  if (ts.isFunctionLike(node)) return false;
  if (ts.isReturnStatement(node)) return true;
  return ts.forEachChild(node, hasReturn) ?? false;
}

function parametersOf(declaration: ts.Node): readonly ts.ParameterDeclaration[] {
  return ts.isFunctionLike(declaration)
    ? (declaration.parameters as ts.NodeArray<ts.ParameterDeclaration>)
    : [];
}

/** Returns the functions of a file with that name, including nested ones. */
function functionsNamed(source: ts.SourceFile, name: string): ts.Node[] {
  const found: ts.Node[] = [];
  const visit = (node: ts.Node): void => {
    const isFunction = ts.isFunctionDeclaration(node) || ts.isFunctionExpression(node);
    if (isFunction && node.name?.text === name) found.push(node);
    if (ts.isVariableDeclaration(node) && node.name.getText() === name) found.push(node);
    ts.forEachChild(node, visit);
  };
  visit(source);
  return found;
}

/** Returns the last comment before a function, or before the constant that holds it. */
function commentOf(node: ts.Node): string {
  const statement = ts.isVariableDeclaration(node) ? node.parent.parent : node;
  const { text } = node.getSourceFile();
  const range = ts.getLeadingCommentRanges(text, statement.pos)?.at(-1);
  return range === undefined ? "" : commentText(text.slice(range.pos, range.end));
}

/** Returns the text of a comment on one line, without `@throws` and `@returns`. */
function commentText(comment: string): string {
  if (!comment.startsWith("/**")) return "";
  const text = comment
    .slice(3, -2)
    .replace(/\n\s*\* ?/g, " ")
    .replace(/\s+/g, " ");
  return text.replace(/@(?:throws|returns) .*/, "").trim();
}
