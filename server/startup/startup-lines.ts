/** The lines that a started server prints for its operator. */
import { curlCommand, shellQuoted } from "../security/curl-command.ts";
import type { RunningServer } from "./run.ts";

/** The last line is "Server available on: <url>". */
export function startupLines({ address, certificate }: RunningServer): string[] {
  const available = `Server available on: ${address.url}`;
  const studio = `Studio:             ${address.url}/studio`;
  if (certificate === undefined) {
    return [`Try it:             curl ${address.url}/build/version`, studio, available];
  }
  const { authorityPath, admin, path } = certificate;
  const url = `${address.url}/build/version`;
  if (admin === undefined) {
    const { isPfx, keyPath, tls } = certificate;
    const password = tls.passphrase ? "PASSWORD" : "";
    let shown = `--cert ${shellQuoted(path)}`;
    if (path.endsWith(".json")) shown = "--cert YOUR.crt --key YOUR.key";
    else if (isPfx) shown = `--cert-type P12 --cert ${shellQuoted(`${path}:${password}`)}`;
    else if (keyPath !== undefined) shown += ` --key ${shellQuoted(keyPath)}`;
    return [
      `Server certificate: ${path} (a cluster admin as a client)`,
      `Try it:             curl -k ${shown} ${url}`,
      `${studio} (or run: jackdaw studio)`,
      available,
    ];
  }
  const trust = authorityPath === undefined ? ["-k"] : ["--cacert", authorityPath];
  return [
    ...(authorityPath === undefined ? [] : [`CA certificate:     ${authorityPath}`]),
    `Client certificate: ${admin.certificate}`,
    `Client key:         ${admin.key}`,
    `Try it:             ${curlCommand(url, admin, trust)}`,
    `${studio} (or run: jackdaw studio)`,
    available,
  ];
}
