/**
 * Resolves the names of a checked tree to variables, and assigns their storage: a slot in a frame some hops up.
 *
 * A function has one frame for all its variables; a block inside a loop gets a frame of its own when a function inside
 * it captures one of its variables, so that each iteration has its own. It knows nothing of values or execution.
 *
 * Invariants:
 * - a binding's slot is unique in its frame;
 * - a name that resolves to no binding is a global: a built-in, a parameter `$x`, or nothing.
 */

import type * as acorn from "acorn";
import {
  childrenOf,
  type FunctionNode,
  isFunctionNode,
  type Node,
  syntaxError,
} from "./script-parser.ts";

type BindingKind = "var" | "let" | "const" | "parameter" | "function" | "catch";

export interface Binding {
  readonly name: string;
  readonly kind: BindingKind;
  slot: number;
  scope: Scope;
  /** Used by a function nested in the declaring one. */
  captured: boolean;
  /** End offset of its declaration; an earlier use may find it uninitialized. */
  readonly declaredAt: number;
  /** The initial value in its declaration; null if the declaration has no initial value, or a pattern. */
  readonly initial: Node | null;
  /** Some use may run before its declaration: uses are checked. */
  checked: boolean;
}

/** A region that declares names: a function, a block, a loop's head, a catch. */
export class Scope {
  readonly parent: Scope | null;
  readonly isFunction: boolean;
  readonly inLoop: boolean;
  readonly bindings = new Map<string, Binding>();
  /** Function declarations, which exist from the start of the scope. */
  readonly functions: acorn.FunctionDeclaration[] = [];
  /** Whether it has its own frame; otherwise its variables are in the nearest enclosing scope that does. */
  ownFrame = false;
  slotCount = 0;
  usesArguments = false;

  constructor(parent: Scope | null, isFunction: boolean, inLoop: boolean) {
    this.parent = parent;
    this.isFunction = isFunction;
    this.inLoop = inLoop;
    this.ownFrame = isFunction;
  }

  get function(): Scope {
    let scope: Scope = this;
    while (!scope.isFunction && scope.parent !== null) scope = scope.parent;
    return scope;
  }

  get frame(): Scope {
    let scope: Scope = this;
    while (!scope.ownFrame && scope.parent !== null) scope = scope.parent;
    return scope;
  }

  declare(
    name: string,
    kind: BindingKind,
    declaredAt: number,
    initial: Node | null = null,
  ): Binding {
    const known = this.bindings.get(name);
    if (known !== undefined) return known;
    const binding: Binding = {
      name,
      kind,
      slot: -1,
      scope: this,
      captured: false,
      declaredAt,
      initial,
      checked: false,
    };
    this.bindings.set(name, binding);
    return binding;
  }

  find(name: string): Binding | null {
    for (let scope: Scope | null = this; scope !== null; scope = scope.parent) {
      const binding = scope.bindings.get(name);
      if (binding !== undefined) return binding;
    }
    return null;
  }

  /** Returns the number of frames from this scope's to a binding's. */
  hopsTo(binding: Binding): number {
    let hops = 0;
    const target = binding.scope.frame;
    for (
      let scope: Scope | null = this.frame;
      scope !== target;
      scope = scope.parent?.frame ?? null
    ) {
      if (scope === null) return -1;
      hops += 1;
    }
    return hops;
  }
}

/** The scopes of a tree, by the node that opens each. */
export type Scopes = Map<Node, Scope>;

interface Use {
  readonly name: string;
  readonly at: number;
  readonly scope: Scope;
}

/** Analyzes the scopes of a tree. `root` is the scope of its outermost code, with external declarations. */
export function analyze(source: string, tree: Node, root: Scope): Scopes {
  const analysis = new Analysis(source);
  analysis.scopes.set(tree, root);
  analysis.enter(tree, root, false);
  analysis.finish(root);
  return analysis.scopes;
}

class Analysis {
  readonly scopes: Scopes = new Map();
  private readonly source: string;
  private readonly uses: Use[] = [];
  private readonly order: Scope[] = [];
  /** Names in their declarations, which are not uses. */
  private readonly declared = new Set<Node>();

  constructor(source: string) {
    this.source = source;
  }

  /** Visits the children of a node that opened `scope`. */
  enter(node: Node, scope: Scope, inLoop: boolean): void {
    for (const child of childrenOf(node) ?? []) this.visit(child, scope, inLoop);
  }

  private open(node: Node, parent: Scope, isFunction: boolean, inLoop: boolean): Scope {
    const scope = new Scope(parent, isFunction, inLoop);
    this.scopes.set(node, scope);
    this.order.push(scope);
    return scope;
  }

  private visit(node: Node, scope: Scope, inLoop: boolean): void {
    if (isFunctionNode(node)) {
      this.function(node, scope);
      return;
    }
    switch (node.type) {
      case "Identifier":
        if (!this.declared.has(node)) this.uses.push({ name: node.name, at: node.start, scope });
        return;
      case "VariableDeclaration":
        this.declaration(node, scope);
        this.enter(node, scope, inLoop);
        return;
      case "ClassDeclaration":
        this.class(node as acorn.ClassDeclaration, scope);
        this.enter(node, scope, inLoop);
        return;
      case "BlockStatement":
      case "SwitchStatement":
        this.enter(node, this.open(node, scope, false, inLoop), inLoop);
        return;
      case "ForStatement":
      case "ForInStatement":
      case "ForOfStatement":
        this.enter(node, this.open(node, scope, false, true), true);
        return;
      case "WhileStatement":
      case "DoWhileStatement":
        this.enter(node, scope, true);
        return;
      case "CatchClause": {
        const inner = this.open(node, scope, false, inLoop);
        if (node.param)
          for (const id of namesOf(node.param)) {
            this.declared.add(id);
            inner.declare(id.name, "catch", id.end);
          }
        this.enter(node, inner, inLoop);
        return;
      }
      default:
        this.enter(node, scope, inLoop);
    }
  }

  private class(node: acorn.ClassDeclaration, scope: Scope): void {
    this.declared.add(node.id);
    scope.declare(node.id.name, "let", node.end);
  }

  private declaration(node: acorn.VariableDeclaration, scope: Scope): void {
    const target = node.kind === "var" ? scope.function : scope;
    for (const declarator of node.declarations) {
      const init = declarator.id.type === "Identifier" ? ((declarator.init as Node) ?? null) : null;
      for (const id of namesOf(declarator.id)) {
        this.declared.add(id);
        target.declare(id.name, node.kind as BindingKind, declarator.end, init);
      }
    }
  }

  private function(node: FunctionNode, scope: Scope): void {
    if (node.type === "FunctionDeclaration" && node.id) {
      this.declared.add(node.id);
      scope.declare(node.id.name, "function", node.start);
      scope.functions.push(node as acorn.FunctionDeclaration);
    }
    const inner = this.open(node, scope, true, false);
    for (const parameter of node.params) {
      for (const id of namesOf(parameter)) {
        this.declared.add(id);
        inner.declare(id.name, "parameter", id.end);
      }
    }
    if (node.type === "FunctionExpression" && node.id) {
      inner.declare(node.id.name, "function", node.start);
    }
    if (node.type !== "ArrowFunctionExpression") inner.declare("arguments", "var", node.start);
    for (const parameter of node.params) this.visit(parameter, inner, false);
    // The body's block is the function's own scope: acorn refuses `let` with the name of a parameter.
    if (node.body.type === "BlockStatement") this.enter(node.body, inner, false);
    else this.visit(node.body, inner, false);
  }

  /** Links uses to bindings, then assigns slots. */
  finish(root: Scope): void {
    for (const use of this.uses) {
      const binding = use.scope.find(use.name);
      if (binding === null) continue;
      if (use.name === "arguments") binding.scope.usesArguments = true;
      if (binding.scope.function !== use.scope.function) binding.captured = true;
      if (binding.kind !== "let" && binding.kind !== "const") continue;
      // A captured variable may be used at any time; other uses run in text order.
      if (binding.captured || use.at < binding.declaredAt) binding.checked = true;
    }
    this.place(root);
    for (const scope of this.order) this.place(scope);
  }

  private place(scope: Scope): void {
    if (!scope.isFunction && scope.inLoop) {
      for (const binding of scope.bindings.values()) if (binding.captured) scope.ownFrame = true;
    }
    const frame = scope.frame;
    for (const binding of scope.bindings.values()) {
      if (binding.name === "arguments" && !scope.usesArguments) continue;
      if (binding.slot >= 0) continue;
      binding.slot = frame.slotCount;
      frame.slotCount += 1;
    }
    if (frame.slotCount > 10_000) throw syntaxError(this.source, 0, "It has too many variables");
  }
}

/** Returns the names that a pattern declares. */
function namesOf(pattern: acorn.Pattern): acorn.Identifier[] {
  switch (pattern.type) {
    case "Identifier":
      return [pattern];
    case "ObjectPattern":
      return pattern.properties.flatMap((property) =>
        namesOf(property.type === "RestElement" ? property : property.value),
      );
    case "ArrayPattern":
      return pattern.elements.flatMap((element) => (element === null ? [] : namesOf(element)));
    case "RestElement":
      return namesOf(pattern.argument);
    case "AssignmentPattern":
      return namesOf(pattern.left);
    default:
      return [];
  }
}
