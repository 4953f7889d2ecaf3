/** Where a web socket of the server is opened: the one place that knows. */

/** @param path as of a request, `/databases/shop/changes` */
export async function socketAddress(path: string): Promise<string> {
  return new URL(path, window.location.href.replace(/^http/, "ws")).href;
}
