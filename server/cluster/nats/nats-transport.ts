/**
 * The way of the client of NATS to a server, which hands on whole messages (whole-messages.ts) and, where the connection
 * has no TLS, lets the system write them where they stay. Loaded with the client.
 */
import { createConnection, type Socket } from "node:net";
import {
  type ConnectionOptions,
  DataBuffer,
  type NatsConnection,
  NatsConnectionImpl,
  setTransportFactory,
} from "@nats-io/transport-node";
import { NodeTransport, nodeResolveHost } from "@nats-io/transport-node/lib/node_transport.js";
import { WholeMessages } from "./whole-messages.ts";

/** As `connect` of the client does, by this way. */
export async function connectByWholeMessages(options: ConnectionOptions): Promise<NatsConnection> {
  const factory = () => new WholeMessageTransport();
  setTransportFactory({ factory, dnsResolveFn: nodeResolveHost });
  const connection = await NatsConnectionImpl.connect(options);
  if (connection instanceof NatsConnectionImpl) {
    const { protocol } = connection;
    const outbound = new Outbound((pieces) => {
      const { transport } = protocol;
      if (transport instanceof WholeMessageTransport) transport.sendAll(pieces);
      else for (const piece of pieces) transport.send(piece);
    });
    for (const piece of protocol.outbound.buffers) outbound.fill(piece);
    protocol.outbound = outbound;
  }
  return connection;
}

/** From this size on what is to be sent is not copied into one piece first. */
const uncopiedBytesMin = 64 * 1024;
const nothing = new Uint8Array(0);

/** What is to be sent in this turn. The client would copy all of it into one piece, of fresh memory. */
class Outbound extends DataBuffer {
  readonly #sendAll: (pieces: readonly Uint8Array[]) => void;

  constructor(sendAll: (pieces: readonly Uint8Array[]) => void) {
    super();
    this.#sendAll = sendAll;
  }

  /** Takes what the client then sends. When it is much, it is sent here. */
  override drain(count?: number): Uint8Array {
    if (count !== undefined || this.byteLength < uncopiedBytesMin) return super.drain(count);
    const pieces = this.buffers;
    this.buffers = [];
    this.byteLength = 0;
    this.#sendAll(pieces);
    return nothing;
  }
}

class WholeMessageTransport extends NodeTransport {
  readonly #messages = new WholeMessages((piece) => {
    this.yields.push(piece);
    this.signal.resolve();
  });
  /** Are the first lines read, which the client looks at by itself? */
  #isSetUp = false;

  override dial(server: { hostname: string; port: number }): Promise<Socket> {
    if (this.options.tls !== undefined) return super.dial(server);
    const { port, hostname: host } = server;
    const onread = {
      buffer: () => this.#messages.room,
      callback: (count: number, bytes: Uint8Array) => {
        if (this.#isSetUp) this.#messages.filled(count);
        else socket.emit("data", Buffer.from(bytes.subarray(0, count)));
        return true;
      },
    };
    const socket = createConnection({ port, host, onread, noDelay: true });
    return new Promise((resolve, reject) => {
      const failed = (error?: Error) => reject(error);
      socket.once("error", failed).once("close", () => failed());
      socket.once("connect", () => {
        socket.removeAllListeners();
        resolve(socket);
      });
    });
  }

  override setupHandlers(): void {
    super.setupHandlers();
    this.#isSetUp = true;
    this.socket.removeAllListeners("data");
    this.socket.on("data", (bytes: Buffer) => this.#messages.add(bytes));
  }

  override send(piece: Uint8Array): void {
    if (piece.length > 0) super.send(piece);
  }

  /** Pieces that the system takes with one call. */
  sendAll(pieces: readonly Uint8Array[]): void {
    const socket: Socket | undefined = this.socket;
    socket?.cork();
    for (const piece of pieces) super.send(piece);
    socket?.uncork();
  }
}
