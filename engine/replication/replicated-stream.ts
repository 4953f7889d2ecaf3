/**
 * The port to the stream that orders and replicates the frames of one database. An adapter for an existing engine
 * implements it (server/cluster/nats), and so does the simulation of tests.
 *
 * The stream is not trusted: it may answer nothing, answer late, lose what it had stored or serve holes. What follows
 * from an answer is decided by the protocol (replica.ts), from the frames themselves.
 */

/** What the stream said to an append. */
export type AppendOutcome =
  | { readonly kind: "stored"; readonly sequence: number }
  /** The stream says that its last sequence is another one. That proves nothing: it may count what is not committed. */
  | { readonly kind: "refused" }
  /** No answer: it may be stored, or become so later. */
  | { readonly kind: "unknown" };

/** Called from a turn of its own for each message. */
export interface StreamListener {
  /** In order, but may begin above the sequence that was asked for, or pass over some. `bytes` belongs to the callee. */
  message(sequence: number, bytes: Buffer): void;
  /**
   * Asked after each message: the next one comes when this resolves; undefined: it may come. Must not reject. Without it
   * a listener takes messages as fast as they come; with it the stream stays where it is meanwhile.
   */
  room?(): Promise<void> | undefined;
  /** Nothing more comes: follow again. */
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
  /** The message as the stream's leader has it; null when it has none. @throws EngineError stream-unavailable */
  read(sequence: number): Promise<Buffer | null>;
  /** All messages from the sequence `from` on, those that come later too. */
  follow(from: number, listener: StreamListener): { stop(): void };
  /** What it holds; a hint only. @throws EngineError stream-unavailable */
  bounds(): Promise<StreamBounds>;
  /** Removes the messages below `sequence`. @throws EngineError stream-unavailable */
  purgeBelow(sequence: number): Promise<void>;
}
