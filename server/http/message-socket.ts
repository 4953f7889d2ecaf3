/** What routes use of a web socket. */
export interface MessageSocket {
  /** Bytes that were sent and that the operating system has not accepted. */
  readonly bufferedAmount: number;
  /** Sends a text message; as bytes, it is UTF-8 and does not change later. `done`: called once the operating system has accepted it, or with an error. */
  send(text: string | Buffer, done?: (error?: Error) => void): void;
  close(code: number, reason?: string): void;
  on(event: "message", listener: (data: Buffer) => void): unknown;
  on(event: "close", listener: () => void): unknown;
  once(event: "close", listener: () => void): unknown;
}
