/** Types of the command table, and the context in which a command runs. */

import type { Variables } from "../server/settings/setting-sources.ts";
import type { Client } from "./client.ts";

export interface Option {
  readonly short?: string;
  /** Placeholder of the value in help; undefined for a switch. */
  readonly value?: string;
  readonly isRepeated?: true;
  readonly about: string;
  /** Type of the named object, for completion. */
  readonly names?: NameType;
}

/** Object types whose names can be completed. */
export const nameTypes = ["databases", "indexes", "operations"] as const;
export type NameType = (typeof nameTypes)[number];

export interface Argument {
  readonly name: string;
  readonly names?: NameType;
  readonly isOptional?: true;
  /** Accepts all remaining arguments. */
  readonly isRest?: true;
}

export interface Command {
  /** One or two words: `index list`. */
  readonly name: string;
  readonly about: string;
  readonly arguments: readonly Argument[];
  readonly options: Readonly<Record<string, Option>>;
  readonly example: string;
  /** Whether the command connects to a server, and thus has connection options, and whether it needs a database. */
  readonly needs: "nothing" | "server" | "database";
  readonly load: () => Promise<{ readonly run: Run }>;
}

type Run = (context: CommandContext) => Promise<void>;

export interface Streams {
  readonly input: NodeJS.ReadableStream & { isTTY?: boolean };
  readonly output: NodeJS.WritableStream & { isTTY?: boolean; columns?: number; rows?: number };
  readonly errors: NodeJS.WritableStream & { isTTY?: boolean; columns?: number };
}

export interface CommandContext {
  readonly command: Command;
  /** All commands. */
  readonly table: readonly Command[];
  readonly arguments: readonly string[];
  readonly options: Options;
  readonly streams: Streams;
  readonly environment: Variables;
  /** Returns the selected database. @throws Failure usage when none is selected */
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
