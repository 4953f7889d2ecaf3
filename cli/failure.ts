/** Failures of commands, each with the exit code that scripts rely on. */

export const failureCodes = {
  failed: 1,
  usage: 2,
  unreachable: 3,
  refused: 4,
  conflict: 5,
  missing: 6,
  interrupted: 130,
} as const;

export type FailureKind = keyof typeof failureCodes;

/** Description of each failure, for help and docs/commands.md. */
export const failureMeanings: Readonly<Record<FailureKind, string>> = {
  failed: "the command failed",
  usage: "wrong arguments",
  unreachable: "cannot connect to the server",
  refused: "access denied: no certificate, or insufficient access",
  conflict: "a conflict with stored data, or a stale index",
  missing: "the document, database, index or operation does not exist",
  interrupted: "interrupted with Ctrl-C",
};

/** The message is one line with the problem, the reason, and the remedy. */
export class Failure extends Error {
  override readonly name = "Failure";
  readonly kind: FailureKind;

  constructor(kind: FailureKind, message: string, options?: { cause?: unknown }) {
    super(message, options);
    this.kind = kind;
  }

  get exitCode(): number {
    return failureCodes[this.kind];
  }
}
