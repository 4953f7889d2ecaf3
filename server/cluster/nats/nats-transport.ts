/**
 * A transport for the client of NATS that delivers complete messages (message-assembler.ts). Without TLS, it also writes
 * large data without copying it. Loaded with the client.
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
import { MessageAssembler } from "./message-assembler.ts";

/** Connects like `connect` of the client, over this transport. */
export async function connectNats(options: ConnectionOptions): Promise<NatsConnection> {
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

/** Minimum size from which data is sent without being joined into one buffer, in bytes. */
const uncopiedBytesMin = 64 * 1024;
const nothing = new Uint8Array(0);

/** Data to send in this event-loop tick. The client would join all of it in a new buffer. */
class Outbound extends DataBuffer {
  readonly #sendAll: (pieces: readonly Uint8Array[]) => void;

  constructor(sendAll: (pieces: readonly Uint8Array[]) => void) {
    super();
    this.#sendAll = sendAll;
  }

  /** Returns the data for the client to send. Large data is sent here instead. */
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
  readonly #messages = new MessageAssembler((piece) => {
    this.yields.push(piece);
    this.signal.resolve();
  });
  /** Whether the first lines were read, which the client handles itself. */
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

  /** Sends buffers with one system call. */
  sendAll(pieces: readonly Uint8Array[]): void {
    const socket: Socket | undefined = this.socket;
    socket?.cork();
    for (const piece of pieces) super.send(piece);
    socket?.uncork();
  }
}
