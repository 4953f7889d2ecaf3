/**
 * Unsaved edits, stored in this browser in case the tab is closed. A draft includes its base version, so that saving
 * it does not overwrite concurrent changes.
 */
import { useRef, useState } from "preact/hooks";
import { type JsonMembers, parseSource } from "../../json/json-source.ts";
import type { Times } from "./metadata.tsx";
import { textOf, type Version, versionOf } from "./version.ts";

interface Draft {
  readonly text: string;
  readonly times: Times;
  readonly base: Version;
  readonly atMs: number;
}

/** Maximum size of a stored draft, in characters: browsers store about five megabytes per site. */
const charactersMax = 500_000;

export function draftKey(database: string, id: string): string {
  return `jackdaw-draft\n${database}\n${id}`;
}

function storeDraft(key: string, text: string, times: Times, base: Version): void {
  const baseText = textOf(base);
  if (text.length + baseText.length > charactersMax) return;
  try {
    localStorage.setItem(
      key,
      JSON.stringify({ text, times: [...times], began: baseText, atMs: Date.now() }),
    );
  } catch {
    // Storage is full or disabled: no draft is stored.
  }
}

function readDraft(key: string): Draft | null {
  try {
    const kept = localStorage.getItem(key);
    if (kept === null) return null;
    const { text, times, began, atMs } = JSON.parse(kept) as {
      text: string;
      /** Absent from drafts of earlier versions. */
      times?: [string, string | null][];
      began: string;
      atMs: number;
    };
    const base = versionOf(parseSource(began) as JsonMembers);
    return { text, times: new Map(times), base, atMs };
  } catch {
    return null;
  }
}

export function dropDraft(key: string): void {
  localStorage.removeItem(key);
}

const storedAfterMs = 300;

/** The draft found when the document was opened, and storage of the text and the times while they are edited. */
export function useDraft(
  key: string,
  text: string,
  times: Times,
  stored: string,
  version: Version,
) {
  const [found, setFound] = useState(() => readDraft(key));
  const timer = useRef<ReturnType<typeof setTimeout> | undefined>(undefined);
  const latest = useRef({ text, times, version, stored });
  latest.current = { text, times, version, stored };
  const keep = () => {
    const now = latest.current;
    if (now.text === now.stored && now.times.size === 0) dropDraft(key);
    else storeDraft(key, now.text, now.times, now.version);
  };
  return {
    found,
    /** Called when the text or a time has changed; stores it soon. */
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
