/** A body that a page of RavenDB's Studio sends as a form, so that the browser saves the reply as a file. */
import type { Exchange } from "./exchange.ts";

/**
 * Returns the field `name` of a form, or an empty body if the form lacks it; other bodies unchanged. curl labels each body as a
 * form: a body that begins like an object is not a form.
 */
export function formField(exchange: Pick<Exchange, "header">, body: Buffer, name: string): Buffer {
  const type = exchange.header("content-type") ?? "";
  const isForm = body[0] !== 0x7b && /^\s*application\/x-www-form-urlencoded/i.test(type);
  return isForm ? Buffer.from(new URLSearchParams(body.toString()).get(name) ?? "") : body;
}
