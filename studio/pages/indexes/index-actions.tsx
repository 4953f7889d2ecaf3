/** Actions on an index: a menu, and the confirmation of a deletion. */

import { send } from "../../base/client.ts";
import { counted } from "../../base/format.ts";
import { may } from "../../base/identity.ts";
import { Confirmation } from "../../components/confirmation.tsx";
import type { MenuItem } from "../../components/menu.tsx";
import { type IndexStats, isAuto } from "./index-info.ts";

export type Act = (work: () => Promise<unknown>) => void;

const priorities = ["Low", "Normal", "High"] as const;

/** @param act runs the action, shows its error, and reloads the list */
export function actionsOf(
  base: string,
  index: IndexStats,
  act: Act,
  remove: (index: IndexStats) => void,
): MenuItem[] {
  const { Name, Status, LockMode, Priority } = index;
  const query = `name=${encodeURIComponent(Name)}`;
  const post = (path: string, json?: object) => () =>
    act(() => send("POST", `${base}/${path}`, json === undefined ? {} : { json }));
  const isLocked = LockMode !== "Unlock";
  const lock = { IndexNames: [Name], Mode: isLocked ? "Unlock" : "LockedError" };
  const ofAdministrators: MenuItem[] = [
    Status === "Paused"
      ? { text: "Resume", icon: "play", choose: post(`admin/indexes/start?${query}`) }
      : {
          text: "Pause",
          icon: "pause",
          note: "until a restart",
          refusal: Status === "Disabled" ? "The index is disabled" : undefined,
          choose: post(`admin/indexes/stop?${query}`),
        },
    Status === "Disabled"
      ? { text: "Enable", choose: post(`admin/indexes/enable?${query}`) }
      : { text: "Disable", choose: post(`admin/indexes/disable?${query}`) },
  ];
  return [
    ...(may("database-admin") ? ofAdministrators : []),
    {
      text: isLocked ? "Unlock" : "Lock",
      note: isLocked ? "" : "prevents changes",
      refusal: isAuto(index) ? "Automatic indexes are managed by queries" : undefined,
      choose: post("indexes/set-lock", lock),
    },
    ...priorities.map((priority) => ({
      text: `Priority ${priority.toLowerCase()}`,
      isChecked: Priority === priority,
      choose: post("indexes/set-priority", { IndexNames: [Name], Priority: priority }),
    })),
    {
      text: "Reset",
      note: "rebuilds the index",
      choose: () => act(() => send("RESET", `${base}/indexes?${query}`)),
    },
    { text: "Delete…", isDangerous: true, choose: () => remove(index) },
  ];
}

export function DeleteIndex({
  index,
  close,
  remove,
}: {
  index: IndexStats;
  close: () => void;
  remove: () => void;
}) {
  return (
    <Confirmation
      title={`Delete the index ${index.Name}?`}
      yes={`Delete ${index.Name}`}
      no="Cancel"
      close={close}
      act={remove}
    >
      <p>
        Its {counted(index.EntriesCount, "entry", "entries")} are deleted; documents are unaffected.
        Queries that name the index fail.
        {isAuto(index) && " A query that needs it recreates it."}
      </p>
    </Confirmation>
  );
}
