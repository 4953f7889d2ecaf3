/** Where the server is reached: what it listens on, and what it calls itself. Known once it listens. */
export interface ServerAddress {
  readonly isSecure: boolean;
  /** `https://host:port`: the configured public URL, or the one listened on. */
  readonly url: string;
  /** Host names and addresses served; the first is the one in `url`. */
  readonly host: string;
  readonly port: number;
  /** `tcp://host:port` of the TCP protocol; undefined: `tcpPort` of whatever host a client calls. */
  readonly tcpUrl: string | undefined;
  readonly tcpPort: number;
}
