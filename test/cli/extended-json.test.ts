import { expect, test } from "vitest";
import { fromExtendedJson } from "../../cli/extended-json.ts";

test.each([
  ['{"$oid":"5f0a"}', '"5f0a"'],
  ['{"$date":"2026-01-02T03:04:05Z"}', '"2026-01-02T03:04:05Z"'],
  ['{"$date":{"$numberLong":"-1000"}}', '"1969-12-31T23:59:59.000Z"'],
  ['{"$date":1767323045000}', '"2026-01-02T03:04:05.000Z"'],
  ['{"$date":{"$numberLong":"9e99"}}', "9e99"],
  ['{"$numberLong":"9007199254740993"}', "9007199254740993"],
  ['{"$numberInt":"7"}', "7"],
  ['{"$numberDouble":"1.0"}', "1.0"],
  ['{"$numberDouble":"NaN"}', '"NaN"'],
  ['{"$numberDecimal":"0.10000000000000000000001"}', "0.10000000000000000000001"],
  ['{"$binary":{"base64":"AQI=","subType":"00"}}', '"AQI="'],
  ['{"$binary":"AQI=","$type":"00"}', '"AQI="'],
  ['{"$uuid":"3b241101-e2bb-4255-8caf-4136c566a962"}', '"3b241101-e2bb-4255-8caf-4136c566a962"'],
  ['{"$timestamp":{"t":1,"i":2}}', '{"t":1,"i":2}'],
  ['{"$regularExpression":{"pattern":"a\\"b","options":"i"}}', '"/a\\"b/i"'],
  ['{"$symbol":"s"}', '"s"'],
  ['{"$undefined":true}', "null"],
  ['{"$minKey":1}', "null"],
  ['{"$ref":"users","$id":{"$oid":"1"}}', '{"$ref":"users","$id":"1"}'],
  [
    '{"a":[{"$numberInt":"1"},{"b":{"$oid":"2"}},1.50],"c":null}',
    '{"a":[1,{"b":"2"},1.50],"c":null}',
  ],
  ["{}", "{}"],
  ['"$oid"', '"$oid"'],
])("converts %s to %s", (given, expected) => {
  expect(fromExtendedJson(given)).toBe(expected);
});
