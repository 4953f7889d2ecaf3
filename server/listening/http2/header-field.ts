/** A field of a request's head as it was sent, judged once (RFC 9113, 8.2 and 8.3), and the fields that both sides know. */

/** What a field is to its request. */
export const fieldRoles = {
  plain: 0,
  method: 1,
  scheme: 2,
  authority: 3,
  path: 4,
  protocol: 5,
  contentLength: 6,
  te: 7,
  /** No request has it. */
  refused: 8,
} as const;

export type FieldRole = (typeof fieldRoles)[keyof typeof fieldRoles];

export interface HeaderField {
  readonly name: string;
  readonly value: string;
  readonly role: FieldRole;
}

/** Fields other than `plain` by name. Those that belong to a connection no message of HTTP/2 has (RFC 9113, 8.2.2). */
const rolesByName: ReadonlyMap<string, FieldRole> = new Map<string, FieldRole>([
  [":method", fieldRoles.method],
  [":scheme", fieldRoles.scheme],
  [":authority", fieldRoles.authority],
  [":path", fieldRoles.path],
  [":protocol", fieldRoles.protocol],
  ["content-length", fieldRoles.contentLength],
  ["te", fieldRoles.te],
  ["connection", fieldRoles.refused],
  ["keep-alive", fieldRoles.refused],
  ["proxy-connection", fieldRoles.refused],
  ["transfer-encoding", fieldRoles.refused],
  ["upgrade", fieldRoles.refused],
]);

const nameForm = /^[!#$%&'*+\-.^_`|~0-9a-z]+$/;
const badValue = /[\0\r\n]|^[ \t]|[ \t]$/;

export function headerField(name: string, value: string): HeaderField {
  const role =
    rolesByName.get(name) ?? (nameForm.test(name) ? fieldRoles.plain : fieldRoles.refused);
  return { name, value, role: badValue.test(value) ? fieldRoles.refused : role };
}

/** Bytes of a field in a header list and in a table (RFC 7541, 4.1). */
export function fieldBytes({ name, value }: HeaderField): number {
  return name.length + value.length + 32;
}

/** The fields that both sides know from the start (RFC 7541, appendix A); the first has the index 1. */
export const staticFields: readonly HeaderField[] = `:authority
:method GET
:method POST
:path /
:path /index.html
:scheme http
:scheme https
:status 200
:status 204
:status 206
:status 304
:status 400
:status 404
:status 500
accept-charset
accept-encoding gzip, deflate
accept-language
accept-ranges
accept
access-control-allow-origin
age
allow
authorization
cache-control
content-disposition
content-encoding
content-language
content-length
content-location
content-range
content-type
cookie
date
etag
expect
expires
from
host
if-match
if-modified-since
if-none-match
if-range
if-unmodified-since
last-modified
link
location
max-forwards
proxy-authenticate
proxy-authorization
range
referer
refresh
retry-after
server
set-cookie
strict-transport-security
transfer-encoding
user-agent
vary
via
www-authenticate`
  .split("\n")
  .map((line) => {
    const space = line.indexOf(" ");
    return space < 0
      ? headerField(line, "")
      : headerField(line.slice(0, space), line.slice(space + 1));
  });
