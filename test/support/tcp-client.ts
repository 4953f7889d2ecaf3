/** A scripted client of the TCP protocol that reads messages one by one. */
import * as net from "node:net";
import * as tls from "node:tls";
import type { CertificatePair } from "../../certs/authority.ts";
import { type TestServer, tlsOptions } from "./start-test-server.ts";

export type Message = Readonly<Record<string, unknown>>;

export interface TcpClient {
  readonly socket: net.Socket;
  /** Sends an object as JSON, or text verbatim. */
  send(message: object | string): void;
  /** The next message; null if the server has closed the connection. */
  next(): Promise<Message | null>;
  /** The messages up to the end of a batch, without the end marker. */
  batch(): Promise<Message[]>;
  close(): void;
}

/** Connects to the TCP port. `pair` undefined: without a certificate. */
export async function connectTcp(server: TestServer, pair?: CertificatePair): Promise<TcpClient> {
  const { tcpPort: port, isSecure } = server.running.address;
  const socket = isSecure
    ? tls.connect({ port, host: "127.0.0.1", ...tlsOptions(server.authority, pair) })
    : net.connect(port, "127.0.0.1");
  await new Promise<void>((resolve, reject) => {
    socket.once(isSecure ? "secureConnect" : "connect", () => resolve());
    socket.once("error", reject);
  });
  return clientOf(socket);
}

/** A client on a connected socket. */
export function clientOf(socket: net.Socket): TcpClient {
  const messages = readMessages(socket);
  const client: TcpClient = {
    socket,
    send: (message) => {
      socket.write(typeof message === "string" ? message : JSON.stringify(message));
    },
    async next() {
      const { value, done } = await messages.next();
      return done ? null : value;
    },
    async batch() {
      const batch: Message[] = [];
      for (;;) {
        const message = await client.next();
        if (message === null) throw new Error("the server closed within a batch");
        if (message["Type"] === "EndOfBatch") return batch;
        batch.push(message);
      }
    },
    close: () => socket.destroy(),
  };
  return client;
}

/** Connects, negotiates a version, and opens a subscription; the reply is the next message. */
export async function openTcp(
  server: TestServer,
  options: object,
  database = "db",
  pair?: CertificatePair,
): Promise<TcpClient> {
  return await openSubscription(await connectTcp(server, pair), options, database);
}

/** Negotiates a version, and opens a subscription; the reply is the next message. */
export async function openSubscription(
  client: TcpClient,
  options: object,
  database: string,
  version?: number,
): Promise<TcpClient> {
  client.send(headerOf(database, version));
  const { Status, Message: text } = (await client.next()) ?? {};
  if (Status !== "Ok") throw new Error(`${String(Status)}: ${String(text)}`);
  client.send({ SubscriptionName: "s", Strategy: "OpenIfFree", MaxDocsPerBatch: 4096, ...options });
  return client;
}

export function headerOf(DatabaseName: string, OperationVersion = 53_000): object {
  return {
    DatabaseName,
    Operation: "Subscription",
    OperationVersion,
    AuthorizeInfo: null,
    LicensedFeatures: { dataCompression: false },
  };
}

/** Splits the input at the ends of objects, by trial parsing at each `}`. */
async function* readMessages(socket: net.Socket): AsyncGenerator<Message> {
  let text = "";
  socket.on("error", () => undefined);
  try {
    for await (const chunk of socket) {
      text += (chunk as Buffer).toString("utf8");
      for (let end = text.indexOf("}"); end >= 0; end = text.indexOf("}", end + 1)) {
        const message = parsed(text.slice(0, end + 1));
        if (message === undefined) continue;
        text = text.slice(end + 1);
        end = -1;
        yield message;
      }
    }
  } catch {
    // The connection was reset.
  }
}

function parsed(text: string): Message | undefined {
  try {
    return JSON.parse(text) as Message;
  } catch {
    return undefined;
  }
}
