/** Addresses of web sockets. */
import { urlFor } from "./session.ts";

/** Returns the address of a web socket. @param path path of the route, for example `/databases/shop/changes` */
export async function socketAddress(path: string): Promise<string> {
  return new URL(await urlFor(path), window.location.href.replace(/^http/, "ws")).href;
}
