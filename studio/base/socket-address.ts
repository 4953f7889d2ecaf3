/** Where a web socket of the server is opened: the one place that knows. */
import { urlFor } from "./session.ts";

/** @param path as of a request, `/databases/shop/changes` */
export async function socketAddress(path: string): Promise<string> {
  return new URL(await urlFor(path), window.location.href.replace(/^http/, "ws")).href;
}
