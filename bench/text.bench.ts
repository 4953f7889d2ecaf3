/**
 * Full-text search over articles of about a hundred words, whose frequencies follow Zipf's law: two words, prefixes
 * and similar spellings, in an automatic and in a deployed index, with the memory of each relative to the bytes of
 * the texts.
 *
 * JACKDAW_BENCH_DOCUMENTS: number of articles.
 */
import { createHash } from "node:crypto";
import type { OpenDatabase } from "../engine/api/database/open-database.ts";
import { type BenchSize, printer, seeded } from "./harness.ts";
import {
  costText,
  fill,
  grownBy,
  openBench,
  runQuery,
  settledTotal,
  timesOf,
  timesText,
} from "./opened-database.ts";

const syllables =
  "ba be bi bo da de di do fa fe fi fo ga go ha he ka ke ki ko la le li lo ma me mi mo na ne ni no pa pe po ra re ri ro sa se si so ta te ti to va ve vi vo za zo".split(
    " ",
  );

/** Words by rank; frequent words are short. */
class Vocabulary {
  readonly words: readonly string[];
  /** Cumulative probability of the ranks. */
  readonly #sums: Float64Array;

  constructor(size: number) {
    const random = seeded(7);
    const known = new Set<string>();
    while (known.size < size) {
      const length = 2 + Math.min(3, Math.floor(Math.log10(known.size + 10) / 1.4));
      let word = "";
      for (let i = 0; i < length; i++) word += syllables[random() % syllables.length];
      known.add(known.has(word) ? `${word}${syllables[random() % syllables.length]}` : word);
    }
    this.words = [...known];
    this.#sums = new Float64Array(size);
    let sum = 0;
    for (let rank = 0; rank < size; rank++) {
      sum += 1 / (rank + 1);
      this.#sums[rank] = sum;
    }
  }

  /** Returns a random word with the frequency of its rank. */
  drawn(random: () => number): string {
    const sums = this.#sums;
    const sought = (random() / 2 ** 32) * (sums[sums.length - 1] as number);
    let low = 0;
    let high = sums.length - 1;
    while (low < high) {
      const middle = (low + high) >>> 1;
      if ((sums[middle] as number) < sought) low = middle + 1;
      else high = middle;
    }
    return this.words[low] as string;
  }

  ranked(random: () => number, from: number, to: number): string {
    const size = Math.min(to, this.words.length) - from;
    return this.words[from + (random() % size)] as string;
  }
}

const definition = {
  Name: "Articles/Text",
  Maps: ["map('Articles', a => ({ Text: a.Text, Year: a.Year }))"],
  Fields: { Text: { Indexing: "Search" } },
};
const deployed = "from index 'Articles/Text'";
const automatic = "from Articles";

/** Runs the bench; equal hashes mean equal results. */
export async function run(size: BenchSize): Promise<string[]> {
  const given = Number(process.env["JACKDAW_BENCH_DOCUMENTS"] ?? 1_000_000);
  const count = size === "smoke" ? 1_000 : given;
  const rounds = size === "smoke" ? 1 : 3;
  const { lines, print } = printer();
  const vocabulary = new Vocabulary(size === "smoke" ? 20_000 : 200_000);
  const database = await openBench();
  let textBytes = 0;
  await fill(
    database,
    articles(vocabulary, count, (text) => {
      textBytes += text.length;
    }),
  );
  print(`${count} articles, ${(textBytes / 1e6).toFixed(1)} MB of text`);
  const hash = createHash("sha256");
  const builds: Readonly<Record<string, () => Promise<unknown>>> = {
    [deployed]: async () => {
      await database.queries.administration.deploy([definition], true);
      await settledTotal(database, `${deployed} where search(Text, 'x')`);
    },
    [automatic]: () => settledTotal(database, `${automatic} where search(Text, 'x')`),
  };
  for (const [source, build] of Object.entries(builds)) {
    const { cost, bytes } = await grownBy(build);
    const share = (bytes / textBytes).toFixed(2);
    print(
      `${source}: built in ${costText(cost)}, ${(bytes / 1e6).toFixed(0)} MB: ${share}x of the text`,
    );
    for (const [name, texts] of Object.entries(questions(vocabulary, size))) {
      const queries = texts.map((text) => `${source} where ${text}`);
      await settledTotal(database, queries[0] as string); // each question has several texts
      print(`${source} ${name}: ${timesText(await timesOf(database, queries, rounds))}`);
      for (const text of queries) hash.update(await shown(database, text));
    }
  }
  await database.close();
  print(`result ${hash.digest("hex").slice(0, 16)}`);
  return lines;
}

async function shown(database: OpenDatabase, text: string): Promise<string> {
  const { outcome, rows } = await runQuery(database, text);
  const ids = rows.map((row) => /"@id":"([^"]*)"/.exec(row)?.[1]);
  return `${text}: ${outcome.totalResults}, ${ids.join(" ")}\n`;
}

function* articles(
  vocabulary: Vocabulary,
  count: number,
  note: (text: string) => void,
): Generator<readonly [string, string]> {
  const random = seeded(1);
  for (let n = 0; n < count; n++) {
    const words: string[] = [];
    const length = 60 + (random() % 81);
    for (let i = 0; i < length; i++) words.push(vocabulary.drawn(random));
    const text = words.join(" ");
    note(text);
    const year = 1990 + (random() % 35);
    yield [
      `articles/${n}`,
      `{"Text":"${text}","Year":${year},"@metadata":{"@collection":"Articles"}}`,
    ];
  }
}

/** Returns the word with its third character doubled. */
function misspelled(word: string): string {
  return word.slice(0, 3) + word.slice(2);
}

/** Returns conditions by type. */
function questions(vocabulary: Vocabulary, size: BenchSize): Readonly<Record<string, string[]>> {
  const random = seeded(3);
  const count = size === "smoke" ? 2 : 25;
  const made = (make: () => string) => Array.from({ length: count }, make);
  const drawn = () => vocabulary.drawn(random);
  const ranked = (from: number, to: number) => vocabulary.ranked(random, from, to);
  const both = (one: string, other: string) => `search(Text, '${one} ${other}')`;
  const best = "order by score() limit 10";
  return {
    "two words by frequency, by score": made(() => `${both(drawn(), drawn())} ${best}`),
    "two words of ranks 50 to 2,000, by score": made(
      () => `${both(ranked(50, 2_000), ranked(50, 2_000))} ${best}`,
    ),
    "two of the 20 most frequent words, by score": made(
      () => `${both(ranked(0, 20), ranked(0, 20))} ${best}`,
    ),
    "two words by frequency, both, by score": made(
      () => `search(Text, '${drawn()} ${drawn()}', and) ${best}`,
    ),
    "two words by frequency, boosted": made(() => `boost(${both(drawn(), drawn())}, 2) limit 10`),
    "two words by frequency, unordered": made(() => `${both(drawn(), drawn())} limit 10`),
    "a phrase of two words": made(
      () => `search(Text, '"${ranked(0, 300)} ${ranked(0, 300)}"') limit 10`,
    ),
    "a prefix of three characters": made(() => `search(Text, '${drawn().slice(0, 3)}*') limit 10`),
    "a prefix of three characters, by score": made(
      () => `search(Text, '${ranked(50, 20_000).slice(0, 3)}*') ${best}`,
    ),
    "a misspelled word": made(
      () => `fuzzy(Text = '${misspelled(ranked(50, 20_000))}', 0.7) limit 10`,
    ),
    "startsWith with four characters": made(
      () => `startsWith(Text, '${ranked(50, 20_000).slice(0, 4)}') limit 10`,
    ),
    "a word and a range of years, by score": made(
      () => `search(Text, '${drawn()}') and Year > 2015 ${best}`,
    ),
  };
}
