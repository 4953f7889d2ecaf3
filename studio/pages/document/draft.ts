/**
 * Unsaved edits, stored in this browser in case the tab is closed. A draft includes its base version, so that saving
 * it does not overwrite concurrent changes.
 */
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

export function storeDraft(key: string, text: string, base: Version): void {
  const baseText = textOf(base);
  if (text.length + baseText.length > charactersMax) return;
  try {
    localStorage.setItem(key, JSON.stringify({ text, began: baseText, atMs: Date.now() }));
  } catch {
    // Storage is full or disabled: no draft is stored.
  }
}

export function readDraft(key: string): Draft | null {
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
