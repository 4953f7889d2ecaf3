/**
 * Distributes the connections that a port may have (`Http.MaxConnections`) among its clients: a share for each address
 * without a registered certificate, a share for each registered certificate, and a reserve for registered certificates.
 *
 * The certificate of a connection is known only after its handshake. So every new connection is admitted as that of an
 * unregistered client, if necessary in place of an unused connection of such a client, and is reclassified once it has
 * presented a registered certificate. Knows nothing of protocols.
 *
 * Invariants:
 * - No more than `countMax` connections are open.
 * - Connections of registered clients leave room for handshakes; those of unregistered ones leave the reserve.
 * - A connection is closed in favor of another one only if it has no request in progress, or its client is unregistered
 *   and TLS is required.
 * - A client over its share loses one of its own connections: the one that was used least recently and has no request in
 *   progress, or else the new one.
 */
import { isIPv6, type Socket } from "node:net";

/** Shares of all connections: of one registered certificate, or of one address where there is no TLS. */
const clientShare = 3 / 4;
/** Of one address without a registered certificate, handshakes included. */
const unknownShare = 1 / 4;
/** Share reserved for registered certificates, and share of connections whose handshake is not complete. */
const reserveShare = 1 / 4;
const handshakeShare = 1 / 16;

/** A busy connection of an unregistered client counts as used so much later than an idle one. */
const busyBonusMs = 60_000;

/** A connection whose client is known. */
export interface SharedConnection {
  /** The registered certificate; "": the client has none. */
  readonly client: string;
  /** When a request was last in progress, as `performance.now()`. */
  readonly usedMs: number;
  /** Has it no request in progress? */
  readonly isIdle: boolean;
}

/** Where a connection is counted. */
interface Place {
  readonly socket: Socket;
  /** Of `#places`. */
  readonly key: string;
  /** The key of `#byAddress` or, if `isKnown`, of `#byCertificate`. */
  client: string;
  isKnown: boolean;
  readonly enteredMs: number;
  /** Undefined during the handshake. */
  connection: SharedConnection | undefined;
}

export class ConnectionShares {
  readonly #countMax: number;
  readonly #isSecure: boolean;
  readonly #places = new Map<string, Place>();
  /** Those of unregistered clients: all, and by address. */
  readonly #unknown = new Set<Place>();
  readonly #byAddress = new Map<string, Set<Place>>();
  readonly #byCertificate = new Map<string, Set<Place>>();

  /** `isSecure`: unregistered clients get nothing but refusals. */
  constructor(countMax: number, isSecure: boolean) {
    this.#countMax = countMax;
    this.#isSecure = isSecure;
  }

  /** Counts an accepted connection until it is closed. @returns false if it was closed, since there is no room */
  enter(socket: Socket): boolean {
    const isSecure = this.#isSecure;
    const client = networkOf(socket.remoteAddress ?? "");
    const own = this.#byAddress.get(client);
    const addressMax = this.#share(isSecure ? unknownShare : clientShare);
    const unknownMax = this.#countMax - (isSecure ? this.#part(reserveShare) : 0);
    const isAdmitted =
      ((own?.size ?? 0) < addressMax || this.#closeUnused(own)) &&
      ((this.#unknown.size < unknownMax && this.#places.size < this.#countMax) ||
        this.#closeUnused(this.#unknown));
    if (!isAdmitted) {
      socket.destroy();
      return false;
    }
    const key = keyOf(socket);
    const enteredMs = performance.now();
    const connection = undefined;
    const place: Place = { socket, key, client, enteredMs, isKnown: false, connection };
    this.#places.set(key, place);
    this.#add(place);
    socket.once("close", () => this.#leave(place));
    return true;
  }

  /** Classifies a connection by its client. To be called again when that changes. May close the connection. */
  identify(socket: Socket, connection: SharedConnection): void {
    const place = this.#places.get(keyOf(socket));
    if (place === undefined) return;
    place.connection = connection;
    const isKnown = connection.client !== "";
    const client = isKnown ? connection.client : networkOf(socket.remoteAddress ?? "");
    if (place.isKnown === isKnown && place.client === client) return;
    this.#remove(place);
    place.isKnown = isKnown;
    place.client = client;
    if (isKnown && !this.#hasRoomFor(client)) this.#close(place);
    else this.#add(place);
  }

  /** Is there room for one more of this certificate, if necessary in place of an idle one of it, or of the largest? */
  #hasRoomFor(thumbprint: string): boolean {
    const own = this.#byCertificate.get(thumbprint);
    if ((own?.size ?? 0) >= this.#share(clientShare)) return this.#closeUnused(own);
    const knownMax = this.#countMax - this.#part(handshakeShare);
    let count = 0;
    let largest: ReadonlySet<Place> | undefined;
    for (const places of this.#byCertificate.values()) {
      count += places.size;
      if (places.size > (largest?.size ?? 0)) largest = places;
    }
    return count < knownMax || this.#closeUnused(largest);
  }

  /** Closes the one that was used least recently, of those that may be closed. @returns whether there was one */
  #closeUnused(places: ReadonlySet<Place> | undefined): boolean {
    let chosen: Place | undefined;
    let chosenMs = Number.POSITIVE_INFINITY;
    for (const place of places ?? []) {
      const { connection, enteredMs } = place;
      const isIdle = connection === undefined || connection.isIdle;
      if (!isIdle && (place.isKnown || !this.#isSecure)) continue;
      const usedMs = (connection?.usedMs ?? enteredMs) + (isIdle ? 0 : busyBonusMs);
      if (usedMs >= chosenMs) continue;
      chosen = place;
      chosenMs = usedMs;
    }
    if (chosen === undefined) return false;
    this.#close(chosen);
    return true;
  }

  #close(place: Place): void {
    this.#leave(place);
    place.socket.destroy();
  }

  #leave(place: Place): void {
    if (this.#places.get(place.key) !== place) return;
    this.#remove(place);
    this.#places.delete(place.key);
  }

  #add(place: Place): void {
    const { client, isKnown } = place;
    if (!isKnown) this.#unknown.add(place);
    const clients = isKnown ? this.#byCertificate : this.#byAddress;
    const own = clients.get(client);
    if (own === undefined) clients.set(client, new Set([place]));
    else own.add(place);
  }

  #remove(place: Place): void {
    const { client, isKnown } = place;
    this.#unknown.delete(place);
    const clients = isKnown ? this.#byCertificate : this.#byAddress;
    const own = clients.get(client);
    own?.delete(place);
    if (own?.size === 0) clients.delete(client);
  }

  /** At least one, and two where there is more than one: a browser, or a client and its probe. */
  #share(share: number): number {
    return Math.max(Math.min(2, this.#countMax), Math.floor(this.#countMax * share));
  }

  #part(share: number): number {
    return this.#countMax === 1 ? 0 : Math.max(1, Math.floor(this.#countMax * share));
  }
}

/** Identifies a connection of a port. A TLS socket has the addresses of the socket below it. */
function keyOf({ remoteAddress, remotePort, localAddress }: Socket): string {
  return `${remoteAddress} ${remotePort} ${localAddress}`;
}

/** The address of a client; of IPv6 its network of 64 bits, since a client may use any address in it. */
export function networkOf(address: string): string {
  if (!isIPv6(address)) return address;
  const mapped = /^::ffff:(\d+\.\d+\.\d+\.\d+)$/i.exec(address)?.[1];
  if (mapped !== undefined) return mapped;
  const [before = "", after] = (address.split("%")[0] ?? "").split("::");
  const head = before === "" ? [] : before.split(":");
  const tail = after === undefined || after === "" ? [] : after.split(":");
  const zeros = new Array<string>(Math.max(0, 8 - head.length - tail.length)).fill("0");
  return `${[...head, ...zeros, ...tail].slice(0, 4).join(":")}::/64`;
}
