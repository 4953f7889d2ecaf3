/** Edits a value of a JSON tree with its type: a number stays a number, and a text a text, unless the type is changed. */
import { useEffect, useRef, useState } from "preact/hooks";
import { JsonError, type JsonNode, JsonNumber, parseSource } from "../json/json-source.ts";

/** Types of values, with their labels. */
const types = { text: "text", num: "number", bool: "true or false", null: "null" } as const;
type ValueType = keyof typeof types;

const rowsMax = 8;

export function JsonValueForm({
  name,
  node,
  save,
  close,
}: {
  /** Path of the value, for screen readers. */
  name: string;
  node: JsonNode;
  save: (value: JsonNode) => void;
  close: () => void;
}) {
  const [type, setType] = useState(typeOf(node) as ValueType);
  const [text, setText] = useState(() => textOf(node));
  const form = useRef<HTMLFormElement>(null);
  const value = parsedAs(type, text);
  useEffect(() => {
    const field = form.current?.querySelector<HTMLElement>(".value-field") ?? null;
    field?.focus();
    if (field instanceof HTMLTextAreaElement) field.select();
  }, [type]);
  const done = () => {
    if (value !== undefined) save(value);
  };
  const choose = (next: ValueType) => {
    // A text such as "false" becomes that value.
    if (next === "bool" && !/^(true|false)$/.test(text)) setText("true");
    setType(next);
  };
  return (
    <form
      ref={form}
      class="row value-form"
      onSubmit={(event) => {
        event.preventDefault();
        done();
      }}
      onKeyDown={(event) => {
        if (event.key === "Escape") close();
        else if (event.key === "Enter" && !event.shiftKey && isField(event.target)) done();
        else return;
        event.preventDefault();
        event.stopPropagation();
      }}
    >
      {type === "bool" && (
        <select
          class="field value-field grow"
          aria-label={`Value of ${name}`}
          value={text}
          onChange={(event) => setText(event.currentTarget.value)}
        >
          <option>true</option>
          <option>false</option>
        </select>
      )}
      {(type === "text" || type === "num") && (
        <textarea
          class="field area mono value-field grow"
          aria-label={`Value of ${name}`}
          aria-invalid={value === undefined}
          rows={Math.min(rowsMax, text.split("\n").length)}
          spellcheck={false}
          value={text}
          onInput={(event) => setText(event.currentTarget.value)}
        />
      )}
      <select
        class={type === "null" ? "field value-field" : "field"}
        aria-label={`Type of ${name}`}
        value={type}
        onChange={(event) => choose(event.currentTarget.value as ValueType)}
      >
        {Object.entries(types).map(([key, label]) => (
          <option key={key} value={key}>
            {label}
          </option>
        ))}
      </select>
      <button type="submit" class="btn" disabled={value === undefined}>
        Apply
      </button>
      <button type="button" class="btn quiet" onClick={close}>
        Cancel
      </button>
    </form>
  );
}

function isField(target: EventTarget | null): boolean {
  return target instanceof HTMLTextAreaElement || target instanceof HTMLSelectElement;
}

/** Returns the type of a value: `text`, `num`, `bool`, `null`, `list` or `object`. */
export function typeOf(node: JsonNode): string {
  if (node === null) return "null";
  if (node instanceof JsonNumber) return "num";
  if (Array.isArray(node)) return "list";
  if (node instanceof Map) return "object";
  return typeof node === "boolean" ? "bool" : "text";
}

function textOf(node: JsonNode): string {
  if (node instanceof JsonNumber) return node.digits;
  return node === null ? "" : String(node);
}

/** Returns the value of a text, or undefined if it is no value of that type. */
function parsedAs(type: ValueType, text: string): JsonNode | undefined {
  if (type === "text") return text;
  if (type === "null") return null;
  if (type === "bool") return text === "true";
  try {
    const found = parseSource(text);
    return found instanceof JsonNumber ? found : undefined;
  } catch (error) {
    if (error instanceof JsonError) return undefined;
    throw error;
  }
}
