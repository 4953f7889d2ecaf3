/**
 * Salvages requests that Node's HTTP/1.1 parser rejects: methods of this interface that it does not know (RESET, TRY)
 * are parsed here from the raw bytes; any other request gets a fixed reply.
 *
 * Invariants:
 * - A salvaged request has no body, and its connection ends after the reply.
 */
import { IncomingMessage, ServerResponse, STATUS_CODES } from "node:http";
import type { Socket } from "node:net";
import type { Duplex } from "node:stream";
import { errorBody, interfaceVersion, jsonContentType } from "../http/response.ts";

const headEndBytes = 4;

/** Methods served in addition to those that Node knows. */
const extraMethods = new Set(["RESET", "TRY"]);

/** Parses the request in `packet`, from its first line on; undefined unless it is complete and has an extra method. */
export function parseRejected(packet: Buffer, socket: Socket): IncomingMessage | undefined {
  const end = packet.indexOf("\r\n\r\n");
  if (end < 0) return undefined;
  const [first = "", ...lines] = packet.toString("latin1", 0, end).split("\r\n");
  const match = /^([A-Z]+) (\/[\x21-\x7e]*) HTTP\/1\.1$/.exec(first);
  const [, method = "", target = ""] = match ?? [];
  if (!extraMethods.has(method)) return undefined;
  const request = new IncomingMessage(socket);
  request.method = method;
  request.url = target;
  request.httpVersion = "1.1";
  request.httpVersionMajor = 1;
  request.httpVersionMinor = 1;
  for (const line of lines) {
    const header = /^([!#$%&'*+.^_`|~0-9A-Za-z-]+):[ \t]*(.*?)[ \t]*$/.exec(line);
    if (header === null) return undefined;
    const [, name = "", value = ""] = header;
    if (/^(content-length|transfer-encoding)$/i.test(name)) continue; // a body is not read here
    request.headers[name.toLowerCase()] ??= value;
  }
  if (request.headers.host === undefined) return undefined;
  request.complete = true;
  request.push(null);
  return request;
}

/** Milliseconds that a client has to read the reply before its connection is closed. */
const lingerMs = 1_000;

/**
 * A response that writes to `socket` outside Node's bookkeeping; the connection ends with it. Input is dropped from then
 * on: nothing else reads the socket, and a client that does not close it would keep it open.
 */
export function detachedResponse(request: IncomingMessage, socket: Duplex): ServerResponse {
  const response = new ServerResponse(request);
  response.shouldKeepAlive = false;
  response.assignSocket(socket as Socket);
  response.once("finish", () => {
    socket.end();
    socket.resume();
    setTimeout(() => socket.destroy(), lingerMs).unref();
  });
  return response;
}

/**
 * The part of `packet` from the request on that could not be parsed beyond `bytesParsed`: it begins after the head of the
 * request before it, if that was in the same packet.
 */
export function rejectedPart(packet: Buffer, bytesParsed = 0): Buffer {
  const end = packet.lastIndexOf("\r\n\r\n", Math.max(0, bytesParsed - headEndBytes));
  return end < 0 ? packet : packet.subarray(end + headEndBytes);
}

/** The method of a request, if enough of it has arrived. */
export function methodIn(packet: Buffer): string | undefined {
  return /^\s*([A-Z]+) /.exec(packet.toString("latin1", 0, 32))?.[1];
}

const rejections: Readonly<Record<number, string>> = {
  400: "The request is not HTTP as this server reads it.",
  408: "The headers of the request came too slowly (setting Http.RequestHeadersTimeoutInSec).",
  431: "The headers of the request are too large (setting Http.MaxRequestHeadersSizeInKb), or more than 128.",
};

/**
 * A complete reply, as text, to a request that could not be parsed. `method`: its method, as far as known; the reply to
 * HEAD has no body.
 */
export function rejectionReply(status: 400 | 408 | 431, method?: string, why?: string): string {
  const type = "Raven.Client.Exceptions.BadRequestException";
  const body = errorBody("", type, why ?? rejections[status] ?? "");
  return [
    `HTTP/1.1 ${status} ${STATUS_CODES[status]}`,
    "Connection: close",
    `Content-Type: ${jsonContentType}`,
    `Content-Length: ${Buffer.byteLength(body)}`,
    `Raven-Server-Version: ${interfaceVersion}`,
    `Service-Server-Version: ${interfaceVersion}`,
    "",
    method === "HEAD" ? "" : body,
  ].join("\r\n");
}
