/** The frames of HTTP/2 (RFC 9113, 4 and 6): their names, codes and sizes. */

/** Bytes of the head of a frame: length, type, flags and stream. */
export const frameHeadBytes = 9;
/** Bytes of a frame's payload: what every peer takes, and what is taken here. */
export const frameBytesMax = 16_384;
/** The largest flow-control window, and the largest number of a stream. */
export const windowMax = 2 ** 31 - 1;
/** A peer's window before it says otherwise, and that of a connection, which settings do not change. */
export const firstWindowBytes = 65_535;

export const frameTypes = {
  data: 0,
  headers: 1,
  priority: 2,
  reset: 3,
  settings: 4,
  pushPromise: 5,
  ping: 6,
  goAway: 7,
  windowUpdate: 8,
  continuation: 9,
} as const;

export const flags = { ack: 1, endStream: 1, endHeaders: 4, padded: 8, priority: 32 } as const;

export const settings = {
  headerTableSize: 1,
  enablePush: 2,
  maxConcurrentStreams: 3,
  initialWindowSize: 4,
  maxFrameSize: 5,
  maxHeaderListSize: 6,
  enableConnectProtocol: 8,
} as const;

export const errorCodes = {
  none: 0,
  protocol: 1,
  internal: 2,
  flowControl: 3,
  streamClosed: 5,
  frameSize: 6,
  refused: 7,
  cancel: 8,
  compression: 9,
  enhanceYourCalm: 11,
} as const;

export type ErrorCode = (typeof errorCodes)[keyof typeof errorCodes];

/** The peer has broken the protocol in a way that ends the connection. */
export class ConnectionError extends Error {
  readonly code: ErrorCode;

  constructor(code: ErrorCode, message: string) {
    super(message);
    this.code = code;
  }
}
