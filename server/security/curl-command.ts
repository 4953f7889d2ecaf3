/** A curl command with a client certificate, to be pasted into a POSIX shell. */

/** @param trust curl's options about the server's certificate: `--cacert PATH`, `-k`, or none */
export function curlCommand(
  url: string,
  client: { readonly certificate: string; readonly key: string },
  trust: readonly string[],
): string {
  // curl reads a password after an unescaped colon.
  const certificate = client.certificate.replaceAll(":", "\\:");
  const words = [...trust, "--cert", certificate, "--key", client.key];
  return `curl ${words.map(shellQuoted).join(" ")} ${url}`;
}

/** Returns a text as one word of a POSIX shell. */
export function shellQuoted(text: string): string {
  return /^[\w./:@%+=,-]+$/.test(text) ? text : `'${text.replaceAll("'", "'\\''")}'`;
}
