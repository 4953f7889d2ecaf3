/** The order of scores and the values of Lucene scores, as in the replies of RavenDB 7.2.7. */
import { afterEach, describe, expect, it } from "vitest";
import { setWorkLimits, workLimits } from "../../../../engine/base/scheduling/work-budget.ts";
import { closeDatabases, openDatabase, putAll, query } from "../../../support/open-database.ts";

afterEach(closeDatabases);

/** A text with `apple` `count` times, then other words up to the length. */
function textOf(frequency: number, length: number): string {
  return Array.from({ length }, (_, i) => (i < frequency ? "apple" : `filler${i % 7}`)).join(" ");
}

describe("order by score()", () => {
  it("counts occurrences, not the length of the text; equal scores keep their order", async () => {
    const database = await openDatabase();
    const inserted =
      "t2l500 t5l100 t1l1 t50l50 t10l200 t1l10 t2l10 t20l20 t1l500 t3l30 t1l100 t1l3 t2l2 t10l10 t2l100 t3l3 t5l5";
    for (const id of inserted.split(" ")) {
      const [, frequency, length] = /^t(\d+)l(\d+)$/.exec(id) as RegExpExecArray;
      await putAll(database, "P", { [id]: { Text: textOf(Number(frequency), Number(length)) } });
    }
    const idsOf = async (words: string) => {
      const { ids } = await query(
        database,
        `from P where search(Text, '${words}') order by score()`,
      );
      return ids.join(" ");
    };
    expect(await idsOf("apple")).toBe(
      "t50l50 t20l20 t10l200 t10l10 t5l100 t5l5 t3l30 t3l3 t2l500 t2l10 t2l2 t2l100 t1l1 t1l10 t1l500 t1l100 t1l3",
    );
    expect(await idsOf("filler1")).toBe(
      "t2l500 t1l500 t10l200 t1l100 t5l100 t2l100 t3l30 t1l10 t2l10 t1l3",
    );
    expect(await idsOf("apple filler6")).toBe(
      "t2l500 t1l500 t10l200 t5l100 t2l100 t1l100 t3l30 t2l10 t1l10 t50l50 t20l20 t10l10 t5l5 t3l3 t2l2 t1l1 t1l3",
    );
  });

  it("changes order at the same boosts as RavenDB", async () => {
    const database = await openDatabase();
    const tags = ["t1", "t3", "t8"];
    const counts = [1, 3, 8];
    for (const [i, tag] of tags.entries()) {
      for (let n = 0; n < (counts[i] as number); n++) {
        await putAll(database, "P", { [`${tag}-${n}`]: { Text: tag, Tags: [tag, tag] } });
      }
    }
    for (let n = 12; n < 100; n++) await putAll(database, "P", { [`other-${n}`]: {} });
    const first = async (condition: string) => {
      const { ids } = await query(database, `from P where ${condition} order by score() limit 1`);
      return ids[0]?.slice(0, 2);
    };
    const turns = async (at: number, one: string, of: (boost: number) => string, other: string) => {
      expect(await first(of(at * 0.9999))).toBe(one);
      expect(await first(of(at * 1.0001))).toBe(other);
    };
    const words = (tag: string) => `search(Text, '${tag}')`;
    await turns(1.43248, "t1", (m) => `${words("t1")} or boost(${words("t3")}, ${m})`, "t3");
    await turns(2.61835, "t1", (m) => `${words("t1")} or boost(${words("t8")}, ${m})`, "t8");
    await turns(0.725693, "t3", (m) => `boost(${words("t1")}, ${m}) or ${words("t3")}`, "t1");
    await turns(
      2 * 1.67378,
      "t1",
      (m) => `boost(${words("t1")}, 2) or boost(${words("t3")}, ${m})`,
      "t3",
    );
    await turns(1.43248, "t1", (m) => `Text = 't1' or boost(Text = 't3', ${m})`, "t3");
    // A value that occurs twice in an entry counts twice.
    await turns(3.34756, "t1", (m) => `Tags = 't1' or boost(Text = 't3', ${m})`, "t3");
  });

  // The boosts at which RavenDB 7.2.7 gives the entry with E the score of the condition.
  it.each<[string, number]>([
    ["Name = 'abc'", 0.828393],
    ["Name = 'abc' or Age = 5", 2.82823],
    ["Rate = 2.5", 1],
    ["Flag = true", 0.744482],
    ["Nil = null", 0.828393],
    ["Age > 6", 0.828393],
    ["Age between 6 and 7", 0.828393],
    ["Age in (5, 6)", 0.828393],
    ["Name > 'abd'", 0.828393],
    ["startsWith(Name, 'ab')", 0.828393],
    ["endsWith(Name, 'yz')", 0.828393],
    ["regex(Name, '^ab')", 0.828393],
    ["Name in ('abc', 'xyz')", 0.828393],
    ["Tags = 't1'", 1.3298],
    ["exists(Name)", 0.62312],
    ["search(Text, 'red')", 0.514153],
    ["search(Text, 'red blue')", 1.64196],
    ["search(Text, 'red blue', and)", 1.64196],
    ["boost(Age > 6, 2)", 1.56714],
    ["boost(startsWith(Name, 'ab'), 2)", 1.56714],
    ["boost(Name = 'abc' or Name = 'xyz', 2)", 1.56714],
  ])("weighs %s", async (condition, boost) => {
    const database = await openDatabase();
    const documents: Record<string, object> = { one: { E: "e1" } };
    for (let n = 0; n < 8; n++) {
      documents[`d${n}`] = {
        Name: ["abc", "abd", "abe", "xyz"][n % 4],
        Age: 5 + (n % 4),
        Rate: 1.5 + n,
        Flag: n < 3,
        Nil: n < 2 ? null : "v",
        Text: `red green ${n % 2 === 1 ? "blue" : "gray"}`,
        Tags: [`t${n % 3}`, `u${n}`, `t${n % 3}`],
      };
    }
    for (let n = 9; n < 100; n++) documents[`other${n}`] = { Z: 1 };
    await putAll(database, "P", documents);
    const isOneFirst = async (factor: number) => {
      const where = `boost(E = 'e1', ${factor}) or (${condition})`;
      const { ids } = await query(database, `from P where ${where} order by score() limit 1`);
      return ids[0] === "one";
    };
    expect(await isOneFirst(boost * 0.9999)).toBe(false);
    expect(await isOneFirst(boost * 1.0001)).toBe(true);
    // The same with dead entries.
    await putAll(database, "P", { d7: documents["d3"] as object, other9: { Z: 2 } });
    await putAll(database, "P", { d7: documents["d7"] as object });
    expect(await isOneFirst(boost * 0.9999)).toBe(false);
    expect(await isOneFirst(boost * 1.0001)).toBe(true);
  });

  it("holds no memory of entries that lack a word of a phrase", async () => {
    const database = await openDatabase();
    await database.queries.administration.deploy(
      [
        {
          Name: "L",
          Maps: ["from u in docs.P select new { u.Text, u.City }"],
          Fields: { Text: { Indexing: "Search" } },
          Configuration: { "Indexing.Static.SearchEngineType": "Lucene" },
        },
      ],
      true,
    );
    const documents: Record<string, object> = { both: { Text: "apple pear", City: "Rome" } };
    for (let n = 0; n < 100; n++) {
      documents[`d${n}`] = { Text: "apple ".repeat(1000), City: "Rome" };
    }
    await putAll(database, "P", documents);
    const text = `from index 'L' where search(Text, '"apple pear"') or City = 'Rome' order by score()`;
    await query(database, text);
    const limits = workLimits;
    // Less than the places of "apple" in all entries.
    setWorkLimits({ ...limits, bytesMax: 500_000 });
    try {
      const { ids } = await query(database, text);
      expect([ids[0], ids.length]).toEqual(["both", 101]);
    } finally {
      setWorkLimits(limits);
    }
  });

  it("reports Lucene scores", async () => {
    const database = await openDatabase();
    const definition = {
      Name: "L",
      Maps: ["from u in docs.P select new { u.Text, u.City, u.Age }"],
      Fields: { Text: { Indexing: "Search" } },
      Configuration: { "Indexing.Static.SearchEngineType": "Lucene" },
    };
    await database.queries.administration.deploy([definition], true);
    const created: [number, number][] = [
      [1, 1],
      [1, 3],
      [1, 10],
      [1, 100],
      [2, 2],
      [2, 10],
      [2, 100],
      [3, 3],
      [3, 30],
      [5, 5],
      [10, 10],
      [10, 200],
    ];
    for (const [frequency, length] of created) {
      const id = `t${frequency}l${length}`;
      const City = id.length % 2 === 1 ? "Rome" : "Oslo";
      await putAll(database, "P", {
        [id]: { Text: textOf(frequency, length), City, Age: id.length },
      });
    }
    const scoresOf = async (condition: string) => {
      const { rows } = await query(database, `from index 'L' where ${condition} order by score()`);
      return rows.map((row) => {
        const reported = row["@metadata"] as { "@id": string; "@index-score": number };
        return `${reported["@id"]}:${reported["@index-score"].toPrecision(5)}`;
      });
    };
    expect((await scoresOf("search(Text, 'apple')")).slice(0, 4)).toEqual([
      "t10l10:2.9092",
      "t10l200:2.9092",
      "t5l5:2.0571",
      "t3l3:1.5934",
    ]);
    expect((await scoresOf("search(Text, 'apple filler1')")).slice(0, 9)).toEqual([
      "t10l200:7.7037",
      "t2l100:5.1125",
      "t1l100:5.0583",
      "t3l30:3.2246",
      "t1l10:2.1669",
      "t2l10:1.8885",
      "t1l3:1.6798",
      "t10l10:0.79662",
      "t5l5:0.56330",
    ]);
    expect(await scoresOf("City = 'Rome' or Age = 5")).toEqual([
      "t1l10:2.1254",
      "t2l10:2.1254",
      "t3l30:2.1254",
      "t10l200:0.82746",
    ]);
    expect(await scoresOf("City = 'Rome' or boost(Age = 5, 3)")).toEqual([
      "t1l10:1.8421",
      "t2l10:1.8421",
      "t3l30:1.8421",
      "t10l200:0.49709",
    ]);
    expect(new Set((await scoresOf("Age > 4")).map((one) => one.split(":")[1]))).toEqual(
      new Set(["1.0000"]),
    );
  });

  it("reports the scores of RavenDB 7.2.7, in 32 bits, for an index for Lucene", async () => {
    const database = await openDatabase();
    const definition = {
      Name: "L",
      Maps: ["from r in docs.Reviews select new { r.Text, r.Title, r.Stars }"],
      Fields: {
        Text: { Indexing: "Search" },
        Title: { Indexing: "Search", Analyzer: "WhitespaceAnalyzer" },
      },
      Configuration: { "Indexing.Static.SearchEngineType": "Lucene" },
    };
    await database.queries.administration.deploy([definition], true);
    const texts: readonly (readonly [Text: string | string[], Title: string, Stars: number])[] = [
      ["Great camera, poor battery life. Battery drains overnight.", "Battery woes", 3],
      ["The battery lasts for days; the camera is mediocre.", "Long lasting", 4],
      ["Screen cracked on day one! Would not buy again.", "Cracked screen", 1],
      [["First impression: superb", "Second thoughts: superb still"], "SUPERB!!!", 5],
    ];
    for (const [n, [Text, Title, Stars]] of texts.entries()) {
      await putAll(database, "Reviews", { [`r${n + 1}`]: { Text, Title, Stars } });
    }
    const scoresOf = async (condition: string) => {
      const { rows } = await query(database, `from index 'L' where ${condition} order by score()`);
      const scores = rows.map((row) => {
        const reported = row["@metadata"] as { "@id": string; "@index-score": number };
        return [reported["@id"], reported["@index-score"]];
      });
      return Object.fromEntries(scores) as Record<string, number>;
    };
    const measured: Record<string, Record<string, number>> = {
      "Text = 'battery'": { r1: 1.8210574388504028, r2: 1.287682056427002 },
      "search(Title, 'Battery')": { r1: 1.6931471824645996 },
      "search(Title, 'SUPERB!!!')": { r4: 1.6931471824645996 },
      "search(Text, 'superb superb')": { r4: 3.38629412651062 },
      "search(Text, '\"first impression\"')": { r4: 3.386294364929199 },
      "search(Text, 'bat* camera')": { r1: 1.630375862121582, r2: 1.630375862121582 },
      "search(Text, 'bat*')": { r1: 1, r2: 1 },
      "boost(search(Text, 'camera'), 3) or search(Text, 'days')": {
        r2: 1.859053134918213,
        r1: 0.5896877646446228,
      },
      "fuzzy(Text = 'batery', 0.6)": { r1: 1.8210572004318237, r2: 1.2876819372177124 },
      "proximity(search(Text, 'battery camera'), 10)": {
        r2: 1.4868870973587036,
        r1: 1.287682056427002,
      },
      "lucene(Text, 'battery AND camera')": { r1: 2.1982107162475586, r2: 1.8210574388504028 },
      "lucene(Text, '\"battery life\"')": { r1: 2.9808292388916016 },
      "lucene(Text, '\"life battery\"~5')": { r1: 2.9808292388916016 },
      "lucene(Text, 'batery~ days')": { r2: 2.0924415588378906, r1: 0.411753386259079 },
      "lucene(Text, 'camera^3 days')": { r2: 1.859053134918213, r1: 0.5896877646446228 },
      "lucene(Text, '(camera battery) OR days')": { r2: 2.4865634441375732, r1: 0.804939866065979 },
      "lucene(Text, 'battery life')": { r1: 2.4500527381896973, r2: 0.389748215675354 },
      "lucene(Text, 'day~ days~')": { r2: 1.5143969058990479, r3: 1.5143969058990479 },
      "lucene(Text, '+battery -drains')": { r2: 1.287682056427002 },
      "lucene(Text, '[a TO c]')": { r1: 1, r2: 1, r3: 1 },
    };
    for (const [condition, scores] of Object.entries(measured)) {
      expect(await scoresOf(condition), condition).toEqual(scores);
    }
  });
});
