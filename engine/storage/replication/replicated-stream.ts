/**
 * The port to the stream that orders and replicates the frames of one database. An adapter for an existing engine
 * implements it (server/cluster/nats), and so does the simulation of tests.
 *
 * The stream is not trusted: it may not reply, reply late, lose stored messages or serve gaps. The protocol
 * (replica.ts) draws all conclusions from the frames themselves.
 */

/** The stream's reply to an append. */
export type AppendOutcome =
  | { readonly kind: "stored"; readonly sequence: number }
  /**
   * The stream reports that its last sequence is another one. This proves nothing: it may count uncommitted messages.
   */
  | { readonly kind: "refused" }
  /** No answer: it may be stored, or become so later. */
  | { readonly kind: "unknown" };

/** Called in a tick of its own for each message. */
export interface StreamListener {
  /** In order, but may begin above the requested sequence, or skip some. `bytes` belongs to the callee. */
  message(sequence: number, bytes: Buffer): void;
  /**
   * Called after each message: the next message is delivered when the promise resolves; undefined: immediately. Must
   * not reject. Without it a listener must accept messages at any rate; with it the stream pauses in the meantime.
   */
  room?(): Promise<void> | undefined;
  /** No further messages are delivered: follow again. */
  interrupted(reason: string): void;
}

export interface StreamBounds {
  /** Sequences. */
  readonly first: number;
  readonly last: number;
  /** Of all messages. */
  readonly bytes: number;
}

export interface ReplicatedStream {
  /** Appends `message` if the stream's last sequence is `expectedLast`. Never rejects. */
  append(message: Buffer, expectedLast: number): Promise<AppendOutcome>;
  /**
   * Returns the message as stored by the stream's leader; null if it does not exist. @throws EngineError
   * stream-unavailable
   */
  read(sequence: number): Promise<Buffer | null>;
  /** Delivers all messages from the sequence `from` on, including later ones. */
  follow(from: number, listener: StreamListener): { stop(): void };
  /** Returns the range of stored sequences; a hint only. @throws EngineError stream-unavailable */
  bounds(): Promise<StreamBounds>;
  /** Removes the messages below `sequence`. @throws EngineError stream-unavailable */
  purgeBelow(sequence: number): Promise<void>;
}
