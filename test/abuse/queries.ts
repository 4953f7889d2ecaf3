/**
 * Abuse by queries: every search that a reader can make the server perform. See `run-abuse.ts` for how to write a case.
 *
 * A query is either answered or refused with an error that names a limit; either is acceptable here: what is measured
 * is the effect on others. Where the result is known it is checked.
 */
import assert from "node:assert/strict";
import { type AbuseCase, assertRefused } from "./abuse-case.ts";
import type { AbuseServer, Reply } from "./abuse-server.ts";
import { ask, assertAnsweredOrRefused, list } from "./query-abuse.ts";

const words = ["alpha", "beta", "gamma", "delta", "epsilon", "zeta", "eta", "theta", "iota"];

/** The n-th of some documents: numbers, words, a text of `a`s without a `b` behind them, and an id to load. */
function documentText(n: number): string {
  const text = Array.from({ length: 6 }, (_, i) => words[(n * (i + 3)) % words.length]);
  return JSON.stringify({
    N: n,
    Name: `name${n} ${text.join(" ")}`,
    Txt: `${"a".repeat(20 + (n % 60))}${n}`,
    Tag: words[n % words.length],
    Ref: `users/${(n * 7) % 20_000}`,
    Refs: [`users/${n % 1000}`, `users/${(n * 3) % 1000}`],
  });
}

/** Fills the database and makes the indexes that the attacks use. */
function filled(...queries: readonly string[]): (server: AbuseServer) => Promise<void> {
  return async (server) => {
    await server.fill(server.count(20_000, 5_000), documentText);
    for (const text of queries) {
      const reply = await ask(server, text, {}, { WaitForNonStaleResults: true });
      assert.equal(reply.status, 200, reply.text.slice(0, 300));
    }
  };
}

interface QueryAbuse extends Pick<AbuseCase, "name" | "isLong"> {
  /** Queries that make indexes before. */
  readonly indexes?: readonly string[];
  readonly setUp?: (server: AbuseServer) => Promise<void>;
  readonly attack: (server: AbuseServer) => Promise<Reply | readonly Reply[]>;
  /** Matches the message of a refusal; omitted: it names a limit of queries. */
  readonly limit?: RegExp;
  readonly check?: (replies: readonly Reply[], server: AbuseServer) => void;
}

function queryCase({ indexes, setUp, attack, limit, check, ...named }: QueryAbuse): AbuseCase {
  return {
    ...named,
    area: "queries",
    who: "reader",
    setUp: setUp ?? filled(...(indexes ?? [])),
    attack: async (server) => {
      const replies = await attack(server);
      return "status" in replies ? [replies] : replies;
    },
    check: (replies, server) => {
      assertAnsweredOrRefused(replies, limit);
      check?.(replies, server);
    },
  };
}

function totalOf(reply: Reply | undefined): number {
  return (JSON.parse(reply?.text ?? "{}") as { TotalResults?: number }).TotalResults ?? -1;
}

const byText = "from Users where Txt = 'x'";
const byName = "from Users where search(Name, 'x')";
const byNumber = "from Users where N = 1";

/** What runs over the terms of an index. */
const termCases: readonly QueryAbuse[] = [
  {
    name: "a regular expression of 1,600 copies over every document",
    indexes: [byText],
    attack: (server) => ask(server, "from Users where regex(Txt, '(a{1,40}){1,40}b')"),
    check: ([reply]) => assert.equal(totalOf(reply), 0),
  },
  {
    name: "a regular expression with very many states",
    indexes: [byText],
    attack: (server) => ask(server, "from Users where regex(Txt, '(a|b|1)*a(a|b|1){40}c')"),
  },
  {
    name: "300 regular expressions in one or",
    indexes: [byText],
    attack: (server) =>
      ask(
        server,
        `from Users where ${list(300, (n) => `regex(Txt, '(a{1,30}){1,30}b${n}')`).join(" or ")}`,
      ),
  },
  {
    name: "300 regular expressions in one and",
    indexes: [byText],
    attack: (server) =>
      ask(
        server,
        `from Users where ${list(300, (n) => `not regex(Txt, '(a{1,30}){1,30}b${n}')`).join(" and ")}`.replace(
          "where not",
          "where true and not",
        ),
      ),
  },
  {
    name: "a search of 3,000 wildcards",
    indexes: [byName],
    attack: (server) =>
      ask(server, "from Users where search(Name, $p)", {
        p: list(3_000, (n) => `*q${n}x*`).join(" "),
      }),
    check: ([reply]) => assert.equal(totalOf(reply), 0),
  },
  {
    name: "a search of 3,000 wildcards of which all must be found",
    indexes: [byName],
    attack: (server) =>
      ask(server, "from Users where search(Name, $p, and)", {
        p: list(3_000, (n) => `*a${"".padEnd(n % 3, "*")}`).join(" "),
      }),
  },
  {
    name: "2,000 searches of a wildcard in one or",
    indexes: [byName],
    attack: (server) =>
      ask(server, `from Users where ${list(2_000, (n) => `search(Name, '*${n}q*')`).join(" or ")}`),
  },
  {
    name: "2,000 searches of a wildcard in one and",
    indexes: [byName],
    attack: (server) =>
      ask(server, `from Users where ${list(2_000, () => "search(Name, '*a*')").join(" and ")}`),
  },
  {
    name: "1,000 endsWith, 1,000 startsWith",
    indexes: [byText],
    attack: (server) =>
      ask(
        server,
        `from Users where ${list(1_000, (n) => `endsWith(Txt, 'q${n}') or startsWith(Txt, 'a${n % 7}')`).join(" or ")}`,
      ),
  },
  {
    name: "1,000 fuzzy conditions",
    indexes: [byText],
    attack: (server) =>
      ask(
        server,
        `from Users where ${list(1_000, (n) => `fuzzy(Txt = '${"a".repeat(40 + (n % 20))}${n}', 0.3)`).join(" or ")}`,
      ),
  },
  {
    name: "a search for a text of 500,000 words",
    indexes: [byName],
    attack: (server) =>
      ask(server, "from Users where search(Name, $p)", {
        p: list(500_000, (n) => `w${n % 5000}`).join(" "),
      }),
  },
  {
    name: "a phrase of 100,000 words",
    indexes: [byName],
    attack: (server) =>
      ask(server, "from Users where search(Name, $p)", { p: `"${"alpha ".repeat(100_000)}"` }),
  },
  {
    name: "proximity of 2,000 words",
    indexes: [byName],
    attack: (server) =>
      ask(server, "from Users where proximity(search(Name, $p), 9)", {
        p: "alpha beta ".repeat(1_000),
      }),
  },
  {
    name: "lucene() of 20,000 clauses",
    isLong: true,
    indexes: [byName],
    attack: (server) =>
      ask(server, "from Users where lucene(Name, $p)", {
        p: list(20_000, (n) => `(*${n}*a* OR b${n}~0.4)`).join(" AND "),
      }),
  },
  {
    name: "2,000 ranges over all terms",
    indexes: [byNumber],
    attack: (server) =>
      ask(
        server,
        `from Users where ${list(2_000, (n) => `N between ${n} and ${1e9 + n}`).join(" or ")}`,
      ),
  },
  {
    name: "3,000 not of a range over all terms",
    indexes: [byNumber],
    attack: (server) =>
      ask(
        server,
        `from Users where ${list(3_000, (n) => `not (N > ${n})`).join(" or ")}`.replace(
          "where not",
          "where true and not",
        ),
      ),
  },
];

/** Long lists, many conditions, deep nesting, long texts. */
const sizeCases: readonly QueryAbuse[] = [
  {
    name: "in of 1,000,000 numbers in the text",
    indexes: [byNumber],
    attack: (server) =>
      ask(server, `from Users where N in (${list(1_000_000, (n) => n).join(",")})`),
  },
  {
    name: "in of 1,000,000 numbers in a parameter",
    indexes: [byNumber],
    attack: (server) => ask(server, "from Users where N in ($p)", { p: list(1_000_000, (n) => n) }),
  },
  {
    name: "in of 100,000 numbers in the text",
    indexes: [byNumber],
    attack: (server) => ask(server, `from Users where N in (${list(100_000, (n) => n).join(",")})`),
  },
  {
    name: "in of 100,000 texts in a parameter",
    indexes: [byText],
    attack: (server) =>
      ask(server, "from Users where Txt in ($p)", { p: list(100_000, (n) => `t${n}`) }),
    check: ([reply]) => assert.equal(totalOf(reply), 0),
  },
  {
    name: "all in of 10,000 numbers",
    indexes: [byNumber],
    attack: (server) => ask(server, "from Users where N all in ($p)", { p: list(10_000, () => 1) }),
  },
  {
    name: "ids in a list of 120,000",
    attack: (server) =>
      ask(server, "from Users where id() in ($p)", {
        p: list(120_000, (n) => `users/${n % 20_000}`),
      }),
  },
  {
    name: "100,000 conditions in one or",
    indexes: [byNumber],
    attack: (server) =>
      ask(server, `from Users where ${list(100_000, (n) => `N=${n}`).join(" or ")}`),
  },
  {
    name: "4,000 conditions in one or",
    indexes: [byNumber],
    attack: (server) =>
      ask(server, `from Users where ${list(4_000, (n) => `N=${n}`).join(" or ")}`),
  },
  {
    name: "3,000 unknown fields, which want a new index",
    attack: (server) =>
      ask(server, `from Users where ${list(3_000, (n) => `F${n}=1`).join(" or ")}`),
    check: ([reply]) => assertRefused(reply, [400], /limit/),
  },
  {
    name: "100,000 parentheses inside each other",
    attack: (server) =>
      ask(server, `from Users where ${"(".repeat(100_000)}N=1${")".repeat(100_000)}`),
    check: ([reply]) => assertRefused(reply, [400], /nested/),
  },
  {
    name: "parameters nested 100,000 deep",
    attack: (server) =>
      server.request(`${server.database}/queries`, {
        method: "POST",
        body: `{"Query":"from Users where N = $p","QueryParameters":{"p":${"[".repeat(100_000)}1${"]".repeat(100_000)}}}`,
      }),
  },
  {
    name: "parameters nested 5,000 deep",
    attack: (server) =>
      server.request(`${server.database}/queries`, {
        method: "POST",
        body: `{"Query":"from Users where N = $p","QueryParameters":{"p":${"[".repeat(5_000)}1${"]".repeat(5_000)}}}`,
      }),
  },
  {
    name: "a text of 20 MB",
    attack: (server) => ask(server, `from Users where Name = '${"x".repeat(20_000_000)}'`),
  },
  {
    name: "a text of 1,000,000 comments",
    attack: (server) => ask(server, `from Users ${"/*x*/ ".repeat(150_000)} where N = 1`),
  },
  {
    name: "a parameter of 20 MB",
    attack: (server) => ask(server, "from Users where Name = $p", { p: "x".repeat(20_000_000) }),
  },
  {
    name: "100,000 parameters",
    attack: (server) =>
      ask(
        server,
        "from Users where N = $p1",
        Object.fromEntries(list(100_000, (n) => [`p${n}`, n])),
      ),
  },
  {
    name: "a select of 20,000 fields",
    attack: (server) =>
      ask(server, `from Users select ${list(20_000, (n) => `F${n}`).join(", ")} limit 100`),
  },
  {
    name: "2,000 selected fields of every document",
    attack: (server) => ask(server, `from Users select ${list(2_000, (n) => `F${n}`).join(", ")}`),
  },
  {
    name: "order by 5,000 fields",
    attack: (server) =>
      ask(server, `from Users order by ${list(5_000, (n) => `F${n}`).join(", ")}`),
  },
  {
    name: "250 declared functions",
    attack: (server) =>
      ask(
        server,
        `${list(250, (n) => `declare function f${n}(u) { return { A: u.N } }`).join(" ")} from Users as u select f1(u)`,
      ),
  },
  {
    name: "20,000 includes",
    attack: (server) =>
      ask(server, `from Users limit 100 include ${list(10_000, (n) => `F${n}`).join(", ")}`),
  },
  {
    name: "a filter of 4,000 conditions",
    attack: (server) =>
      ask(server, `from Users filter ${list(4_000, (n) => `N = ${-n - 1}`).join(" or ")}`),
  },
  {
    name: "a mistake at the end of a text of a megabyte",
    attack: (server) => ask(server, `from Users where N in (${list(150_000, (n) => n).join(",")}`),
    check: ([reply]) => assert.equal(reply?.status, 400),
  },
];

/** Rows, and what comes with them. */
const rowCases: readonly QueryAbuse[] = [
  {
    name: "order by a field, an id, random and alphaNumeric together",
    indexes: ["from Users order by N as long", "from Users order by Name"],
    attack: (server) =>
      Promise.all([
        ask(server, "from Users order by Name as alphaNumeric, N as long desc, Txt, id() limit 1"),
        ask(server, "from Users order by id() as alphaNumeric limit 1"),
        ask(server, "from Users order by random('x') limit 1"),
        ask(server, "from Users order by Name desc limit 1"),
      ]),
  },
  {
    name: "a distinct over every document",
    attack: (server) => ask(server, "from Users select distinct Name, Txt"),
  },
  {
    name: "a skip to the end",
    attack: (server) => ask(server, "from Users where N >= 0 limit 1 offset 2000000000"),
    indexes: [byNumber],
  },
  {
    name: "scores of 500 searches",
    indexes: [byName],
    attack: (server) =>
      ask(
        server,
        `from Users where ${list(500, (n) => `boost(search(Name, 'alpha beta w${n}'), ${n + 1})`).join(" or ")} order by score() limit 5`,
      ),
  },
  {
    name: "explanations of 500 searches",
    indexes: [byName],
    attack: (server) =>
      ask(
        server,
        `from Users where ${list(500, (n) => `search(Name, 'alpha beta w${n}')`).join(" or ")} include explanations() limit 5`,
      ),
  },
  {
    name: "highlights of 1,000 wildcards",
    indexes: [byName],
    attack: (server) =>
      ask(server, `from Users where search(Name, $p) include highlight(Name, 1000000, 1000000)`, {
        p: list(1_000, (n) => `*a${n}*`)
          .concat("alpha")
          .join(" "),
      }),
  },
  {
    name: "groups by a field that all documents have another value in",
    attack: (server) => ask(server, "from Users group by Name select key(), count()"),
  },
  {
    name: "loads of five documents for every row",
    attack: (server) =>
      ask(
        server,
        "from Users as u load u.Ref as a, u.Refs as b[], a.Ref as c, c.Ref as d select { A: a.N, D: d.N }",
      ),
  },
  {
    name: "includes of every document's references",
    attack: (server) => ask(server, "from Users include Ref, Refs"),
  },
  {
    name: "an intersect of 1,000 conditions",
    indexes: [byNumber],
    attack: (server) =>
      ask(server, `from Users where intersect(${list(1_000, (n) => `N >= ${n % 3}`).join(", ")})`),
  },
  {
    name: "a regular expression as a filter",
    attack: (server) => ask(server, "from Users filter regex(Txt, '(a{1,40}){1,40}b')"),
  },
  {
    name: "100 slow queries at once",
    indexes: [byText],
    attack: (server) =>
      Promise.all(
        list(100, (n) =>
          ask(
            server,
            `from Users where regex(Txt, '(a{1,30}){1,30}b${n}') or endsWith(Txt, '${n}q')`,
          ),
        ),
      ),
  },
  {
    name: "2,000 queries in one multi_get",
    indexes: [byNumber],
    attack: (server) => {
      const Requests = list(2_000, (n) => ({
        Url: `${server.database}/queries`,
        Query: `?query=${encodeURIComponent(`from Users where N > ${n} and N < ${n + 9}`)}`,
        Method: "GET",
      }));
      return server.request(`${server.database}/multi_get`, {
        method: "POST",
        body: JSON.stringify({ Requests }),
      });
    },
  },
  {
    name: "all terms of an index",
    indexes: [byText],
    attack: (server) =>
      server.request(
        `${server.database}/indexes/terms?name=Auto/Users/ByTxt&field=Txt&pageSize=2000000`,
      ),
  },
  {
    name: "all entries of an index",
    indexes: [byText],
    attack: (server) =>
      server.request(
        `${server.database}/queries?debug=entries&query=${encodeURIComponent("from Users where Txt != 'x'")}`,
      ),
  },
  {
    name: "slow queries whose client goes",
    indexes: [byText],
    attack: async (server) => {
      const text = `from Users where ${list(200, (n) => `regex(Txt, '(a|b|1)*a(a|b|1){40}c${n}')`).join(" or ")}`;
      const body = JSON.stringify({ Query: text });
      for (let i = 0; i < 20; i++) {
        const socket = await server.connect();
        socket.write(
          `POST ${server.database}/queries HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\n` +
            `Content-Length: ${body.length}\r\n\r\n${body}`,
        );
        setTimeout(() => socket.destroy(), 100);
      }
      await new Promise((resolve) => setTimeout(resolve, 1_000));
      return [await ask(server, "from Users limit 1")];
    },
    check: ([reply]) => assert.equal(reply?.status, 200),
  },
];

/** The limits that end a script. */
const scriptLimit = /Patching\.Max|limit|Query\.|memory|too (?:complex|long|large|deep)|nested/;

/** Scripts that do much work for each row, by what they do. */
const scriptOfRow: Readonly<Record<string, string>> = {
  "a text of 1 MB": "{ X: 'x'.repeat(1e6) }",
  "a text of 1 MB outside of ASCII": "{ X: 'ü'.repeat(1e6) }",
  "a text of 1 MB to escape": "{ X: '\\n'.repeat(1e6) }",
  "a text of 15 MB": "{ X: 'x'.repeat(15e6) }",
  "a list of 100,000 missing items": "{ X: Array(1e5) }",
  "a list of 100,000 numbers": "{ X: Array.from(Array(1e4), (x, i) => i / 7) }",
  "2,500 loads": "{ X: Array(2500).fill('users/1').map(id => load(id).N).length }",
  "2,500 loaded documents": "{ X: load(Array(2500).fill('users/1')) }",
  "1,000 rows": "Array(1000).fill({ X: 'x'.repeat(1e3) })",
  "a list parsed from text": "{ X: JSON.parse('[' + '1,'.repeat(2e4) + '1]').length }",
  "a text that is searched": "{ X: ('a'.repeat(1e6) + u.N).indexOf('b') }",
};

const scriptCases: readonly QueryAbuse[] = Object.entries(scriptOfRow).flatMap(([name, script]) => [
  {
    name: `a projection that makes ${name} for each row`,
    limit: scriptLimit,
    attack: (server) => ask(server, `from Users as u select ${script} limit 200`),
  },
  {
    name: `a filter that makes ${name} for each row`,
    isLong: true,
    limit: scriptLimit,
    attack: (server) =>
      ask(
        server,
        `declare function f(u) { const made = ${script}; return made === null } from Users as u filter f(u) limit 200`,
      ),
  },
]);

export const queryCases: readonly AbuseCase[] = [
  ...termCases,
  ...sizeCases,
  ...rowCases,
  ...scriptCases,
].map(queryCase);
