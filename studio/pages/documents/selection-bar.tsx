/** What can be done with the documents that are selected, one by one or all that a filter finds. */

import { send } from "../../base/client.ts";
import { count, counted } from "../../base/format.ts";
import { may } from "../../base/identity.ts";
import { href, open } from "../../base/router.ts";
import { Confirmation } from "../../components/confirmation.tsx";
import { Icon } from "../../components/icon.tsx";
import { say } from "../../components/toast.tsx";
import { bringBack, deleteAll } from "./deletion.ts";
import { Export } from "./export.tsx";
import type { ListRow } from "./list-rows.ts";

export interface Selected {
  /** By id. */
  readonly rows: ReadonlyMap<string, ListRow>;
  /** All that the list has, in place of `rows`. */
  readonly isAll: boolean;
}

export const nothingSelected: Selected = { rows: new Map(), isAll: false };

/** That can be selected one by one. */
export const selectedMax = 1000;

interface Properties {
  readonly database: string;
  readonly base: string;
  readonly selected: Selected;
  /** Of the list. */
  readonly total: number;
  /** The query that lists all. */
  readonly rql: { readonly text: string; readonly parameters: Readonly<Record<string, unknown>> };
  readonly fields: readonly string[];
  readonly noun: string;
  /** Asked to delete, by a key. */
  readonly isDeleting: boolean;
  askToDelete(asks: boolean): void;
  selectAll(): void;
  clear(): void;
  /** Documents of this page's own making are gone or back. */
  changed(ids: readonly string[]): void;
  /** What was deleted could not be brought back. */
  failed(error: Error): void;
}

export function SelectionBar(properties: Properties) {
  const { database, base, selected, total, rql, fields, isDeleting, askToDelete } = properties;
  const { rows, isAll } = selected;
  const number = isAll ? total : rows.size;
  const ids = [...rows.keys()];
  const asked = isAll
    ? { base, ...rql }
    : { base, text: "from @all_docs where id() in ($ids)", parameters: { ids } };
  const patch = () => {
    const named = ids.map((id) => `'${id.replaceAll("'", "\\'")}'`).join(", ");
    const from = isAll
      ? rql.text
          .replace(/ order by .*$/, "")
          .replace("$prefix", `'${String(rql.parameters["prefix"] ?? "")}'`)
      : `from @all_docs where id() in (${named})`;
    open(href(["db", database, "patch"], { q: `${from}\nupdate {\n    \n}` }));
  };
  return (
    <div class="float" role="toolbar" aria-label={`${count(number)} selected`}>
      <b role="status">{count(number)} selected</b>
      {!isAll && total > rows.size && (
        <button type="button" class="btn quiet" onClick={properties.selectAll}>
          Select all {count(total)}
        </button>
      )}
      <Export ask={{ ...asked, name: `${database}-selection`, fields }} total={number} />
      {may("write") && (
        <>
          <button type="button" class="btn quiet" onClick={patch}>
            Patch
          </button>
          <button type="button" class="btn quiet danger" onClick={() => askToDelete(true)}>
            Delete
          </button>
        </>
      )}
      <button
        type="button"
        class="btn quiet icon"
        aria-label="Select nothing"
        onClick={properties.clear}
      >
        <Icon name="x" />
      </button>
      {isDeleting && <DeleteDialog {...properties} number={number} />}
    </div>
  );
}

function DeleteDialog({
  base,
  selected: { rows, isAll },
  rql,
  noun,
  number,
  askToDelete,
  clear,
  changed,
  failed,
}: Properties & { number: number }) {
  const what = counted(number, noun.replace(/s$/, ""), noun);
  const withParts = [...rows.values()].filter(({ flags }) =>
    /HasAttachments|HasCounters|HasTimeSeries/.test(flags),
  ).length;
  const remove = async () => {
    if (isAll) {
      await send("DELETE", `${base}/queries`, {
        json: {
          Query: rql.text.replace(/ order by .*$/, ""),
          QueryParameters: rql.parameters,
        },
      });
      say(`Deleting ${what}`);
      changed([]);
    } else {
      const ids = [...rows.keys()];
      const deleted = await deleteAll(base, ids);
      changed(ids);
      say(`Deleted ${what}`, {
        text: "Undo",
        run: () =>
          void bringBack(base, deleted).then(() => {
            changed(ids);
            say(`Brought ${what} back`);
          }, failed),
      });
    }
    clear();
  };
  return (
    <Confirmation
      title={`Delete ${what}?`}
      yes={`Delete ${what}`}
      close={() => askToDelete(false)}
      act={remove}
    >
      <p>
        {isAll
          ? "All that the list has now are deleted, as an operation of the server. This cannot be undone."
          : "They can be brought back for a few seconds afterwards."}
      </p>
      {!isAll && withParts > 0 && (
        <p class="note warn">
          <Icon name="warn" />
          {counted(withParts, "of them has", "of them have")} attachments, counters or time series,
          which do not come back.
        </p>
      )}
    </Confirmation>
  );
}
