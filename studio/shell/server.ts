/** Information about the server. */

import { signal } from "@preact/signals";
import { get } from "../base/client.ts";

interface ServerFacts {
  readonly version: string;
  readonly origin: string;
}

export const server = signal<ServerFacts | null>(null);

export async function loadServerInfo(): Promise<void> {
  const { body } = await get<{ ProductVersion: string }>("/build/version");
  server.value = { version: body.ProductVersion, origin: await loadOrigin() };
}

/** Returns the server's address for programs, once it is loaded. */
export function serverOrigin(): string {
  return server.value?.origin ?? window.location.origin;
}

/** Behind `jackdaw studio`, which uses plain HTTP, the page has an address of its own. */
async function loadOrigin(): Promise<string> {
  const { protocol, origin } = window.location;
  if (protocol === "https:") return origin;
  const { body } = await get<{
    NodeTag: string;
    Topology: { AllNodes: Readonly<Record<string, string>> };
  }>("/cluster/topology");
  return body.Topology.AllNodes[body.NodeTag] ?? origin;
}
