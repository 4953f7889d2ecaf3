/**
 * What is typed and not saved, kept in this browser: a tab may be closed. A draft has the version that it began with, so
 * that what others saved meanwhile is not lost when it is saved.
 */
import { type JsonMembers, parseSource } from "../../json/json-source.ts";
import { textOf, type Version, versionOf } from "./version.ts";

export interface Draft {
  readonly text: string;
  readonly began: Version;
  readonly atMs: number;
}

/** Larger texts are not kept: a browser keeps about five megabytes of a site. */
const charactersMax = 500_000;

export function draftKey(database: string, id: string): string {
  return `jackdaw-draft\n${database}\n${id}`;
}

export function keepDraft(key: string, text: string, began: Version): void {
  const beganText = textOf(began);
  if (text.length + beganText.length > charactersMax) return;
  try {
    localStorage.setItem(key, JSON.stringify({ text, began: beganText, atMs: Date.now() }));
  } catch {
    // The browser has no room, or keeps nothing: there is no draft, then.
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
    return { text, began: versionOf(parseSource(began) as JsonMembers), atMs };
  } catch {
    return null;
  }
}

export function dropDraft(key: string): void {
  localStorage.removeItem(key);
}
