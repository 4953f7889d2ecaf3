/** What is parsed here, node:http parses to the same request. */
import { createServer, type IncomingMessage } from "node:http";
import { Duplex } from "node:stream";
import { describe, expect, test } from "vitest";
import { seeded } from "../../../bench/harness.ts";
import { parseWholeRequest } from "../../../server/listening/whole-request.ts";

interface Seen {
  readonly method: string | undefined;
  readonly target: string | undefined;
  readonly headers: Readonly<Record<string, unknown>>;
  readonly body: string;
}

/** The requests at the beginning of some bytes that are parsed here. */
function parsedHere(bytes: Buffer): Seen[] {
  const seen: Seen[] = [];
  for (let at = 0; at < bytes.length; ) {
    const request = parseWholeRequest(bytes, at);
    if (request === null) break;
    // The head is known now.
    expect(parseWholeRequest(bytes, at)).toEqual(request);
    const { head, body } = request;
    const { method, target, headers } = head;
    seen.push({ method, target, headers: Object.fromEntries(headers), body: body.toString() });
    at = request.end;
    if (head.isLast) break;
  }
  return seen;
}

/** What node:http makes of the same bytes. */
async function parsedByNode(bytes: Buffer): Promise<Seen[]> {
  const seen: Seen[] = [];
  const server = createServer((request, response) => {
    const place = seen.push({ ...headOf(request), body: "" }) - 1;
    const chunks: Buffer[] = [];
    request.on("error", () => undefined);
    request.on("data", (chunk: Buffer) => chunks.push(chunk));
    request.on("end", () => {
      seen[place] = { ...headOf(request), body: Buffer.concat(chunks).toString() };
      response.end();
    });
  });
  server.on("clientError", () => undefined);
  const socket = new Duplex({ read: () => undefined, write: (_chunk, _encoding, done) => done() });
  server.emit("connection", socket);
  socket.push(bytes);
  for (let turn = 0; turn < 4; turn++) await new Promise((resolve) => setImmediate(resolve));
  socket.destroy();
  server.close();
  return seen;
}

function headOf({ method, url, headers }: IncomingMessage): Omit<Seen, "body"> {
  return { method, target: url, headers: { ...headers } };
}

const plain =
  "POST /databases/a/queries?x=%20 HTTP/1.1\r\nHost: localhost:8080\r\nContent-Type: application/json\r\n" +
  'Accept:  */*  \r\nX-Empty:\r\ncontent-length: 15\r\n\r\n{"Query":"abc"}';
const bodyless = "GET /a HTTP/1.1\r\nhost: h\r\nConnection: keep-alive\r\n\r\n";

describe("a request that has arrived whole", () => {
  test("is parsed: line, headers and body", () => {
    const request = parseWholeRequest(Buffer.from(`xx${plain}rest`), 2);
    expect(request?.head).toMatchObject({ method: "POST", target: "/databases/a/queries?x=%20" });
    expect([...(request?.head.headers ?? [])]).toEqual([
      ["host", "localhost:8080"],
      ["content-type", "application/json"],
      ["accept", "*/*"],
      ["x-empty", ""],
      ["content-length", "15"],
    ]);
    expect(request?.body.toString()).toBe('{"Query":"abc"}');
    expect(request?.end).toBe(plain.length + 2);
    expect(request?.head.isLast).toBe(false);
  });

  test("may be the last of its connection", () => {
    const close = bodyless.replace("keep-alive", "Close");
    expect(parseWholeRequest(Buffer.from(close), 0)?.head.isLast).toBe(true);
  });

  test("has its own body where its head came before", () => {
    const text = (body: string) =>
      `PUT /a HTTP/1.1\r\nHost: h\r\nContent-Length: ${body.length}\r\n\r\n${body}`;
    const bodies = ["one", "two", "three", "four"].map((body) =>
      parseWholeRequest(Buffer.from(text(body)), 0)?.body.toString(),
    );
    expect(bodies).toEqual(["one", "two", "three", "four"]);
  });

  test("is not parsed before its last byte", () => {
    const bytes = Buffer.from(plain);
    for (let length = 0; length < bytes.length; length++) {
      expect(parseWholeRequest(bytes.subarray(0, length), 0)).toBeNull();
    }
    expect(parseWholeRequest(bytes, 0)).not.toBeNull();
  });

  test.each([
    ["another version", plain.replace("1.1", "1.0")],
    ["another method", plain.replace("POST", "TRACE")],
    ["a whole address", plain.replace("/databases", "http://localhost/databases")],
    ["no host", plain.replace("Host", "Hose")],
    ["two hosts", plain.replace("Accept", "Host")],
    ["a name twice", plain.replace("X-Empty", "Accept")],
    ["two lengths", plain.replace("X-Empty:", "Content-Length: 15")],
    ["a length that is no number", plain.replace("15", "+15")],
    ["several lengths in one", plain.replace("15", "15, 15")],
    ["a body in chunks", plain.replace("X-Empty:", "Transfer-Encoding: chunked")],
    ["an expectation", plain.replace("X-Empty:", "Expect: 100-continue")],
    ["an upgrade", plain.replace("X-Empty:", "Upgrade: websocket")],
    ["another wish for the connection", plain.replace("X-Empty:", "Connection: upgrade")],
    ["a space before the colon", plain.replace("X-Empty:", "X-Empty :")],
    ["a folded line", plain.replace("X-Empty:", "X-Empty: a\r\n b")],
    ["a line without a colon", plain.replace("X-Empty:", "X-Empty")],
    ["a name that is none", plain.replace("X-Empty:", "X(Empty: 1")],
    ["a lone line feed", plain.replace("X-Empty:", "X-Empty: a\nb: c")],
    ["a lone carriage return", plain.replace("X-Empty:", "X-Empty: a\rb")],
    ["a null", plain.replace("X-Empty:", "X-Empty: \0")],
    ["letters beyond ASCII", plain.replace("X-Empty:", "X-Empty: é")],
    ["a space in the address", plain.replace("?x", " ?x")],
    ["empty lines before it", `\r\n${plain}`],
    ["a long head", plain.replace("X-Empty:", `X-Empty: ${"a".repeat(8192)}`)],
    [
      "many headers",
      plain.replace("X-Empty:", Array.from({ length: 70 }, (_, n) => `h${n}: 1`).join("\r\n")),
    ],
  ])("with %s is left to node:http", (_what, text) => {
    expect(parseWholeRequest(Buffer.from(text), 0)).toBeNull();
  });

  test.each([1, 2, 3, 4])(
    "is the same for node:http, however it is garbled (seed %i)",
    async (seed) => {
      const random = seeded(seed);
      const pieces = [
        "\r\n",
        "\r",
        "\n",
        " ",
        "\t",
        ":",
        "\0",
        "é",
        "0",
        "1",
        "Host: a\r\n",
        "Content-Length: 3\r\n",
      ];
      const more = [
        "Transfer-Encoding: chunked\r\n",
        "Connection: close\r\n",
        "GET / HTTP/1.1\r\n",
        "X: y\r\n",
        "//",
        "%",
      ];
      const all = [...pieces, ...more];
      let parsed = 0;
      for (let round = 0; round < 300; round++) {
        let text = [plain, bodyless, plain + bodyless, bodyless + plain][random() % 4] as string;
        for (let change = random() % 4; change > 0; change--) {
          const at = random() % text.length;
          const cut = random() % 3 === 0 ? random() % 4 : 0;
          const added = random() % 2 === 0 ? (all[random() % all.length] as string) : "";
          text = text.slice(0, at) + added + text.slice(at + cut);
        }
        const bytes = Buffer.from(text, "latin1");
        const here = parsedHere(bytes);
        parsed += here.length;
        if (here.length === 0) continue;
        const byNode = await parsedByNode(bytes);
        expect(byNode.slice(0, here.length), JSON.stringify(text)).toEqual(here);
      }
      expect(parsed).toBeGreaterThan(100);
    },
  );
});
