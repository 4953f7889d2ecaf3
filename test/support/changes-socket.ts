/**
 * A web socket client of the changes API, for tests: sends commands, collects messages, and waits for expected ones.
 */
import { once } from "node:events";
import { WebSocket } from "ws";
import type { CertificatePair } from "../../certs/authority.ts";
import { type TestServer, tlsOptions } from "./start-test-server.ts";

type Message = Readonly<Record<string, unknown>>;

export class ChangesSocket {
  readonly socket: WebSocket;
  /** All received messages, without the greeting. */
  readonly messages: Message[] = [];
  /** Frames as received. */
  readonly frames: string[] = [];
  readonly closed: Promise<{ readonly code: number; readonly reason: string }>;
  #commands = 0;
  #wake: () => void = () => undefined;

  constructor(socket: WebSocket) {
    this.socket = socket;
    socket.on("error", () => undefined);
    this.closed = new Promise((resolve) => {
      socket.once("close", (code, reason) => resolve({ code, reason: String(reason) }));
    });
    socket.on("message", (data) => {
      this.frames.push(String(data));
      for (const message of JSON.parse(String(data)) as Message[]) {
        if (message["TopologyChange"] !== true) this.messages.push(message);
      }
      this.#wake();
    });
  }

  /** Connects; rejects with the status if the server rejects the connection. */
  static async open(
    server: TestServer,
    path = "/databases/db/changes",
    pair: CertificatePair | undefined = server.admin,
  ): Promise<ChangesSocket> {
    const address = server.url.replace(/^http/, "ws") + path;
    const result = new ChangesSocket(new WebSocket(address, tlsOptions(server.authority, pair)));
    await once(result.socket, "open");
    return result;
  }

  /** Sends a command and waits for its confirmation. */
  async command(Command: string, Param: unknown = null, Params?: unknown): Promise<void> {
    this.#commands++;
    const CommandId = this.#commands;
    this.socket.send(JSON.stringify({ CommandId, Command, Param, Params }));
    await this.until((message) => message["CommandId"] === CommandId);
  }

  /** The first message, received or future, that satisfies the predicate. */
  async until(isIt: (message: Message) => boolean): Promise<Message> {
    for (;;) {
      const found = this.messages.find(isIt);
      if (found !== undefined) return found;
      await new Promise<void>((resolve) => {
        this.#wake = resolve;
      });
    }
  }

  /** All messages received so far, except confirmations. */
  changes(): Message[] {
    return this.messages.filter((message) => message["Type"] !== "Confirm");
  }

  /** Like `changes`, after receiving everything committed before the call. */
  async settledChanges(): Promise<Message[]> {
    await this.command("watch-topology-change"); // Confirmed after all queued messages.
    return this.changes();
  }
}
