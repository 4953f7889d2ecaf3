/** The official client's vector searches, over automatic indexes and its index classes. */
import { AbstractJavaScriptIndexCreationTask, type DocumentStore } from "ravendb";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { closeStores, openStore, startServer, ways } from "../support/client-store.ts";

class Picture {
  name: string;
  vector: number[];
  base64: string;
  constructor(name: string, vector: number[], base64: string) {
    this.name = name;
    this.vector = vector;
    this.base64 = base64;
  }
}

function picture(name: string, vector: number[]): Picture {
  return new Picture(name, vector, base64Of(vector));
}

function base64Of(vector: number[]): string {
  return Buffer.from(Float32Array.from(vector).buffer).toString("base64");
}

class PicturesByVector extends AbstractJavaScriptIndexCreationTask<
  Picture,
  { name: string; vector: unknown }
> {
  constructor() {
    super();
    const { createVector } = this.mapUtils() as unknown as {
      createVector: (value: unknown) => unknown;
    };
    this.map(Picture, (picture) => ({
      name: picture.name,
      vector: createVector(picture.vector),
    }));
    this.vectorField("vector", {
      dimensions: 3,
      sourceEmbeddingType: "Single",
      destinationEmbeddingType: "Single",
    });
  }
}

afterAll(closeStores);

describe.each(ways)("a vector search $name", (way) => {
  let store: DocumentStore;
  beforeAll(async () => {
    store = await openStore(await startServer(way));
    const session = store.openSession();
    await session.store(picture("red", [1, 0, 0]), "pictures/1");
    await session.store(picture("orange", [0.9, 0.4, 0]), "pictures/2");
    await session.store(picture("green", [0, 1, 0]), "pictures/3");
    await session.store(picture("blue", [0, 0, 1]), "pictures/4");
    await session.saveChanges();
    await new PicturesByVector().execute(store);
  });

  const pictures = () => store.openSession().query<Picture>(Picture).waitForNonStaleResults();
  const names = (found: readonly Picture[]) => found.map(({ name }) => name);

  test("finds the nearest, best first", async () => {
    const all = pictures().vectorSearch("vector", (value) => value.byEmbedding([1, 0.1, 0.05]));
    expect(names(await all.all())).toEqual(["red", "orange", "green", "blue"]);
    const near = pictures().vectorSearch("vector", (value) => value.byEmbedding([1, 0.1, 0]), {
      similarity: 0.9,
      numberOfCandidates: 20,
    });
    expect(names(await near.all())).toEqual(["red", "orange"]);
    const exact = pictures().vectorSearch("vector", (value) => value.byEmbedding([0, 1, 0.1]), {
      numberOfCandidates: 2,
      isExact: true,
    });
    expect(names(await exact.all())).toEqual(["green", "orange"]);
  });

  test("accepts base64, several vectors, and a document", async () => {
    const green = base64Of([0, 1, 0]);
    const encoded = pictures().vectorSearch(
      (field) => field.withBase64("base64"),
      (value) => value.byBase64(green),
      { similarity: 0.9 },
    );
    expect(names(await encoded.all())).toEqual(["green"]);
    const several = pictures().vectorSearch(
      "vector",
      (value) =>
        value.byEmbeddings([
          [0, 1, 0],
          [0, 0, 1],
        ]),
      { similarity: 0.99 },
    );
    expect(names(await several.all()).sort()).toEqual(["blue", "green"]);
    const like = pictures().vectorSearch("vector", (value) => value.forDocument("pictures/1"), {
      similarity: 0.9,
    });
    expect(names(await like.all())).toEqual(["red", "orange"]);
  });

  test("supports quantized fields, and additional conditions", async () => {
    const bytes = pictures()
      .vectorSearch(
        (field) => field.withEmbedding("vector").targetQuantization("Int8"),
        (value) => value.byEmbedding([1, 0.2, 0]),
        { similarity: 0.7 },
      )
      .andAlso()
      .whereNotEquals("name", "red");
    expect(names(await bytes.all())).toEqual(["orange"]);
  });

  test("finds vectors in a static index", async () => {
    const found = store
      .openSession()
      .query<Picture>(Picture, PicturesByVector)
      .waitForNonStaleResults()
      .vectorSearch(
        (field) => field.withField("vector"),
        (value) => value.byEmbedding([0.1, 0, 1]),
        { similarity: 0.7 },
      );
    expect(names(await found.all())).toEqual(["blue"]);
  });

  test("of text requires a model", async () => {
    const text = pictures().vectorSearch(
      (field) => field.withText("name"),
      (value) => value.byText("reddish"),
    );
    await expect(text.all()).rejects.toThrow(/no model that makes embeddings of text/);
  });
});
