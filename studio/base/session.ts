/**
 * The session of a page that `jackdaw studio` serves. Its address has a code (`#code=…`), which is swapped for two secrets:
 * a cookie that scripts cannot read, and one that goes with every request as a header and stays in this tab.
 *
 * A page that a server serves itself has no session, as the browser shows a certificate: there is nothing to add, and
 * addresses are as they are.
 */
import { signal } from "./signal.ts";

const key = "jackdaw-session";
const otherTabsMs = 300;

/** Why the page cannot ask anything: the code was refused, or there is no session. */
export const signedOut = signal<"code-refused" | "no-session" | null>(null);

let half = sessionStorage.getItem(key);
const channel = new BroadcastChannel(key);
const entered = enter();

/** What goes with each request. */
export async function sessionHeaders(): Promise<Readonly<Record<string, string>>> {
  await entered;
  return half === null ? {} : { "X-Jackdaw-Session": half };
}

/**
 * The address for what sends no headers: a web socket, or a link or form that downloads. Behind `jackdaw studio` it is
 * good for one use in the next ten seconds, so ask for it just before. A socket:
 * `new WebSocket(new URL(await urlFor(path), location.href.replace(/^http/, "ws")))`.
 *
 * @param path of this origin, as `/databases/shop/changes?id=1`
 */
export async function urlFor(path: string): Promise<string> {
  const { pathname, search } = new URL(path, window.location.href);
  const target = pathname + search;
  const headers = await sessionHeaders();
  if (half === null) return target;
  const body = JSON.stringify({ path: target });
  const response = await fetch("/studio/ticket", { method: "POST", headers, body });
  if (!response.ok) throw new Error("This page is not signed in any more.");
  const { Ticket } = (await response.json()) as { Ticket: string };
  return `${target}${search === "" ? "?" : "&"}jackdaw-ticket=${Ticket}`;
}

/**
 * Called when a request was refused for want of a session.
 *
 * @param sent the headers that were not enough
 * @returns whether there is a session by now, of another tab
 */
export async function askOtherTabs(sent: Readonly<Record<string, string>>): Promise<boolean> {
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
  // The address must not be kept or shared with the code in it.
  window.history.replaceState(null, "", window.location.pathname);
  try {
    const body = JSON.stringify({ code });
    const response = await fetch("/studio/session", { method: "POST", body });
    if (!response.ok) {
      signedOut.value = "code-refused";
      return;
    }
    keep(((await response.json()) as { Session: string }).Session);
  } catch {
    // Whatever is asked next shows that nothing is there.
  }
}

function keep(given: string): void {
  half = given;
  sessionStorage.setItem(key, given);
}

channel.addEventListener("message", ({ data }: MessageEvent<unknown>) => {
  if (data === "ask" && half !== null) channel.postMessage({ half });
  else if (typeof data === "object" && data !== null && "half" in data) keep(String(data.half));
});
