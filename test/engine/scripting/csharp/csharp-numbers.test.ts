/**
 * Numbers of C# indexes, `group by` and facets beyond the precision of a double; all values were
 * observed on RavenDB 7.2.7.
 */
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { decimalText, exactOfText } from "../../../../engine/scripting/csharp/csharp-numbers.ts";
import { type EndpointClient, startEndpointClient } from "../../../support/endpoint-client.ts";
import { stopTestServers } from "../../../support/start-test-server.ts";

let client: EndpointClient;

/** Numbers are sent verbatim. */
const document =
  '{"A":9007199254740993,"B":9007199254740995,"M":9223372036854775807,"N":-9223372036854775808,"I":7,"J":2,"D":1.5,' +
  '"W":3.0,"S":"9007199254740993","L":[9007199254740993,9007199254740995,9007199254740993],"Z":0,' +
  '"U":18446744073709551615,"O":{"X":9007199254740993},"X":null,"F":0.1,"E":9007199254740993.0,' +
  '"G":9007199254740993.25,"T":"1","R":[{"Q":9007199254740993,"P":1},{"Q":9007199254740995,"P":2}],' +
  '"@metadata":{"@collection":"Ns"}}';

/** The grouped documents. */
const grouped = [
  '"K":"a","V":9007199254740993,"D":1.0,"F":1.5,"M":9223372036854775807,"X":1,"G":0.1,"C":1',
  '"K":"a","V":9007199254740993,"D":2.0,"F":2.25,"M":1,"X":2.0,"G":0.2,"C":1',
  '"K":"b","V":9007199254740995,"D":1.0,"F":1.5,"M":5,"X":3,"G":0.3,"C":1',
  '"K":"b","V":9007199254740992,"D":1.0,"F":1.50,"M":-9223372036854775807,"X":1.0,"G":0.1,"C":1',
  '"K":"c","V":9007199254740993.0,"D":1e3,"F":1e-7,"M":18446744073709551615,"X":1e20,"G":123456789012345678.5,"C":1',
];

beforeAll(async () => {
  client = await startEndpointClient();
  await client.send("PUT docs?id=ns/1", document);
  for (const [i, members] of grouped.entries()) {
    await client.send(`PUT docs?id=gs/${i}`, `{${members},"@metadata":{"@collection":"Gs"}}`);
  }
});

afterAll(stopTestServers);

/** Deletes the index first: otherwise the previous one answers queries until its replacement is built. */
async function deploy(definition: {
  readonly Name: string;
  readonly [field: string]: unknown;
}): Promise<void> {
  await client.send(`DELETE indexes?name=${definition.Name}`);
  const { status, text } = await client.send("PUT admin/indexes", { Indexes: [definition] });
  expect(status, text).toBe(201);
}

async function answer(Query: string): Promise<string> {
  const reply = await client.send("POST queries", { Query, WaitForNonStaleResults: true });
  expect(reply.status, reply.text).toBe(200);
  return reply.text;
}

/**
 * Expressions over the document `d`, and the stored field values; list elements are separated by
 * spaces.
 */
const expressions: readonly (readonly [string, string])[] = [
  ["d.A", "9007199254740993"],
  ["d.M", "9223372036854775807"],
  ["d.N", "-9223372036854775808"],
  ["d.U", "18446744073709551615"],
  ["d.E", "9007199254740993"],
  ["d.G", "9007199254740993.25"],
  ["d.W", "3"],
  ["d.A + 1", "9007199254740994"],
  ["d.A + d.B", "18014398509481988"],
  ["d.A - 1", "9007199254740992"],
  ["d.A - d.B", "-2"],
  ["d.B - d.A", "2"],
  ["d.A * 1", "9007199254740993"],
  ["d.A * 2", "18014398509481986"],
  ["d.A / 1", "9007199254740993"],
  ["d.A / 2", "4503599627370496"],
  ["d.A % 2", "1"],
  ["d.A % 10", "3"],
  ["-d.A", "-9007199254740993"],
  ["~d.A", "-9007199254740994"],
  ["d.A & 1", "1"],
  ["d.A | 2", "9007199254740995"],
  ["d.A ^ d.B", "2"],
  ["d.A << 1", "18014398509481986"],
  ["d.A == d.B", "false"],
  ["d.A != 9007199254740992", "true"],
  ["d.A == 9007199254740993", "true"],
  ["d.A > 9007199254740992", "true"],
  ["d.A < d.B", "true"],
  ["d.A <= 9007199254740992", "false"],
  ["d.A >= d.E", "true"],
  ["d.A == d.E", "false"],
  ["d.A.ToString()", "9007199254740993"],
  ['d.A.ToString("D20")', "00009007199254740993"],
  ['d.A.ToString("X")', "20000000000001"],
  ['d.A.ToString("N0")', "9,007,199,254,740,993"],
  ['d.A + ""', "9007199254740993"],
  ['"x" + d.A', "x9007199254740993"],
  ['$"{d.A}"', "9007199254740993"],
  ['string.Format("{0}", d.A)', "9007199254740993"],
  ['string.Concat(d.A, "a")', "9007199254740993a"],
  ['string.Join(",", d.L)', "9007199254740993,9007199254740995,9007199254740993"],
  ["(long)d.A", "9007199254740993"],
  ["(int)d.A", "1"],
  ["(int)d.M", "-1"],
  ["(double)d.A", "9007199254740992"],
  ["(decimal)d.A", "9007199254740993"],
  ["(long)d.E", "9007199254740992"],
  ["(long?)d.A", "9007199254740993"],
  ["(ulong)d.A", "9007199254740993"],
  ["(short)d.A", "1"],
  ["(long)d.A + 1", "9007199254740994"],
  ["(decimal)d.A + 1", "9007199254740994"],
  ["(decimal)d.A + 0.5m", "9007199254740993.5"],
  ["d.A + 0.5", "9007199254740992"],
  ["d.A + 1.0", "9007199254740992"],
  ["d.A + d.D", "9007199254740994.5"],
  ["d.A * d.D", "13510798882111489.5"],
  ["d.A * 1.0", "9007199254740992"],
  ["d.A / 2.0", "4503599627370496"],
  ["d.M + 1", "-9223372036854775808"],
  ["d.M + d.M", "-2"],
  ["d.M * 2", "-2"],
  ["d.N - 1", "9223372036854775807"],
  ["-d.N", "9223372036854775808"],
  ["d.M - d.N", "18446744073709551615"],
  ["(long)d.M + 1", "-9223372036854775808"],
  ["(long)d.M * 2", "-2"],
  ["long.Parse(d.S)", "9007199254740993"],
  ["Convert.ToInt64(d.S)", "9007199254740993"],
  ["double.Parse(d.S)", "9007199254740992"],
  ["decimal.Parse(d.S)", "9007199254740993"],
  ["Math.Max((long)d.A, (long)d.B)", "9007199254740995"],
  ["Math.Max(d.A, d.B)", "9007199254740995"],
  ["Math.Min(d.A, d.B)", "9007199254740993"],
  ["Math.Abs(d.N + 1)", "9223372036854775807"],
  ["Math.Abs((long)d.A)", "9007199254740993"],
  ["Math.Sign((long)d.A)", "1"],
  ["Math.Round((decimal)d.A)", "9007199254740993"],
  ["Math.Floor((double)d.A)", "9007199254740992"],
  ["new[] { d.A, d.B }", "9007199254740993 9007199254740995"],
  ["d.L", "9007199254740993 9007199254740995 9007199254740993"],
  ["d.L[0]", "9007199254740993"],
  ["d.L.First()", "9007199254740993"],
  ["d.L.Last()", "9007199254740993"],
  ["d.L.Max()", "9007199254740995"],
  ["d.L.Min()", "9007199254740993"],
  ["d.L.Sum(x => x)", "27021597764222981"],
  ["d.L.Sum(x => (long)x)", "27021597764222981"],
  ["d.L.Max(x => x)", "9007199254740995"],
  ["d.L.Max(x => (long)x)", "9007199254740995"],
  ["d.L.Distinct()", "9007199254740993 9007199254740995"],
  ["d.L.Distinct().Count()", "2"],
  ["d.L.Contains(9007199254740993)", "true"],
  ["d.L.Contains(9007199254740992)", "false"],
  ["d.L.Where(x => x > 9007199254740994)", "9007199254740995"],
  ["d.L.GroupBy(x => x).Select(g => g.Key)", "9007199254740993 9007199254740995"],
  ["d.L.GroupBy(x => x).Count()", "2"],
  ["d.L.Select(x => x + 1)", "9007199254740994 9007199254740996 9007199254740994"],
  ["d.L.Aggregate((a, b) => a + b)", "27021597764222981"],
  ["d.L.IndexOf(9007199254740995)", "1"],
  ["d.R.Sum(x => x.Q)", "18014398509481988"],
  ["d.R.Max(x => x.Q)", "9007199254740995"],
  ["d.R.OrderByDescending(x => x.Q).First().Q", "9007199254740995"],
  ["d.R.Select(x => x.Q)", "9007199254740993 9007199254740995"],
  ["d.O.X", "9007199254740993"],
  ["d.A ?? 0", "9007199254740993"],
  ["d.X ?? d.A", "9007199254740993"],
  ["d.A > 0 ? d.A : 0", "9007199254740993"],
  ["9007199254740993", "9007199254740993"],
  ["9007199254740993L", "9007199254740993"],
  ["9223372036854775807", "9223372036854775807"],
  ["9007199254740993.0", "9007199254740992"],
  ["9007199254740993m", "9007199254740993"],
  ["9007199254740993.5m", "9007199254740993.5"],
  ["18446744073709551615", "18446744073709551615"],
  ["long.MaxValue", "9223372036854775807"],
  ["int.MaxValue", "2147483647"],
  ["d.I / d.J", "3"],
  ["d.I / 2.0", "3.5"],
  ["d.W + 1", "4"],
  ["d.W * d.J", "6"],
  ["1.0", "1"],
  ["1.0m", "1.0"],
  ["1.50m", "1.50"],
  ["(decimal)1", "1"],
  ["(decimal)d.W", "3.0"],
  ["(decimal)d.D", "1.5"],
  ["(double)d.I", "7"],
  ["(double)1", "1"],
  ["d.W.ToString()", "3.0"],
  ["d.D.ToString()", "1.5"],
  ["1.0.ToString()", "1"],
  ["1.50m.ToString()", "1.50"],
  ["((decimal)d.I).ToString()", "7"],
  ["((double)d.I).ToString()", "7"],
  ["(decimal)d.I / 2", "3.5"],
  ["(decimal)d.I / 3", "2.3333333333333333333333333333"],
  ["d.I / 3.0", "2.3333333333333335"],
  ["d.F + 0.2", "0.30000000000000004"],
  ["0.1m + 0.2m", "0.3"],
  ["d.I * 1.0", "7"],
  ["Math.Pow(2, 53) + 1", "9007199254740992"],
  ["Math.Sqrt(4)", "2"],
  ["Math.Round(2.5)", "2"],
  ["d.A is long", "true"],
  ["d.A is int", "false"],
  ["d.A.Equals(9007199254740993)", "true"],
  ["d.A.CompareTo(d.B)", "-1"],
  ["TimeSpan.FromTicks(d.A)", "10424.23:58:45.4740993"],
  ["new DateTime((long)600000000000000001)", "1902-04-30T10:40:00.0000001"],
  ["new DateTime(2020, 1, 1).Ticks", "637134336000000000"],
  ["new DateTime(2020, 1, 1).AddTicks(1).Ticks", "637134336000000001"],
  ["d.Z + d.A", "9007199254740993"],
  ["0 - d.A", "-9007199254740993"],
  ["d.A - 9007199254740990", "3"],
  ["(d.A + 1) / 2", "4503599627370497"],
  ["(d.A + 1) % 4", "2"],
  ["(int)(d.A - 9007199254740990)", "3"],
  ["d.S == d.A.ToString()", "true"],
  ["1 + d.D", "2.5"],
  ["d.I + d.D", "8.5"],
  ["d.W + d.I", "10"],
  ["d.I + d.W", "10.0"],
  ["d.W + d.W", "6.0"],
  ["d.W * d.W", "9.00"],
  ["d.I / d.W", "2.3333333333333333333333333333"],
  ["d.W - 1", "2"],
  ["d.W % d.J", "1"],
  ["d.I % d.W", "1.0"],
  ["d.W / d.W", "1"],
  ["d.D / d.W", "0.5"],
  ["d.W + 1m", "4.0"],
  ["1m + d.W", "4.0"],
  ["d.W + 1.0", "4"],
  ["1.0 + d.W", "4"],
  ["d.F + d.F", "0.2"],
  ["d.F * d.F", "0.01"],
  ["3 * d.F", "0.3"],
  ["d.F + 0.2m", "0.3"],
  ["d.G + 1", "9007199254740995"],
  ["d.G + d.G", "18014398509481986.50"],
  ["d.G + 1.5", "9007199254740996"],
  ["d.E + 1", "9007199254740993"],
  ["1 + d.E", "9007199254740994.0"],
  ["d.E + d.E", "18014398509481986.0"],
  ["d.E == d.E", "true"],
  ["d.E > d.A", "false"],
  ["d.A < d.E", "false"],
  ["d.E == 9007199254740993.0", "true"],
  ["d.W == 3", "true"],
  ["3 == d.W", "true"],
  ["d.W == d.D", "false"],
  ["d.W == 3.0", "true"],
  ["d.W == 3m", "true"],
  ["d.I == 7.0", "true"],
  ["d.I > d.D", "true"],
  ["d.D < d.I", "true"],
  ["d.D < 2", "true"],
  ["d.D > 1.5", "false"],
  ["d.U + 1", "-9223372036854775808"],
  ["d.U + d.U", "36893488147419103230"],
  ["d.U == d.U", "true"],
  ["d.U * 2", "-2"],
  ["d.N * 2", "0"],
  ["d.N + d.N", "-18446744073709551616"],
  ["-d.W", "-3.0"],
  ["-d.D", "-1.5"],
  ["-d.I", "-7"],
  ["(long)d.G", "9007199254740994"],
  ["(double)d.G", "9007199254740994"],
  ["(decimal)d.G", "9007199254740993.25"],
  ["(int)d.W", "3"],
  ["(long)d.U", "9223372036854775807"],
  ["(double)d.U", "1.8446744073709552e+19"],
  ["(decimal)d.U", "18446744073709551615"],
  ["(long)d.D", "1"],
  ["(int)2.9", "2"],
  ['d.W.ToString("0.00")', "3.00"],
  ['d.D.ToString("0.00")', "1.50"],
  ['d.W + ""', "3.0"],
  ['"x" + d.D', "x1.5"],
  ['$"{d.W}"', "3.0"],
  ['string.Format("{0:0.0}", d.W)', "3.0"],
  ["(double)d.W + 1", "4"],
  ["(double)d.D + d.D", "3"],
  ["(decimal)d.W + 1", "4.0"],
  ["(decimal)d.F + d.F", "0.2"],
  ["(decimal)d.D * (decimal)d.D", "2.25"],
  ["(decimal)d.D / 3", "0.5"],
  ["(decimal)1 / 3", "0.3333333333333333333333333333"],
  ["(decimal)d.I / 7", "1"],
  ["(decimal)2 / 3", "0.6666666666666666666666666667"],
  ["1m / 8", "0.125"],
  ["10m / 4m", "2.5"],
  ["1.50m + 1", "2.50"],
  ["1.50m * 2", "3.00"],
  ["1.50m - 0.50m", "1.00"],
  ["1.50m / 2", "0.75"],
  ["1.50m % 1", "0.50"],
  ["-1.50m", "-1.50"],
  ["1.5m == 1.50m", "true"],
  ["1.5m > 1.4m", "true"],
  ["(double)1.50m", "1.5"],
  ["(long)1.50m", "1"],
  ["(int)1.50m + 1", "2"],
  ["1e3", "1000"],
  ["1e3 + 1", "1001"],
  ["Math.Round(1.255m, 2)", "1.26"],
  ["Math.Round((decimal)d.D)", "2"],
  ["Math.Round((double)d.D)", "2"],
  ["Math.Round((double)d.G, 1)", "9007199254740994"],
  ["Math.Abs(-1.50m)", "1.50"],
  ["Math.Max(1.5m, 1)", "1.5"],
  ["Math.Floor(1.50m)", "1"],
  ["Math.Ceiling(1.50m)", "2"],
  ["Math.Abs((decimal)d.W)", "3.0"],
  ["Convert.ToInt64(2.5)", "2"],
  ['decimal.Parse("1.50")', "1.50"],
  ['double.Parse("1.50")', "1.5"],
  ['double.Parse("3")', "3"],
  ["new[] { 1.0, 2.5 }", "1 2.5"],
  ["new[] { d.W, d.I }", "3 7"],
  ["new[] { 1.50m }", "1.50"],
  ["d.L.Average(x => (double)x)", "9007199254740994"],
  ["d.L.Average(x => x)", "9007199254740993.666666666667"],
  ["d.L.Average(x => (long)x)", "9007199254740994"],
  ["d.R.Sum(x => (double)x.P)", "3"],
  ["d.R.Sum(x => (decimal)x.P)", "3"],
  ["d.R.Sum(x => (int)x.P)", "3"],
  ["d.R.Average(x => x.P)", "1.5"],
  ["d.R.Max(x => (double)x.P)", "2"],
  ["d.T + d.W", "13.0"],
  ["d.I + d.T", "71"],
  ["d.W ?? 1", "3"],
  ["d.W > 1 ? d.W : 0", "3"],
  ["d.W * 1.5", "4.5"],
  ["d.I * d.D", "10.5"],
  ["d.I - d.W", "4.0"],
  ["79228162514264337593543950335m", "79228162514264337593543950335"],
  ["int.MaxValue + d.I", "2147483654"],
  ["(int)d.I * 1000000000L", "7000000000"],
  ["(uint)(d.I - 8)", "4294967295"],
  ["d.I << 62", "-4611686018427387904"],
  ["d.I << 64", "7"],
  ["d.M & d.A", "9007199254740993"],
  ["d.I / 0.0", "Infinity"],
  ["1.0 / 0", "Infinity"],
  ["9223372036854775808", "9223372036854775808"],
  ["(long)d.M + (long)d.M", "-2"],
  ["d.L.Sum(x => (long)x) * 1000", "8574853690513429384"],
  ["d.R.Sum(x => x.Q) * 1000", "18014398509481988000"],
  ["d.M + 1m", "9223372036854775808"],
  ["d.M + 1.0", "9.223372036854776e+18"],
  ["d.M * d.M", "1"],
  ["(double)d.M", "9.223372036854776e+18"],
  ["d.M % 1000", "807"],
  ["d.M / 1000", "9223372036854775"],
  ["d.M == (double)d.M", "true"],
  ["Math.Max((long)d.A, 1)", "9007199254740993"],
  ["Math.Max(1, 2.5)", "2.5"],
  ["Math.Min((double)d.D, 1)", "1"],
  ["Math.Pow(d.I, 2)", "49"],
  ["Math.Pow((double)d.I, 2)", "49"],
  ["Math.Sqrt((double)d.I)", "2.6457513110645907"],
];

describe("an expression of a map", () => {
  test.each([0, 1, 2, 3, 4, 5, 6])("has the value of C#, section %d", async (part) => {
    const size = Math.ceil(expressions.length / 7);
    const rows = expressions.slice(part * size, (part + 1) * size);
    const members = rows.map(([text], i) => `X${i} = ${text}`);
    const Name = `Numbers${part}`;
    await deploy({
      Name,
      Maps: [`from d in docs.Ns select new { ${members.join(", ")} }`],
      Fields: { __all_fields: { Storage: "Yes" } },
    });
    const text = await answer(
      `from index '${Name}' select ${rows.map((_, i) => `X${i}`).join(", ")}`,
    );
    const [row = {}] = (JSON.parse(text) as { Results: Record<string, unknown>[] }).Results;
    const found = rows.map(([expression], i) => [expression, [row[`X${i}`]].flat().join(" ")]);
    expect(found).toEqual(rows);
  });
});

/** A key, a member of the reduce, and `key -> value` of each group. */
const reduces: readonly (readonly [string, string, string])[] = [
  [
    "V",
    "g.Sum(x => x.V)",
    "9007199254740992 -> 9007199254740992 | 9007199254740993 -> 18014398509481986 | 9007199254740993.0 -> 9007199254740993.0 | 9007199254740995 -> 9007199254740995",
  ],
  ["D", "g.Sum(x => x.D)", "1.0 -> 3.0 | 1e3 -> 1000 | 2.0 -> 2.0"],
  ["D", "g.First().D", "1.0 -> 1.0 | 1e3 -> 1e3 | 2.0 -> 2.0"],
  ["F", "g.Sum(x => x.F)", "1.5 -> 3.0 | 1.50 -> 1.50 | 1e-7 -> 0.0000001 | 2.25 -> 2.25"],
  ["X", "g.Max(x => x.X)", "1 -> 1 | 1.0 -> 1.0 | 1e20 -> 1e20 | 2.0 -> 2.0 | 3 -> 3"],
  [
    "K",
    "g.Sum(x => x.V)",
    '"a" -> 18014398509481986 | "b" -> 18014398509481987 | "c" -> 9007199254740993.0',
  ],
  [
    "K",
    "g.Sum(x => x.M)",
    '"a" -> 9223372036854775808.0 | "b" -> -9223372036854775802 | "c" -> 18446744073709551615.0',
  ],
  ["K", "g.Sum(x => x.F)", '"a" -> 3.75 | "b" -> 3.00 | "c" -> 0.0000001'],
  ["K", "g.Sum(x => x.C)", '"a" -> 2 | "b" -> 2 | "c" -> 1'],
  ["K", "g.Sum(x => (double)x.D)", '"a" -> 3.0 | "b" -> 2.0 | "c" -> 1000.0'],
  [
    "K",
    "g.Max(x => x.V)",
    '"a" -> 9007199254740993 | "b" -> 9007199254740995 | "c" -> 9007199254740993.0',
  ],
  [
    "K",
    "g.Average(x => x.V)",
    '"a" -> 9007199254740993 | "b" -> 9007199254740993.5 | "c" -> 9007199254740993.0',
  ],
  [
    "K",
    "g.Average(x => (long)x.V)",
    '"a" -> 9007199254740992.0 | "b" -> 9007199254740994.0 | "c" -> 9007199254740992.0',
  ],
  ["K", "g.Sum(x => x.D) / g.Sum(x => x.C)", '"a" -> 1.5 | "b" -> 1.0 | "c" -> 1000'],
  ["K", "g.Sum(x => x.V) % 10", '"a" -> 6 | "b" -> 7 | "c" -> 3.0'],
  ["K", "g.Select(x => x.X).Distinct()", '"a" -> [1,2.0] | "b" -> [3,1.0] | "c" -> [1e20]'],
  ["K", "g.First().V == 9007199254740993", '"a" -> true | "b" -> false | "c" -> false'],
  ["K", "1.50m", '"a" -> 1.50 | "b" -> 1.50 | "c" -> 1.50'],
];

test.each(reduces)("a reduce by %s has %s", async (key, expression, expected) => {
  await deploy({
    Name: "Reduced",
    Maps: ["from d in docs.Gs select new { d.K, d.V, d.D, d.F, d.M, d.X, d.C, Out = 0, Key = 0 }"],
    Reduce: `from r in results group r by r.${key} into g select new { K = "", V = 0, D = 0, F = 0, M = 0, X = 0, C = 0, Out = ${expression}, Key = g.Key }`,
  });
  const text = await answer("from index 'Reduced'");
  const found = [...text.matchAll(/"Out":(.*?),"Key":(.*?),"@metadata"/g)];
  const rows = found.map(([, value, group]) => `${group} -> ${value}`);
  expect(rows.sort().join(" | ")).toBe(expected);
});

test.each([
  [
    "sum(V)",
    '{"K":"a","R":18014398509481986} {"K":"b","R":18014398509481987} {"K":"c","R":9007199254740992.0}',
  ],
  [
    "sum(M)",
    '{"K":"a","R":-9223372036854775808} {"K":"b","R":-9223372036854775802} {"K":"c","R":1.8446744073709552E+19}',
  ],
  ["sum(F)", '{"K":"a","R":3.75} {"K":"b","R":3.0} {"K":"c","R":1E-07}'],
  [
    "sum(G)",
    '{"K":"a","R":0.30000000000000004} {"K":"b","R":0.4} {"K":"c","R":1.2345678901234568E+17}',
  ],
])("group by prints %s as RavenDB does", async (sum, expected) => {
  const text = await answer(`from Gs group by K order by K select K, ${sum} as R`);
  const rows = [...text.matchAll(/\{"K":"[^"]*","R":[^,}]*/g)].map(([row]) => `${row}}`);
  expect(rows.join(" ")).toBe(expected);
});

test("a sum of integers beyond 2^53 follows changes and deletions, and can be searched", async () => {
  const put = (id: string, value: string) =>
    client.send(`PUT docs?id=${id}`, `{"K":1,"V":${value},"@metadata":{"@collection":"Hs"}}`);
  const sum = async () =>
    (await answer("from Hs group by K select sum(V) as S")).match(/"S":([^,}]*)/)?.[1];
  await put("hs/1", "9007199254740993");
  await put("hs/2", "9007199254740995");
  expect(await sum()).toBe("18014398509481988");
  await put("hs/2", "4611686018427387904");
  expect(await sum()).toBe("4620693217682128897");
  const found = await answer(
    "from Hs group by K where sum(V) = 4620693217682128897 select K, sum(V) as S",
  );
  expect(found).toContain('"TotalResults":1');
  await client.send("DELETE docs?id=hs/1");
  expect(await sum()).toBe("4611686018427387904");
});

test("a facet prints large doubles with an exponent", async () => {
  await deploy({
    Name: "Facets",
    Maps: ['from d in docs.Gs where d.K == "a" select new { d.K, d.M }'],
  });
  const text = await answer("from index 'Facets' select facet(K, sum(M), min(M), max(M), avg(M))");
  expect(text).toContain(
    '"Average":4.611686018427388E+18,"Max":9.223372036854776E+18,"Min":1,"Sum":9.223372036854776E+18',
  );
});

test.each([
  ["1.50", "1.50"],
  ["-0.05", "-0.05"],
  ["1e3", "1000"],
  ["12.5e-3", "0.0125"],
  ["79228162514264337593543950335", "79228162514264337593543950335"],
])("the digits of %s are preserved", (text, expected) => {
  const exact = exactOfText(text);
  expect(exact === null ? null : decimalText(exact)).toBe(expected);
});

test.each(["1e400", "x", "1.2.3"])("%s is not a decimal", (text) => {
  expect(exactOfText(text)).toBeNull();
});
