/** Addresses of the studio: `/studio/<page>?<state>`. Clicks on ordinary links change the page without reloading. */
import { signal } from "./signal.ts";

interface Address {
  /** Decoded path segments after `/studio/`. */
  readonly path: readonly string[];
  readonly query: URLSearchParams;
}

const prefix = "/studio/";

function read(): Address {
  const { pathname, search } = window.location;
  const rest = pathname.startsWith(prefix) ? pathname.slice(prefix.length) : "";
  const path = rest.split("/").filter((part) => part !== "" && part !== "index.html");
  return { path: path.map(decodeURIComponent), query: new URLSearchParams(search) };
}

export const address = signal<Address>(read());

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
  if (replace) history.replaceState(null, "", to);
  else {
    history.pushState(null, "", to);
    document.getElementById("main")?.focus({ preventScroll: true });
  }
  address.value = read();
}

/** Changes query parameters of the current page without a new history entry. */
export function setQuery(changes: Readonly<Record<string, string | undefined>>): void {
  const { path, query } = address.peek();
  open(href(path, { ...Object.fromEntries(query), ...changes }), { replace: true });
}

/** Starts handling clicks on links, and "back" and "forward". */
export function startRouter(): void {
  window.addEventListener("popstate", () => {
    address.value = read();
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
