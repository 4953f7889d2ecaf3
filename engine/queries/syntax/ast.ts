/**
 * The syntax tree of a query: types only.
 *
 * Every node has `offset`, the position of its first character in the query text in UTF-16 units; it is used in
 * messages and is not part of a node's meaning.
 *
 * Invariants:
 * - Names (paths, methods, aliases) are as written; nothing here is lower-cased or resolved.
 * - Script texts are as written, braces included; nothing here has parsed them.
 */

/** A whole query. `update` is null in a read query; `select` is null and `include` empty in a patch. */
export interface Query {
  readonly kind: "query";
  readonly offset: number;
  readonly declarations: readonly Declaration[];
  readonly source: Source;
  readonly groupBy: readonly GroupKey[];
  readonly where: Expression | null;
  readonly orderBy: readonly OrderItem[];
  readonly load: readonly LoadItem[];
  readonly filter: Expression | null;
  readonly select: Select | null;
  readonly update: Script | null;
  readonly include: readonly Operand[];
  readonly paging: Paging;
}

/** `declare function name(parameters) { body }`, or `declare timeseries` with a series query as body. */
export interface Declaration {
  readonly kind: "declaration";
  readonly offset: number;
  readonly form: "function" | "timeseries";
  readonly name: string;
  /** The text between the parentheses, trimmed. */
  readonly parameters: string;
  readonly body: Script;
}

/** Text in braces or parentheses that is not RQL. `text` includes them. */
export interface Script {
  readonly kind: "script";
  readonly offset: number;
  readonly text: string;
}

/** `from Name`, `from index 'Name'`, `from Name (filter)`, each with an alias or without. */
export interface Source {
  readonly kind: "source";
  readonly offset: number;
  readonly form: "collection" | "index";
  readonly name: string;
  /** The condition in parentheses: `(Revisions = true)`. */
  readonly filter: Expression | null;
  readonly alias: string | null;
}

export interface GroupKey {
  readonly kind: "group-key";
  readonly offset: number;
  readonly expression: Operand;
  readonly alias: string | null;
}

export interface OrderItem {
  readonly kind: "order-item";
  readonly offset: number;
  readonly expression: Field | Call;
  readonly type: OrderType | null;
  readonly isDescending: boolean;
  readonly nulls: "first" | "last" | null;
}

export type OrderType = "string" | "long" | "double" | "alphaNumeric";

export interface LoadItem {
  readonly kind: "load-item";
  readonly offset: number;
  readonly expression: Operand;
  readonly alias: string | null;
  /** The alias was written `name[]`: a list of documents. */
  readonly isArray: boolean;
}

export interface Select {
  readonly kind: "select";
  readonly offset: number;
  readonly isDistinct: boolean;
  /** null: `*`. */
  readonly body: Script | readonly SelectItem[] | null;
}

export interface SelectItem {
  readonly kind: "select-item";
  readonly offset: number;
  readonly expression: Operand | TimeSeriesCall;
  readonly alias: string | null;
}

/** `limit`, `offset` and `filter_limit`. Each is null when absent. */
export interface Paging {
  readonly kind: "paging";
  readonly offset: number;
  readonly skip: Value | null;
  readonly take: Value | null;
  readonly filterTake: Value | null;
}

/** A condition in `where`, `filter`, or in the arguments of a method. */
export type Expression = Logical | Not | True | Comparison | Between | In | Call;

/** Two or more conditions. A chain of one connective is one node, so nesting is parentheses only. */
export interface Logical {
  readonly kind: "and" | "or";
  readonly offset: number;
  readonly operands: readonly Expression[];
}

/**
 * Never the first condition of a clause or of parentheses: the grammar has `and not`, `or not` and
 * no other. It binds tighter than `and`.
 */
interface Not {
  readonly kind: "not";
  readonly offset: number;
  readonly operand: Expression;
}

interface True {
  readonly kind: "true";
  readonly offset: number;
}

export type ComparisonOperator = "=" | "!=" | "<" | "<=" | ">" | ">=";

export interface Comparison {
  readonly kind: "comparison";
  readonly offset: number;
  readonly operator: ComparisonOperator;
  readonly left: Field | Call;
  readonly right: Operand;
}

export interface Between {
  readonly kind: "between";
  readonly offset: number;
  readonly left: Field | Call;
  readonly low: Value;
  readonly high: Value;
}

export interface In {
  readonly kind: "in";
  readonly offset: number;
  readonly left: Field | Call;
  /** `all in`: all values are required. */
  readonly isAll: boolean;
  readonly values: readonly Value[];
}

/** An operand of an operator, an item of a list, or the whole of a clause. */
export type Operand = Field | Value | Call;
export type Value = Literal | Parameter;
/** Arguments may be operands or whole conditions. */
export type Argument = Expression | Operand;

/** A path. `Lines[].Product` is `[{Lines, 1}, {Product, 0}]`; `Lines[0]` is `[{Lines, 0}, {0, 0}]`. */
export interface Field {
  readonly kind: "field";
  readonly offset: number;
  readonly path: readonly PathPart[];
  /** The first part was written in quotes. */
  readonly isQuoted: boolean;
}

export interface PathPart {
  readonly name: string;
  /** Number of `[]` that follow. */
  readonly arrays: number;
}

/** `text`: the value of a string; the digits of a number without `_`; true, false or null in lower case. */
export interface Literal {
  readonly kind: "literal";
  readonly offset: number;
  readonly type: "string" | "long" | "double" | "boolean" | "null";
  readonly text: string;
}

export interface Parameter {
  readonly kind: "parameter";
  readonly offset: number;
  readonly name: string;
}

export interface Call {
  readonly kind: "call";
  readonly offset: number;
  /** As written, parts joined by points: `spatial.within`. */
  readonly name: string;
  readonly args: readonly Argument[];
  /** Only for arguments: `sum(Stock) as Pieces`. */
  readonly alias?: string;
}

/** `timeseries( … )` in `select`. */
interface TimeSeriesCall {
  readonly kind: "time-series";
  readonly offset: number;
  readonly body: Script;
}
