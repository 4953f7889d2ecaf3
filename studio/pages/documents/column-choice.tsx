/** Selection and order of the columns, including fields of nested objects by path. */
import { useState } from "preact/hooks";
import { Icon } from "../../components/icon.tsx";
import { Popover } from "../../components/popover.tsx";
import type { ChosenColumn } from "./list-columns.tsx";

interface Properties {
  readonly chosen: readonly ChosenColumn[];
  /** Available fields. */
  readonly fields: readonly string[];
  /** Undefined selects the columns automatically. */
  choose(chosen: readonly ChosenColumn[] | undefined): void;
}

export function ColumnChoice({ chosen, fields, choose }: Properties) {
  const [typed, setTyped] = useState("");
  const others = fields.filter((name) => !chosen.some(({ path }) => path === name));
  const add = (path: string) => choose([...chosen, { path, width: undefined }]);
  const lift = (at: number) => {
    const next = [...chosen];
    next.splice(at - 1, 0, ...next.splice(at, 1));
    choose(next);
  };
  return (
    <Popover text="Columns" icon="cols">
      {() => (
        <>
          {chosen.map(({ path }, at) => (
            <div key={path} class="row">
              <label class="row grow">
                <input
                  type="checkbox"
                  checked
                  onChange={() => choose(chosen.filter((one) => one.path !== path))}
                />
                <span class="cut">{path}</span>
              </label>
              <button
                type="button"
                class="btn quiet icon"
                aria-label={`Move ${path} up`}
                disabled={at === 0}
                onClick={() => lift(at)}
              >
                ↑
              </button>
            </div>
          ))}
          {others.map((path) => (
            <label key={path} class="row">
              <input type="checkbox" checked={false} onChange={() => add(path)} />
              <span class="cut">{path}</span>
            </label>
          ))}
          <form
            class="row"
            onSubmit={(event) => {
              event.preventDefault();
              const path = typed.trim();
              if (path !== "" && !chosen.some((one) => one.path === path)) add(path);
              setTyped("");
            }}
          >
            <span class="field grow">
              <input
                aria-label="Another field"
                placeholder="ShipTo.City"
                value={typed}
                onInput={(event) => setTyped(event.currentTarget.value)}
              />
            </span>
            <button type="submit" class="btn icon" aria-label="Add field">
              <Icon name="plus" />
            </button>
          </form>
          <button type="button" class="btn" onClick={() => choose(undefined)}>
            Automatic columns
          </button>
        </>
      )}
    </Popover>
  );
}
