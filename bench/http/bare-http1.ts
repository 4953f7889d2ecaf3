/**
 * The bare limit of an HTTP/1.1 server: node:http, reading the whole request body, a fixed reply. Started with
 * fork(); its parent sends `{ body }`, the reply in Base64, initially and after each change, and receives `{ port }`.
 */
import * as http from "node:http";
import type { AddressInfo } from "node:net";

let reply: Buffer = Buffer.alloc(0);

const server = http.createServer((request, response) => {
  const chunks: Buffer[] = [];
  request.on("data", (chunk: Buffer) => chunks.push(chunk));
  request.on("end", () => {
    Buffer.concat(chunks);
    response.writeHead(200, {
      "Content-Type": "application/json; charset=utf-8",
      "Content-Length": reply.length,
    });
    response.end(reply);
  });
});

process.on("message", ({ body }: { readonly body: string }) => {
  reply = Buffer.from(body, "base64");
  const sendPort = () => process.send?.({ port: (server.address() as AddressInfo).port });
  if (server.listening) sendPort();
  else server.listen(0, "127.0.0.1", sendPort);
});
process.once("disconnect", () => process.exit(0));
