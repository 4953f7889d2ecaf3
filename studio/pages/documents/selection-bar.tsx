/** Actions on the selected documents, or on all documents of the list. */

import { send } from "../../base/client.ts";
import { count, counted } from "../../base/format.ts";
import { may } from "../../base/identity.ts";
import { href, open } from "../../base/router.ts";
import { Confirmation } from "../../components/confirmation.tsx";
import { Icon } from "../../components/icon.tsx";
import { showToast } from "../../components/toast.tsx";
import { deleteAll, restoreAll } from "./deletion.ts";
import { Export } from "./export.tsx";
import type { ListRow } from "./list-rows.ts";

export interface Selected {
  /** Selected rows by id. */
  readonly rows: ReadonlyMap<string, ListRow>;
  /** True if all documents of the list are selected, instead of `rows`. */
  readonly isAll: boolean;
}

export const nothingSelected: Selected = { rows: new Map(), isAll: false };

/** Maximum number of individually selected documents. */
export const selectedMax = 1000;

interface Properties {
  readonly database: string;
  readonly base: string;
  readonly selected: Selected;
  /** Number of documents in the list. */
  readonly total: number;
  /** Query for all documents of the list. */
  readonly rql: { readonly text: string; readonly parameters: Readonly<Record<string, unknown>> };
  readonly fields: readonly string[];
  readonly noun: string;
  /** True after the delete key was pressed. */
  readonly isDeleting: boolean;
  askToDelete(asks: boolean): void;
  selectAll(): void;
  clear(): void;
  /** Called for documents that this page deleted or restored. */
  changed(ids: readonly string[]): void;
  /** Called when a restore failed. */
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
        aria-label="Clear selection"
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
      showToast(`Deleting ${what}`);
      changed([]);
    } else {
      const ids = [...rows.keys()];
      const deleted = await deleteAll(base, ids);
      changed(ids);
      showToast(`Deleted ${what}`, {
        text: "Undo",
        run: () =>
          void restoreAll(base, deleted).then(() => {
            changed(ids);
            showToast(`Restored ${what}`);
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
          ? "All documents of the list are deleted by a server operation. This cannot be undone."
          : "You can undo this for a few seconds."}
      </p>
      {!isAll && withParts > 0 && (
        <p class="note warn">
          <Icon name="warn" />
          {counted(withParts, "of them has", "of them have")} attachments, counters or time series,
          which are not restored.
        </p>
      )}
    </Confirmation>
  );
}
