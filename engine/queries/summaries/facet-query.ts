/**
 * Queries whose answer is a summary of an index, not rows: facets and suggestions. Types only, the output of analysis.
 *
 * Invariants:
 * - Names of fields are spelled as in the query; parameters are replaced by their values.
 */
import type { StringDistance } from "../../indexing/text/string-similarity.ts";
import type { Bound, FieldReference } from "../analysis/analyzed-query.ts";
import type { ParameterValue } from "../analysis/query-parameters.ts";

/** An item of `select facet(…), …`: a facet, or where the facets are described. */
export type FacetItem =
  | Facet
  /** `facet(id('facets/Shop'))`: the id of a document, in any case. */
  | { readonly kind: "setup"; readonly id: string }
  /** `facet(id($setup))`: the description itself. */
  | { readonly kind: "setup-value"; readonly value: ParameterValue };

export type Facet = {
  /** The name in the reply; null: `@AllResults`. */
  readonly name: string | null;
  readonly aggregations: readonly FacetAggregation[];
} & (
  | { readonly kind: "terms"; readonly field: string; readonly options: FacetOptions }
  | { readonly kind: "ranges"; readonly field: string; readonly ranges: readonly FacetRange[] }
  | { readonly kind: "all"; readonly options: FacetOptions }
);

export interface FacetRange {
  /** The condition as the reply shows it: with its values, without quotes. */
  readonly text: string;
  readonly field: FieldReference;
  /** Null: no bound on that side. Not both. */
  readonly low: Bound | null;
  readonly high: Bound | null;
}

export const aggregateKinds = ["Average", "Max", "Min", "Sum"] as const;
export type AggregateKind = (typeof aggregateKinds)[number];

/** Aggregations of the numbers of one field. */
export interface FacetAggregation {
  readonly field: string;
  /** The name in the reply. */
  readonly label: string;
  /** May be empty: the rows then have only the label. */
  readonly kinds: ReadonlySet<AggregateKind>;
}

/** In the order of the numbers that the options may have instead of words. */
export const termSortModes = ["ValueAsc", "ValueDesc", "CountAsc", "CountDesc"] as const;
type TermSortMode = (typeof termSortModes)[number];

export interface FacetOptions {
  readonly termSortMode: TermSortMode;
  readonly includeRemainingTerms: boolean;
  /** May be negative: nothing is skipped. */
  readonly start: number;
  /** Zero or less: no values, only the counts of the remaining values. */
  readonly pageSize: number;
}

/** An item of `select suggest(…), …`. */
export interface SuggestionItem {
  readonly name: string;
  readonly field: string;
  /** One or more. */
  readonly terms: readonly string[];
  readonly options: SuggestionOptions;
}

export interface SuggestionOptions {
  readonly pageSize: number;
  readonly distance: StringDistance;
  /** The similarity from which on a term is suggested. */
  readonly accuracy: number;
  /** By closeness, or by their terms. */
  readonly isSortedByTerm: boolean;
}
