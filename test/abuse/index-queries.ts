/**
 * Abuse by queries that are more than conditions: facets, suggestions, moreLikeThis, shapes, and series of a million
 * entries. See `run-abuse.ts` for how to write a case, and `queries.ts` for the others.
 */
import assert from "node:assert/strict";
import { queryBytesMax } from "../../engine/base/limits.ts";
import type { AbuseCase } from "./abuse-case.ts";
import type { AbuseServer, Reply } from "./abuse-server.ts";
import { ask, assertAnsweredOrRefused, list } from "./query-abuse.ts";

interface Kind extends Pick<AbuseCase, "name" | "isLong" | "growthBytesMax"> {
  readonly setUp: (server: AbuseServer) => Promise<void>;
  readonly attack: (server: AbuseServer) => Promise<readonly Reply[]>;
}

const index = {
  Name: "Places",
  Maps: [
    "map('Users', u => ({ N: u.N, Name: u.Name, Tag: u.Tag, Place: createSpatialField(u.Lat, u.Lng) }))",
  ],
  Fields: { Name: { Indexing: "Search", Suggestions: true, Storage: "Yes" } },
};

async function fillPlaces(server: AbuseServer): Promise<void> {
  await server.fill(server.count(100_000, 10_000), (n) =>
    JSON.stringify({
      N: n,
      Name: `name${n} word${n % 5000} alpha`,
      Tag: `tag${n % 100}`,
      Lat: ((n * 7919) % 180_000) / 1000 - 90,
      Lng: ((n * 104_729) % 360_000) / 1000 - 180,
    }),
  );
  const put = { method: "PUT", body: JSON.stringify({ Indexes: [index] }) };
  const reply = await server.request(`${server.database}/admin/indexes`, put);
  assert.equal(reply.status, 201, reply.text.slice(0, 300));
  const first = await ask(
    server,
    "from index 'Places' limit 1",
    {},
    { WaitForNonStaleResults: true },
  );
  assert.equal(first.status, 200, first.text.slice(0, 300));
}

const words = list(2_000, (n) => `word${(n * 7919) % 5000}`).join(" ");
const textFields = ["A", "B", "C"];
let attackCount = 0;

/** Large documents, whose full text no index has yet. */
const fillTexts = (server: AbuseServer): Promise<void> =>
  server.fill(server.count(2_000, 300), (n) =>
    JSON.stringify({ N: n, A: words, B: words, C: words }),
  );

/** A document with a series: an entry a second, then one in the next year. */
async function fillSeries(server: AbuseServer): Promise<void> {
  await server.fill(10, (n) => JSON.stringify({ N: n }));
  const path = `${server.database}/timeseries?docId=users%2F1`;
  const startMs = Date.UTC(2025, 0, 1);
  const count = server.count(1_000_000, 50_000);
  for (let from = 0; from < count; from += 10_000) {
    const Appends = list(10_000, (n) => ({
      Timestamp: new Date(startMs + (from + n) * 1000).toISOString(),
      Values: [(from + n) % 1000, 1],
      Tag: `users/${n % 10}`,
    }));
    const reply = await server.request(path, {
      method: "POST",
      body: JSON.stringify({ Name: "Heat", Appends }),
    });
    assert.equal(reply.status, 204, reply.text.slice(0, 300));
  }
  const Appends = [{ Timestamp: "2027-01-01T00:00:00.000Z", Values: [1, 1] }];
  await server.request(path, { method: "POST", body: JSON.stringify({ Name: "Heat", Appends }) });
}

/** A star with many corners around a place. */
function polygon(corners: number, radius: number): string {
  const places = list(corners, (n) => {
    const angle = (2 * Math.PI * n) / corners;
    const length = radius * (n % 2 === 0 ? 1 : 0.5);
    return `${(length * Math.cos(angle)).toFixed(6)} ${(length * Math.sin(angle)).toFixed(6)}`;
  });
  return `POLYGON((${[...places, places[0]].join(", ")}))`;
}

const series = (body: string) =>
  `from Users as u where id() = 'users/1' select timeseries(${body})`;

const kinds: readonly Kind[] = [
  {
    name: "1,000 facets of ranges with sums",
    setUp: fillPlaces,
    attack: async (server) => [
      await ask(
        server,
        `from index 'Places' select ${list(1000, (n) => `facet(N < ${n}, N >= ${n}, sum(N), avg(N))`).join()}`,
      ),
    ],
  },
  {
    name: "a facet of every word with sums",
    growthBytesMax: 300 * 1024 * 1024, // twenty queries at the same time, each below Query.MaxMemoryInMb
    setUp: fillPlaces,
    attack: (server) =>
      Promise.all(
        list(20, () => ask(server, "from index 'Places' select facet(Name, sum(N), max(N))")),
      ),
  },
  {
    name: "suggestions for 1,000 words",
    setUp: fillPlaces,
    attack: async (server) => [
      await ask(server, `from index 'Places' select suggest(Name, $p, $o)`, {
        p: list(1000, (n) => `nmae${n}`),
        o: { Accuracy: 0.1, Distance: "NGram", PageSize: 1_000_000 },
      }),
    ],
  },
  {
    name: "moreLikeThis of a document of 50,000 words",
    setUp: fillPlaces,
    attack: async (server) => [
      await ask(server, "from index 'Places' where moreLikeThis($p, $o)", {
        p: JSON.stringify({ Name: list(50_000, (n) => `word${n}`).join(" ") }),
        o: JSON.stringify({
          MaximumQueryTerms: 1_000_000,
          MinimumTermFrequency: 1,
          MinimumDocumentFrequency: 1,
        }),
      }),
    ],
  },
  {
    name: "a polygon of 16,000 places",
    setUp: fillPlaces,
    attack: async (server) => [
      await ask(server, "from index 'Places' where spatial.within(Place, spatial.wkt($p))", {
        p: polygon(16_000, 80),
      }),
    ],
  },
  {
    name: "500 polygons in one or",
    setUp: fillPlaces,
    attack: async (server) => [
      await ask(
        server,
        `from index 'Places' where ${list(500, () => "spatial.intersects(Place, spatial.wkt($p))").join(" or ")}`,
        { p: polygon(1_000, 80) },
      ),
    ],
  },
  {
    name: "every place in the order of its distance",
    setUp: fillPlaces,
    attack: (server) =>
      Promise.all(
        list(20, (n) =>
          ask(
            server,
            `from index 'Places' order by spatial.distance(Place, spatial.point(${n}, ${n})) desc offset 5000 limit 10`,
          ),
        ),
      ),
  },
  {
    name: "all aggregates of a series of a million entries",
    growthBytesMax: 3 * queryBytesMax + 100 * 1024 * 1024, // each of the three may hold Query.MaxMemoryInMb
    setUp: fillSeries,
    attack: (server) =>
      Promise.all(
        list(3, () =>
          ask(
            server,
            series(
              "from Heat group by '1 second' select min(), max(), avg(), percentile(90), slope(), stddev(), first(), last()",
            ),
          ),
        ),
      ),
  },
  {
    name: "interpolation of a year by milliseconds",
    setUp: fillSeries,
    attack: async (server) => [
      await ask(
        server,
        series("from Heat group by '1 ms' with interpolation(linear) select avg()"),
      ),
    ],
  },
  {
    name: "full text of large documents",
    setUp: fillTexts,
    // Each attack searches a field that no index has.
    attack: async (server) => {
      const field = textFields[attackCount++ % textFields.length];
      return [await ask(server, `from Users where search(${field}, 'word7') limit 1`)];
    },
  },
  {
    name: "a series whose tags are loaded",
    setUp: fillSeries,
    attack: async (server) => [
      await ask(
        server,
        series("from Heat load Tag as t where t.N > 3 group by '1 hour', t.N select max()"),
      ),
    ],
  },
  {
    name: "1,000 series in one select",
    isLong: true,
    setUp: fillSeries,
    attack: async (server) => [
      await ask(
        server,
        `from Users as u where id() = 'users/1' select ${list(1000, (n) => `timeseries(from Heat group by '1 hour' select max()) as A${n}`).join()}`,
      ),
    ],
  },
];

export const indexQueryCases: readonly AbuseCase[] = kinds.map((kind) => ({
  ...kind,
  area: "queries",
  who: "reader",
  check: (replies) => assertAnsweredOrRefused(replies),
}));
