/** Listens on several addresses with one port, for any protocol. */
import { once } from "node:events";
import type * as net from "node:net";
import { type SecureContextOptions, Server, type TlsOptions } from "node:tls";
import { tlsPolicy } from "../security/tls-policy.ts";

const tcpKeepAliveMs = 60_000;

interface Listening {
  readonly port: number;
  readonly listeners: readonly net.Server[];
}

/**
 * Starts a listener made by `make` on each of `hosts` with the same port (0: any free one).
 * @throws Node's listen errors of the first host; the others are optional
 */
export async function listenOn(
  hosts: readonly string[],
  port: number,
  make: () => net.Server,
): Promise<Listening> {
  const listeners: net.Server[] = [];
  let chosen = port;
  for (const [position, host] of hosts.entries()) {
    const listener = make();
    try {
      listener.listen(chosen, host);
      await once(listener, "listening");
    } catch (error) {
      if (position === 0) throw error;
      continue;
    }
    listeners.push(listener);
    chosen = (listener.address() as net.AddressInfo).port;
  }
  return { port: chosen, listeners };
}

/** Presents another certificate on new TLS connections to `listeners`. */
export function setCertificate(
  listeners: readonly net.Server[],
  secure: SecureContextOptions & Pick<TlsOptions, "ticketKeys">,
): void {
  for (const listener of listeners) {
    if (listener instanceof Server) listener.setSecureContext({ ...secure, ...tlsPolicy });
  }
}

/** Settings of every accepted socket: small writes are sent at once, dead peers are detected, and errors close it. */
export function prepareSocket(socket: net.Socket): void {
  socket.setNoDelay(true);
  socket.setKeepAlive(true, tcpKeepAliveMs);
  socket.on("error", () => socket.destroy());
}

/** From now on neither the listeners nor the sockets that they accept keep the process alive. */
export function unrefAll(listeners: readonly net.Server[]): void {
  for (const listener of listeners) {
    listener.unref();
    listener.on("connection", (socket: net.Socket) => socket.unref());
  }
}
