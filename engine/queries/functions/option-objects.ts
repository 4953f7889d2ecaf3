/**
 * Options that a method accepts as an object: a parameter, or JSON text. Keys match in any case, and unknown ones are
 * ignored. Errors equal those of RavenDB 7.2.7.
 */
import { EngineError } from "../../base/errors.ts";
import {
  type ParameterValue,
  parseQueryParameters,
  plainText,
} from "../analysis/query-parameters.ts";
import type { QueryScope } from "../analysis/query-scope.ts";
import type { Literal, Parameter } from "../syntax/ast.ts";

/** Characters of options written as text. */
const optionsLengthMax = 64 * 1024;
/** Characters that messages show of them. */
const shownLengthMax = 128;
const int32Max = 2 ** 31 - 1;

export class OptionObject {
  /** By lower-cased key; the last of several wins. */
  readonly #values: ReadonlyMap<string, ParameterValue>;
  readonly #entity: string;

  /** `entity`: the full name of the options' type, for messages. */
  constructor(values: ReadonlyMap<string, ParameterValue>, entity: string) {
    this.#values = new Map([...values].map(([key, value]) => [key.toLowerCase(), value]));
    this.#entity = entity;
  }

  /** Returns the value of a key; undefined if the key is missing. */
  value(key: string): ParameterValue | undefined {
    return this.#values.get(key.toLowerCase());
  }

  /** Returns an integer of 32 bits; fractions are cut. @throws invalid-operation */
  int(key: string, fallback: number): number {
    const value = this.value(key);
    if (value === undefined) return fallback;
    const number = Math.trunc(this.#numberOf(value));
    if (Math.abs(number) > int32Max) throw this.unfit();
    return number;
  }

  /** Returns a number; null is as good as none. @throws invalid-operation */
  double(key: string, fallback: number): number {
    const value = this.value(key);
    return value === undefined || value.type === "null" ? fallback : this.#numberOf(value);
  }

  /** @throws invalid-operation */
  boolean(key: string, fallback: boolean): boolean {
    const value = this.value(key);
    if (value === undefined) return fallback;
    if (value.type === "boolean") return value.value;
    if (value.type === "long" || value.type === "double") return Number(value.value) !== 0;
    const text = value.type === "string" ? value.value.trim().toLowerCase() : "";
    if (text === "true" || text === "false") return text === "true";
    throw this.unfit();
  }

  /** One of some words in any case, or its number. @throws invalid-operation */
  word<Word extends string>(key: string, words: readonly Word[], fallback: Word): Word {
    const value = this.value(key);
    if (value === undefined) return fallback;
    const text = value.type === "string" ? value.value.trim() : "";
    const number =
      value.type === "long" ? Number(value.value) : /^\d{1,9}$/.test(text) ? Number(text) : -1;
    const word =
      words[number] ?? words.find((one) => one.toLowerCase() === text.toLowerCase() && text !== "");
    if (word === undefined) throw this.unfit();
    return word;
  }

  /** Returns a text; other scalars are converted to text. Null if the key is missing. @throws invalid-operation */
  text(key: string): string | null {
    const value = this.value(key);
    return value === undefined || value.type === "null" ? null : this.#textOf(value);
  }

  /** Returns a list of texts; none when it is missing or null. @throws invalid-operation */
  texts(key: string): readonly string[] {
    const value = this.value(key);
    if (value === undefined || value.type === "null") return [];
    if (value.type !== "array") throw this.unfit();
    return value.items.map((item) => (item.type === "null" ? "" : this.#textOf(item)));
  }

  unfit(): EngineError {
    return new EngineError(
      "invalid-operation",
      `Could not convert document options to entity of type ${this.#entity}`,
    );
  }

  #textOf(value: ParameterValue): string {
    if (value.type === "array" || value.type === "object") throw this.unfit();
    return plainText(value);
  }

  #numberOf(value: ParameterValue): number {
    if (value.type === "long" || value.type === "double") return Number(value.value);
    const text = value.type === "string" ? value.value.trim() : "";
    const number = text === "" ? Number.NaN : Number(text);
    if (!Number.isFinite(number)) throw this.unfit();
    return number;
  }
}

/**
 * Returns the options that an argument is: an object parameter, or the JSON text of an object.
 * @throws argument-null, invalid-operation, json-…
 */
export function optionsArgument(
  scope: QueryScope,
  argument: Literal | Parameter,
  entity: string,
): OptionObject {
  if (argument.kind === "literal") return new OptionObject(objectOfText(argument.text), entity);
  const shortName = entity.slice(entity.lastIndexOf(".") + 1);
  const value = givenParameter(scope, argument.name, `'${shortName}'`);
  if (value.type === "object") return new OptionObject(value.fields, entity);
  throw new EngineError(
    "invalid-operation",
    `Parameter '${argument.name}' should contain JSON object.`,
  );
}

/** Parses the members of an object in JSON text. @throws json-… , work-limit */
export function objectOfText(text: string): ReadonlyMap<string, ParameterValue> {
  if (text.length > optionsLengthMax) {
    throw new EngineError(
      "work-limit",
      `Options have ${text.length} characters, more than the limit of ${optionsLengthMax}.`,
    );
  }
  if (text.trim() === "") {
    throw new EngineError("json-truncated", "Buffer ended without reaching end of json content");
  }
  try {
    return parseQueryParameters(text).values;
  } catch (cause) {
    if (!(cause instanceof EngineError)) throw cause;
    const found = text.slice(0, shownLengthMax);
    throw new EngineError(cause.code, `Expected the JSON text of an object, but got: ${found}`, {
      cause,
    });
  }
}

/**
 * Returns the value of a parameter. `content`: a description of the expected value. @throws argument-null,
 * invalid-operation
 */
export function givenParameter(scope: QueryScope, name: string, content: string): ParameterValue {
  if (scope.parameters === null) {
    throw new EngineError("argument-null", "Value cannot be null. (Parameter 'parameters')");
  }
  const value = scope.parameters.values.get(name);
  if (value !== undefined) return value;
  throw new EngineError(
    "invalid-operation",
    `Parameter '${name}' containing ${content} was not present in the list of parameters.`,
  );
}
