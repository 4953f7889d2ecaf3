/** Resolution of an edit conflict: the user selects the version of each field. */
import { useState } from "preact/hooks";
import { ago, counted } from "../../base/format.ts";
import { Dialog } from "../../components/dialog.tsx";
import { Table } from "../../components/table.tsx";
import type { JsonMembers } from "../../json/json-source.ts";
import { changesOf, merged, shortText } from "../../json/merge.ts";
import type { Version } from "./version.ts";

interface Properties {
  id: string;
  base: Version;
  theirs: Version;
  mine: JsonMembers;
  close: () => void;
  takeTheirs: () => void;
  save: (both: JsonMembers) => void;
}

export function Conflict({ id, base, theirs, mine, close, takeTheirs, save }: Properties) {
  const changes = changesOf(base.content, theirs.content, mine);
  const conflicts = changes.filter(({ isConflict }) => isConflict);
  const [chosen, setChosen] = useState<ReadonlyMap<string, "theirs" | "mine">>(new Map());
  const choose = (key: string, which: "theirs" | "mine") =>
    setChosen(new Map(chosen).set(key, which));
  const isDecided = conflicts.every(({ path }) => chosen.has(JSON.stringify(path)));
  const mergedFields = changes.length - conflicts.length;
  const done = () => {
    const own = [...chosen].filter(([, which]) => which === "mine").map(([key]) => key);
    save(merged(theirs.content, changes, new Set(own)));
  };
  return (
    <Dialog title={`${id} was changed by another user`} close={close} isAlert isBig>
      <p>
        Their version was saved {ago(theirs.lastModified, Date.now())}. Your changes are kept.{" "}
        {mergedFields > 0 &&
          `${counted(mergedFields, "field")} changed on one side only and merged automatically. `}
        {conflicts.length > 0 && `${counted(conflicts.length, "field needs", "fields need")} you.`}
      </p>
      <div class="panel scroll">
        <Table
          label="Differing fields"
          columns={["Field", "Base version", "Server version", "Yours", "Keep"]}
        >
          {changes.map(({ path, base: before, theirs: other, mine: own, isConflict }) => {
            const key = JSON.stringify(path);
            return (
              <tr key={key}>
                <td class="mono">{path.join(".")}</td>
                <td class="mono">{shortText(before)}</td>
                <td class="mono">{shortText(other)}</td>
                <td class="mono">{shortText(own)}</td>
                <td>
                  {isConflict ? (
                    <fieldset class="seg">
                      <legend class="hidden-label">Keep for {path.join(".")}</legend>
                      {(["theirs", "mine"] as const).map((which) => (
                        <button
                          key={which}
                          type="button"
                          aria-pressed={chosen.get(key) === which}
                          onClick={() => choose(key, which)}
                        >
                          {which === "mine" ? "Yours" : "Theirs"}
                        </button>
                      ))}
                    </fieldset>
                  ) : (
                    <span class="muted">merged</span>
                  )}
                </td>
              </tr>
            );
          })}
        </Table>
      </div>
      <footer class="row">
        <span class="grow" />
        <button type="button" class="btn" onClick={close}>
          Continue editing
        </button>
        <button type="button" class="btn" onClick={takeTheirs}>
          Take theirs
        </button>
        <button type="button" class="btn primary" disabled={!isDecided} onClick={done}>
          Save merged
        </button>
      </footer>
    </Dialog>
  );
}
