/**
 * The bare limit of an HTTP/2 server with mTLS: node:http2's stream interface, fixed replies, no routing, no
 * database. Started with fork(); its parent sends a `BareServerOptions`, and receives `{ port }`.
 */
import * as http2 from "node:http2";
import type { AddressInfo } from "node:net";

export interface BareServerOptions {
  readonly key: string;
  readonly cert: string;
  readonly ca: string;
  /** Replies to GET and PUT: headers, and the body in Base64. */
  readonly get: { readonly headers: Record<string, string>; readonly body: string };
  readonly put: { readonly headers: Record<string, string>; readonly body: string };
}

process.once("message", (options: BareServerOptions) => {
  const { key, cert, ca } = options;
  const server = http2.createSecureServer({ key, cert, ca, requestCert: true });
  const getBody = Buffer.from(options.get.body, "base64");
  const putBody = Buffer.from(options.put.body, "base64");
  server.on("stream", (stream, headers) => {
    stream.on("error", () => undefined);
    if (headers[":method"] === "GET") {
      stream.respond({ ":status": 200, ...options.get.headers });
      stream.end(getBody);
      return;
    }
    const chunks: Buffer[] = [];
    stream.on("data", (chunk: Buffer) => chunks.push(chunk));
    stream.on("end", () => {
      Buffer.concat(chunks);
      stream.respond({ ":status": 201, ...options.put.headers });
      stream.end(putBody);
    });
  });
  server.listen(0, "127.0.0.1", () => {
    process.send?.({ port: (server.address() as AddressInfo).port });
  });
});

process.once("disconnect", () => process.exit(0));
