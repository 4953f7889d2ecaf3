/**
 * `jackdaw studio`: opens the studio of any server in the browser, signed in with the client certificate of the
 * command.
 */
import type { CommandContext } from "../command.ts";
import { findConnection } from "../connection.ts";
import { openInBrowser } from "../studio/opener.ts";
import { StudioProxy } from "../studio/studio-proxy.ts";
import { portOr } from "../values.ts";
import { versionOf } from "./status.ts";

const pollMs = 10_000;

export async function run(context: CommandContext): Promise<void> {
  const { client, options, environment, print, streams, interrupted } = context;
  const port = portOr(options.text("port"), 0);
  // Report errors of the server or the certificate before opening a browser.
  const build = (await client().json("/build/version")) as Readonly<Record<string, unknown>>;
  const me = (await client().json("/certificates/whoami")) as { Name?: string } | null;
  const proxy = await StudioProxy.start({
    connection: findConnection(options, environment),
    port,
  });
  try {
    const show = () => {
      const address = proxy.newAddress();
      print(options.is("json") ? JSON.stringify({ Address: address }) : address);
      if (!options.is("no-open")) openInBrowser(address);
    };
    if (!options.is("json")) {
      const who = me?.Name === undefined ? "without a certificate" : `as ${me.Name}`;
      print(`Studio of ${client().url.origin} (version ${versionOf(build)}), ${who}:`);
    }
    show();
    if (streams.input.isTTY === true) {
      print(
        "The address works once, within a minute. Press Enter for another one, Ctrl-C to stop.",
      );
      streams.input.on("data", show);
    }
    const reason = await waitForEnd(proxy, interrupted);
    if (reason !== undefined && !options.is("json")) print(`The studio session ended: ${reason}.`);
  } finally {
    streams.input.removeAllListeners("data");
    streams.input.pause();
    await proxy.close();
  }
}

/** Resolves with the reason when the session ends, or with undefined on Ctrl-C. */
function waitForEnd(proxy: StudioProxy, interrupted: AbortSignal): Promise<string | undefined> {
  return new Promise((resolve) => {
    const timer = setInterval(() => {
      const reason = proxy.endReason();
      if (reason !== undefined) end(reason);
    }, pollMs);
    const end = (reason?: string) => {
      clearInterval(timer);
      resolve(reason);
    };
    if (interrupted.aborted) end();
    interrupted.addEventListener("abort", () => end(), { once: true });
  });
}
