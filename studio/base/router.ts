/** Addresses of the studio: `/studio/<page>?<state>`. Clicks on ordinary links change the page without reloading. */
import { signal } from "@preact/signals";

interface Address {
  /** Decoded path segments after `/studio/`. */
  readonly path: readonly string[];
  readonly query: URLSearchParams;
  /** Number of pages opened so far; unchanged if only the state of the page changes. */
  readonly visit: number;
}

const prefix = "/studio/";

function read(visit: number): Address {
  const { pathname, search } = window.location;
  const rest = pathname.startsWith(prefix) ? pathname.slice(prefix.length) : "";
  const path = rest.split("/").filter((part) => part !== "" && part !== "index.html");
  return { path: path.map(decodeURIComponent), query: new URLSearchParams(search), visit };
}

export const address = signal<Address>(read(0));

/** Returns the address of a page. Parameters that are undefined or "" are omitted. */
export function href(
  path: readonly string[],
  query: Readonly<Record<string, string | undefined>> = {},
): string {
  const given = Object.entries(query).filter(([, value]) => value !== undefined && value !== "");
  const text = new URLSearchParams(given as [string, string][]).toString();
  return `${prefix}${path.map(encodeURIComponent).join("/")}${text === "" ? "" : `?${text}`}`;
}

/** Opens a page. With `replace`, it replaces the current history entry. */
export function open(to: string, { replace = false } = {}): void {
  const { visit } = address.peek();
  if (replace) history.replaceState(null, "", to);
  else {
    history.pushState(null, "", to);
    document.getElementById("main")?.focus({ preventScroll: true });
  }
  address.value = read(replace ? visit : visit + 1);
}

/** Changes query parameters of the current page without a new history entry. */
export function setQuery(changes: Readonly<Record<string, string | undefined>>): void {
  const { path, query } = address.peek();
  open(href(path, { ...Object.fromEntries(query), ...changes }), { replace: true });
}

/** Starts handling clicks on links, and "back" and "forward". */
export function startRouter(): void {
  window.addEventListener("popstate", () => {
    address.value = read(address.peek().visit + 1);
  });
  document.addEventListener("click", (event) => {
    if (event.defaultPrevented || event.button !== 0) return;
    if (event.ctrlKey || event.metaKey || event.shiftKey || event.altKey) return;
    const link = (event.target as Element | null)?.closest("a");
    if (link?.target !== "" || link.hasAttribute("download")) return;
    if (link.origin !== window.location.origin || !link.pathname.startsWith(prefix)) return;
    event.preventDefault();
    open(link.pathname + link.search);
  });
}
