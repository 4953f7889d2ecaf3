/**
 * Unsaved edits, stored in this browser in case the tab is closed. A draft includes its base version, so that saving
 * it does not overwrite concurrent changes.
 */
import { useRef, useState } from "preact/hooks";
import { type JsonMembers, parseSource } from "../../json/json-source.ts";
import { textOf, type Version, versionOf } from "./version.ts";

interface Draft {
  readonly text: string;
  readonly base: Version;
  readonly atMs: number;
}

/** Maximum size of a stored draft, in characters: browsers store about five megabytes per site. */
const charactersMax = 500_000;

export function draftKey(database: string, id: string): string {
  return `jackdaw-draft\n${database}\n${id}`;
}

function storeDraft(key: string, text: string, base: Version): void {
  const baseText = textOf(base);
  if (text.length + baseText.length > charactersMax) return;
  try {
    localStorage.setItem(key, JSON.stringify({ text, began: baseText, atMs: Date.now() }));
  } catch {
    // Storage is full or disabled: no draft is stored.
  }
}

function readDraft(key: string): Draft | null {
  try {
    const kept = localStorage.getItem(key);
    if (kept === null) return null;
    const { text, began, atMs } = JSON.parse(kept) as {
      text: string;
      began: string;
      atMs: number;
    };
    return { text, base: versionOf(parseSource(began) as JsonMembers), atMs };
  } catch {
    return null;
  }
}

export function dropDraft(key: string): void {
  localStorage.removeItem(key);
}

const storedAfterMs = 300;

/** The draft found when the document was opened, and storage of the text while it is edited. */
export function useDraft(key: string, text: string, stored: string, version: Version) {
  const [found, setFound] = useState(() => readDraft(key));
  const timer = useRef<ReturnType<typeof setTimeout> | undefined>(undefined);
  const latest = useRef({ text, version, stored });
  latest.current = { text, version, stored };
  const keep = () => {
    const now = latest.current;
    if (now.text === now.stored) dropDraft(key);
    else storeDraft(key, now.text, now.version);
  };
  return {
    found,
    /** Called when the text has changed; stores it soon. */
    changed() {
      setFound(null);
      clearTimeout(timer.current);
      timer.current = setTimeout(keep, storedAfterMs);
    },
    /** Called when the draft is opened. */
    opened: () => setFound(null),
    drop() {
      dropDraft(key);
      setFound(null);
    },
  };
}
