/** Opens an address in the browser of the desktop. */
import { spawn } from "node:child_process";

/** The program that opens addresses, and its arguments; no shell reads them. */
export function openerOf(platform: NodeJS.Platform, address: string): [string, string[]] {
  if (platform === "darwin") return ["open", [address]];
  // `start` is a word of the shell; this is what it calls.
  if (platform === "win32") return ["rundll32.exe", ["url.dll,FileProtocolHandler", address]];
  return ["xdg-open", [address]];
}

/** A machine without a desktop has no such program: then nothing happens. */
export function openInBrowser(address: string): void {
  const [program, words] = openerOf(process.platform, address);
  const child = spawn(program, words, { stdio: "ignore", detached: true });
  child.on("error", () => undefined);
  child.unref();
}
