/**
 * `facet(…)`: counts of the terms of a field, of ranges, or of everything, with sums and the like of other fields. It
 * is the whole of `select`, on an index. Rules and errors equal those of RavenDB 7.2.7.
 */
import { EngineError } from "../../base/errors.ts";
import type { Bound } from "../analysis/analyzed-query.ts";
import { plainText, type Scalar } from "../analysis/query-parameters.ts";
import {
  fieldReference,
  invalid,
  notSupported,
  type QueryScope,
  resolveValue,
} from "../analysis/query-scope.ts";
import {
  type AggregateKind,
  type Facet,
  type FacetAggregation,
  type FacetItem,
  type FacetOptions,
  type FacetRange,
  termSortModes,
} from "../summaries/facet-query.ts";
import type {
  Argument,
  Call,
  Comparison,
  Expression,
  Field,
  SelectItem,
  Value,
} from "../syntax/ast.ts";
import { describeArgument, fieldText, printExpression } from "../syntax/print.ts";
import { isCallOf } from "./arguments.ts";
import { type OptionObject, optionsArgument } from "./option-objects.ts";
import { onlyInSelect } from "./places.ts";
import type { RqlFunction, WholeClause } from "./rql-function.ts";
import { refuseOthers } from "./whole-select.ts";

export const facetOptionsEntity = "Raven.Client.Documents.Queries.Facets.FacetOptions";

const aggregateOf: Readonly<Record<string, AggregateKind>> = {
  sum: "Sum",
  avg: "Average",
  min: "Min",
  max: "Max",
};

export const defaultFacetOptions: FacetOptions = {
  termSortMode: "ValueAsc",
  includeRemainingTerms: false,
  start: 0,
  pageSize: 2 ** 31 - 1,
};

export const facet: RqlFunction = {
  ...onlyInSelect,
  select: {
    column: null,
    groupColumn: null,
    whole: {
      analyze: (scope, items, clause) => {
        refuseOthers(scope, items, clause, "facet", "facet");
        if (scope.isDynamic) {
          throw invalid(scope, "Facet query must be executed against static index.");
        }
        if (clause.hasFilter) {
          throw invalid(scope, "Facet query does not support a filter clause.");
        }
        const facets = items.map((item) => facetOf(scope, item, clause));
        const keys = facets.map((one) => ("name" in one ? one.name : null));
        return { keys, projection: { kind: "facets", facets } };
      },
    },
  },
};

function facetOf(
  scope: QueryScope,
  { expression, alias }: SelectItem,
  clause: WholeClause,
): FacetItem {
  const { args } = expression as Call; // the clause has only calls
  const [first] = args;
  if (first !== undefined && isCallOf(first, "id")) return setupOf(scope, args.length, first);
  const isNamed =
    first?.kind === "field" || first?.kind === "literal" || first?.kind === "parameter";
  const parts = new FacetParts(scope, clause);
  for (const argument of isNamed ? args.slice(1) : args) parts.add(argument);
  return parts.facet(isNamed ? nameOf(first) : null, alias);
}

/** Returns the argument `id(…)`. */
function setupOf(scope: QueryScope, count: number, { args: [id, ...more] }: Call): FacetItem {
  if (count > 1) {
    throw invalid(
      scope,
      "facet() specifying a facet setup document using id() call must not have any additional arguments",
    );
  }
  if (id === undefined || more.length > 0) {
    throw invalid(
      scope,
      "id() in facet query must have one argument which is identifier of a facet setup document",
    );
  }
  if (id.kind !== "parameter") {
    return { kind: "setup", id: id.kind === "literal" ? id.text : describeArgument(id) };
  }
  const value = resolveValue(scope, id);
  if (value.type === "object") return { kind: "setup-value", value };
  throw new EngineError(
    "invalid-format",
    `Could not convert Sparrow.Json.LazyStringValue ('${plainText(value)}') to Sparrow.Json.BlittableJsonReaderObject`,
  );
}

/** The arguments of one call after its field. */
class FacetParts {
  readonly #scope: QueryScope;
  readonly #clause: WholeClause;
  readonly #aggregations = new AggregationList();
  readonly #ranges: Expression[] = [];
  #options: OptionObject | null = null;

  constructor(scope: QueryScope, clause: WholeClause) {
    this.#scope = scope;
    this.#clause = clause;
  }

  add(argument: Argument): void {
    const scope = this.#scope;
    switch (argument.kind) {
      case "call":
        this.#addAggregate(argument);
        return;
      case "literal":
      case "parameter":
        this.#options = optionsArgument(scope, argument, facetOptionsEntity);
        return;
      case "comparison":
      case "between":
      case "and":
      case "or":
        this.#ranges.push(argument);
        return;
      default:
        throw unsupportedArgument(scope, argument);
    }
  }

  facet(field: string | null, alias: string | null): Facet {
    const { list: aggregations } = this.#aggregations;
    if (this.#ranges.length > 0) {
      if (this.#options !== null) throw notSupported("Options are not supported in range facets.");
      const ranges = new RangeReader(this.#scope);
      for (const range of this.#ranges) ranges.add(range);
      return ranges.facet(alias, aggregations);
    }
    const options = this.#options === null ? defaultFacetOptions : facetOptionsOf(this.#options);
    if (field === null) return { kind: "all", name: alias, aggregations, options };
    return { kind: "terms", name: alias ?? field, field, aggregations, options };
  }

  #addAggregate(call: Call): void {
    const kind = aggregateOf[call.name.toLowerCase()];
    if (kind === undefined) {
      this.#clause.requireMethod(call.name);
      throw invalid(this.#scope, `${call.name} may only be used in group by queries`);
    }
    const [argument] = call.args;
    if (argument === undefined || call.args.length !== 1) {
      throw invalid(
        this.#scope,
        `Invalid number of arguments of ${kind} method in a facet query. Expected 1, got ${call.args.length}`,
      );
    }
    if (!isName(argument)) throw unsupportedArgument(this.#scope, argument);
    const field = nameOf(argument);
    this.#aggregations.add(field, call.alias ?? field, kind);
  }
}

function isName(argument: Argument): argument is Field | Value {
  return argument.kind === "field" || argument.kind === "literal" || argument.kind === "parameter";
}

/** Returns a name as written: aliases stay, and a parameter is a name itself. */
function nameOf(name: Field | Value): string {
  if (name.kind === "field") return fieldText(name);
  return name.kind === "literal" ? name.text : name.name;
}

function unsupportedArgument(scope: QueryScope, argument: Argument): EngineError {
  const names: Readonly<Record<string, string>> = { field: "FieldExpression", in: "InExpression" };
  const text =
    argument.kind === "field"
      ? fieldText(argument)
      : `${argument.kind === "in" ? "<Field>: " : ""}${describeArgument(argument)}`;
  return invalid(
    scope,
    `Unsupported expression of type ${names[argument.kind] ?? "BinaryExpression"} specified as an argument of facet(). ` +
      `Text: ${text}.`,
  );
}

/** Collects aggregations: aggregations of one field with the same label share a row. */
export class AggregationList {
  readonly #byKey = new Map<string, FacetAggregation & { readonly kinds: Set<AggregateKind> }>();

  get list(): readonly FacetAggregation[] {
    return [...this.#byKey.values()];
  }

  /** `kind` null: a row without any. */
  add(field: string, label: string, kind: AggregateKind | null): void {
    const key = JSON.stringify([field, label]);
    const known = this.#byKey.get(key) ?? { field, label, kinds: new Set<AggregateKind>() };
    if (kind !== null) known.kinds.add(kind);
    this.#byKey.set(key, known);
  }
}

/** @throws invalid-operation */
export function facetOptionsOf(options: OptionObject): FacetOptions {
  const { termSortMode, includeRemainingTerms, start, pageSize } = defaultFacetOptions;
  return {
    termSortMode: options.word("TermSortMode", termSortModes, termSortMode),
    includeRemainingTerms: options.boolean("IncludeRemainingTerms", includeRemainingTerms),
    start: options.int("Start", start),
    pageSize: options.int("PageSize", pageSize),
  };
}

/** Reads the ranges of one facet, which are on one field, with bounds of one type. */
export class RangeReader {
  readonly #scope: QueryScope;
  readonly #ranges: FacetRange[] = [];
  #field: string | null = null;
  #type: string | null = null;

  constructor(scope: QueryScope) {
    this.#scope = scope;
  }

  /** @throws query-invalid, out-of-range */
  add(range: Expression): void {
    const read = this.#read(range);
    const { name } = read.field;
    if (this.#field !== null && this.#field !== name) {
      throw invalid(
        this.#scope,
        `Facet ranges must be defined on the same field while we got '${this.#field}' and '${name}' used in the same faced`,
      );
    }
    this.#field = name;
    this.#ranges.push(read);
  }

  /** Returns the facet of the ranges, one or more. */
  facet(alias: string | null, aggregations: readonly FacetAggregation[]): Facet {
    const field = this.#field ?? "";
    return { kind: "ranges", name: alias ?? field, field, aggregations, ranges: this.#ranges };
  }

  #read(range: Expression): FacetRange {
    switch (range.kind) {
      case "and": {
        // One value must be within both bounds. Of several lower bounds, the first one counts.
        const parts = range.operands.map((operand) => this.#read(operand));
        const [{ field }] = parts as [FacetRange];
        const low = parts.find((part) => part.low !== null)?.low ?? null;
        const high = parts.find((part) => part.high !== null)?.high ?? null;
        return { text: parts.map(({ text }) => text).join(" and "), field, low, high };
      }
      case "comparison":
        return this.#comparison(range);
      case "between": {
        const field = this.#fieldOf(range.left);
        // RavenDB 7.2.7 reads the upper bound first.
        const high = this.#bound(range.high, field.name);
        const low = this.#bound(range.low, field.name);
        const text = `${field.name} between ${low.text} and ${high.text}`;
        return { text, field, low: inclusive(low.value), high: inclusive(high.value) };
      }
      case "or":
        throw invalid(this.#scope, "Unsupported operator in a range of a facet query: Or");
      default: {
        const kind = range.kind === "call" ? "MethodExpression" : "BinaryExpression";
        throw invalid(
          this.#scope,
          `Unsupported range expression of a facet query: ${kind}. Text: ${printExpression(range)}.`,
        );
      }
    }
  }

  #comparison({ left, operator, right }: Comparison): FacetRange {
    if (operator === "=" || operator === "!=") {
      const name = operator === "=" ? "Equal" : "NotEqual";
      throw invalid(this.#scope, `Unsupported operator in a range of a facet query: ${name}`);
    }
    if (right.kind !== "literal" && right.kind !== "parameter") {
      throw invalid(this.#scope, `Expected value, but got ${describeArgument(right)}`);
    }
    const field = this.#fieldOf(left);
    const { value, text } = this.#bound(right, field.name);
    const bound = { value, isInclusive: operator.endsWith("=") };
    const isLow = operator.startsWith(">");
    return {
      text: `${field.name} ${operator} ${text}`,
      field,
      low: isLow ? bound : null,
      high: isLow ? null : bound,
    };
  }

  #fieldOf(left: Field | Call): ReturnType<typeof fieldReference> {
    if (left.kind === "field") return fieldReference(this.#scope, left);
    throw invalid(
      this.#scope,
      `Unsupported range expression of a facet query: MethodExpression. Text: ${printExpression(left)}.`,
    );
  }

  #bound(bound: Value, field: string): { readonly value: Scalar; readonly text: string } {
    const value = resolveValue(this.#scope, bound);
    if (value.type === "null" || value.type === "boolean") {
      throw new EngineError(
        "out-of-range",
        "Specified argument was out of the range of valid values. (Parameter 'Unknown operation at BetweenQuery.')",
      );
    }
    const text = bound.kind === "literal" ? bound.text : plainText(value);
    const type = value.type === "long" ? "Long" : value.type === "double" ? "Double" : "None";
    if (this.#type !== null && this.#type !== type) {
      throw invalid(
        this.#scope,
        "Expected to get values of the same type in range expressions while it got " +
          `${this.#type} and ${type} for a field '${field}'`,
      );
    }
    this.#type = type;
    // Lists and objects are compared as their text.
    const isList = value.type === "array" || value.type === "object";
    return { value: isList ? { type: "string", value: text } : value, text };
  }
}

function inclusive(value: Scalar): Bound {
  return { value, isInclusive: true };
}
