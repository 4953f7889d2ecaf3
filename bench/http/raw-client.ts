/**
 * Clients over persistent HTTP/1.1 connections, each with one request in flight. Requests are written and replies
 * parsed directly, so that the clients use little processor time.
 */
import * as net from "node:net";
import { percentile } from "../harness.ts";

interface RawRequest {
  readonly method: string;
  /** Path and query, encoded. */
  readonly path: string;
  readonly body?: string;
}

export interface RawLoad {
  readonly url: string;
  readonly requests: number;
  /** Number of connections. */
  readonly inFlight: number;
}

/** Result; times are in milliseconds. */
export interface RawResult {
  readonly ms: number;
  readonly p50: number;
  readonly p99: number;
  /** Body of the last reply, in Base64. */
  readonly reply: string;
}

/** Sends the requests of `load`. @throws Error for a reply whose status is not 200 or 201 */
export async function runRaw(load: RawLoad, nextRequest: () => RawRequest): Promise<RawResult> {
  const { hostname, port } = new URL(load.url);
  const latencies: number[] = [];
  let left = load.requests;
  let reply: Buffer = Buffer.alloc(0);
  const start = performance.now();
  const client = async (): Promise<void> => {
    const socket = net.connect({ host: hostname, port: Number(port), noDelay: true });
    while (left-- > 0) {
      const request = textOf(nextRequest(), `${hostname}:${port}`);
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

function textOf({ method, path, body }: RawRequest, host: string): string {
  const head = `${method} ${path} HTTP/1.1\r\nHost: ${host}\r\n`;
  return body === undefined
    ? `${head}\r\n`
    : `${head}Content-Type: application/json\r\nContent-Length: ${Buffer.byteLength(body)}\r\n\r\n${body}`;
}

/** Reads the body of the next reply, with a content-length or chunked. @throws Error unless its status is 200 or 201 */
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

/** Returns the body of a complete reply, or null if it is incomplete. */
function bodyIn(reply: Buffer): Buffer | Error | null {
  const end = reply.indexOf("\r\n\r\n");
  if (end < 0) return null;
  const head = reply.toString("latin1", 0, end);
  if (!/^HTTP\/1\.1 20[01] /.test(head)) return new Error(reply.toString());
  const length = /content-length: *(\d+)/i.exec(head)?.[1];
  if (length !== undefined) {
    const to = end + 4 + Number(length);
    return reply.length < to ? null : reply.subarray(end + 4, to);
  }
  return reply.subarray(-5).equals(lastChunk) ? reply.subarray(end + 4) : null;
}

const lastChunk = Buffer.from("0\r\n\r\n");
