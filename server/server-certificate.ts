/**
 * The certificate that the server shows: found in the data folder, made there, or brought along (PEM or PFX). Checks it before
 * anything listens.
 */
import { createPrivateKey, X509Certificate } from "node:crypto";
import { existsSync, readFileSync } from "node:fs";
import { basename, dirname, extname, join } from "node:path";
import { createSecureContext, type SecureContextOptions } from "node:tls";
import type { AdminPaths } from "../certs/certificate-folder.ts";
import { StartError } from "./start-error.ts";

export interface ServerCertificate {
  readonly tls: SecureContextOptions;
  readonly certificate: X509Certificate;
  /** Where it came from, for messages. */
  readonly path: string;
  /** The key's file, when it is not in `path` too. */
  readonly keyPath: string | undefined;
  /** The CA to trust, when we made it. */
  readonly authorityPath: string | undefined;
  readonly admin: AdminPaths | undefined;
  readonly warnings: readonly string[];
}

const dayMs = 86_400_000;
/** Days before its end from which on a certificate is reported at each start. */
const warningDays = 30;
const serverAuthId = "1.3.6.1.5.5.7.3.1";
const anyUsageId = "2.5.29.37.0";

/** @throws StartError certificate-missing, -unreadable, -password-wrong, -date, -usage */
export function loadServerCertificate(
  path: string,
  password: string | undefined,
): ServerCertificate {
  const bytes = readCertificateFile(path);
  const isPem = bytes.includes("-----BEGIN ");
  const tls = isPem ? readPem(path, bytes, password) : readPfx(path, bytes, password);
  const certificate = tls.certificate;
  const warnings = checkCertificate(certificate, path, Date.now());
  return { ...tls, path, authorityPath: undefined, admin: undefined, warnings };
}

/** The set in `<data folder>/certs`, made when it is not there. `hosts`: names and addresses to be called by. */
export async function loadOrMakeServerCertificate(
  folder: string,
  domain: string,
  hosts: readonly string[],
): Promise<ServerCertificate> {
  const { findCertificateFolder, makeCertificateFolder, remakeServerCertificate } = await import(
    "../certs/certificate-folder.ts"
  );
  const paths =
    (await findCertificateFolder(folder)) ?? (await makeCertificateFolder(folder, domain, hosts));
  const notes: string[] = [];
  let loaded = loadServerCertificate(paths.server, undefined);
  const missing = hosts.filter((host) => !names(loaded.certificate, host));
  if (missing.length > 0 && existsSync(paths.authorityKey)) {
    await remakeServerCertificate(paths, [...new Set([...hosts, ...ownNames(loaded.certificate)])]);
    loaded = loadServerCertificate(paths.server, undefined);
    notes.push(`The server certificate was made anew to name ${missing.join(", ")} too.`);
  }
  return {
    ...loaded,
    authorityPath: paths.authority,
    admin: paths.admin,
    warnings: [...loaded.warnings, ...notes],
  };
}

/** The admin's certificate in that set. @throws StartError */
export function readAdminCertificate(admin: AdminPaths): X509Certificate {
  try {
    return new X509Certificate(readCertificateFile(admin.certificate));
  } catch (error) {
    throw error instanceof StartError ? error : unreadable(admin.certificate, error);
  }
}

function names(certificate: X509Certificate, host: string): boolean {
  return (certificate.checkHost(host) ?? certificate.checkIP(host)) !== undefined;
}

function ownNames(certificate: X509Certificate): string[] {
  const text = certificate.subjectAltName ?? "";
  return [...text.matchAll(/(?:DNS|IP Address):([^,\s"]+)/g)].map((match) => match[1] as string);
}

function readCertificateFile(path: string): Buffer {
  try {
    return readFileSync(path);
  } catch (error) {
    const isMissing = (error as { code?: unknown }).code === "ENOENT";
    throw new StartError(
      isMissing ? "certificate-missing" : "certificate-unreadable",
      isMissing
        ? `The certificate file ${path} does not exist; correct Security.Certificate.Path, or leave it out to have one made`
        : `The certificate file ${path} cannot be read (${(error as Error).message}); check its owner and mode`,
      { cause: error },
    );
  }
}

interface Readable {
  readonly tls: SecureContextOptions;
  readonly keyPath: string | undefined;
  readonly certificate: X509Certificate;
}

/** One file with both, or the key beside it as `<name>.key`. */
function readPem(path: string, bytes: Buffer, password: string | undefined): Readable {
  const text = bytes.toString("utf8");
  let keyText = text;
  let keyPath: string | undefined;
  if (!text.includes("PRIVATE KEY-----")) {
    keyPath = join(dirname(path), `${basename(path, extname(path))}.key`);
    if (!existsSync(keyPath)) {
      throw new StartError(
        "certificate-missing",
        `${path} has no private key, and there is no ${keyPath}; put the key there, or both into one file`,
      );
    }
    keyText = readCertificateFile(keyPath).toString("utf8");
  }
  let certificate: X509Certificate;
  try {
    certificate = new X509Certificate(text);
  } catch (error) {
    throw unreadable(path, error);
  }
  const key = readKey(path, keyText, password);
  if (
    !certificate.checkPrivateKey(createPrivateKey({ key: keyText, passphrase: password ?? "" }))
  ) {
    throw new StartError(
      "certificate-unreadable",
      `The private key is not that of the certificate in ${path}; bring the two that belong together`,
    );
  }
  return { tls: { cert: text, key, ...passphrase(password) }, certificate, keyPath };
}

function readKey(path: string, keyText: string, password: string | undefined): string {
  try {
    createPrivateKey({ key: keyText, passphrase: password ?? "" });
    return keyText;
  } catch (error) {
    throw isPasswordError(error) ? wrongPassword(path, error) : unreadable(path, error);
  }
}

function readPfx(path: string, bytes: Buffer, password: string | undefined): Readable {
  const tls = { pfx: bytes, passphrase: password ?? "" };
  try {
    // The context gives the DER bytes of its own certificate; Node's types do not say so.
    const context = createSecureContext(tls).context as { getCertificate(): Buffer | null };
    const der = context.getCertificate();
    if (der === null) throw new Error("there is no certificate in it");
    return { tls, certificate: new X509Certificate(der), keyPath: undefined };
  } catch (error) {
    throw isPasswordError(error) ? wrongPassword(path, error) : unreadable(path, error);
  }
}

function passphrase(password: string | undefined): { passphrase?: string } {
  return password === undefined ? {} : { passphrase: password };
}

function isPasswordError(error: unknown): boolean {
  const { message, code } = error as { message?: unknown; code?: unknown };
  return /mac verify|bad decrypt|bad password|passphrase|interrupted or cancelled|pkcs12 cipherfinal/i.test(
    `${String(message)} ${String(code)}`,
  );
}

function wrongPassword(path: string, cause: unknown): StartError {
  return new StartError(
    "certificate-password-wrong",
    `The password does not open ${path}; correct Security.Certificate.Password`,
    { cause },
  );
}

function unreadable(path: string, cause: unknown): StartError {
  return new StartError(
    "certificate-unreadable",
    `${path} is not a certificate in PEM or PFX form (${(cause as Error).message}); ` +
      "old PFX files: openssl pkcs12 -legacy -in old.pfx -nodes | openssl pkcs12 -export -out new.pfx",
    { cause },
  );
}

/** @returns warnings. @throws StartError certificate-date, certificate-usage */
function checkCertificate(certificate: X509Certificate, path: string, nowMs: number): string[] {
  const fromMs = Date.parse(certificate.validFrom);
  const untilMs = Date.parse(certificate.validTo);
  if (nowMs > untilMs) {
    throw new StartError(
      "certificate-date",
      `The certificate ${path} expired on ${day(untilMs)}; bring a new one, or check this machine's clock`,
    );
  }
  if (nowMs < fromMs) {
    throw new StartError(
      "certificate-date",
      `The certificate ${path} is not valid before ${day(fromMs)}; wait, or check this machine's clock`,
    );
  }
  // Node calls the extended usages keyUsage; no such extension allows everything.
  const usages = certificate.keyUsage as readonly string[] | undefined;
  if (usages !== undefined && !usages.includes(serverAuthId) && !usages.includes(anyUsageId)) {
    throw new StartError(
      "certificate-usage",
      `The certificate ${path} is not made for servers: its extended key usage lacks serverAuth; bring one that has it`,
    );
  }
  const daysLeft = Math.floor((untilMs - nowMs) / dayMs);
  return daysLeft >= warningDays
    ? []
    : [`The certificate ${path} ends on ${day(untilMs)}, in ${daysLeft} days: renew it in time.`];
}

function day(ms: number): string {
  return new Date(ms).toISOString().slice(0, 10);
}
