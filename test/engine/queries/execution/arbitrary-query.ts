/** Random syntax trees that have a text form, for round trips through printing and parsing. */
import fc from "fast-check";
import type {
  Argument,
  Call,
  Expression,
  Field,
  Literal,
  Operand,
  Parameter,
  Query,
  SelectItem,
  Value,
} from "../../../../engine/queries/syntax/ast.ts";
import { reservedWords } from "../../../../engine/queries/syntax/token.ts";

const offset = 0;
/** Words with another meaning where a name may stand. */
const grammarWords = new Set([
  ...reservedWords,
  ..."true false null not and or in all between filter distinct timeseries index nulls from by".split(
    " ",
  ),
]);
const isName = (word: string) => !grammarWords.has(word.toLowerCase());
const word = fc.stringMatching(/^[A-Za-zÅå_][A-Za-z0-9_-]{0,6}$/).filter(isName);
const anyText = fc.string({ unit: "grapheme", maxLength: 6 });

const literal: fc.Arbitrary<Literal> = fc.oneof(
  anyText.map((text): Literal => ({ kind: "literal", offset, type: "string", text })),
  fc
    .bigInt({ min: -(2n ** 64n), max: 2n ** 64n })
    .map((value): Literal => ({ kind: "literal", offset, type: "long", text: String(value) })),
  fc.tuple(fc.integer(), fc.nat(99)).map(
    ([whole, part]): Literal => ({
      kind: "literal",
      offset,
      type: "double",
      text: `${whole}.${part}`,
    }),
  ),
  fc
    .constantFrom("true", "false")
    .map((text): Literal => ({ kind: "literal", offset, type: "boolean", text })),
  fc.constant<Literal>({ kind: "literal", offset, type: "null", text: "null" }),
);
const parameter: fc.Arbitrary<Parameter> = fc
  .stringMatching(/^[A-Za-z0-9_]{1,4}$/)
  .map((name) => ({ kind: "parameter", offset, name }));
const value: fc.Arbitrary<Value> = fc.oneof(literal, parameter);

const arrays = fc.constantFrom(0, 0, 0, 1, 2);
const laterPart = fc.record({ name: fc.oneof(word, anyText), arrays });
const bareField: fc.Arbitrary<Field> = fc
  .tuple(word, arrays, fc.array(laterPart, { maxLength: 2 }))
  .map(([name, count, rest]) => ({
    kind: "field",
    offset,
    path: [{ name, arrays: count }, ...rest],
    isQuoted: false,
  }));
const quotedField: fc.Arbitrary<Field> = fc
  .tuple(anyText, arrays, fc.array(laterPart, { maxLength: 2 }))
  .map(([name, count, rest]) => ({
    kind: "field",
    offset,
    path: [{ name, arrays: count }, ...rest],
    isQuoted: true,
  }));
const field = fc.oneof(bareField, quotedField);
/** Where a value may stand, a single quoted name is a string and not a path. */
const operandField = field.filter(
  ({ isQuoted, path }) => !isQuoted || path.length > 1 || (path[0]?.arrays ?? 0) > 0,
);

const methodName = fc.oneof(
  fc.constantFrom("search", "startsWith", "exact", "boost", "id", "spatial.within"),
  word,
);

const emptyCall: Call = { kind: "call", offset, name: "id", args: [] };

const { expression, call } = fc.letrec<{ expression: Expression; call: Call; argument: Argument }>(
  (tie) => ({
    call: fc
      .tuple(methodName, fc.array(tie("argument"), { maxLength: 3 }))
      .map(([name, args]) => ({ kind: "call", offset, name, args })),
    argument: fc.oneof(
      { maxDepth: 2, depthIdentifier: "tree" },
      value,
      operandField,
      // Alone, `true` is a value and not a condition.
      tie("expression").map((given): Argument => (given.kind === "true" ? emptyCall : given)),
    ),
    expression: fc.oneof(
      { maxDepth: 2, depthIdentifier: "tree" },
      fc.constant<Expression>({ kind: "true", offset }),
      fc.tuple(fc.constantFrom("=", "!=", "<", "<=", ">", ">="), field, value).map(
        ([operator, left, right]): Expression => ({
          kind: "comparison",
          offset,
          operator: operator as "=",
          left,
          right,
        }),
      ),
      fc.tuple(tie("call"), fc.oneof(operandField, tie("call"))).map(
        ([left, right]): Expression => ({
          kind: "comparison",
          offset,
          operator: "=",
          left,
          right,
        }),
      ),
      fc
        .tuple(field, value, value)
        .map(([left, low, high]): Expression => ({ kind: "between", offset, left, low, high })),
      fc
        .tuple(field, fc.boolean(), fc.array(value, { maxLength: 3 }))
        .map(([left, isAll, values]): Expression => ({ kind: "in", offset, left, isAll, values })),
      tie("call"),
      fc
        .tuple(
          fc.constantFrom("and", "or"),
          tie("expression"),
          fc.array(fc.tuple(fc.boolean(), tie("expression")), { minLength: 1, maxLength: 3 }),
        )
        .map(
          ([kind, first, rest]): Expression => ({
            kind: kind as "and",
            offset,
            operands: [first, ...rest.map(([isNegated, operand]) => negated(isNegated, operand))],
          }),
        ),
    ),
  }),
);

function negated(isNegated: boolean, operand: Expression): Expression {
  return isNegated ? { kind: "not", offset, operand } : operand;
}

const operand: fc.Arbitrary<Operand> = fc.oneof(operandField, value, call);
const script = fc
  .constantFrom("{ a: 1 }", "{ a: '}' /* } */ }", "{ a: `}` }", "{ a: /[/}]}/.test(x) }")
  .map((text) => ({ kind: "script" as const, offset, text }));
const alias = fc.option(fc.oneof(word, anyText));
const wordAlias = fc.option(word);
const list = <Item>(item: fc.Arbitrary<Item>) => fc.array(item, { maxLength: 2 });

const selectItem: fc.Arbitrary<SelectItem> = fc
  .tuple(
    fc.oneof(
      operand,
      fc.constant({
        kind: "time-series" as const,
        offset,
        body: { kind: "script" as const, offset, text: "(from HeartRate last 5 days)" },
      }),
    ),
    alias,
  )
  .map(([item, name]) => ({ kind: "select-item", offset, expression: item, alias: name }));

const declarations = fc.uniqueArray(
  fc
    .tuple(fc.constantFrom("function", "timeseries"), word, fc.constantFrom("", "a, b"), script)
    .map(([form, name, parameters, body]) => ({
      kind: "declaration" as const,
      offset,
      form: form as "function",
      name,
      parameters,
      body: form === "function" ? body : { ...body, text: "{ from HeartRate }" },
    })),
  { maxLength: 2, selector: ({ name }) => name },
);

const source: fc.Arbitrary<Query["source"]> = fc
  .tuple(
    fc.constantFrom("collection", "index"),
    fc.oneof(word, anyText),
    fc.option(expression),
    alias,
  )
  .map(([form, name, filter, given]) => ({
    kind: "source",
    offset,
    form: form as "index",
    name,
    filter: form === "index" ? null : filter,
    alias: given,
  }));

const common = {
  kind: fc.constant("query" as const),
  offset: fc.constant(offset),
  declarations,
  source,
  groupBy: list(
    fc
      .tuple(
        fc.oneof(
          field,
          call,
          value.filter((item) => item.kind === "parameter" || item.type !== "string"),
        ),
        alias,
      )
      .map(([item, name]) => ({
        kind: "group-key" as const,
        offset,
        expression: item,
        alias: name,
      })),
  ),
  where: fc.option(expression),
  orderBy: list(
    fc.record({
      kind: fc.constant("order-item" as const),
      offset: fc.constant(offset),
      expression: fc.oneof(field, call),
      type: fc.option(fc.constantFrom("string", "long", "double", "alphaNumeric")),
      isDescending: fc.boolean(),
      nulls: fc.option(fc.constantFrom("first", "last")),
    }),
  ),
  load: list(
    fc.tuple(operand, wordAlias, fc.boolean()).map(([item, name, isArray]) => ({
      kind: "load-item" as const,
      offset,
      expression: item,
      alias: name,
      isArray: isArray && name !== null,
    })),
  ),
  filter: fc.option(expression),
  paging: fc.record({
    kind: fc.constant("paging" as const),
    offset: fc.constant(offset),
    skip: fc.option(value),
    take: fc.option(value),
    filterTake: fc.option(value),
  }),
};

/** `filter_limit` without `filter` may follow only some clauses. */
function limitOnlyFilters(query: Query): Query {
  return query.filter === null
    ? { ...query, paging: { ...query.paging, filterTake: null } }
    : query;
}

/** Trees of read queries. */
export const readQuery = (
  fc.record({
    ...common,
    select: fc.option(
      fc.record({
        kind: fc.constant("select" as const),
        offset: fc.constant(offset),
        isDistinct: fc.boolean(),
        body: fc.oneof(
          fc.constant(null),
          script,
          fc.array(selectItem, { minLength: 1, maxLength: 3 }),
        ),
      }),
    ),
    update: fc.constant(null),
    include: list(operand),
  }) as fc.Arbitrary<Query>
).map(limitOnlyFilters);

/** Trees of patch queries. */
export const patchQuery = fc.record({
  ...common,
  select: fc.constant(null),
  update: script,
  include: fc.constant([]),
}) as fc.Arbitrary<Query>;
