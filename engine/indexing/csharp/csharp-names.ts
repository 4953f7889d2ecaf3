/**
 * The names of .NET and of RavenDB that a C# text of an index may call, and their equivalents in the script. All others
 * are refused at compilation.
 */

/** Functions of an index. */
export const functionNames: ReadonlyMap<string, string> = new Map([
  ["AsJson", "csSame"],
  ["AttachmentsFor", "attachmentsFor"],
  ["CounterNamesFor", "counterNamesFor"],
  ["CreateField", "csCreateField"],
  ["CreateSpatialField", "csCreateSpatialField"],
  ["CreateVector", "csCreateVector"],
  ["Id", "csId"],
  ["LoadAttachment", "loadAttachment"],
  ["LoadAttachments", "loadAttachments"],
  ["LoadCompareExchangeValue", "csCompareExchange"],
  ["LoadDocument", "csLoadDocument"],
  ["MetadataFor", "csMetadataFor"],
  ["Recurse", "recurse"],
  ["TimeSeriesNamesFor", "timeSeriesNamesFor"],
]);

/** Methods of values, prefixed with `cs` in the script. */
export const methodNames: ReadonlySet<string> = new Set(
  `Add AddDays AddHours AddMilliseconds AddMinutes AddMonths AddSeconds AddTicks AddYears Aggregate All Any Append
  AsEnumerable Average Boost Cast CompareTo Concat Contains ContainsKey Count DefaultIfEmpty Distinct ElementAt
  ElementAtOrDefault EndsWith Equals Except First FirstOrDefault GetContentAsString GetValueOrDefault GroupBy GroupJoin
  IndexOf IndexOfAny Insert Intersect Join Last
  LastIndexOf LastOrDefault LongCount Max Min OfType OrderBy OrderByDescending PadLeft PadRight Prepend Remove Replace
  Reverse Select SelectMany Single SingleOrDefault Skip SkipWhile Split StartsWith Substring Subtract Sum Take TakeWhile
  ThenBy ThenByDescending ToArray ToCharArray ToDictionary ToHashSet ToList ToLower ToLowerInvariant ToString
  ToUniversalTime ToUpper ToUpperInvariant Trim TrimEnd TrimStart Union Value Where Zip`.split(
    /\s+/,
  ),
);

const numberTypes = ["int", "long", "short", "byte", "Int32", "Int64"];
const doubleTypes = ["double", "float", "Single"];

function statics(): [string, string][] {
  const names: [string, string][] = [];
  for (const type of ["string"]) {
    names.push([`${type}.Concat`, "csConcat"], [`${type}.Format`, "csFormat"]);
    names.push([`${type}.IsNullOrEmpty`, "csIsNullOrEmpty"], [`${type}.Join`, "csJoin"]);
    names.push(
      [`${type}.IsNullOrWhiteSpace`, "csIsNullOrWhiteSpace"],
      [`${type}.Equals`, "csEquals"],
    );
    names.push([`${type}.Compare`, "csCompareTexts"], [`${type}.CompareOrdinal`, "csCompareTo"]);
  }
  for (const type of numberTypes) names.push([`${type}.Parse`, "csParseInteger"]);
  for (const type of doubleTypes) names.push([`${type}.Parse`, "csParseDouble"]);
  for (const name of ["ToInt16", "ToInt32", "ToInt64", "ToByte"]) {
    names.push([`Convert.${name}`, "csRoundInteger"]);
  }
  for (const name of ["ToDouble", "ToSingle"]) names.push([`Convert.${name}`, "csParseDouble"]);
  names.push(["decimal.Parse", "csParseDecimal"], ["Convert.ToDecimal", "csParseDecimal"]);
  names.push(["Convert.ToString", "csToString"], ["Convert.ToBoolean", "csBoolean"]);
  names.push(["bool.Parse", "csBoolean"], ["DateTime.Parse", "csParseDate"]);
  names.push(["Convert.ToDateTime", "csParseDate"], ["object.Equals", "csEquals"]);
  names.push(["DateTime.SpecifyKind", "csSame"], ["DateTimeOffset.Parse", "csParseDate"]);
  const math =
    "Abs Acos Asin Atan Atan2 Ceiling Clamp Cos Exp Floor Log Log10 Max Min Pow Round Sign Sin Sqrt Tan Truncate";
  for (const name of math.split(" ")) names.push([`Math.${name}`, `csMath${name}`]);
  const tests =
    "IsDigit IsLetter IsLetterOrDigit IsLower IsNumber IsPunctuation IsUpper IsWhiteSpace";
  for (const name of tests.split(" ")) names.push([`char.${name}`, `csChar${name}`]);
  for (const name of ["ToLower", "ToLowerInvariant", "ToUpper", "ToUpperInvariant"]) {
    names.push([`char.${name}`, `cs${name}`]);
  }
  for (const name of ["Escape", "IsMatch", "Match", "Matches", "Replace", "Split"]) {
    names.push([`Regex.${name}`, `csRegex${name}`]);
  }
  names.push(["Array.Empty", "csEmpty"]);
  for (const name of ["Range", "Repeat", "Empty"]) names.push([`Enumerable.${name}`, `cs${name}`]);
  for (const name of ["Days", "Hours", "Minutes", "Seconds", "Milliseconds", "Ticks"]) {
    names.push([`TimeSpan.From${name}`, `csFrom${name}`]);
  }
  return names;
}

/** `int.TryParse(text, out var n)`: returns the function that parses the text, and the value of `n` on failure. */
export function tryParseOf(type: string): readonly [string, string] | null {
  if (numberTypes.includes(type)) return ["csTryInteger", "0"];
  if (doubleTypes.includes(type) || type === "Double") return ["csTryDouble", "0"];
  if (type === "decimal" || type === "Decimal") return ["csTryDecimal", "0"];
  if (type === "bool" || type === "Boolean") return ["csTryBoolean", "false"];
  return type === "DateTime" ? ["csTryDate", '"0001-01-01T00:00:00.0000000"'] : null;
}

/** Static methods, by lower-cased name: `String` and `string` are the same. */
export const staticNames: ReadonlyMap<string, string> = new Map(
  statics().map(([name, known]) => [name.toLowerCase(), known]),
);

const constants: ReadonlyMap<string, string> = new Map([
  ["string.empty", '""'],
  ["datetime.minvalue", '"0001-01-01T00:00:00.0000000"'],
  ["datetime.maxvalue", '"9999-12-31T23:59:59.9999999"'],
  ["timespan.zero", '"00:00:00"'],
  ["int.maxvalue", "2147483647"],
  ["int.minvalue", "-2147483648"],
  ["long.maxvalue", 'csLiteral("9223372036854775807", false)'],
  ["long.minvalue", 'csLiteral("-9223372036854775808", false)'],
  ["math.pi", "3.141592653589793"],
  ["math.e", "2.718281828459045"],
  ["double.nan", "NaN"],
]);

/** Types whose values are represented by their names. */
const enumerations: ReadonlySet<string> = new Set([
  "DateTimeKind",
  "DayOfWeek",
  "Encoding",
  "FieldIndexing",
  "FieldStorage",
  "FieldTermVector",
  "MidpointRounding",
  "RegexOptions",
  "StringComparison",
  "StringSplitOptions",
]);

/** Returns the value of `Type.Name` in the script, or null. */
export function staticValues(type: string, name: string): string | null {
  if (enumerations.has(type)) return JSON.stringify(name);
  return constants.get(`${type}.${name}`.toLowerCase()) ?? null;
}
