/** The functions of patch scripts with their help. test/studio/editor/script-functions.test.ts compares them with the server's. */

interface ScriptFunction {
  readonly name: string;
  /** Parameters, in parentheses. */
  readonly parameters: string;
  readonly help: string;
}

const table: readonly (readonly [name: string, parameters: string, help: string])[] = [
  [
    "load",
    "(id)",
    "Returns the document, or undefined if it does not exist; a list for a list of ids.",
  ],
  ["loadPath", "(document, path)", "Loads the documents whose ids are at a path of a document."],
  [
    "put",
    "(id, document)",
    "Stores a document. An id that ends with / is completed. Returns the id.",
  ],
  ["del", "(id)", "Deletes a document."],
  ["id", "(document)", "Returns the id of a document."],
  [
    "getMetadata",
    "(document)",
    "Returns the metadata, which can be changed: getMetadata(this)['@expires'] = …",
  ],
  ["metadataFor", "(document)", "Returns the metadata, as getMetadata does."],
  [
    "lastModified",
    "(document)",
    "Returns the time of the last change, in milliseconds since 1970.",
  ],
  ["include", "(id)", "Includes a document in the reply."],
  ["includes.document", "(id)", "Includes a document in the reply."],
  ["includes.cmpxchg", "(key)", "Includes a compare-exchange value in the reply."],
  ["counter", "(document, name)", "Returns the value of a counter, or null."],
  ["counterRaw", "(document, name)", "Returns the values of a counter by node."],
  [
    "incrementCounter",
    "(document, name, by)",
    "Adds to a counter, 1 by default, and creates it if needed.",
  ],
  ["deleteCounter", "(document, name)", "Deletes a counter."],
  [
    "timeseries",
    "(document, name)",
    "Returns a time series with append(time, values, tag), increment(time, values), delete(from, to), get(from, to) and getStats().",
  ],
  ["cmpxchg", "(key)", "Returns a compare-exchange value, or null."],
  ["archived.archiveAt", "(document, date)", "Sets the time at which a document is archived."],
  ["archived.unarchive", "(document)", "Marks a document as not archived."],
  [
    "startsWith",
    "(text, start)",
    "Returns whether a text begins with another one, in any letter case.",
  ],
  ["endsWith", "(text, end)", "Returns whether a text ends with another one, in any letter case."],
  ["regex", "(text, pattern)", "Returns whether a text matches a regular expression."],
  ["compareDates", "(a, b, operation)", "Compares two dates: 'Equal', 'LessThan', 'GreaterThan' …"],
  ["convertJsTimeToTimeSpanString", "(milliseconds)", "Formats a duration: 1.02:03:04."],
  [
    "convertToTimeSpanString",
    "(hours, minutes, seconds)",
    "Formats a duration: 02:03:04; also of ticks, or with days.",
  ],
  [
    "toStringWithFormat",
    "(value, format)",
    "Formats a number or a date with a .NET format: 'yyyy-MM-dd'.",
  ],
  [
    "scalarToRawString",
    "(document, field)",
    "Returns a field as stored: scalarToRawString(this, x => x.Total).",
  ],
  [
    "spatial.distance",
    "(latitude, longitude, latitude, longitude, unit)",
    "Returns the distance of two points, in kilometers or 'miles'.",
  ],
  ["Raven_Min", "(a, b)", "Returns the smaller of two values."],
  ["Raven_Max", "(a, b)", "Returns the larger of two values."],
  ["output", "(value, …)", "Prints values; Test shows them."],
  ["console.log", "(value, …)", "Prints values; Test shows them."],
];

export const scriptFunctions: readonly ScriptFunction[] = table.map(([name, parameters, help]) => ({
  name,
  parameters,
  help,
}));
