/**
 * The types of C# in a text of an index: casts, constants, and the types that patterns name. The translation infers a
 * type from the syntax only.
 */
import type { Expression } from "./csharp-tree.ts";

const integerTypes = /^(?:s?byte|u?short|u?int|u?long|U?Int(?:16|32|64))$/;

/** Bits of an integer type, negative for an unsigned one. */
function integerBits(name: string): number {
  const [, unsigned = "", word = ""] = /^(u|s)?(byte|short|int\d*|long)$/i.exec(name) ?? [];
  const kind = word.toLowerCase();
  const bits =
    kind === "byte"
      ? 8
      : /^(?:short|int16)$/.test(kind)
        ? 16
        : /^(?:long|int64)$/.test(kind)
          ? 64
          : 32;
  const isSigned = kind === "byte" ? unsigned === "s" : unsigned === "";
  return isSigned ? bits : -bits;
}

/** Types that patterns can name, without `System.` and type arguments. */
export const patternTypes: Readonly<Record<string, string>> = {
  ...Object.fromEntries(
    `string int long short Int16 byte sbyte uint ulong ushort float char Single double decimal bool object DateTime
    DateTimeOffset TimeSpan IEnumerable DynamicArray DynamicBlittableJson DynamicNullObject`
      .split(/\s+/)
      .map((name) => [name, name]),
  ),
  ...{ String: "string", Int32: "int", Int64: "long", Double: "double", Decimal: "decimal" },
  ...{ Boolean: "bool", Object: "object" },
};

/** Returns a cast of a script's value; null if casts to this type are not supported. */
export function cast(type: string, value: string): string | null {
  const isNullable = type.endsWith("?");
  const name = type.replace(/^System\./, "").replace("?", "");
  if (integerTypes.test(name)) {
    return `csInteger(${value}, ${isNullable}, ${integerBits(name)})`;
  }
  if (/^[dD]ecimal$/.test(name)) return `csToDecimal(${value}, ${isNullable})`;
  if (/^(?:float|double|Single|Double)$/.test(name)) {
    return `csToDouble(${value}, ${isNullable})`;
  }
  if (/^(?:string|String)$/.test(name)) {
    return isNullable ? `csAsString(${value})` : `csString(${value})`;
  }
  if (/^(?:bool|Boolean)$/.test(name)) return isNullable ? value : `csBoolean(${value})`;
  const isSame =
    /^(?:dynamic|object|Object|char|DateTime|DateTimeOffset|TimeSpan|DateOnly|TimeOnly|Guid)$/.test(
      name,
    ) ||
    /[<[]/.test(name) ||
    name === "IEnumerable";
  if (!isSame) return null;
  return isNullable ? `(${value} ?? null)` : value;
}

/** Returns the C# type of a constant of `text` in a pattern. */
export function constantType(text: string, value: Expression): string {
  if (value.kind === "unary") return constantType(text, value.value);
  if (value.kind !== "literal") return "int";
  if (typeof value.value === "string") return "string";
  if (typeof value.value === "boolean") return "bool";
  const [, suffix = ""] = /^[\w.]*?([lLmM]?)(?![\w.])/.exec(text.slice(value.at)) ?? [];
  if (/[mM]/.test(suffix)) return "decimal";
  if (value.isDouble) return "double";
  return /[lL]/.test(suffix) ? "long" : "int";
}

/** Returns the function of a method: integers and decimals have different sums and averages. */
export function summing(name: string, selector: Expression | undefined): string {
  if (name === "Sum") return isInteger(selector) ? "csSum" : "csTotal";
  return name === "Average" && isInteger(selector) ? "csMean" : `cs${name}`;
}

/** Returns whether the selector is a function that syntactically returns integers. */
function isInteger(selector: Expression | undefined): boolean {
  if (selector?.kind !== "lambda") return false;
  const { body } = selector;
  if (body.kind === "cast") return integerTypes.test(body.type.replace(/^System\.|\?/g, ""));
  return body.kind === "literal" && !body.isDouble;
}
