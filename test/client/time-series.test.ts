/** The official client's queries over time series. */
import { type DocumentStore, TimeSeriesAggregationResult, TimeSeriesRawResult } from "ravendb";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { closeStores, openStore, startServer, ways } from "../support/client-store.ts";

class User {
  id?: string;
  name: string;
  age: number;
  constructor(name: string, age: number) {
    this.name = name;
    this.age = age;
  }
}

class Watch {
  brand: string;
  constructor(brand: string) {
    this.brand = brand;
  }
}

const day = (date: number, hour = 0, minute = 0) => new Date(Date.UTC(2020, 4, date, hour, minute));

afterAll(closeStores);

describe.each(ways)("a series query $name", (way) => {
  let store: DocumentStore;
  beforeAll(async () => {
    store = await openStore(await startServer(way));
    const session = store.openSession();
    await session.store(new User("Oren", 38), "users/oren");
    await session.store(new User("Ayende", 30), "users/ayende");
    await session.store(new Watch("Fitbit"), "watches/fitbit");
    const rates = session.timeSeriesFor("users/oren", "Heartrate");
    rates.append(day(1, 10, 30), [59], "watches/fitbit");
    rates.append(day(1, 10, 50), [79], "watches/fitbit");
    rates.append(day(1, 14), [69], "watches/apple");
    rates.append(day(31, 10), [179, 30], "watches/apple");
    session.timeSeriesFor("users/ayende", "Heartrate").append(day(2), [60], "watches/apple");
    await session.saveChanges();
  });

  const grown = () =>
    store.openSession().query<User>({ collection: "Users" }).whereGreaterThan("age", 35);

  test("returns entries, with dates", async () => {
    const results = await grown()
      .waitForNonStaleResults()
      .selectTimeSeries(
        (b) => b.raw("from Heartrate between '2020-05-01' and '2020-05-02' where Value > 60"),
        TimeSeriesRawResult,
      )
      .all();
    expect(results).toHaveLength(1);
    expect(results[0]).toBeInstanceOf(TimeSeriesRawResult);
    expect(results[0]).toMatchObject({
      count: 2,
      results: [
        { timestamp: day(1, 10, 50), values: [79], tag: "watches/fitbit", value: 79 },
        { timestamp: day(1, 14), values: [69], tag: "watches/apple" },
      ],
    });
  });

  test("returns groups", async () => {
    const query = `from Heartrate load Tag as src where src.brand = $brand
      group by '1 month' select min(), max(), average(), count()`;
    const results = await grown()
      .addParameter("brand", "Fitbit")
      .selectTimeSeries((b) => b.raw(query), TimeSeriesAggregationResult)
      .all();
    expect(results[0]).toMatchObject({
      count: 2,
      results: [
        {
          from: day(1),
          to: new Date(Date.UTC(2020, 5, 1)),
          min: [59],
          max: [79],
          average: [69],
          count: [2],
        },
      ],
    });
  });

  test("is declared in a raw query, beside other columns", async () => {
    interface Row {
      name: string;
      rates: TimeSeriesAggregationResult;
      raw: TimeSeriesRawResult;
    }
    const rows = await store
      .openSession()
      .advanced.rawQuery<Row>(
        `declare timeseries rates(u, least) { from u.Heartrate where Value >= least group by 1d select first(), last() }
         from Users as u where u.age > $age order by u.age
         select u.name, rates(u, 60) as rates, timeseries(from u.Heartrate last 0 days) as raw`,
      )
      .addParameter("age", 1)
      .waitForNonStaleResults()
      .all();
    expect(rows.map(({ name, rates, raw }) => [name, rates.count, raw.count])).toEqual([
      ["Ayende", 1, 1],
      ["Oren", 3, 1],
    ]);
    expect(rows[1]?.rates.results[0]).toMatchObject({ first: [79], last: [69] });
  });

  test("is called by a projection's script", async () => {
    const rows = await store
      .openSession()
      .advanced.rawQuery<{ maxima: number[]; count: number }>(
        `declare timeseries rates(u) { from u.Heartrate group by 1d select max() }
         from Users as u where id() = $id
         select { maxima: rates(u).Results.map(r => r.Max[0]), count: timeseries(u, 'Heartrate').getStats().Count }`,
      )
      .addParameter("id", "users/oren")
      .all();
    expect(rows).toMatchObject([{ maxima: [79, 179], count: 4 }]);
  });

  test("streams", async () => {
    const session = store.openSession();
    const query = session.advanced.rawQuery<{ R: unknown[] }>(
      "from Users select timeseries(from Heartrate group by 1d select max()) as R",
    );
    const lengths: number[] = [];
    for await (const item of await session.advanced.stream(query)) {
      lengths.push((item as { document: { R: unknown[] } }).document.R.length);
    }
    expect(lengths.sort()).toEqual([1, 2]);
  });

  test("names the values of named series", async () => {
    await store.timeSeries.register("Users", "Prices", ["open", "close"]);
    const session = store.openSession();
    session.timeSeriesFor("users/oren", "Prices").append(day(3), [5, 7]);
    await session.saveChanges();
    const results = await store
      .openSession()
      .advanced.rawQuery(
        "from Users where id() = 'users/oren' select timeseries(from Prices where close > 6)",
        TimeSeriesRawResult,
      )
      .all();
    expect(results[0]).toMatchObject({ count: 1, results: [{ values: [5, 7] }] });
  });
});
