import { expect, test } from "vitest";
import type { Exchange } from "../../../server/http/exchange.ts";
import { queryOfBody, wrappedQueryOfBody } from "../../../server/replies/query-request.ts";

/** A request whose body is already received. */
function exchangeOf(body: object): Exchange {
  const bytes = Buffer.from(JSON.stringify(body));
  return {
    header: () => undefined,
    bufferedBody: () => (bytes.length % 2 === 0 ? bytes : Promise.resolve(bytes)),
  } as unknown as Exchange;
}

test("simultaneous requests are each read unchanged, long and short", async () => {
  const queries = Array.from({ length: 12 }, (_, n) => ({
    Query: `from Users where Name = 'n${n}' ${" ".repeat(n % 3 === 0 ? 70_000 : n * 7)}`,
    QueryParameters: { n },
  }));
  const read = await Promise.all(
    queries.map((query, n) =>
      n % 2 === 0
        ? queryOfBody(exchangeOf(query))
        : wrappedQueryOfBody(exchangeOf({ Query: query })),
    ),
  );
  expect(read.map(({ text, options }) => [text, options.parametersText])).toEqual(
    queries.map((query) => [query.Query, JSON.stringify(query.QueryParameters)]),
  );
});
