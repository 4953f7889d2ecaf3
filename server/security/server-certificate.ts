/**
 * A certificate that the server can present: found in the data folder, made there, or supplied (PEM or PFX); and
 * whether it is suitable. `presented-certificate.ts` decides which one is presented.
 */
import { createHash, createPrivateKey, X509Certificate } from "node:crypto";
import { existsSync, readFileSync, statSync } from "node:fs";
import { isIP } from "node:net";
import { basename, dirname, extname, join } from "node:path";
import { createSecureContext, type SecureContextOptions } from "node:tls";
import type { AdminPaths } from "../../certs/certificate-folder.ts";
import { StartError } from "../settings/start-error.ts";

export interface ServerCertificate {
  /**
   * Without `ca` and `pfx`: Node would name their CAs to clients as those whose certificates are accepted, and browsers
   * and Java would send no other. Which clients are let in is decided by their certificates, not by CAs.
   */
  readonly tls: SecureContextOptions;
  readonly certificate: X509Certificate;
  /** Equal for equal files, in hexadecimal. */
  readonly digest: string;
  readonly isPfx: boolean;
  /** Its source, for messages. */
  readonly path: string;
  /** The key file, when the key is not in `path`. */
  readonly keyPath: string | undefined;
  /** The CA to trust, when we made it. */
  readonly authorityPath: string | undefined;
  readonly admin: AdminPaths | undefined;
  readonly warnings: readonly string[];
}

const dayMs = 86_400_000;
/** Days before expiry from which a certificate is reported at each start. */
const warningDays = 30;
const serverAuthId = "1.3.6.1.5.5.7.3.1";
const anyUsageId = "2.5.29.37.0";

/** The source of a certificate: its name in messages, and the name of its password setting. */
export interface CertificateOrigin {
  readonly path: string;
  readonly passwordName: string;
  /** A PEM without a key may have it in a file beside it, `<name>.key`. */
  readonly isFile: boolean;
}

/** Makes a PFX in a current encryption of one in an old one. Not a pipe: openssl reads key and certificates apart. */
const conversion =
  "openssl pkcs12 -legacy -in old.pfx -nodes -out new.pem && " +
  "openssl pkcs12 -export -in new.pem -out new.pfx && rm new.pem";

const configuredPassword = "Security.Certificate.Password";

/**
 * Loads a certificate and its key from a file; validity dates and usages are not checked.
 * @throws StartError certificate-missing, -unreadable, -password-wrong
 */
export async function loadServerCertificate(
  path: string,
  password: string | undefined,
): Promise<ServerCertificate> {
  const origin = { path, passwordName: configuredPassword, isFile: true };
  return readServerCertificate(origin, readCertificateFile(path), password);
}

/** As `loadServerCertificate`, from bytes. */
export async function readServerCertificate(
  origin: CertificateOrigin,
  bytes: Buffer,
  password: string | undefined,
): Promise<ServerCertificate> {
  const isPfx = !bytes.includes("-----BEGIN ");
  const read = isPfx ? await readPfx(origin, bytes, password) : readPem(origin, bytes, password);
  const secretPath = read.keyPath ?? (origin.isFile ? origin.path : undefined);
  const warnings = [
    ...(secretPath === undefined ? [] : exposureWarnings(secretPath)),
    ...(read.tls.pfx === undefined ? [] : [namingWarning(origin.path)]),
  ];
  const { path } = origin;
  return { ...read, isPfx, path, authorityPath: undefined, admin: undefined, warnings };
}

/**
 * Loads the set in `<data folder>/certs`, or makes it when missing. `hosts`: names and addresses to be reached by. The
 * server certificate is reissued for new names, and shortly before it expires, unless `keeps` says that it is to stay.
 */
export async function loadOrMakeServerCertificate(
  folder: string,
  domain: string,
  hosts: readonly string[],
  keeps: (loaded: ServerCertificate) => boolean,
): Promise<ServerCertificate> {
  const { findCertificateFolder, makeCertificateFolder, remakeServerCertificate } = await import(
    "../../certs/certificate-folder.ts"
  );
  const paths =
    (await findCertificateFolder(folder)) ?? (await makeCertificateFolder(folder, domain, hosts));
  const warnings: string[] = [];
  let loaded = await loadServerCertificate(paths.server, undefined);
  const reason = keeps(loaded) ? undefined : whyAnew(loaded.certificate, hosts);
  if (reason !== undefined && existsSync(paths.authorityKey)) {
    await remakeServerCertificate(paths, [...new Set([...hosts, ...ownNames(loaded.certificate)])]);
    loaded = await loadServerCertificate(paths.server, undefined);
    warnings.push(`The server certificate was made anew ${reason}.`);
  }
  return { ...loaded, authorityPath: paths.authority, admin: paths.admin, warnings };
}

/** Why a certificate of our own must be reissued; undefined: it need not be. */
function whyAnew(certificate: X509Certificate, hosts: readonly string[]): string | undefined {
  const missing = hosts.filter((host) => !names(certificate, host));
  if (missing.length > 0) return `to name ${missing.join(", ")} too`;
  const untilMs = Date.parse(certificate.validTo);
  return untilMs - Date.now() < warningDays * dayMs
    ? `before its end on ${day(untilMs)}`
    : undefined;
}

/** The admin certificate of that set. @throws StartError */
export function readAdminCertificate(admin: AdminPaths): X509Certificate {
  try {
    return new X509Certificate(readCertificateFile(admin.certificate));
  } catch (error) {
    throw error instanceof StartError ? error : unreadable(admin.certificate, error);
  }
}

export function names(certificate: X509Certificate, host: string): boolean {
  const found = isIP(host) === 0 ? certificate.checkHost(host) : certificate.checkIP(host);
  return found !== undefined;
}

function ownNames(certificate: X509Certificate): string[] {
  const text = certificate.subjectAltName ?? "";
  return [...text.matchAll(/(?:DNS|IP Address):([^,\s"]+)/g)].map((match) => match[1] as string);
}

/** Whoever has the key can pose as this server, and has all rights on it. */
function exposureWarnings(path: string): string[] {
  const mode = statSync(path).mode & 0o777;
  // Windows has no such modes. A group may be meant to read it.
  if (process.platform === "win32" || (mode & 0o007) === 0) return [];
  return [
    `Everybody on this machine may use the private key in ${path} (mode ${mode.toString(8)}): chmod o-rwx it, and make a new one if they are not all trusted.`,
  ];
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

/** The key file of a PEM file without a key. */
export function keyPathOf(path: string): string {
  return join(dirname(path), `${basename(path, extname(path))}.key`);
}

interface Readable {
  readonly tls: SecureContextOptions;
  readonly keyPath: string | undefined;
  readonly certificate: X509Certificate;
  readonly digest: string;
}

/** One file with both, or the key in a file beside it, `<name>.key`. */
function readPem(origin: CertificateOrigin, bytes: Buffer, password: string | undefined): Readable {
  const { path, isFile } = origin;
  const text = bytes.toString("utf8");
  let keyText = text;
  let keyPath: string | undefined;
  if (!text.includes("PRIVATE KEY-----")) {
    keyPath = keyPathOf(path);
    if (!isFile || !existsSync(keyPath)) {
      const where = isFile ? `, and there is no ${keyPath}; put the key there` : "; bring it too";
      throw new StartError(
        "certificate-missing",
        `The certificate ${path} has no private key${where}, or both into one file`,
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
  const key = readKey(origin, keyText, password);
  if (
    !certificate.checkPrivateKey(createPrivateKey({ key: keyText, passphrase: password ?? "" }))
  ) {
    throw new StartError(
      "certificate-unreadable",
      `The private key is not that of the certificate ${path}; bring the two that belong together`,
    );
  }
  const tls = { cert: text, key, ...passphrase(password) };
  return { tls, certificate, keyPath, digest: digestOf(tls) };
}

function readKey(origin: CertificateOrigin, keyText: string, password: string | undefined): string {
  try {
    createPrivateKey({ key: keyText, passphrase: password ?? "" });
    return keyText;
  } catch (error) {
    throw isPasswordError(error) ? wrongPassword(origin, error) : unreadable(origin.path, error);
  }
}

async function readPfx(
  origin: CertificateOrigin,
  bytes: Buffer,
  password: string | undefined,
): Promise<Readable> {
  const whole = { pfx: bytes, passphrase: password ?? "" };
  let certificate: X509Certificate;
  try {
    // The context returns its own certificate as DER bytes; Node's types omit that.
    const context = createSecureContext(whole).context as { getCertificate(): Buffer | null };
    const der = context.getCertificate();
    if (der === null) throw new Error("there is no certificate in it");
    certificate = new X509Certificate(der);
  } catch (error) {
    throw isPasswordError(error) ? wrongPassword(origin, error) : unreadable(origin.path, error);
  }
  const parts = await partsOfPfx(bytes, whole.passphrase, certificate);
  const tls = parts === undefined ? whole : { ...parts, passphrase: whole.passphrase };
  return { tls, certificate, keyPath: undefined, digest: digestOf(whole) };
}

/**
 * The key of `certificate`, and it with its chain, both in PEM. Undefined: OpenSSL can read the file, but `certs/pfx.ts`
 * cannot, as one in an old encryption.
 */
async function partsOfPfx(
  bytes: Buffer,
  password: string,
  certificate: X509Certificate,
): Promise<{ key: string; cert: string } | undefined> {
  const { readPfx: readContents } = await import("../../certs/pfx.ts");
  const contents = await readContents(bytes, password).catch(() => undefined);
  const key = contents?.keys.find((one) => certificate.checkPrivateKey(one));
  if (contents === undefined || key === undefined) return undefined;
  const chain = chainOf(certificate, contents.certificates);
  return {
    key: key.export({ type: "pkcs8", format: "pem" }).toString(),
    cert: chain.map((one) => one.toString()).join(""),
  };
}

/** `certificate`, its issuer, the issuer of that, and so on, as far as `others` has them. */
function chainOf(
  certificate: X509Certificate,
  others: readonly X509Certificate[],
): readonly X509Certificate[] {
  const chain = [certificate];
  const rest = new Set(others.filter((one) => one.fingerprint256 !== certificate.fingerprint256));
  // The loop reaches each issuer that it adds.
  for (const last of chain) {
    const issuer = [...rest].find((one) => last.checkIssued(one));
    if (issuer === undefined) break;
    rest.delete(issuer);
    chain.push(issuer);
  }
  return chain;
}

function namingWarning(path: string): string {
  return (
    `The certificate ${path} is in a form that only OpenSSL can read, as in old encryptions: the TLS handshake names the ` +
    `CAs in it, and browsers and Java send client certificates of these CAs only. Convert it: ${conversion}`
  );
}

/** Equal for equal files. Replacements on disk refer to it. */
function digestOf(tls: SecureContextOptions): string {
  const hash = createHash("sha256");
  for (const part of [tls.cert, tls.key, tls.pfx]) hash.update(`${String(part)}\n`);
  return hash.digest("hex");
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

function wrongPassword({ path, passwordName }: CertificateOrigin, cause: unknown): StartError {
  return new StartError(
    "certificate-password-wrong",
    `The password does not open the certificate ${path}; correct ${passwordName}`,
    { cause },
  );
}

function unreadable(path: string, cause: unknown): StartError {
  return new StartError(
    "certificate-unreadable",
    `The certificate ${path} is not in PEM or PFX form (${(cause as Error).message}); old PFX files: ${conversion}`,
    { cause },
  );
}

/** May a server present it now? @returns warnings. @throws StartError certificate-date, certificate-usage */
export function checkServerCertificate({ certificate, path }: ServerCertificate): string[] {
  const nowMs = Date.now();
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
  // Node names the extended usages keyUsage; a certificate without that extension allows everything.
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

/** "2026-11-21" */
export function day(ms: number): string {
  return new Date(ms).toISOString().slice(0, 10);
}
