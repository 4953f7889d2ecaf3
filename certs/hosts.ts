/** Under which names and addresses a server can be called, for the names in its certificate. */
import { isIP } from "node:net";
import { hostname, networkInterfaces } from "node:os";

/**
 * Names and addresses for a server that listens on `host`, the first being the one to call it by: always the local
 * ones, all of the machine's own when it listens everywhere, and those in `others`.
 */
export function servedHosts(host: string, others: readonly string[]): string[] {
  const hosts = new Set<string>();
  const isEverywhere = host === "0.0.0.0" || host === "::";
  for (const other of others) hosts.add(other);
  if (!isEverywhere) hosts.add(host);
  hosts.add("localhost");
  hosts.add("127.0.0.1");
  hosts.add("::1");
  const name = hostname();
  if (isHostName(name)) hosts.add(name);
  if (isEverywhere) {
    for (const addresses of Object.values(networkInterfaces())) {
      for (const { address } of addresses ?? []) {
        if (!address.startsWith("fe80:")) hosts.add(address);
      }
    }
  }
  return [...hosts];
}

/** `[::1]` -> `::1`, as URLs write addresses. */
export function bareHost(host: string): string {
  return host.startsWith("[") ? host.slice(1, -1) : host;
}

/** What the admin's files are called after: the name served, "localhost" when there is only an address. */
export function domainOf(host: string): string {
  return isIP(host) !== 0 || !isHostName(host) ? "localhost" : host;
}

function isHostName(name: string): boolean {
  return /^[A-Za-z0-9]([A-Za-z0-9.-]*[A-Za-z0-9])?$/.test(name);
}
