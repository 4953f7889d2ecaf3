/** The head of a request over HTTP/2, judged as RFC 9113, 8.1 to 8.5 and RFC 8441 demand. */
import { fieldRoles, type HeaderField } from "./header-field.ts";

export class RequestHead {
  readonly method: string;
  /** Path and query as sent; "" for CONNECT to a host. */
  readonly target: string;
  /** ":authority"; "" when there was none. */
  readonly authority: string;
  /** What an extended CONNECT asks for; undefined: it is another request. */
  readonly protocol: string | undefined;
  /** Bytes of the body as declared; undefined: not declared. */
  readonly length: number | undefined;
  readonly #fields: readonly HeaderField[];

  constructor(
    method: string,
    target: string,
    authority: string,
    protocol: string | undefined,
    length: number | undefined,
    fields: readonly HeaderField[],
  ) {
    this.method = method;
    this.target = target;
    this.authority = authority;
    this.protocol = protocol;
    this.length = length;
    this.#fields = fields;
  }

  /** `name` in lower case. Repeated fields are joined by ", ", cookies by "; ". */
  get(name: string): string | undefined {
    let found: string | undefined;
    for (const field of this.#fields) {
      if (field.name !== name) continue;
      found =
        found === undefined
          ? field.value
          : `${found}${name === "cookie" ? ";" : ","} ${field.value}`;
    }
    return found;
  }

  /** All fields but those of the request line, each name once. */
  *entries(): Iterable<readonly [name: string, value: string]> {
    const names = new Set<string>();
    for (const { name } of this.#fields) if (!name.startsWith(":")) names.add(name);
    for (const name of names) yield [name, this.get(name) ?? ""];
  }
}

const lengthForm = /^\d{1,15}$/;
const targetForm = /^(\/[^\0-\x20\x7f]*|\*)$/;

/** The head that these fields are; undefined: they are no request. Hot. */
export function requestHead(fields: readonly HeaderField[]): RequestHead | undefined {
  let method: string | undefined;
  let scheme: string | undefined;
  let target: string | undefined;
  let authority: string | undefined;
  let protocol: string | undefined;
  let length: number | undefined;
  let isBehind = false;
  for (const { role, value } of fields) {
    switch (role) {
      case fieldRoles.plain:
        isBehind = true;
        continue;
      case fieldRoles.contentLength:
        isBehind = true;
        if (!lengthForm.test(value) || (length ?? Number(value)) !== Number(value))
          return undefined;
        length = Number(value);
        continue;
      case fieldRoles.te:
        isBehind = true;
        if (value.toLowerCase() !== "trailers") return undefined;
        continue;
      case fieldRoles.method:
        if (isBehind || method !== undefined || value === "") return undefined;
        method = value;
        continue;
      case fieldRoles.scheme:
        if (isBehind || scheme !== undefined) return undefined;
        scheme = value;
        continue;
      case fieldRoles.path:
        if (isBehind || target !== undefined || !targetForm.test(value)) return undefined;
        target = value;
        continue;
      case fieldRoles.authority:
        if (isBehind || authority !== undefined) return undefined;
        authority = value;
        continue;
      case fieldRoles.protocol:
        if (isBehind || protocol !== undefined) return undefined;
        protocol = value;
        continue;
      default:
        return undefined;
    }
  }
  if (method === undefined) return undefined;
  const isTunnel = method === "CONNECT" && protocol === undefined;
  const isWhole = isTunnel
    ? scheme === undefined && target === undefined && authority !== undefined
    : scheme !== undefined && target !== undefined;
  if (!isWhole || (protocol !== undefined && method !== "CONNECT")) return undefined;
  return new RequestHead(method, target ?? "", authority ?? "", protocol, length, fields);
}

/** May these fields follow a body (RFC 9113, 8.1)? */
export function areTrailers(fields: readonly HeaderField[]): boolean {
  return fields.every(({ name, role }) => !name.startsWith(":") && role !== fieldRoles.refused);
}
