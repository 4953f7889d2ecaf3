/**
 * The session of a page served by `jackdaw studio`. The page's address contains a code (`#code=…`), which is
 * exchanged for two secrets: a cookie that scripts cannot read, and a header value that is sent with every request
 * and stays in this tab.
 *
 * A page served by the server itself has no session, because the browser presents a certificate; headers and
 * addresses are unchanged.
 */
import { signal } from "@preact/signals";

const key = "jackdaw-session";
const otherTabsMs = 300;

/** Reason why the page cannot send requests: the code was rejected, or there is no session. */
export const signedOut = signal<"code-refused" | "no-session" | null>(null);

let half = sessionStorage.getItem(key);
const channel = new BroadcastChannel(key);
const entered = enter();

/** Returns the headers to add to each request. */
export async function sessionHeaders(): Promise<Readonly<Record<string, string>>> {
  await entered;
  return half === null ? {} : { "X-Jackdaw-Session": half };
}

/**
 * Returns the address for requests without headers: a web socket, or a link or form that downloads. Behind `jackdaw
 * studio`, the address is valid for one use within ten seconds. A socket: `new WebSocket(new URL(await urlFor(path),
 * location.href.replace(/^http/, "ws")))`.
 *
 * @param path path of this origin, for example `/databases/shop/changes?id=1`
 */
export async function urlFor(path: string): Promise<string> {
  const { pathname, search } = new URL(path, window.location.href);
  const target = pathname + search;
  const headers = await sessionHeaders();
  if (half === null) return target;
  const body = JSON.stringify({ path: target });
  const response = await fetch("/studio/ticket", { method: "POST", headers, body });
  if (!response.ok) throw new Error("The session of this page has ended.");
  const { Ticket } = (await response.json()) as { Ticket: string };
  return `${target}${search === "" ? "?" : "&"}jackdaw-ticket=${Ticket}`;
}

/**
 * Requests a session from other tabs after a request was rejected without one.
 *
 * @param sent the rejected headers
 * @returns true if another tab provided a session
 */
export async function requestSession(sent: Readonly<Record<string, string>>): Promise<boolean> {
  const refused = sent["X-Jackdaw-Session"] ?? null;
  if (half === refused) channel.postMessage("ask");
  const untilMs = performance.now() + otherTabsMs;
  while (half === refused && performance.now() < untilMs) {
    await new Promise((resolve) => setTimeout(resolve, 20));
  }
  if (half === refused) signedOut.value ??= "no-session";
  return half !== refused;
}

async function enter(): Promise<void> {
  const code = /^#code=([\w-]+)$/.exec(window.location.hash)?.[1];
  if (code === undefined) return;
  // Remove the code from the address, so that it is not stored or shared.
  window.history.replaceState(null, "", window.location.pathname);
  try {
    const body = JSON.stringify({ code });
    const response = await fetch("/studio/session", { method: "POST", body });
    if (!response.ok) {
      signedOut.value = "code-refused";
      return;
    }
    storeSession(((await response.json()) as { Session: string }).Session);
  } catch {
    // The next request reports the error.
  }
}

function storeSession(given: string): void {
  half = given;
  sessionStorage.setItem(key, given);
}

channel.addEventListener("message", ({ data }: MessageEvent<unknown>) => {
  if (data === "ask" && half !== null) channel.postMessage({ half });
  else if (typeof data === "object" && data !== null && "half" in data)
    storeSession(String(data.half));
});
