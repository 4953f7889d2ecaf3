/** Methods that compare the text of a field: `startsWith`, `endsWith`, `regex`, `exists`. */
import { EngineError } from "../../base/errors.ts";
import type { FieldReference } from "../analysis/analyzed-query.ts";
import type { Argument, Call, Value } from "../syntax/ast.ts";
import { fieldAndText, fieldArgument } from "./arguments.ts";
import { fieldOf, findAllIds, formOf, nothing, weighedWhole } from "./finding.ts";
import { findMatching } from "./joined-walk.ts";
import { onlyInWhere } from "./places.ts";
import type { FilterClause, FilterUse, ReadValue, RowTest, RqlFunction } from "./rql-function.ts";

/** The text at one end of a field's. */
interface EndCondition<Kind extends string> {
  readonly kind: Kind;
  readonly field: FieldReference;
  readonly text: string;
  readonly isExact: boolean;
}

export const startsWith: RqlFunction<EndCondition<"startsWith">> = {
  ...onlyInWhere,
  shownName: "StartsWith",
  where: {
    analyze: (scope, call, { isExact }) => ({
      kind: "startsWith",
      ...fieldAndText(scope, call, true),
      isExact,
    }),
    meaning: {
      kind: "startsWith",
      of: "field",
      indexUse: "plain",
      findsSeveralTerms: true,
      find: ({ field, text, isExact }, context) =>
        fieldOf(field, formOf(isExact), context)?.startsWith(text) ?? nothing(),
      findIds: ({ text }, { reader }) => {
        const prefix = text.toLowerCase();
        return reader.idsMatching((id) => id.startsWith(prefix));
      },
      idsOf: ({ text }) => ({ kind: "prefix", prefix: text }),
      searchedTexts: ({ text }) => [`${text}*`],
      joined: null,
      score: weighedWhole,
    },
  },
  filter: textFilter("contained", (text) => {
    const lower = text.toLowerCase();
    return (value) => value.toLowerCase().startsWith(lower);
  }),
};

export const endsWith: RqlFunction<EndCondition<"endsWith">> = {
  ...onlyInWhere,
  shownName: "EndsWith",
  where: {
    analyze: (scope, call, { isExact }) => ({
      kind: "endsWith",
      ...fieldAndText(scope, call, true),
      isExact,
    }),
    meaning: {
      kind: "endsWith",
      of: "field",
      indexUse: "plain",
      findsSeveralTerms: true,
      find: ({ field, text, isExact }, context) => {
        const search = fieldOf(field, formOf(isExact), context);
        if (search === undefined) return nothing();
        // As with startsWith: only the empty text ends with nothing.
        return text === "" ? search.equalsTerm("") : search.endsWith(text);
      },
      findIds: ({ text }, { reader }) => {
        const suffix = text.toLowerCase();
        return reader.idsMatching((id) => suffix !== "" && id.endsWith(suffix));
      },
      idsOf: () => undefined,
      searchedTexts: ({ text }) => [text],
      joined: null,
      score: weighedWhole,
    },
  },
  filter: textFilter("contained", (text) => {
    const lower = text.toLowerCase();
    return (value) => value.toLowerCase().endsWith(lower);
  }),
};

interface RegexCondition {
  readonly kind: "regex";
  readonly field: FieldReference;
  readonly text: string;
}

export const regex: RqlFunction<RegexCondition> = {
  ...onlyInWhere,
  shownName: "Regex",
  where: {
    analyze: (scope, call) => ({ kind: "regex", ...fieldAndText(scope, call, true) }),
    meaning: {
      kind: "regex",
      of: "field",
      indexUse: "plain",
      findsSeveralTerms: true,
      find: ({ field, text }, context) => {
        const search = fieldOf(field, "lower", context);
        if (search === undefined) return nothing();
        // As with startsWith: only the empty text matches the empty text.
        return text === "" ? search.equalsTerm("") : search.matching(context.textTest(text));
      },
      findIds: ({ text }, { reader, textTest }) => reader.idsMatching(textTest(text)),
      idsOf: () => undefined,
      searchedTexts: () => [],
      joined: { isJoined: ({ text }) => text !== "", find: findMatching },
      score: weighedWhole,
    },
  },
  filter: textFilter("regex", (text, { textTest }) => textTest(text)),
};

interface ExistsCondition {
  readonly kind: "exists";
  readonly field: FieldReference;
}

export const exists: RqlFunction<ExistsCondition> = {
  ...onlyInWhere,
  shownName: "Exists",
  where: {
    analyze: (scope, call) => ({ kind: "exists", field: fieldArgument(scope, call, 0) }),
    meaning: {
      kind: "exists",
      of: "field",
      indexUse: "plain",
      find: ({ field }, context) => fieldOf(field, "lower", context)?.exists() ?? nothing(),
      findIds: findAllIds,
      idsOf: () => undefined,
      searchedTexts: () => [],
      joined: null,
      score: weighedWhole,
    },
  },
  filter: {
    refusal: null,
    compiled: {
      read: null,
      test: ({ args }, clause) => {
        const [field] = args;
        if (field === undefined || args.length > 1) {
          throw new EngineError(
            "invalid-operation",
            "exists(field name) must be called with one string parameter",
          );
        }
        // A text and the id exist.
        if (field.kind !== "field") return () => true;
        const read = clause.read(field);
        return (row, body) => read(row, body) !== undefined;
      },
    },
  },
};

/** Reads a value of the document, or a constant. */
function readOf(argument: Argument, clause: FilterClause): ReadValue {
  if (argument.kind === "field" || argument.kind === "call") return clause.read(argument);
  const value = clause.value(argument as Value);
  return () => value;
}

/** Returns a test of a text in `filter`. `second`: the name of the second argument in messages. */
function textFilter(
  second: string,
  testOf: (text: string, clause: FilterClause) => (value: string) => boolean,
): FilterUse {
  const test = ({ name, args: [field, sought] }: Call, clause: FilterClause): RowTest | null => {
    const needsTexts = () =>
      new EngineError(
        "invalid-operation",
        `${name}(text, ${second}) must be called with two string parameters`,
      );
    if (field === undefined || sought === undefined) throw needsTexts();
    const read = readOf(field, clause);
    const text = clause.value(sought as Value);
    if (typeof text !== "string") throw needsTexts();
    const isFound = testOf(text, clause);
    return function filterText(row, body) {
      const value = read(row, body);
      if (typeof value !== "string") throw needsTexts();
      return isFound(value);
    };
  };
  return { refusal: null, compiled: { test, read: null } };
}
