/**
 * Mutated conversations other than requests: subscriptions over TCP, changes web sockets, and requests mutated at the
 * byte level. Each is generated from its number alone, like requests, and ends by itself within a moment.
 */
import * as net from "node:net";
import { WebSocket } from "ws";
import type { SeededRandom } from "../support/random.ts";
import { mutateNode, nodeOf, textOf } from "./json-node.ts";
import { mutateBytes, randomOf, requestOf } from "./request-maker.ts";
import { databaseName } from "./seeds.ts";

interface Conversation {
  readonly kind: "tcp" | "web-socket" | "raw";
  /** The messages, in order. */
  readonly pieces: readonly Buffer[];
}

const subscription = [
  {
    DatabaseName: databaseName,
    Operation: "Subscription",
    OperationVersion: 53_000,
    AuthorizeInfo: null,
    LicensedFeatures: { dataCompression: false },
  },
  {
    SubscriptionName: "sub",
    Strategy: "TakeOver",
    MaxDocsPerBatch: 5,
    MaxErroneousPeriod: "00:05:00",
    TimeToWaitBeforeConnectionRetry: "00:00:05",
    IgnoreSubscriberErrors: false,
    CloseWhenNoDocsLeft: true,
  },
  { ChangeVector: "A:1-AAAAAAAAAAAAAAAAAAAAAA", Type: "Acknowledge" },
  { ChangeVector: null, Type: "Acknowledge" },
];

const changes = [
  { CommandId: 1, Command: "watch-docs", Param: null },
  { CommandId: 2, Command: "watch-doc", Param: "users/1" },
  { CommandId: 3, Command: "watch-prefix", Param: "users/" },
  { CommandId: 4, Command: "watch-collection", Param: "Users" },
  { CommandId: 5, Command: "watch-indexes" },
  { CommandId: 6, Command: "watch-index", Param: "Users/ByName" },
  { CommandId: 7, Command: "watch-operations" },
  { CommandId: 8, Command: "watch-operation", Param: "900" },
  { CommandId: 9, Command: "watch-counters" },
  { CommandId: 10, Command: "watch-document-counter", Params: ["users/1", "likes"] },
  { CommandId: 11, Command: "watch-all-timeseries" },
  { CommandId: 12, Command: "watch-document-timeseries", Params: ["users/1", "HeartRate"] },
  { CommandId: 13, Command: "unwatch-docs" },
  { CommandId: 14, Command: "watch-aggressive-caching" },
];

export function conversationOf(seed: number, number: number): Conversation {
  const random = randomOf(seed ^ 0x5bd1e995, number);
  const kind = (["tcp", "web-socket", "raw"] as const)[random.below(3)] as Conversation["kind"];
  if (kind === "raw") return { kind, pieces: [rawRequest(random, seed, number)] };
  const messages: readonly object[] = kind === "tcp" ? subscription : some(random, changes);
  const changed = random.below(messages.length);
  const pieces = messages.map((message, i) => {
    let node = nodeOf(message);
    const count = i === changed ? 1 + random.below(3) : 0;
    for (let change = 0; change < count; change++) node = mutateNode(random, node);
    const bytes = Buffer.from(textOf(node));
    return i === changed && random.chance(0.2) ? mutateBytes(random, bytes) : bytes;
  });
  return { kind, pieces };
}

function some<Item>(random: SeededRandom, items: readonly Item[]): Item[] {
  return Array.from(
    { length: 1 + random.below(5) },
    () => items[random.below(items.length)] as Item,
  );
}

/** A request with its head, with some bytes changed. */
function rawRequest(random: SeededRandom, seed: number, number: number): Buffer {
  const { method, target, headers, body } = requestOf(seed, number);
  const lines = [`${method} ${target} HTTP/1.1`, "Host: 127.0.0.1"];
  for (const [name, value] of headers) lines.push(`${name}: ${value}`);
  if (body !== undefined) lines.push(`Content-Length: ${body.length}`);
  const head = Buffer.from(`${lines.join("\r\n")}\r\nConnection: close\r\n\r\n`, "latin1");
  const whole = Buffer.concat([head, body ?? Buffer.alloc(0)]);
  return mutateBytes(random, random.chance(0.5) ? mutateBytes(random, whole) : whole);
}

/** @returns the start of the received bytes */
export async function converse(
  { kind, pieces }: Conversation,
  ports: { readonly http: number; readonly tcp: number },
): Promise<string> {
  if (kind === "web-socket") return await followChanges(pieces, ports.http);
  const socket = net.connect(kind === "tcp" ? ports.tcp : ports.http, "127.0.0.1");
  let answer = "";
  socket.on("data", (chunk: Buffer) => {
    if (answer.length < 4096) answer += chunk.toString("latin1");
  });
  const closed = new Promise<void>((resolve) => {
    socket.once("close", () => resolve());
    socket.once("error", () => resolve());
  });
  for (const piece of pieces) {
    socket.write(piece);
    // An acknowledgment follows a received batch; an early acknowledgment is a separate case.
    if (kind === "tcp") await Promise.race([closed, sleep(5)]);
  }
  await Promise.race([closed, sleep(kind === "tcp" ? 10 : 30)]);
  socket.destroy();
  return answer;
}

async function followChanges(pieces: readonly Buffer[], port: number): Promise<string> {
  const socket = new WebSocket(`ws://127.0.0.1:${port}/databases/${databaseName}/changes`);
  let answer = "";
  socket.on("message", (data) => {
    if (answer.length < 4096) answer += String(data);
  });
  const opened = new Promise<boolean>((resolve) => {
    socket.once("open", () => resolve(true));
    socket.once("error", () => resolve(false));
    socket.once("close", () => resolve(false));
  });
  if (await opened) {
    for (const piece of pieces)
      if (socket.readyState === socket.OPEN) socket.send(piece, { binary: false });
    await sleep(10);
  }
  socket.on("error", () => undefined);
  socket.terminate();
  return answer;
}

function sleep(ms: number): Promise<void> {
  return new Promise((resolve) => setTimeout(resolve, ms));
}
