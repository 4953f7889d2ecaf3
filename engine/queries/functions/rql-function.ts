/**
 * The record of an RQL method: its use in each clause where a call may occur. A clause reads the record of the method
 * that is called there, and refers to no method by name.
 *
 * Invariants:
 * - Types only. A record imports nothing that imports the table, so its dependencies on a clause are passed as
 *   arguments.
 * - Every clause is a member, and none is optional: a record defines its use there, or states that it has no use.
 */

import type { JsonValue } from "../../base/json/field-access.ts";
import type { Work } from "../../base/scheduling/work-budget.ts";
import type { EntrySet } from "../../indexing/columns/entry-set.ts";
import type { IndexReader } from "../../indexing/index-reader.ts";
import type { BestFound } from "../../indexing/text/best-words.ts";
import type {
  AnalyzedInclude,
  ComparisonValue,
  Condition,
  FieldReference,
  IdCondition,
  OrderKeyBase,
  ProjectedValue,
  Projection,
} from "../analysis/analyzed-query.ts";
import type { QueryScope } from "../analysis/query-scope.ts";
import type { RowSource, StoredRow } from "../execution/row-source.ts";
import type {
  Argument,
  Call,
  Expression,
  Field,
  Operand,
  OrderItem,
  OrderType,
  Query,
  SelectItem,
  Value,
} from "../syntax/ast.ts";

/** A condition that a method makes: on a field, or of other conditions. */
interface AnyMade {
  readonly kind: string;
}

export interface RqlFunction<Made extends AnyMade = never, Key extends AnyMadeKey = never> {
  /** RavenDB's name of the method in messages. Null: none, so that most places treat it as unknown. */
  readonly shownName: string | null;
  /** As a condition of `where`. Null: refused in the words for a method that is no condition. */
  readonly where: WhereUse<Made> | null;
  readonly filter: FilterUse;
  /** On the left side of an operator: the field that is compared. */
  readonly compared: ((scope: QueryScope, call: Call) => FieldReference) | null;
  /** On the right side of an operator. */
  readonly value: ((scope: QueryScope, call: Call) => ComparisonValue) | null;
  /** In `group by`: the field whose whole array is the key. */
  readonly groupKey: ((scope: QueryScope, call: Call) => FieldReference) | null;
  /** In `select` and `order by` of a query with groups. */
  readonly aggregate: ((scope: QueryScope, call: Call) => Aggregate) | null;
  readonly orderBy: OrderUse<Key> | null;
  readonly select: SelectUse | null;
  readonly include: IncludeUse | null;
}

/** `analyze` may return a condition that it found in the arguments; `meaning` is null when it makes none of its own. */
interface WhereUse<Made extends AnyMade> {
  analyze(scope: QueryScope, call: Call, clause: WhereClause): Condition;
  readonly meaning: ConditionMeaning<Made> | null;
}

/** Services of a clause for the analysis of a method. */
export interface WhereClause {
  /** The call is inside `exact(…)`. */
  readonly isExact: boolean;
  condition(expression: Expression, isExact: boolean): Condition;
  comparedField(left: Field | Call): FieldReference;
  comparedValue(right: Operand): ComparisonValue | null;
}

/** How one kind of condition is evaluated. */
export type ConditionMeaning<Made extends AnyMade> = Made extends {
  readonly field: FieldReference;
}
  ? FieldMeaning<Made>
  : OperandsMeaning<Made>;

interface AnyMeaning<Made extends AnyMade> {
  readonly kind: Made["kind"];
  find(condition: Made, context: WhereContext, findEntries: FindEntries): Work<EntrySet>;
  /** Returns the score of each entry, times `factor`. */
  score(condition: Made, factor: number, scoring: Scoring): Work<ScorePart>;
  /**
   * Returns the entries that score best, times `factor`, found without scoring all: `count` of them, if there are as
   * many. Null, or omitted: they are better scored one by one.
   */
  best?(
    condition: Made,
    factor: number,
    count: number,
    context: WhereContext,
    bestEntries: FindBest,
  ): Work<BestFound | null>;
}

/** A condition on a field. `find` is never called for the field `id()`. */
export interface FieldMeaning<Made extends AnyMade> extends AnyMeaning<Made> {
  readonly of: "field";
  /**
   * How an automatic index indexes the field for this condition. A condition with `isExact` requires exact terms as
   * well.
   */
  readonly indexUse: "plain" | "search";
  /**
   * Finds only some of these entries: the best of the entries that the other conditions of an `and` find, rather than
   * the intersection with the best of all. Null: searches all entries. Omitted: the result is the same either way.
   */
  findWithin?(condition: Made, within: EntrySet | null, context: WhereContext): Work<EntrySet>;
  /** Finds any of several terms, as a prefix does. Omitted: false. */
  readonly findsSeveralTerms?: boolean;
  /** Results are then ordered by score, unless the query has an explicit order. Omitted: false. */
  readonly ordersByScore?: boolean;
  /** Of conditions on `id()`: ids are not indexed as terms, and match in any case. */
  findIds(condition: Made, context: WhereContext): Work<EntrySet>;
  /** Returns the documents that a condition on `id()` denotes without an index; undefined: it needs one. */
  idsOf(condition: Made): IdCondition | undefined;
  /** Returns the texts whose words `highlight()` marks. */
  searchedTexts(condition: Made): readonly string[];
  /** How several of these on one field, joined by `or`, are found together; null: one by one. */
  readonly joined: JoinedMeaning<Made> | null;
}

export interface JoinedMeaning<Made> {
  isJoined(condition: Made): boolean;
  /** @param conditions one or more, all on one field */
  find(
    conditions: readonly Made[],
    context: WhereContext,
    findEntries: FindEntries,
  ): Work<EntrySet>;
}

/** A condition of other conditions. */
export interface OperandsMeaning<Made extends AnyMade> extends AnyMeaning<Made> {
  readonly of: "operands";
  /** Returns whether results are then ordered by score, unless the query has an explicit order. */
  boosts(condition: Made, isLucene: boolean): boolean;
}

/** Context of the evaluation of conditions, besides the index. */
export interface WhereContext {
  readonly reader: IndexReader;
  /** The result is intersected with these entries: it may omit or include others. */
  readonly within?: EntrySet;
  findDocument(id: string): number;
  /** Returns the JSON text of a compare-exchange value, or null. */
  compareExchangeOf(key: string): string | null;
  textTest(pattern: string): (text: string) => boolean;
  /**
   * Returns the lower-cased words of a stop words document. @throws invalid-operation if the document does not exist
   */
  stopWordsOf(id: string): ReadonlySet<string>;
}

type FindBest = (
  condition: Condition,
  factor: number,
  count: number,
  context: WhereContext,
) => Work<BestFound | null>;

export type FindEntries = (condition: Condition, context: WhereContext) => Work<EntrySet>;

/** A part of a condition and its score for each entry. */
export interface ScorePart {
  /** The condition in the words of the query; for a sum of parts, `sum of`. */
  readonly label: string;
  /** By position in the list of entries. */
  readonly scores: Float64Array;
  readonly parts: readonly ScorePart[];
}

/** Scoring of some entries, as work that pauses. */
export interface Scoring {
  /** Returns the score of a part of the condition. */
  scored(condition: Condition, factor: number): Work<ScorePart>;
  sumOf(label: string, operands: readonly Condition[], factor: number): Work<ScorePart>;
  /** Weighs the condition as a whole, by the rarity of its entries. */
  byRarity(
    condition: Condition & { readonly field: FieldReference },
    factor: number,
  ): Work<ScorePart>;
  /** Computes the weight of each entry separately. */
  byEntry(
    label: string,
    field: string,
    factor: number,
    scoreOf: (context: WhereContext) => (entry: number) => number,
  ): Work<ScorePart>;
  /** Weighs entries, by position, as work. */
  byWork(
    label: string,
    weigh: (
      entries: Uint32Array,
      context: WhereContext,
      findEntries: FindEntries,
    ) => Work<Float64Array>,
  ): Work<ScorePart>;
  /** Weighs each word of `text` in a field. */
  byWords(label: string, field: string, text: string, factor: number): Work<ScorePart>;
  /** Weighs texts in a field, as Lucene does. */
  byTexts(label: string, field: string, form: "words" | "lower", part: ScoredText): Work<ScorePart>;
  readonly context: WhereContext;
}

/** What a query of Lucene looks for in a field. `whole`: entries that weigh the same. */
export type ScoredText =
  | { readonly kind: "term"; readonly text: string; readonly boost: number }
  | {
      readonly kind: "phrase";
      readonly words: readonly string[];
      readonly slop: number;
      readonly boost: number;
    }
  | { readonly kind: "whole"; readonly found: EntrySet; readonly boost: number }
  | {
      readonly kind: "sum";
      readonly parts: readonly ScoredText[];
      /** Whether the sum is multiplied by the share of matching parts. */
      readonly isCounted: boolean;
    };

/** In `filter`, where each document is tested with the rules of scripts. */
export interface FilterUse {
  /** Why analysis refuses a call; null: it does not. */
  readonly refusal: ((name: string) => string) | null;
  /**
   * `script`: filters with the method are run by scripting. Otherwise a filter with it is compiled, and a call where
   * `test` or `read` is null is an error: `test` is used for a call as a condition, `read` for a call as an operand.
   */
  readonly compiled: "script" | FilterCompiler;
}

export interface FilterCompiler {
  /** Null, or a result of null: it is no condition. */
  readonly test: ((call: Call, clause: FilterClause) => RowTest | null) | null;
  readonly read: (() => ReadValue) | null;
}

/** Services of a filter for the compilation of a method. */
export interface FilterClause {
  filter(expression: Expression): RowTest;
  read(operand: Field | Call): ReadValue;
  value(value: Value): Seen;
  textTest(pattern: string): (text: string) => boolean;
}

/** A test of a row's document; `body` is the offset of its JSON text. */
export type RowTest = (row: StoredRow, body: number) => boolean;

/** A value as scripts see it: a JSON value or undefined. */
export type Seen = JsonValue | undefined;

/** Reads a value of the row, for comparisons. */
export type ReadValue = (row: StoredRow, body: number) => Seen;

/** A value computed for each group. */
interface Aggregate {
  /** The field of the reduced object that has it, and the implicit name of its column. */
  readonly field: FieldReference;
  readonly value: ProjectedValue;
  /** Its order without `as …`. */
  readonly orderType: OrderType;
}

/** The part of a sort key that its method makes. */
type AnyMadeKey = { readonly kind: string };

export interface OrderUse<Key extends AnyMadeKey> {
  analyze(scope: QueryScope, call: Call, item: OrderItem): Key;
  readonly kind: Key["kind"];
  /** Returns the field that it needs in the index; null: none. */
  fieldOf(key: Key): FieldReference | null;
  /** Called before entries are ordered. */
  check(key: Key): void;
  /** Returns the rank of each entry, by position; a descending key has reversed them. */
  sortKeys(entries: Uint32Array, key: Key & OrderKeyBase, context: OrderContext): Work<Uint32Array>;
  /** Whether scores must be computed for it. */
  readonly needsScores: boolean;
  /** Whether the order may differ from one query to the next. */
  readonly isRandom: boolean;
}

/** Context of ordering, besides the entries. */
export interface OrderContext {
  readonly reader: IndexReader;
  readonly source: Pick<RowSource, "compareIds" | "lowerIdOf">;
  /** By position in the list of entries; null when scores are not needed. */
  readonly scores: Float64Array | null;
  /** For `random()` without a seed. */
  readonly newSeed: () => string;
}

interface SelectUse {
  /** The column of a document, or an argument of a declared function. Null: unknown there. */
  readonly column: ((scope: QueryScope, call: Call, clause: SelectClause) => Column) | null;
  /** Takes precedence over `column` in a query with groups, and over a declared function. */
  readonly groupColumn: ((scope: QueryScope, query: Query) => Column) | null;
  /** It is the whole clause, wherever it is among its items. */
  readonly whole: WholeUse | null;
}

interface WholeUse {
  /** `keys`: the names of the items, which must be distinct; null if the items have no names. */
  analyze(
    scope: QueryScope,
    items: readonly SelectItem[],
    clause: WholeClause,
  ): { readonly keys: readonly (string | null)[]; readonly projection: Projection };
}

/** The clauses around it. */
export interface WholeClause {
  readonly isDistinct: boolean;
  readonly hasGroups: boolean;
  readonly hasFilter: boolean;
  /** @throws not-supported if RavenDB has no query method of this name */
  requireMethod(name: string): unknown;
}

export interface Column {
  /** Its name without an alias. */
  readonly key: string;
  readonly value: ProjectedValue;
}

interface SelectClause {
  /** The call is a column, not an argument of another call. */
  readonly isColumn: boolean;
  argument(argument: Argument): ProjectedValue;
}

export interface IncludeUse {
  /** Whether subscriptions support it. */
  readonly isForSubscriptions: boolean;
  add(scope: QueryScope, call: Call, included: Included): void;
}

/** Result of the items of `include` analyzed so far. */
export type Included = {
  -readonly [Key in keyof AnalyzedInclude]: AnalyzedInclude[Key] extends readonly (infer Item)[]
    ? Item[]
    : AnalyzedInclude[Key];
} & {
  /** The query needs no index, and so has no explanations. */
  readonly isCollectionScan: boolean;
  /** All calls of the clause. */
  readonly calls: readonly Call[];
};
