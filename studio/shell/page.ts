/** State that the current page provides to the shell. */

import { signal } from "@preact/signals";
import { useEffect } from "preact/hooks";

export interface Crumb {
  readonly text: string;
  /** Undefined for the current page. */
  readonly to?: string;
}

export const crumbs = signal<readonly Crumb[]>([]);
/** Page name as in the address; selects the entry of the sidebar. */
export const pageName = signal("");

/** Sets the page name and breadcrumbs; the last breadcrumb is the title. */
export function usePage(name: string, parts: readonly Crumb[]): void {
  const text = parts.map((part) => `${part.text} ${part.to ?? ""}`).join("\n");
  useEffect(() => {
    pageName.value = name;
    crumbs.value = parts;
    document.title = `${parts
      .map((part) => part.text)
      .reverse()
      .join(" · ")} · Jackdaw studio`;
  }, [name, text]);
}
