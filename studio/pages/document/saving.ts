/** Saves a document; if another version was saved concurrently, it is returned as `theirs`. */
import { useState } from "preact/hooks";
import { ServerError, send } from "../../base/client.ts";
import { type JsonMembers, printSource } from "../../json/json-source.ts";
import { readVersion, type Version } from "./version.ts";

export function useSaving(base: string, id: string, saved: (version: Version) => void) {
  const [isSaving, setSaving] = useState(false);
  const [error, setError] = useState<Error | null>(null);
  const [theirs, setTheirs] = useState<Version | null>(null);
  const [said, setSaid] = useState("");
  /** With `isGone`, the document was deleted and is recreated. */
  const store = async (content: JsonMembers, over: Version, isGone = false) => {
    setSaving(true);
    setError(null);
    try {
      await send("PUT", `${base}/docs?id=${encodeURIComponent(id)}`, {
        text: printSource(new Map(content).set("@metadata", over.metadata), 0),
        headers: isGone ? {} : { "If-Match": `"${over.changeVector}"` },
      });
      setTheirs(null);
      saved(await readVersion(base, id));
      setSaid("Saved");
    } catch (failed) {
      const isConflict = failed instanceof ServerError && failed.status === 409;
      if (isConflict) readVersion(base, id).then(setTheirs, setError);
      else setError(failed as Error);
    } finally {
      setSaving(false);
    }
  };
  return { isSaving, error, theirs, said, store, drop: () => setTheirs(null) };
}
