/** Opens an address in the browser of the desktop. */
import { spawn } from "node:child_process";

/** Returns the program that opens addresses, and its arguments, which no shell interprets. */
export function openerOf(platform: NodeJS.Platform, address: string): [string, string[]] {
  if (platform === "darwin") return ["open", [address]];
  // `start` is a shell builtin, so run the program that it starts.
  if (platform === "win32") return ["rundll32.exe", ["url.dll,FileProtocolHandler", address]];
  return ["xdg-open", [address]];
}

/** Opens an address. Does nothing on a machine without a desktop. */
export function openInBrowser(address: string): void {
  const [program, words] = openerOf(process.platform, address);
  const child = spawn(program, words, { stdio: "ignore", detached: true });
  child.on("error", () => undefined);
  child.unref();
}
