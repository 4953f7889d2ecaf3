/**
 * Defaults of method records: every clause in which a method does nothing, so that a record lists only the clauses that
 * it supports. `onlyIn…` lacks the member of its clause, and `where` also lacks `filter`: a record that omits one does
 * not compile.
 */
import type { FilterUse, RqlFunction } from "./rql-function.ts";

/** A query method that `filter` refuses. */
export const needsIndex: FilterUse = {
  refusal: (name) => `'${name}' query method is not supported for this type of query`,
  compiled: { test: null, read: null },
};

/** A query method that `filter` does not know. A function of this name that the query declares is called instead. */
export const notInFilter: FilterUse = {
  refusal: (name) => `Method '${name}' is not supported.`,
  compiled: "script",
};

/** Left to scripting, which implements the method, or skips calls of undefined names. */
export const inScripts: FilterUse = { refusal: null, compiled: "script" };

/** A method that messages list and no clause accepts directly. */
export const nowhere = {
  where: null,
  filter: notInFilter,
  compared: null,
  value: null,
  groupKey: null,
  aggregate: null,
  orderBy: null,
  select: null,
  include: null,
} as const satisfies Partial<RqlFunction>;

const { where: _where, filter: _filter, ...onlyInWhere } = nowhere;
const { include: _include, ...onlyInInclude } = nowhere;
const { orderBy: _orderBy, ...knownButInOrder } = nowhere;
const { select: _select, ...knownButInSelect } = nowhere;

/** For methods that are no query methods elsewhere: they have no name in messages, and `filter` leaves them to scripts. */
const unnamed = { shownName: null, filter: inScripts } as const;

export { onlyInInclude, onlyInWhere };
export const onlyInOrderBy = { ...knownButInOrder, ...unnamed } as const;
export const onlyInSelect = { ...knownButInSelect, ...unnamed } as const;
