/** Information about the server. */

import { get } from "../base/client.ts";
import { signal } from "../base/signal.ts";

interface ServerFacts {
  readonly version: string;
}

export const server = signal<ServerFacts | null>(null);

export async function loadServerInfo(): Promise<void> {
  const { body } = await get<{ ProductVersion: string }>("/build/version");
  server.value = { version: body.ProductVersion };
}
