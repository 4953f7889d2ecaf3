/**
 * Creates certificates: a CA, the server certificate, client certificates. Keys are EC (P-256), or RSA on request;
 * signatures use SHA-256. Works on PEM text and reads no files.
 *
 * `selfsigned` is loaded for the first certificate (113 ms), never on an ordinary start.
 *
 * Invariants:
 * - Every leaf has digitalSignature and keyEncipherment: clients refuse certificates without the latter.
 * - Every certificate contains its key identifier, and every leaf its issuer's: strict clients require both.
 * - A name given by a user becomes a single attribute of the subject, whatever characters it contains.
 */
import { generateKeyPair, type KeyObject } from "node:crypto";
import { isIP } from "node:net";
import { promisify } from "node:util";
import { completeCertificate } from "./complete-certificate.ts";

/** A certificate and its private key, both as PEM. */
export interface CertificatePair {
  readonly certificate: string;
  /** PKCS#8, encrypted if a password was given; an RSA key is PKCS#1, never encrypted. */
  readonly key: string;
}

const dayMs = 86_400_000;
const authorityDays = 3650;
/** Some clients refuse server certificates with a longer validity. */
const serverDays = 825;
export const clientDays = 1826;

const generateRsaKey = promisify(generateKeyPair);
const rsaBits = 3072;

type Extension = NonNullable<
  NonNullable<Parameters<typeof import("selfsigned").generate>[1]>["extensions"]
>[number];

/** Creates a self-signed CA; `domain` is only part of its name. */
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

/**
 * Creates a server certificate for `hosts` (names and addresses, at least one), also usable as a client certificate.
 */
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
 * Creates a client certificate named `name`. `notAfter` is the end of its validity; `password` encrypts the key
 * unless it is RSA. `keyType` "rsa" is for clients that read no other PEM, such as RavenDB's client for Node; it can
 * take some seconds.
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
    options.keyType === "rsa" ? await generateRsaKey("rsa", { modulusLength: rsaBits }) : undefined,
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

/** Validity from one day before `now`, to allow for clock skew. */
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
  const key = normalizeNewlines(made.private);
  const certificate = await completeCertificate(
    made.cert,
    authority,
    authority?.key ?? key,
    rsa?.publicKey,
  );
  if (rsa === undefined) return { certificate, key };
  return { certificate, key: rsa.privateKey.export({ type: "pkcs1", format: "pem" }).toString() };
}

/** Escapes one attribute value as in RFC 4514. */
function escapeName(name: string): string {
  return name.replace(/[\\,+"<>;=#]/g, "\\$&").replace(/^ | $/g, "\\ ");
}

function normalizeNewlines(pem: string): string {
  return pem.replaceAll("\r\n", "\n").trimEnd().concat("\n");
}
