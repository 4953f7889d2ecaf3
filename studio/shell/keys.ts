/** Global keyboard shortcuts. Single letters can be disabled, and are ignored while text is edited. */

import { signal } from "@preact/signals";
import { useEffect, useRef } from "preact/hooks";
import { open } from "../base/router.ts";
import { switchTheme } from "../base/theme.ts";

const storageKey = "jackdaw-letters";

export const hasLetterKeys = signal(localStorage.getItem(storageKey) !== "off");

export function setLetterKeys(isOn: boolean): void {
  hasLetterKeys.value = isOn;
  localStorage.setItem(storageKey, isOn ? "on" : "off");
}

/** Initial text of the palette; null if it is closed. */
export const palette = signal<string | null>(null);

/** Letters after `g`, by page name. */
export const pageKeys: Readonly<Record<string, string>> = {
  docs: "d",
  query: "q",
  patch: "p",
  indexes: "i",
  subscriptions: "u",
  performance: "f",
  backup: "b",
  certificates: "c",
  cluster: "n",
  log: "l",
  databases: "s",
};

/** Displayed list of shortcuts, in order. */
export const keyList: readonly (readonly [string, string])[] = [
  ["Ctrl K", "Search, go, do"],
  ["g d, g q, g p, g i", "Documents, query, patch, indexes"],
  ["g u, g f, g b", "Subscriptions, performance, backup"],
  ["g c, g n, g l, g s", "Certificates, cluster, log, databases"],
  ["/", "Filter"],
  ["?", "These keys"],
  ["Ctrl .", "Light or dark"],
  ["Esc", "Close the topmost dialog or panel"],
  ["j k ↑ ↓", "In lists: next, previous row"],
  ["Enter", "In lists: open"],
  ["Space", "In lists: peek"],
  ["x, Ctrl A", "In lists: select a row, select all shown rows"],
  ["Shift ← →, Alt ← →", "On a column header: resize, move"],
  ["n", "New"],
  ["Del", "In lists: delete the selection"],
  ["c", "In lists: copy the id"],
  ["r", "In lists: the newest"],
  ["Ctrl S", "In editors: save"],
  ["Ctrl D", "On a document: duplicate"],
  ["Ctrl Enter", "In editors: run"],
  ["F7, Shift F7", "In differences: next, previous change"],
  ["1 to 5", "On a document: the tabs beside it"],
];

const prefixMs = 1200;

/** Handles the global shortcuts. @param addresses addresses of the pages, by name */
export function useKeys(addresses: Readonly<Record<string, string>>): void {
  useEffect(() => {
    let prefixedMs = Number.NEGATIVE_INFINITY;
    const pressed = (event: KeyboardEvent) => {
      if (event.defaultPrevented) return;
      const isWithControl = (event.ctrlKey || event.metaKey) && !event.altKey;
      if (isWithControl && event.key === "k") palette.value = palette.value === null ? "" : null;
      else if (isWithControl && event.key === ".") switchTheme();
      else if (isWithControl || event.altKey || !hasLetterKeys.value || isTyping(event)) return;
      else if (performance.now() - prefixedMs < prefixMs) {
        prefixedMs = Number.NEGATIVE_INFINITY;
        const page = Object.keys(pageKeys).find((name) => pageKeys[name] === event.key);
        const to = page === undefined ? undefined : addresses[page];
        if (to === undefined) return;
        open(to);
      } else if (event.key === "g") prefixedMs = performance.now();
      else if (event.key === "/") focusFilter();
      else if (event.key === "?") palette.value = "?";
      else if (event.key === "n") document.querySelector<HTMLElement>("[data-new]")?.click();
      else return;
      event.preventDefault();
    };
    document.addEventListener("keydown", pressed);
    return () => document.removeEventListener("keydown", pressed);
  }, [JSON.stringify(addresses)]);
}

/** Handles single letters of a page; `pressed` returns true for a handled letter. */
export function useLetters(pressed: (key: string) => boolean): void {
  const latest = useRef(pressed);
  latest.current = pressed;
  useEffect(() => {
    const down = (event: KeyboardEvent) => {
      if (event.ctrlKey || event.metaKey || event.altKey || event.defaultPrevented) return;
      if (!hasLetterKeys.value || isTyping(event)) return;
      if (latest.current(event.key)) event.preventDefault();
    };
    document.addEventListener("keydown", down);
    return () => document.removeEventListener("keydown", down);
  }, []);
}

/** Returns true if text is being edited. The editor is in a shadow root. */
function isTyping(event: KeyboardEvent): boolean {
  const [target] = event.composedPath();
  if (!(target instanceof HTMLElement)) return false;
  if (target.isContentEditable || target.closest("dialog") !== null) return true;
  return target.matches('input:not([type="checkbox"]):not([type="radio"]), textarea, select');
}

function focusFilter(): void {
  document.querySelector<HTMLElement>('#filter, input[aria-label="Filter"]')?.focus();
}
