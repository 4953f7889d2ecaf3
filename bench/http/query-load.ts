/**
 * The clients of the `query` bench, in a separate process: HTTP/1.1 connections that are kept open, each with one query
 * in flight, written and parsed by hand so that the clients take little of the machine. Started with fork(); answers each
 * `QueryLoad` from its parent with a `QueryLoadResult`.
 */
import * as net from "node:net";
import { percentile, seeded } from "../harness.ts";

export interface QueryLoad {
  readonly url: string;
  /** One of `measuredQueries`. */
  readonly query: string;
  /** Documents of the database. */
  readonly documents: number;
  readonly requests: number;
  readonly inFlight: number;
  readonly seed: number;
}

export interface QueryLoadResult {
  readonly ms: number;
  readonly p50: number;
  readonly p99: number;
  /** The last reply, in UTF-8, as base64. */
  readonly reply: string;
}

export const cityCount = 1000;
const ageMin = 18;
const ageCount = 60;
const fields = ["Name", "Age", "City", "Score", "Active", "Notes"];

interface MeasuredQuery {
  readonly text: string;
  readonly parameters: (random: () => number, documents: number) => object;
}

const cityOf = (random: () => number) => `City ${random() % cityCount}`;
const ageOf = (random: () => number) => ageMin + (random() % ageCount);
const byCity = (random: () => number) => ({ a: cityOf(random) });
const none = () => ({});

/** What is measured, by the name that is printed. */
export const measuredQueries: Readonly<Record<string, MeasuredQuery>> = {
  "City = $a limit 10": { text: "from Users where City = $a limit 10", parameters: byCity },
  "Age = $a limit 10": {
    text: "from Users where Age = $a limit 10",
    parameters: (random) => ({ a: ageOf(random) }),
  },
  "Name = $a": {
    text: "from Users where Name = $a",
    parameters: (random, documents) => ({ a: nameOf(random() % documents) }),
  },
  "id() = $a": {
    text: "from Users where id() = $a",
    parameters: (random, documents) => ({ a: `users/${random() % documents}` }),
  },
  "Age between and City, order by Score limit 10": {
    text: "from Users where Age between $a and $b and City = $c order by Score as double limit 10",
    parameters: (random) => {
      const from = ageOf(random);
      return { a: from, b: from + 20, c: cityOf(random) };
    },
  },
  "order by Score limit 10, of all": {
    text: "from Users order by Score as double limit 10",
    parameters: none,
  },
  "Age >= $a order by Score limit 10": {
    text: "from Users where Age >= $a order by Score as double limit 10",
    parameters: (random) => ({ a: ageOf(random) }),
  },
  "City = $a, two fields": {
    text: "from Users where City = $a select Name, Age limit 10",
    parameters: byCity,
  },
  "City = $a, a script": {
    text: "from Users as u where u.City = $a select { Name: u.Name, Next: u.Age + 1 } limit 10",
    parameters: byCity,
  },
  "City = $a limit 10, always the same": {
    text: "from Users where City = $a limit 10",
    parameters: () => ({ a: "City 7" }),
  },
};

function nameOf(n: number): string {
  return `User number ${n}`;
}

/** The text of document `n`: about 150 bytes. */
export function userText(n: number): string {
  const values = [
    nameOf(n),
    ageMin + (n % ageCount),
    `City ${Math.imul(n, 31) % cityCount}`,
    ((Math.imul(n, 7919) >>> 0) % 1_000_003) / 10,
    n % 3 === 0,
    "some more text of this user",
  ];
  const members = values.map((value, at) => `"${fields[at]}":${JSON.stringify(value)}`);
  return `{${members.join(",")},"@metadata":{"@collection":"Users"}}`;
}

process.on("message", (load: QueryLoad) => {
  run(load).then(
    (result) => process.send?.(result),
    (error: unknown) => {
      console.error(error);
      process.exit(1);
    },
  );
});
process.once("disconnect", () => process.exit(0));

async function run(load: QueryLoad): Promise<QueryLoadResult> {
  const query = measuredQueries[load.query];
  if (query === undefined) throw new Error(`no query is called ${load.query}`);
  const { hostname, port } = new URL(load.url);
  const random = seeded(load.seed);
  const latencies: number[] = [];
  let left = load.requests;
  let reply: Buffer = Buffer.alloc(0);
  const next = (): Buffer | null => {
    if (left-- <= 0) return null;
    const body = JSON.stringify({
      Query: query.text,
      QueryParameters: query.parameters(random, load.documents),
    });
    return Buffer.from(
      `POST /databases/bench/queries HTTP/1.1\r\nHost: ${hostname}:${port}\r\nContent-Type: application/json\r\n` +
        `Content-Length: ${Buffer.byteLength(body)}\r\n\r\n${body}`,
    );
  };
  const start = performance.now();
  const client = async (): Promise<void> => {
    const socket = net.connect({ host: hostname, port: Number(port), noDelay: true });
    for (let request = next(); request !== null; request = next()) {
      const sentMs = performance.now();
      socket.write(request);
      reply = await replyOf(socket);
      latencies.push(performance.now() - sentMs);
    }
    socket.end();
  };
  await Promise.all(Array.from({ length: load.inFlight }, client));
  return {
    ms: performance.now() - start,
    p50: percentile(latencies, 0.5),
    p99: percentile(latencies, 0.99),
    reply: reply.toString("base64"),
  };
}

/** The body of the next reply, whose length its head says or which comes in chunks. @throws Error unless its status is 200 */
function replyOf(socket: net.Socket): Promise<Buffer> {
  return new Promise((resolve, reject) => {
    let seen: Buffer = Buffer.alloc(0);
    const onData = (chunk: Buffer) => {
      seen = seen.length === 0 ? chunk : Buffer.concat([seen, chunk]);
      const body = bodyIn(seen);
      if (body === null) return;
      socket.off("data", onData).off("error", reject);
      if (body instanceof Error) reject(body);
      else resolve(body);
    };
    socket.on("data", onData).on("error", reject);
  });
}

/** The body of a whole reply; null: more is to come. */
function bodyIn(reply: Buffer): Buffer | Error | null {
  const end = reply.indexOf("\r\n\r\n");
  if (end < 0) return null;
  const head = reply.toString("latin1", 0, end);
  if (!head.startsWith("HTTP/1.1 200")) return new Error(reply.toString());
  const length = /content-length: *(\d+)/i.exec(head)?.[1];
  if (length !== undefined) {
    const to = end + 4 + Number(length);
    return reply.length < to ? null : reply.subarray(end + 4, to);
  }
  return reply.subarray(-5).equals(lastChunk) ? reply.subarray(end + 4) : null;
}

const lastChunk = Buffer.from("0\r\n\r\n");
