/**
 * Makes certificates: a CA, the server certificate, client certificates. EC keys (P-256; RSA when asked for), SHA-256. Text in, text out; no files.
 *
 * `selfsigned` is loaded when the first certificate is made (113 ms), never on an ordinary start.
 *
 * Invariants:
 * - Every leaf has digitalSignature and keyEncipherment: clients refuse certificates that lack the latter.
 * - Every certificate names its key, and every leaf its issuer's: strict clients refuse others.
 * - A name given by a user becomes one attribute of the subject, whatever characters are in it.
 */
import { generateKeyPair, type KeyObject } from "node:crypto";
import { isIP } from "node:net";
import { promisify } from "node:util";
import { completeCertificate } from "./complete-certificate.ts";

/** A certificate and its private key, both PEM. */
export interface CertificatePair {
  readonly certificate: string;
  /** PKCS#8, not encrypted unless a password was given; an RSA key as PKCS#1, never encrypted. */
  readonly key: string;
}

const dayMs = 86_400_000;
export const authorityDays = 3650;
/** Some clients refuse server certificates that are valid for longer. */
export const serverDays = 825;
export const clientDays = 1826;

const makeRsa = promisify(generateKeyPair);
const rsaBits = 3072;

type Extension = NonNullable<
  NonNullable<Parameters<typeof import("selfsigned").generate>[1]>["extensions"]
>[number];

/** A CA of its own; `domain` is in its name only. */
export function makeAuthority(domain: string, now = new Date()): Promise<CertificatePair> {
  return make(
    `Jackdaw CA ${domain}`,
    [
      { name: "basicConstraints", cA: true, pathLenConstraint: 0, critical: true },
      {
        name: "keyUsage",
        keyCertSign: true,
        cRLSign: true,
        digitalSignature: true,
        critical: true,
      },
    ],
    validity(now, authorityDays),
  );
}

/** A server certificate for `hosts` (names and addresses, at least one), also usable as a client's. */
export function makeServerCertificate(
  authority: CertificatePair,
  hosts: readonly string[],
  now = new Date(),
): Promise<CertificatePair> {
  return make(
    hosts[0] ?? "localhost",
    [
      ...leafExtensions,
      { name: "extKeyUsage", serverAuth: true, clientAuth: true },
      {
        name: "subjectAltName",
        altNames: hosts.map((host) =>
          isIP(host) === 0 ? { type: 2 as const, value: host } : { type: 7 as const, ip: host },
        ),
      },
    ],
    validity(now, serverDays),
    authority,
  );
}

/**
 * A client certificate called `name`. `notAfter`: the end of its validity; `password` encrypts the key, unless it is RSA.
 * `keyType` "rsa" is for clients that read no other PEM, as RavenDB's for Node; it takes up to some seconds.
 */
export async function makeClientCertificate(
  authority: CertificatePair,
  name: string,
  options: {
    readonly notAfter?: Date;
    readonly password?: string;
    readonly now?: Date;
    readonly keyType?: "ec" | "rsa";
  } = {},
): Promise<CertificatePair> {
  const bounds = validity(options.now ?? new Date(), clientDays);
  return await make(
    name,
    [...leafExtensions, { name: "extKeyUsage", clientAuth: true }],
    { ...bounds, notAfter: options.notAfter ?? bounds.notAfter },
    authority,
    options.password,
    options.keyType === "rsa" ? await makeRsa("rsa", { modulusLength: rsaBits }) : undefined,
  );
}

const leafExtensions: readonly Extension[] = [
  { name: "basicConstraints", cA: false, critical: true },
  { name: "keyUsage", digitalSignature: true, keyEncipherment: true, critical: true },
];

interface Validity {
  readonly notBefore: Date;
  readonly notAfter: Date;
}

/** From a day ago, for clocks that differ. */
function validity(now: Date, days: number): Validity {
  const time = now.getTime();
  return { notBefore: new Date(time - dayMs), notAfter: new Date(time + days * dayMs) };
}

async function make(
  commonName: string,
  extensions: readonly Extension[],
  { notBefore, notAfter }: Validity,
  authority?: CertificatePair,
  password?: string,
  rsa?: { readonly publicKey: KeyObject; readonly privateKey: KeyObject },
): Promise<CertificatePair> {
  const { generate } = await import("selfsigned");
  const made = await generate([{ name: "commonName", value: escapeName(commonName) }], {
    keyType: "ec",
    curve: "P-256",
    algorithm: "sha256",
    notBeforeDate: notBefore,
    notAfterDate: notAfter,
    extensions: [...extensions],
    ...(authority === undefined ? {} : { ca: { key: authority.key, cert: authority.certificate } }),
    ...(password === undefined ? {} : { passphrase: password }),
  });
  const key = ending(made.private);
  const certificate = await completeCertificate(
    made.cert,
    authority,
    authority?.key ?? key,
    rsa?.publicKey,
  );
  if (rsa === undefined) return { certificate, key };
  return { certificate, key: rsa.privateKey.export({ type: "pkcs1", format: "pem" }).toString() };
}

/** One attribute's value as RFC 4514 writes it. */
function escapeName(name: string): string {
  return name.replace(/[\\,+"<>;=#]/g, "\\$&").replace(/^ | $/g, "\\ ");
}

function ending(pem: string): string {
  return pem.replaceAll("\r\n", "\n").trimEnd().concat("\n");
}
