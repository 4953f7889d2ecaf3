/**
 * A facet setup: the description of facets in a document, or in a parameter.
 *
 *   {"Facets":[{"FieldName","DisplayFieldName","Options":{…},"Aggregations":{"Sum":[{"Name","DisplayName"}],"Max":"Price"}}],
 *    "RangeFacets":[{"Ranges":["Price < 50"],"DisplayFieldName","Aggregations"}]}
 *
 * Every key may be missing. Errors equal those of RavenDB 7.2.7.
 */
import { EngineError } from "../../base/errors.ts";
import { queryItemsMax } from "../../base/limits.ts";
import { jsonText, type ParameterValue, plainText } from "../analysis/query-parameters.ts";
import type { QueryScope } from "../analysis/query-scope.ts";
import {
  AggregationList,
  defaultFacetOptions,
  facetOptionsEntity,
  facetOptionsOf,
  RangeReader,
} from "../functions/facet-function.ts";
import { OptionObject } from "../functions/option-objects.ts";
import { parseCondition } from "../syntax/parser.ts";
import { aggregateKinds, type Facet, type FacetAggregation } from "./facet-query.ts";

/** @param place the id of its document, for messages */
export function facetsOfSetup(scope: QueryScope, setup: ParameterValue, place: string): Facet[] {
  const facets = [
    ...listOf(setup, "Facets").map(termFacet),
    ...listOf(setup, "RangeFacets").map((one) => rangeFacet(scope, one, place)),
  ];
  if (facets.length <= queryItemsMax) return facets;
  throw new EngineError(
    "work-limit",
    `The facet setup '${place}' has ${facets.length} facets, more than the limit of ${queryItemsMax}.`,
  );
}

function termFacet(value: ParameterValue): Facet {
  const field = textOf(value, "FieldName");
  const label = textOf(value, "DisplayFieldName");
  const sent = memberOf(value, "Options");
  const options =
    sent?.type === "object"
      ? facetOptionsOf(new OptionObject(sent.fields, facetOptionsEntity))
      : defaultFacetOptions;
  const aggregations = aggregationsOf(value);
  if (field === null) return { kind: "all", name: label, aggregations, options };
  return { kind: "terms", name: label ?? field, field, aggregations, options };
}

function rangeFacet(scope: QueryScope, value: ParameterValue, place: string): Facet {
  const reader = new RangeReader(scope);
  const ranges = listOf(value, "Ranges");
  if (ranges.length === 0) {
    throw new EngineError(
      "null-reference",
      `A range facet of the facet setup '${place}' has no 'Ranges'.`,
    );
  }
  for (const range of ranges) {
    const condition = range.type === "string" ? parseCondition(range.value) : null;
    if (condition === null) {
      throw new EngineError(
        "invalid-operation",
        `Could not parse the following range expression '${plainText(range)}' from facet setup document: ${place}`,
      );
    }
    reader.add(condition);
  }
  return reader.facet(textOf(value, "DisplayFieldName"), aggregationsOf(value));
}

function aggregationsOf(value: ParameterValue): readonly FacetAggregation[] {
  const sent = memberOf(value, "Aggregations");
  if (sent?.type !== "object") return [];
  const list = new AggregationList();
  for (const [name, fields] of sent.fields) {
    const kind = aggregateKinds.find((one) => one.toLowerCase() === name.toLowerCase());
    if (kind === undefined && name.toLowerCase() !== "none") {
      throw new EngineError("invalid-argument", `Requested value '${name}' was not found.`);
    }
    if (fields.type === "string") list.add(fields.value, fields.value, kind ?? null);
    if (fields.type !== "array") continue;
    for (const one of fields.items) {
      const field = textOf(one, "Name") ?? "";
      list.add(field, textOf(one, "DisplayName") ?? field, kind ?? null);
    }
  }
  return list.list;
}

/** Returns the elements of a list; none when it is missing or null. @throws invalid-format */
function listOf(value: ParameterValue, key: string): readonly ParameterValue[] {
  const list = memberOf(value, key);
  if (list === undefined || list.type === "null") return [];
  if (list.type === "array") return list.items;
  throw new EngineError(
    "invalid-format",
    `Could not convert Sparrow.Json.BlittableJsonReaderObject ('${jsonText(list)}') to BlittableJsonReaderArray`,
  );
}

function textOf(value: ParameterValue, key: string): string | null {
  const member = memberOf(value, key);
  return member === undefined || member.type === "null" ? null : plainText(member);
}

/** @throws invalid-cast if the value has no members */
function memberOf(value: ParameterValue, key: string): ParameterValue | undefined {
  if (value.type === "object") return value.fields.get(key);
  throw new EngineError(
    "invalid-cast",
    `Unable to cast '${plainText(value)}' to type 'Sparrow.Json.BlittableJsonReaderObject'.`,
  );
}
