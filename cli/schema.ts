/** Schema of a database for the prompt: collections, and the fields of sampled documents. */
import { type Client, inDatabase } from "./client.ts";

const sampleSize = 50;

interface Field {
  readonly name: string;
  /** Types, for example `number or null`. */
  readonly types: string;
  /** Number of sampled documents with the field. */
  readonly count: number;
}

export class Schema {
  readonly #client: Client;
  readonly #database: string;
  readonly #fields = new Map<string, readonly Field[]>();
  #collections: Readonly<Record<string, number>> | undefined;

  constructor(client: Client, database: string) {
    this.#client = client;
    this.#database = database;
  }

  /** Returns the number of documents of each collection, cached unless `isFresh`. */
  async collections(isFresh = false): Promise<Readonly<Record<string, number>>> {
    if (this.#collections === undefined || isFresh) {
      const path = inDatabase(this.#database, "collections/stats");
      const { Collections } = (await this.#client.json(path)) as {
        Collections: Readonly<Record<string, number>>;
      };
      this.#collections = Collections;
    }
    return this.#collections;
  }

  /** Returns the top-level fields, and the fields of objects in them as `Address.City`. */
  async fields(collection: string, isFresh = false): Promise<readonly Field[]> {
    const known = this.#fields.get(collection);
    if (known !== undefined && !isFresh) return known;
    const path = inDatabase(this.#database, "collections/docs");
    const query = { name: collection, pageSize: sampleSize };
    const { Results } = (await this.#client.json(path, { query })) as { Results: object[] };
    const found = new Map<string, { types: Set<string>; count: number }>();
    for (const { "@metadata": _, ...fields } of Results as { "@metadata"?: unknown }[]) {
      note(found, "", fields);
    }
    const fields = [...found].map(([name, { types, count }]) => ({
      name,
      types: [...types].join(" or "),
      count,
    }));
    this.#fields.set(collection, fields);
    return fields;
  }
}

function note(
  found: Map<string, { types: Set<string>; count: number }>,
  before: string,
  value: object,
): void {
  for (const [key, one] of Object.entries(value)) {
    const name = before + key;
    const field = found.get(name) ?? { types: new Set(), count: 0 };
    found.set(name, field);
    field.count++;
    field.types.add(one === null ? "null" : Array.isArray(one) ? "array" : typeof one);
    const isObject = typeof one === "object" && one !== null && !Array.isArray(one);
    if (isObject && before === "") note(found, `${name}.`, one as object);
  }
}
