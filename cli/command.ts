/** What a command of `jackdaw` is: a row of the table, and the surroundings that it runs in. */

import type { Variables } from "../server/settings/setting-sources.ts";
import type { Client } from "./client.ts";

export interface Option {
  readonly short?: string;
  /** The word for the value in help; undefined: a switch. */
  readonly value?: string;
  readonly isRepeated?: true;
  readonly about: string;
  /** What it names, for completion. */
  readonly names?: Named;
}

/** Things of a server whose names can be completed. */
export const namedThings = ["databases", "indexes", "operations"] as const;
export type Named = (typeof namedThings)[number];

export interface Argument {
  readonly name: string;
  readonly names?: Named;
  readonly isOptional?: true;
  /** Takes all that are left. */
  readonly isRest?: true;
}

export interface Command {
  /** One or two words: `index list`. */
  readonly name: string;
  readonly about: string;
  readonly arguments: readonly Argument[];
  readonly options: Readonly<Record<string, Option>>;
  readonly example: string;
  /** Does it ask a server? Then it has the options of the connection, too. */
  readonly needs: "nothing" | "server" | "database";
  readonly load: () => Promise<{ readonly run: Run }>;
}

export type Run = (surroundings: Surroundings) => Promise<void>;

export interface Streams {
  readonly input: NodeJS.ReadableStream & { isTTY?: boolean };
  readonly output: NodeJS.WritableStream & { isTTY?: boolean; columns?: number; rows?: number };
  readonly errors: NodeJS.WritableStream & { isTTY?: boolean; columns?: number };
}

export interface Surroundings {
  readonly command: Command;
  /** All commands. */
  readonly table: readonly Command[];
  readonly arguments: readonly string[];
  readonly options: Options;
  readonly streams: Streams;
  readonly environment: Variables;
  /** The database that is asked for. @throws Failure usage when none is */
  readonly database: () => string;
  readonly client: () => Client;
  /** Prints a line. */
  readonly print: (line: string) => void;
  /** Aborted by Ctrl-C. */
  readonly interrupted: AbortSignal;
}

/** Values of options by their long names. */
export interface Options {
  text(name: string): string | undefined;
  all(name: string): readonly string[];
  is(name: string): boolean;
}
