/**
 * The output of analysis: types only. The planner, the executor and the writer of replies work from it; none of them
 * reads the syntax tree.
 *
 * Invariants:
 * - Every name is resolved: aliases are stripped from paths, parameters are replaced by their values.
 * - Except in `filter` and in scripts, which are evaluated document by document, see there.
 */

import type {
  IndexDefinition,
  SpatialSource,
  VectorSource,
} from "../../indexing/definitions/index-definition.ts";
import type { IncludePath } from "../../state/documents/include-path.ts";
import type { MadeCondition, MadeOrderKey } from "../functions/function-table.ts";
import type { FacetItem, SuggestionItem } from "../summaries/facet-query.ts";
import type {
  ComparisonOperator,
  Declaration,
  Expression,
  OrderType,
  PathPart,
  Script,
} from "../syntax/ast.ts";
import type { SeriesFunction } from "../time-series/analyze-series.ts";
import type { ParameterValue, QueryParameters, Scalar } from "./query-parameters.ts";

/** The kind of request: a query, a patch or a delete by query, or a subscription. */
export type QueryKind = "read" | "patch" | "delete" | "subscription";

export interface AnalyzedQuery {
  readonly kind: QueryKind;
  readonly text: string;
  readonly source: AnalyzedSource;
  readonly access: Access;
  /** null: all documents. Always null in a subscription, whose condition is `filter`. */
  readonly where: Condition | null;
  readonly groupBy: AnalyzedGroupBy | null;
  readonly orderBy: readonly OrderKey[];
  readonly load: readonly LoadStep[];
  /**
   * Evaluated on each document with the comparison rules of scripts, not through an index. Parameters may be missing.
   */
  readonly filter: Expression | null;
  readonly projection: Projection;
  readonly isDistinct: boolean;
  readonly update: Script | null;
  readonly include: AnalyzedInclude;
  readonly paging: AnalyzedPaging;
  /** Declared functions of JavaScript. */
  readonly functions: readonly Declaration[];
  /** Series queries, declared and in `select`, by name. */
  readonly series: ReadonlyMap<string, SeriesFunction>;
  readonly parameters: QueryParameters | null;
  /** The values of `now()` and `today()` in the condition, microseconds since 1970. */
  readonly moments: readonly number[];
}

export interface AnalyzedSource {
  readonly form: "collection" | "index";
  /** As written. Names of collections and indexes are case-insensitive. */
  readonly name: string;
  readonly isAllDocuments: boolean;
  readonly alias: string | null;
  /** Subscriptions only: rows are pairs of revisions. */
  readonly hasRevisions: boolean;
}

/** How the documents are found. */
export type Access =
  | { readonly kind: "collection"; readonly ids: IdCondition | null }
  | {
      readonly kind: "automatic-index";
      readonly name: string;
      readonly definition: IndexDefinition;
    }
  | { readonly kind: "index"; readonly name: string };

/** Ids in the case of the query; they match in any case. */
export type IdCondition =
  | { readonly kind: "ids"; readonly ids: readonly string[] }
  | { readonly kind: "prefix"; readonly prefix: string };

/** A field of an index or document. The id of the document is the field `id()`, with an empty path. */
export interface FieldReference {
  /** The path as text; a part with a point inside is in quotes. */
  readonly name: string;
  readonly path: readonly PathPart[];
  readonly isQuoted: boolean;
  /** The alias that was stripped. */
  readonly alias: string | null;
  /** It consists of shapes made from other fields, and its own path is empty. */
  readonly spatial?: SpatialSource;
  /** It consists of vectors made from another field, and its own path is empty. */
  readonly vector?: VectorSource;
}

/** The right side of a comparison: a value, or the value of a compare-exchange key. */
export type ComparisonValue = Scalar | { readonly type: "compare-exchange"; readonly key: string };

export interface Bound {
  readonly value: Scalar;
  readonly isInclusive: boolean;
}

/** Conditions of methods are listed by functions/function-table.ts. */
export type Condition = StructuralCondition | FieldCondition | MadeCondition;

type StructuralCondition =
  | { readonly kind: "true" }
  /** Matches no document: a field compared with an object. */
  | { readonly kind: "none"; readonly field: FieldReference }
  | { readonly kind: "and" | "or"; readonly operands: readonly Condition[] }
  | { readonly kind: "not"; readonly operand: Condition };

/** A field with an operator. */
export type FieldCondition = ComparisonCondition | BetweenCondition | InCondition;

/** `isExact`, here and in conditions of methods: terms are compared case-sensitively. */
export interface ComparisonCondition {
  readonly kind: "comparison";
  readonly field: FieldReference;
  readonly operator: ComparisonOperator;
  readonly value: ComparisonValue;
  readonly isExact: boolean;
}

export interface BetweenCondition {
  readonly kind: "between";
  readonly field: FieldReference;
  readonly low: Bound;
  readonly high: Bound;
  readonly isExact: boolean;
}

export interface InCondition {
  readonly kind: "in";
  readonly field: FieldReference;
  /** May be empty: nothing matches. */
  readonly values: readonly Scalar[];
  readonly isAll: boolean;
  readonly isExact: boolean;
}

export interface AnalyzedGroupBy {
  readonly keys: readonly {
    readonly field: FieldReference;
    /** `array(path)`: the whole array is one key. */
    readonly isWholeArray: boolean;
    readonly alias: string | null;
  }[];
}

export interface OrderKeyBase {
  readonly isDescending: boolean;
  readonly nulls: "first" | "last" | null;
}

/** Order keys of methods are listed by functions/function-table.ts. */
export type OrderKey = OrderKeyBase &
  (
    | {
        readonly kind: "field";
        readonly field: FieldReference;
        /** null if unspecified. */
        readonly type: OrderType | null;
      }
    | MadeOrderKey
  );

/** Loads a document, or with `isArray` a list of them, under an alias. */
export interface LoadStep {
  readonly alias: string;
  readonly isArray: boolean;
  /** `root`: the alias that the path starts from; null: the document itself. */
  readonly source:
    | { readonly kind: "path"; readonly root: string | null; readonly path: readonly PathPart[] }
    | { readonly kind: "constant"; readonly value: ParameterValue };
}

export type Projection =
  /**
   * Whole documents: the documents found, or the documents loaded under `alias`. `key`: the name of the column, if any:
   * rows then have the metadata of projections.
   */
  | { readonly kind: "document"; readonly alias: string | null; readonly key: string | null }
  | {
      readonly kind: "fields";
      readonly fields: readonly ProjectedField[];
      /** The only column is a series query without an alias: its result is the row. */
      readonly isSeries?: boolean;
    }
  /** `select { … }` */
  | { readonly kind: "script"; readonly script: Script }
  /** `select f(x)`: the function's result is the row. */
  | { readonly kind: "call"; readonly call: ProjectedCall }
  /** The rows are facets of the index, or suggestions of its terms. */
  | { readonly kind: "facets"; readonly facets: readonly FacetItem[] }
  | { readonly kind: "suggestions"; readonly suggestions: readonly SuggestionItem[] };

export interface ProjectedField {
  readonly key: string;
  readonly value: ProjectedValue;
}

export type ProjectedValue =
  /** A missing path omits the key if `root` is an alias, and is null if `root` is null (no alias). */
  | {
      readonly kind: "path";
      readonly root: string | null;
      readonly path: readonly PathPart[];
      readonly name: string;
    }
  | { readonly kind: "whole"; readonly alias: string }
  | { readonly kind: "constant"; readonly value: ParameterValue }
  | { readonly kind: "id" }
  | { readonly kind: "group-key" }
  | { readonly kind: "count" }
  | { readonly kind: "sum"; readonly field: FieldReference }
  | {
      readonly kind: "counter";
      readonly of: FieldReference | null;
      readonly name: string;
      readonly isRaw: boolean;
    }
  | { readonly kind: "compare-exchange"; readonly key: ProjectedValue }
  | ProjectedSeries
  | ProjectedCall;

/** A series query of `AnalyzedQuery.series`, by its name. */
export interface ProjectedSeries {
  readonly kind: "series";
  readonly name: string;
  readonly args: readonly ProjectedValue[];
  /** Its position among the columns that are series queries; -1 in an argument. */
  readonly position: number;
}

/** A call of a declared function. */
export interface ProjectedCall {
  readonly kind: "call";
  readonly name: string;
  readonly args: readonly ProjectedValue[];
}

export interface AnalyzedInclude {
  /** Paths to ids of documents, as the reply lists them. */
  readonly paths: readonly {
    readonly text: string;
    readonly path: readonly PathPart[];
    /** The path in the form that loads use. */
    readonly wanted: IncludePath;
  }[];
  /** `of`: the path to another document's id, null for the document itself. No names: all counters. */
  readonly counters: readonly {
    readonly of: FieldReference | null;
    readonly names: readonly string[];
  }[];
  readonly highlights: readonly {
    readonly field: FieldReference;
    readonly fragmentLength: number;
    readonly fragmentCount: number;
    readonly options: HighlightOptions;
  }[];
  readonly compareExchange: readonly (readonly PathPart[])[];
  /** Dotted paths to change vectors, or points in time (microseconds since 1970). */
  readonly revisions: readonly (string | number)[];
  readonly series: readonly {
    /** The path to the ids of other documents; null: the row's own document. */
    readonly of: FieldReference | null;
    readonly wanted: SeriesInclude;
  }[];
  readonly hasTimings: boolean;
  /** Explanations of scores. `groupKey`: the field whose value identifies a reduced row. */
  readonly explanations: { readonly groupKey: string | null } | null;
}

export interface HighlightOptions {
  /** The field whose value identifies a row; null: its id, or the whole reduced row. */
  readonly groupKey: string | null;
  /** Tags of the terms, used cyclically; as many as `postTags`. Empty: default colors. */
  readonly preTags: readonly string[];
  readonly postTags: readonly string[];
}

/** The requested range of a time series. The last time and the last count end at its end. */
export type SeriesInclude = {
  /** `@all_timeseries`: all series of the document. */
  readonly name: string;
} & (
  | {
      readonly kind: "range";
      /** Milliseconds since 1970, inclusive; undefined: open. */
      readonly bounds: {
        readonly from: number | undefined;
        readonly to: number | undefined;
        /** The bounds as written, with seven digits: they can be finer than milliseconds. */
        readonly fromText?: string | undefined;
        readonly toText?: string | undefined;
      };
    }
  | { readonly kind: "lastTime"; readonly value: number; readonly unit: "Second" | "Month" }
  | { readonly kind: "lastCount"; readonly count: number }
);

/** The effective `skip` and `take`: the larger `skip` and the smaller `take` of the text and the request. */
export interface AnalyzedPaging {
  readonly skip: number;
  /** `Number.MAX_SAFE_INTEGER` without a limit. */
  readonly take: number;
  /** The maximum number of documents that `filter` examines. */
  readonly filterTake: number | null;
  /** Paging in the text; null if the text has no paging, and the reply then reports no capped total. */
  readonly inText: { readonly skip: number; readonly take: number | null } | null;
}
