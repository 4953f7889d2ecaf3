/** Names and addresses by which a server can be reached, for its certificate. */
import { isIP } from "node:net";
import { hostname, networkInterfaces } from "node:os";

/**
 * Returns the names and addresses of a server that listens on `host`, the preferred one first: the local ones, all
 * addresses of the machine if it listens on every address, and `others`.
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

/** Removes the brackets that URLs put around IPv6 addresses: `[::1]` -> `::1`. */
export function bareHost(host: string): string {
  return host.startsWith("[") ? host.slice(1, -1) : host;
}

/** Returns the domain in the admin file names: the host name, or "localhost" for an address. */
export function domainOf(host: string): string {
  return isIP(host) !== 0 || !isHostName(host) ? "localhost" : host;
}

function isHostName(name: string): boolean {
  return /^[A-Za-z0-9]([A-Za-z0-9.-]*[A-Za-z0-9])?$/.test(name);
}
