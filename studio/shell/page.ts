/** What the present page says of itself to the frame around it. */

import { useEffect } from "preact/hooks";
import { signal } from "../base/signal.ts";

export interface Crumb {
  readonly text: string;
  /** Undefined: one is there. */
  readonly to?: string;
}

export const crumbs = signal<readonly Crumb[]>([]);
/** As in the address; the entry of the sidebar that is marked. */
export const pageName = signal("");

/** Called by each page; the last crumb is its title. */
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
