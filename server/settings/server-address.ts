/** The addresses that the server listens on, and its own URL. Known once it listens. */
export interface ServerAddress {
  readonly isSecure: boolean;
  /** `https://host:port`: the configured public URL, or the address listened on. */
  readonly url: string;
  /** The host name in `url`, unless a public URL is configured. */
  readonly host: string;
  readonly port: number;
  /** `tcp://host:port` of the TCP protocol, or undefined for `tcpPort` on the host that the client uses. */
  readonly tcpUrl: string | undefined;
  readonly tcpPort: number;
}
