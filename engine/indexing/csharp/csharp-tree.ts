/** The syntax tree of a C# text of an index. Types only; `at` is the offset of a node in the text. */

/** `new { Name = value }`; the name of `doc.Name` is its last part. */
export interface Member {
  readonly name: string;
  readonly value: Expression;
  readonly at: number;
}

export type Clause =
  | {
      readonly kind: "from";
      readonly name: string;
      readonly source: Expression;
      readonly at: number;
    }
  | { readonly kind: "let"; readonly name: string; readonly value: Expression; readonly at: number }
  | { readonly kind: "where"; readonly test: Expression; readonly at: number }
  | {
      readonly kind: "join";
      readonly name: string;
      readonly source: Expression;
      /** The key on the side of the clauses before it. */
      readonly outer: Expression;
      readonly inner: Expression;
      readonly into: string | null;
      readonly at: number;
    }
  | {
      readonly kind: "orderby";
      readonly keys: readonly { readonly value: Expression; readonly isDescending: boolean }[];
      readonly text: string;
      readonly at: number;
    }
  | {
      readonly kind: "select";
      readonly value: Expression;
      readonly into: string | null;
      readonly at: number;
    }
  | {
      readonly kind: "group";
      readonly element: Expression;
      readonly key: Expression;
      readonly into: string | null;
      readonly at: number;
    };

/** The pattern of `is` and of the arms of `switch`. */
export type Pattern =
  | {
      readonly kind: "type";
      readonly type: string;
      /** The variable that becomes the value. */
      readonly name: string | null;
      readonly at: number;
    }
  | { readonly kind: "constant"; readonly value: Expression; readonly at: number }
  | {
      readonly kind: "relation";
      readonly operator: string;
      readonly value: Expression;
      readonly at: number;
    }
  | { readonly kind: "not"; readonly pattern: Pattern; readonly at: number }
  | {
      readonly kind: "and" | "or";
      readonly left: Pattern;
      readonly right: Pattern;
      readonly at: number;
    }
  /** `_` and `var x` */
  | { readonly kind: "any"; readonly name: string | null; readonly at: number };

export interface SwitchArm {
  readonly pattern: Pattern;
  readonly guard: Expression | null;
  readonly value: Expression;
}

/** A statement in the body of a function. */
export type Statement =
  | {
      readonly kind: "declare";
      /** Null: `var`. */
      readonly type: string | null;
      readonly name: string;
      readonly value: Expression | null;
      readonly at: number;
    }
  | {
      readonly kind: "assign";
      readonly target: Expression;
      /** "=", "+", "??": the operator that joins the old value and the new one. */
      readonly operator: string;
      readonly value: Expression;
      readonly at: number;
    }
  | { readonly kind: "run"; readonly value: Expression; readonly at: number }
  | { readonly kind: "return"; readonly value: Expression; readonly at: number }
  | {
      readonly kind: "if";
      readonly test: Expression;
      readonly yes: Statement;
      readonly no: Statement | null;
      readonly at: number;
    }
  | {
      readonly kind: "foreach";
      readonly name: string;
      readonly source: Expression;
      readonly body: Statement;
      readonly at: number;
    }
  /** `for` and `while` */
  | {
      readonly kind: "loop";
      readonly first: readonly Statement[];
      readonly test: Expression | null;
      readonly step: readonly Statement[];
      readonly body: Statement;
      readonly at: number;
    }
  | { readonly kind: "break" | "continue"; readonly at: number }
  | { readonly kind: "block"; readonly statements: readonly Statement[]; readonly at: number };

export type QueryExpression = {
  readonly kind: "query";
  readonly clauses: readonly Clause[];
  readonly at: number;
};

export type Expression =
  | { readonly kind: "name"; readonly name: string; readonly at: number }
  | {
      readonly kind: "literal";
      readonly value: string | number | boolean | null;
      readonly isDouble: boolean;
      readonly at: number;
    }
  | {
      readonly kind: "interpolated";
      readonly parts: readonly (string | { readonly value: Expression; readonly format: string })[];
      readonly at: number;
    }
  | {
      readonly kind: "member";
      readonly object: Expression;
      readonly name: string;
      readonly at: number;
    }
  | {
      readonly kind: "index";
      readonly object: Expression;
      readonly index: Expression;
      readonly at: number;
    }
  | {
      readonly kind: "call";
      readonly callee: Expression;
      /** The first type in `f<T>(…)`. */
      readonly type: string | null;
      readonly args: readonly Expression[];
      readonly at: number;
      readonly to: number;
    }
  | {
      readonly kind: "unary";
      readonly operator: string;
      readonly value: Expression;
      readonly at: number;
    }
  | {
      readonly kind: "binary";
      readonly operator: string;
      readonly left: Expression;
      readonly right: Expression;
      readonly at: number;
    }
  | {
      readonly kind: "conditional";
      readonly test: Expression;
      readonly yes: Expression;
      readonly no: Expression;
      readonly at: number;
    }
  | {
      readonly kind: "cast";
      readonly type: string;
      readonly value: Expression;
      readonly at: number;
    }
  | {
      readonly kind: "lambda";
      readonly parameters: readonly string[];
      readonly body: Expression;
      readonly at: number;
    }
  | {
      readonly kind: "object";
      readonly type: string | null;
      readonly members: readonly Member[];
      readonly at: number;
    }
  | { readonly kind: "array"; readonly items: readonly Expression[]; readonly at: number }
  | {
      readonly kind: "dictionary";
      readonly entries: readonly (readonly [Expression, Expression])[];
      readonly at: number;
    }
  | {
      readonly kind: "construction";
      readonly type: string;
      readonly args: readonly Expression[];
      readonly at: number;
    }
  | {
      readonly kind: "is";
      readonly value: Expression;
      readonly pattern: Pattern;
      readonly at: number;
    }
  | {
      readonly kind: "switch";
      readonly value: Expression;
      readonly arms: readonly SwitchArm[];
      readonly at: number;
    }
  /** The body of a function. */
  | { readonly kind: "block"; readonly statements: readonly Statement[]; readonly at: number }
  /** `out var n`, `out int n`, `out n` */
  | { readonly kind: "out"; readonly name: string; readonly at: number }
  /** `new T[size]` */
  | {
      readonly kind: "sized";
      readonly type: string;
      readonly size: Expression;
      readonly at: number;
    }
  | QueryExpression;

export type Call = Extract<Expression, { kind: "call" }>;
