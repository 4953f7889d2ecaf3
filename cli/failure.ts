/** Reasons for a command to fail, each with the exit code that scripts rely on. */

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

/** One line for each kind, for help and docs/commands.md. */
export const failureMeanings: Readonly<Record<FailureKind, string>> = {
  failed: "the command failed",
  usage: "wrong arguments",
  unreachable: "no server can be reached",
  refused: "the server refused: no certificate, or not enough rights",
  conflict: "a conflict with what is stored, or an index is stale",
  missing: "the document, database, index or operation does not exist",
  interrupted: "interrupted with Ctrl-C",
};

/** The message is one line: what, why, what to do. */
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
