/** The body of a request, taken when it is first read: until then a refusal costs the client nothing to send. */
import type { Exchange } from "./exchange.ts";

/** As `exchange.bodyStream()`, which is called when the iteration begins. */
export function lateBody(exchange: Exchange): AsyncIterable<Buffer> {
  return { [Symbol.asyncIterator]: () => exchange.bodyStream()[Symbol.asyncIterator]() };
}
