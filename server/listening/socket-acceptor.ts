/**
 * Opens web sockets, with the checks of any route.
 *
 * Invariants:
 * - A socket's exchange is in its connection's `open` while the socket is open, so it is closed when the caller loses
 *   its rights.
 */
import type { PeerSocket } from "../cluster/peer-link.ts";
import { RequestError } from "../http/request-error.ts";
import type { Admitted, Dispatcher } from "../routing/dispatcher.ts";
import type { WebSocketRoute } from "../routing/route.ts";
import type { ServerServices } from "../routing/services.ts";
import type { LinkExchange } from "./link-exchange.ts";
import type { LinkSocket } from "./link-socket.ts";

/** Milliseconds that clients have to answer the close frame of a stopping server. */
const farewellMs = 500;

type AdmittedSocket = Admitted & { readonly route: WebSocketRoute };

export class SocketAcceptor {
  readonly #services: ServerServices;
  readonly #dispatcher: Dispatcher;
  readonly #live = new Set<LinkSocket>();
  /** Ends those that another node answers. */
  readonly #forwarded = new Set<() => void>();

  constructor(services: ServerServices, dispatcher: Dispatcher) {
    this.#services = services;
    this.#dispatcher = dispatcher;
  }

  /** Number of open web sockets. */
  get openCount(): number {
    return this.#live.size;
  }

  async accept(exchange: LinkExchange): Promise<void> {
    const found = this.#services.routes.match("GET", exchange.path).endpoint;
    if (exchange.method === "GET" && found?.route.kind !== "websocket") {
      // The upgrade is declined: the request is an ordinary one.
      this.#dispatcher.accept(exchange);
      return;
    }
    const { open } = exchange.connection;
    open.add(exchange);
    exchange.whenClosed(() => open.delete(exchange));
    const admitted = await this.#admit(exchange);
    if (admitted === undefined) {
      open.delete(exchange);
      return;
    }
    if (exchange.isClosed) {
      admitted.elsewhere?.socket.destroy();
      return;
    }
    if (admitted.elsewhere !== undefined) this.#forward(exchange, admitted.elsewhere);
    else await this.#serve(exchange, admitted);
  }

  /** Closes all sockets: the server stops. */
  closeAll(): void {
    for (const socket of this.#live) socket.close(1001, "The server stops.");
    setTimeout(() => {
      for (const socket of this.#live) socket.terminate();
    }, farewellMs).unref();
    for (const end of [...this.#forwarded]) end();
  }

  async #admit(exchange: LinkExchange): Promise<AdmittedSocket | undefined> {
    try {
      const admitted = await this.#dispatcher.admit(exchange, "GET");
      if (admitted === undefined) return undefined;
      const { route } = admitted;
      if (route.kind === "websocket") return { ...admitted, route };
      throw new RequestError(
        400,
        "Raven.Client.Exceptions.BadRequestException",
        `${exchange.path} is not a web socket.`,
      );
    } catch (error) {
      this.#dispatcher.fail(exchange, error);
      return undefined;
    }
  }

  async #serve(exchange: LinkExchange, { route, database }: AdmittedSocket): Promise<void> {
    const socket = exchange.acceptSocket();
    this.#live.add(socket);
    socket.on("close", () => this.#live.delete(socket));
    try {
      await route.connect(socket, exchange, { server: this.#services, route, database });
    } catch (error) {
      this.#dispatcher.report(error);
      socket.close(1011, "An unexpected error, see the server's log.");
    }
  }

  /** Forwards the bytes between a client and another node, until either ends. */
  #forward(exchange: LinkExchange, { socket }: PeerSocket): void {
    const { readable, writable } = exchange.acceptTunnel();
    const end = () => {
      this.#forwarded.delete(end);
      socket.destroy();
      exchange.abort();
    };
    this.#forwarded.add(end);
    socket.on("error", end);
    socket.once("close", end);
    exchange.whenClosed(end);
    readable.pipe(socket);
    socket.pipe(writable);
  }
}
