/** Detects newer versions of a document on the server. */
import { useEffect, useRef, useState } from "preact/hooks";
import { watch } from "../../base/changes.ts";
import { ServerError } from "../../base/client.ts";
import { isSame } from "../../json/merge.ts";
import { readVersion, type Version } from "./version.ts";

/** Null if the shown version is the newest. */
type Newer = Version | "deleted" | null;

/**
 * A version that differs only in its related data, such as attachments, is `adopted` immediately.
 * @param isBusy true while the document is saved: new versions are then the user's own
 */
export function useNewer(
  database: string,
  base: string,
  id: string,
  shown: Version,
  isBusy: boolean,
  adopted: (version: Version) => void,
): Newer {
  const [newer, setNewer] = useState<Newer>(null);
  const latest = useRef({ shown, isBusy, adopted });
  latest.current = { shown, isBusy, adopted };
  useEffect(() => setNewer(null), [shown]);
  useEffect(() => {
    const look = async () => {
      if (latest.current.isBusy) return;
      try {
        const found = await readVersion(base, id);
        const { shown: now, isBusy: isSaving, adopted: adopt } = latest.current;
        if (isSaving || found.changeVector === now.changeVector) return;
        const isAlike = isSame(found.content, now.content) && isSame(found.metadata, now.metadata);
        if (isAlike) adopt(found);
        else setNewer(found);
      } catch (error) {
        if (error instanceof ServerError && error.status === 404) setNewer("deleted");
      }
    };
    return watch(database, "watch-doc", id, () => void look());
  }, [database, base, id]);
  return newer;
}
