/**
 * The sample data, as the text of a dump: the shop of Northwind Traders, a public example by Microsoft, with the
 * collections and ids of RavenDB 7.2.7. Names, addresses, prices and orders come from a file in the package; the
 * orders' histories, votes, share prices, heart rates and views are generated here, and pictures are patterns. The
 * seven indexes are RavenDB's, in JavaScript.
 *
 * Invariants:
 * - Every dump is identical, byte for byte.
 */

import { existsSync } from "node:fs";
import { readFile } from "node:fs/promises";
import { promisify } from "node:util";
import { gunzip } from "node:zlib";
import { pauseIfDue } from "../../engine/base/scheduling/time-slices.ts";
import {
  ChangeOrigin,
  encodeSeriesBlob,
  nodeTagDefault,
  type SeriesEntry,
} from "../../engine/engine.ts";

type Json = Readonly<Record<string, unknown>>;
type Line = readonly [product: number, quantity: number, price: number, discount: number];
/** `…At` are days, `2020-01-31`. `shipTo` is present if the address differs from that of the order's company. */
type OrderRow = readonly [
  company: number,
  employee: number,
  freight: number,
  orderedAt: string,
  requireAt: string | null,
  shippedAt: string | null,
  shipper: number,
  lines: readonly Line[],
  shipTo?: Json,
];

/** The contents of the file. Documents of a collection are in id order, from `<collection>/1-A`. */
interface SampleFile {
  readonly collections: Readonly<Record<string, readonly Json[]>>;
  readonly orders: readonly OrderRow[];
  readonly images: Readonly<
    Record<string, readonly { readonly hash: string; readonly content: string }[]>
  >;
}

const fileName = "sample-data/northwind.json.gz";
/** The database id in the change vectors of revisions. */
const origin = new ChangeOrigin(nodeTagDefault, "NorthwindSampleDataset");
/** Time of the documents' last change, in milliseconds since the Unix epoch. */
const changedAt = Date.UTC(2018, 6, 27, 12, 11, 53);
const dayMs = 86_400_000;
/** Number of time series entries per segment of the dump. */
const segmentEntriesMax = 64;

/** Settings in the database record for revisions, and for time series. */
export const sampleRevisionSettings: Json = {
  Default: null,
  Collections: {
    Orders: {
      Disabled: false,
      MinimumRevisionsToKeep: null,
      MinimumRevisionAgeToKeep: null,
      PurgeOnDelete: false,
      MaximumRevisionsToDeleteUponDocumentUpdate: null,
    },
  },
};
export const sampleSeriesSettings: Json = {
  Collections: {},
  PolicyCheckFrequency: null,
  NamedValues: {
    Companies: { StockPrices: ["Open", "Close", "High", "Low", "Volume"] },
    Employees: { HeartRates: ["BPM"] },
  },
};

const lineTotal = "line.Quantity * line.PricePerUnit * (1 - line.Discount)";
const orderTotal = `order.Lines.reduce((sum, line) => sum + ${lineTotal}, 0)`;
const indexes: readonly Json[] = [
  {
    Name: "Companies/StockPrices/TradeVolumeByMonth",
    Maps: [
      "timeSeries.map('Companies', 'StockPrices', segment => { " +
        "const company = load(segment.DocumentId, 'Companies'); " +
        "return segment.Entries.map(entry => ({ " +
        "Date: new Date(Date.UTC(entry.Timestamp.getUTCFullYear(), entry.Timestamp.getUTCMonth(), 1)), " +
        "Country: company.Address.Country, Volume: entry.Values[4] })); })",
    ],
    Reduce:
      "groupBy(result => ({ Date: result.Date, Country: result.Country })).aggregate(group => ({ " +
      "Date: group.key.Date, Country: group.key.Country, " +
      "Volume: group.values.reduce((sum, value) => sum + value.Volume, 0) }))",
  },
  {
    Name: "Orders/ByCompany",
    Maps: [`map('Orders', order => ({ Company: order.Company, Count: 1, Total: ${orderTotal} }))`],
    Reduce:
      "groupBy(result => result.Company).aggregate(group => ({ Company: group.key, " +
      "Count: group.values.reduce((sum, value) => sum + value.Count, 0), " +
      "Total: group.values.reduce((sum, value) => sum + value.Total, 0) }))",
  },
  {
    Name: "Orders/ByShipment/Location",
    Maps: [
      "map('Orders', order => order.ShipTo.Location == null ? null : ({ Employee: order.Employee, " +
        "Company: order.Company, ShipmentLocation: createSpatialField(" +
        "order.ShipTo.Location.Latitude, order.ShipTo.Location.Longitude) }))",
    ],
    Fields: { ShipmentLocation: { Spatial: {} } },
  },
  {
    Name: "Orders/Totals",
    Maps: [
      `map('Orders', order => ({ Employee: order.Employee, Company: order.Company, Total: ${orderTotal} }))`,
    ],
  },
  {
    Name: "Product/Rating",
    Maps: [
      "counters.map('Products', counter => { " +
        "if (!counter.Name.includes('⭐')) return null; " +
        "const product = load(counter.DocumentId, 'Products'); " +
        "return { Name: product.Name, Rating: counter.Name.length, TotalVotes: counter.Value, " +
        "AllRatings: [{ Rating: counter.Name, Votes: counter.Value }] }; })",
    ],
    Reduce:
      "groupBy(result => result.Name).aggregate(group => { " +
      "const total = group.values.reduce((sum, value) => sum + value.TotalVotes, 0); " +
      "return { Name: group.key, TotalVotes: total, " +
      "Rating: group.values.reduce((sum, value) => sum + value.TotalVotes / total * value.Rating, 0), " +
      "AllRatings: group.values.reduce((all, value) => all.concat(value.AllRatings), []) }; })",
    Fields: { AllRatings: { Indexing: "No" } },
  },
  {
    Name: "Product/Search",
    Maps: [
      "map('Products', product => ({ Name: product.Name, Category: product.Category, " +
        "Supplier: product.Supplier, PricePerUnit: product.PricePerUnit }))",
    ],
    Fields: { Name: { Indexing: "Search", Suggestions: true, TermVector: "Yes" } },
  },
  {
    Name: "Products/ByUnitOnStock",
    Maps: ["map('Products', product => ({ UnitOnStock: cmpxchg(id(product)) }))"],
  },
];

/** Yields the dump in chunks. @throws Error if the package lacks its file */
export async function* sampleDump(): AsyncGenerator<Buffer> {
  for await (const piece of pieces()) {
    yield piece;
    await pauseIfDue();
  }
}

/** Returns the first document of each collection, without its metadata. */
export async function sampleExamples(): Promise<ReadonlyMap<string, Json>> {
  const file = await readSampleFile();
  const examples = new Map<string, Json>();
  for (const [collection, [first]] of Object.entries(file.collections)) {
    if (first !== undefined) examples.set(collection, first);
  }
  const [row] = file.orders;
  if (row !== undefined) examples.set("Orders", order(file, row));
  return examples;
}

async function* pieces(): AsyncGenerator<Buffer> {
  const file = await readSampleFile();
  yield* section('{"BuildVersion":72051,"Docs":[', documents(file));
  yield* section('],"RevisionDocuments":[', revisions(file));
  yield* section('],"Indexes":[', texts(indexes.map(indexItem)));
  yield* section('],"CompareExchange":[', texts(stock(file)));
  yield* section('],"CounterGroups":[', texts(votes(file)));
  yield* section('],"TimeSeries":[', series(file));
  yield Buffer.from("]}");
}

async function readSampleFile(): Promise<SampleFile> {
  // Beside the sources, or further up from the bundle and the build output.
  const places = ["..", "../..", "../../.."].map(
    (up) => new URL(`${up}/${fileName}`, import.meta.url),
  );
  const found =
    places.find((place) => existsSync(place)) ?? new URL(`../${fileName}`, import.meta.url);
  const text = await promisify(gunzip)(await readFile(found));
  return JSON.parse(text.toString()) as SampleFile;
}

/** Yields items separated by commas. */
function* section(head: string, items: Iterable<string | Buffer>): Generator<Buffer> {
  yield Buffer.from(head);
  let isFirst = true;
  for (const item of items) {
    // A buffer belongs to the previous item.
    if (typeof item === "string" && !isFirst) yield Buffer.from(",");
    isFirst = false;
    yield typeof item === "string" ? Buffer.from(item) : item;
  }
}

function texts(items: readonly Json[]): readonly string[] {
  return items.map((item) => JSON.stringify(item));
}

/** `Companies`, 1: `companies/1-A`. */
function idOf(collection: string, number: number): string {
  return `${collection.toLowerCase()}/${number}-A`;
}

/** Returns the start of a day, in the format of documents. */
function dayText(day: string | null): string | null {
  return day === null ? null : `${day}T00:00:00.0000000`;
}

function timeText(ms: number): string {
  return `${new Date(ms).toISOString().slice(0, -1)}0000Z`;
}

function documentText(
  body: Json,
  collection: string,
  id: string,
  more: Json = {},
  modifiedMs = changedAt,
): string {
  const metadata = {
    "@collection": collection,
    ...more,
    "@id": id,
    "@last-modified": timeText(modifiedMs),
  };
  return JSON.stringify({ ...body, "@metadata": metadata });
}

function* documents(file: SampleFile): Generator<string | Buffer> {
  const counts = { ...file.collections, Orders: file.orders };
  for (const [collection, { length }] of Object.entries(counts)) {
    yield documentText({ Max: length }, "@hilo", `Raven/Hilo/${collection.toLowerCase()}`);
  }
  for (const [collection, bodies] of Object.entries(file.collections)) {
    const images = file.images[collection];
    const name = collection === "Employees" ? "photo.jpg" : "image.jpg";
    for (const [i, body] of bodies.entries()) {
      const id = idOf(collection, i + 1);
      const image = images?.[i];
      if (image === undefined) {
        yield documentText(body, collection, id);
        continue;
      }
      const { hash: Hash } = image;
      const content = Buffer.from(image.content, "base64");
      yield JSON.stringify({
        "@metadata": { "@export-type": "Attachment" },
        Hash,
        Size: content.length,
        Tag: `${id}|d|${name}|${Hash}|image/jpeg`,
      });
      yield content;
      const attachment = { Name: name, Hash, ContentType: "image/jpeg", Size: content.length };
      yield documentText(body, collection, id, {
        "@attachments": [attachment],
        "@flags": "HasAttachments",
      });
    }
  }
  for (const [i, row] of file.orders.entries()) {
    const more = { "@flags": "HasRevisions" };
    yield documentText(order(file, row), "Orders", idOf("Orders", i + 1), more);
  }
}

/** Returns an order with its first `lineCount` lines. */
function order(file: SampleFile, row: OrderRow, lineCount = row[7].length): Json {
  const [company, employee, freight, orderedAt, requireAt, shippedAt, shipper, lines] = row;
  const shipTo = row[8] ?? (file.collections["Companies"]?.[company - 1]?.["Address"] as Json);
  return {
    Company: idOf("Companies", company),
    Employee: idOf("Employees", employee),
    Freight: freight,
    Lines: lines.slice(0, lineCount).map(([product, Quantity, PricePerUnit, Discount]) => ({
      Discount,
      PricePerUnit,
      Product: idOf("Products", product),
      ProductName: file.collections["Products"]?.[product - 1]?.["Name"],
      Quantity,
    })),
    OrderedAt: dayText(orderedAt),
    RequireAt: dayText(requireAt),
    ShipTo: shipTo,
    ShipVia: idOf("Shippers", shipper),
    ShippedAt: dayText(shippedAt),
  };
}

/** As in RavenDB's sample: each order was stored whole three times, then restarted empty and filled line by line. */
function* revisions(file: SampleFile): Generator<string> {
  let etag = 0;
  for (const [i, row] of file.orders.entries()) {
    const { length } = row[7];
    const states = [length, length, length, ...Array.from({ length: length + 1 }, (_, at) => at)];
    for (const [at, lineCount] of states.entries()) {
      const more = {
        "@change-vector": origin.changeVectorAt(++etag),
        "@flags": "HasRevisions, Revision",
      };
      const modifiedMs = changedAt - (states.length - 1 - at) * 1000;
      const body = order(file, row, lineCount);
      yield documentText(body, "Orders", idOf("Orders", i + 1), more, modifiedMs);
    }
  }
}

function indexItem(definition: Json): Json {
  const Type = definition["Reduce"] === undefined ? "JavaScriptMap" : "JavaScriptMapReduce";
  return { Type, IndexDefinition: { ...definition, Type } };
}

function stock(file: SampleFile): Json[] {
  return (file.collections["Products"] ?? []).map(({ UnitsInStock }, i) => ({
    Key: idOf("Products", i + 1),
    Value: JSON.stringify({ Object: UnitsInStock }),
  }));
}

/** Returns votes of one to five stars for each product. */
function votes(file: SampleFile): Json[] {
  const random = randomNumbers(1);
  const names = [1, 2, 3, 4, 5].map((stars) => "⭐".repeat(stars));
  return (file.collections["Products"] ?? []).map((_, i) => {
    const values = names.map((name) => [name, [Math.floor(random() * 10_000), i + 1]]);
    return {
      DocId: idOf("Products", i + 1),
      Values: {
        "@dbIds": [origin.hash],
        "@names": Object.fromEntries(names.map((name) => [name, name])),
        "@vals": Object.fromEntries(values),
      },
    };
  });
}

function* series(file: SampleFile): Generator<string | Buffer> {
  const numbers = (collection: string) => (file.collections[collection] ?? []).keys();
  for (const i of numbers("Companies")) {
    yield* segments(idOf("Companies", i + 1), "Companies", "StockPrices", stockPrices(i));
  }
  for (const i of numbers("Employees")) {
    yield* segments(idOf("Employees", i + 1), "Employees", "HeartRates", heartRates(i));
  }
  for (const i of numbers("Products")) {
    yield* segments(idOf("Products", i + 1), "Products", "INC:Views", views(i));
  }
}

function* segments(
  id: string,
  collection: string,
  name: string,
  entries: readonly SeriesEntry[],
): Generator<string | Buffer> {
  for (let from = 0; from < entries.length; ) {
    // Encodes a fixed number of entries: computing how many more would fit costs more than it saves.
    const { bytes, count } = encodeSeriesBlob(entries.slice(from, from + segmentEntriesMax), 0);
    const data = {
      DocId: id,
      Name: name,
      ChangeVector: origin.changeVectorAt(1),
      Collection: collection,
      Baseline: timeText((entries[from] as SeriesEntry).time), // from < length
    };
    yield JSON.stringify({ "@raven-data": data, "@raven-blob-size": bytes.length });
    yield bytes;
    from += count;
  }
}

/** Days of 2019 and 2020 without trading, besides weekends. */
const holidays: ReadonlySet<string> = new Set([
  "2019-12-25",
  "2020-01-01",
  "2020-01-20",
  "2020-02-17",
  "2020-04-10",
]);
const tradingDays = 100;

/** Returns a random walk from some price, one entry per trading day, tagged with the employee who recorded it. */
function stockPrices(company: number): SeriesEntry[] {
  const random = randomNumbers(1000 + company);
  const cents = (value: number) => Math.round(value * 100) / 100;
  const entries: SeriesEntry[] = [];
  let price = 20 + random() * 150;
  for (let time = Date.UTC(2019, 11, 17); entries.length < tradingDays; time += dayMs) {
    const day = new Date(time);
    const isWeekend = day.getUTCDay() % 6 === 0;
    if (isWeekend || holidays.has(day.toISOString().slice(0, 10))) continue;
    const open = price;
    const close = open * (1 + (random() - 0.5) * 0.03);
    const high = Math.max(open, close) * (1 + random() * 0.01);
    const low = Math.min(open, close) * (1 - random() * 0.01);
    const volume = Math.floor(200_000 + random() * 2_500_000);
    const tag = idOf("Employees", 1 + Math.floor(random() * 9));
    entries.push({ time, values: [...[open, close, high, low].map(cents), volume], tag });
    price = close;
  }
  return entries;
}

/** Two hours of readings from a watch, one per minute. */
function heartRates(employee: number): SeriesEntry[] {
  const random = randomNumbers(2000 + employee);
  const start = Date.UTC(2020, 4, 17);
  let rate = 64 + random() * 8;
  return Array.from({ length: 120 }, (_, minute) => {
    rate = Math.min(110, Math.max(55, rate + (random() - 0.48) * 3));
    return { time: start + minute * 60_000, values: [rate], tag: "watches/fitbit" };
  });
}

/** Counts every few hours, over some months. */
function views(product: number): SeriesEntry[] {
  const random = randomNumbers(3000 + product);
  const start = Date.UTC(2021, 10, 30, 22);
  const stepMs = (3 * 3600 + 30 * 60 + 54) * 1000;
  const length = 325 * (1 + Math.floor(random() * 3));
  return Array.from({ length }, (_, i) => ({
    time: start + i * stepMs,
    values: [Math.floor(random() * 1000)],
    tag: null,
  }));
}

/** Pseudo-random numbers in [0, 1), determined by the seed (mulberry32). */
function randomNumbers(seed: number): () => number {
  let state = seed;
  return () => {
    state = (state + 0x6d2b79f5) | 0;
    let mixed = Math.imul(state ^ (state >>> 15), state | 1);
    mixed ^= mixed + Math.imul(mixed ^ (mixed >>> 7), mixed | 61);
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32;
  };
}
