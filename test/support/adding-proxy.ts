/** A proxy that adds members unknown to clients to each JSON object in a server's replies. */
import { createServer, request } from "node:http";
import type { AddressInfo } from "node:net";

export interface AddingProxy {
  readonly url: string;
  /** Replies to which members were added, as `200 /path`. */
  readonly changed: readonly string[];
  close(): void;
}

/** @param target a URL without TLS. `added`: the members appended to a reply */
export async function startAddingProxy(
  target: string,
  added: Readonly<Record<string, unknown>>,
): Promise<AddingProxy> {
  const changed: string[] = [];
  const server = createServer((incoming, outgoing) => {
    const { method, url = "/", headers } = incoming;
    const passed = { ...headers, "accept-encoding": "identity", host: new URL(target).host };
    const forwarded = request(target + url, { method, headers: passed }, (reply) => {
      const chunks: Buffer[] = [];
      reply.on("data", (chunk: Buffer) => chunks.push(chunk));
      reply.on("end", () => {
        const status = reply.statusCode ?? 0;
        const text = withMembers(Buffer.concat(chunks).toString("utf8"), added);
        const { "content-length": _length, "transfer-encoding": _coding, ...kept } = reply.headers;
        if (text === undefined) {
          outgoing.writeHead(status, kept).end(Buffer.concat(chunks));
          return;
        }
        changed.push(`${status} ${url.replace(/\?.*/, "")}`);
        outgoing.writeHead(status, kept).end(text);
      });
    });
    forwarded.on("error", () => outgoing.destroy());
    incoming.pipe(forwarded);
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  const { port } = server.address() as AddressInfo;
  return { url: `http://127.0.0.1:${port}`, changed, close: () => void server.close() };
}

/**
 * With the members appended to the object and to each of its `Results`; undefined if the text is
 * not an object.
 */
function withMembers(text: string, added: Readonly<Record<string, unknown>>): string | undefined {
  if (!text.startsWith("{")) return undefined;
  const reply = JSON.parse(text) as Record<string, unknown>;
  const results = reply["Results"];
  const isOfReplies =
    Array.isArray(results) && results.some((one) => one?.StatusCode !== undefined);
  const more = isOfReplies ? { Results: results.map((one) => ({ ...one, ...added })) } : {};
  return JSON.stringify({ ...reply, ...more, ...added });
}
