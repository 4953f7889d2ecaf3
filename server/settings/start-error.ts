/**
 * Errors that prevent a start, each with its own exit code, so that scripts can distinguish them.
 *
 * A message is one line: the failure, its subject, and the remedy.
 */
export const exitCodes = {
  unexpected: 1,
  "setting-invalid": 2,
  "url-scheme-unknown": 10,
  "port-in-use": 11,
  "address-unavailable": 12,
  "data-folder-locked": 13,
  "data-folder-unusable": 14,
  "certificate-missing": 15,
  "certificate-unreadable": 16,
  "certificate-password-wrong": 17,
  "certificate-date": 18,
  "certificate-usage": 19,
  "certificate-without-tls": 20,
  "unsecured-not-allowed": 21,
  /** Not at start: another process took the data folder of a running server. */
  "data-folder-lost": 22,
  "data-folder-read-only": 23,
  "data-folder-parent": 24,
  "nats-unusable": 25,
} as const;

type StartFailure = keyof typeof exitCodes;

export class StartError extends Error {
  override readonly name = "StartError";
  readonly failure: StartFailure;

  constructor(failure: StartFailure, message: string, options?: { cause?: unknown }) {
    super(message, options);
    this.failure = failure;
  }

  get exitCode(): number {
    return exitCodes[this.failure];
  }
}
