/**
 * The certificate that the server presents, and its replacement at run time by an administrator's request or a renewed
 * file. New connections use it immediately; open ones keep the previous one.
 *
 * A certificate from a request is stored in `<data folder>/certs/replacement.json`: files supplied by the operator are
 * never written. It stays in use until the file that it replaced changes, because the operator then wants the new file.
 *
 * Invariants:
 * - A certificate that would prevent a start is rejected, and nothing changes.
 * - A replacement is on disk before it is presented.
 * - Changes are applied one after another.
 */
import { X509Certificate } from "node:crypto";
import { readFileSync } from "node:fs";
import { mkdir, readFile, rm, stat } from "node:fs/promises";
import { join, resolve } from "node:path";
import { bareHost, domainOf, servedHosts } from "../../certs/hosts.ts";
import type { Config } from "../settings/config.ts";
import { StartError } from "../settings/start-error.ts";
import {
  checkServerCertificate,
  day,
  keyPathOf,
  loadOrMakeServerCertificate,
  loadServerCertificate,
  names,
  readServerCertificate,
  type ServerCertificate,
} from "./server-certificate.ts";

/** Interval of checks for changed certificate files, in milliseconds. */
const watchMs = 2_000;

/** The contents of `replacement.json`. */
interface Replacement {
  /** Base64 of a PFX, or of PEM with certificate and key. */
  readonly Certificate: string;
  readonly Password: string;
  /** The digest of the configured certificate that it replaced. */
  readonly Replaces: string;
}

/** Reports to the operator. */
export interface CertificateReports {
  readonly changed: (line: string) => void;
  readonly failed: (line: string) => void;
}

export class PresentedCertificate {
  readonly #config: Config;
  readonly #reports: CertificateReports;
  readonly #listeners = new Set<(certificate: ServerCertificate) => void>();
  readonly #timer: NodeJS.Timeout;
  /** The certificate from the settings at the start, which determines the set of files. */
  readonly #origin: ServerCertificate;
  /** Digest of the certificate in the configured files, presented or replaced. */
  #configuredDigest: string;
  #current: ServerCertificate;
  /** State of the configured files at the last check. */
  #filesSeen: string;
  /** Number of consecutive checks that found changed files unusable. */
  #looksFailed = 0;
  #turn: Promise<unknown> = Promise.resolve();

  private constructor(
    config: Config,
    reports: CertificateReports,
    origin: ServerCertificate,
    current: ServerCertificate,
    filesSeen: string,
  ) {
    this.#config = config;
    this.#reports = reports;
    this.#origin = origin;
    this.#configuredDigest = origin.digest;
    this.#current = current;
    this.#filesSeen = filesSeen;
    this.#timer = setInterval(() => void this.#look(), watchMs).unref();
  }

  /** Loads or generates the certificate of a secured server. @throws StartError */
  static async open(config: Config, reports: CertificateReports): Promise<PresentedCertificate> {
    const filesSeen = await filesState(config);
    const replacement = await readReplacement(config);
    const origin = await loadConfigured(
      config,
      (loaded) => replacement?.Replaces === loaded.digest,
    );
    const current = await chooseShown(config, origin, replacement);
    return new PresentedCertificate(config, reports, origin, current, filesSeen);
  }

  get current(): ServerCertificate {
    return this.#current;
  }

  /** Calls `listener` with each certificate presented from then on. */
  onChange(listener: (certificate: ServerCertificate) => void): void {
    this.#listeners.add(listener);
  }

  /**
   * Presents `bytes` (PFX, or PEM with certificate and key) instead. Stored and in use when this resolves.
   * @throws StartError if it is not suitable; errors of node:fs
   */
  replace(bytes: Buffer, password: string): Promise<void> {
    return this.#inTurn(async () => {
      const sent = await readSent(this.#config, bytes, password, "of the request");
      const replacement: Replacement = {
        Certificate: bytes.toString("base64"),
        Password: password,
        Replaces: this.#configuredDigest,
      };
      const path = replacementPath(this.#config);
      await mkdir(certificatesFolder(this.#config), { recursive: true, mode: 0o700 });
      const { replacePrivate } = await import("../../certs/certificate-folder.ts");
      await replacePrivate(path, JSON.stringify(replacement));
      this.#show({ ...sent, path }, "was replaced");
    });
  }

  /**
   * Reads the configured files again, and presents their certificate if it has changed.
   * @returns whether it has changed @throws StartError if it is not suitable
   */
  reload(): Promise<boolean> {
    return this.#inTurn(async () => {
      const path = configuredPath(this.#config);
      const loaded = await loadServerCertificate(path, this.#config.certificatePassword);
      if (loaded.digest === this.#configuredDigest) return false;
      const warnings = [...loaded.warnings, ...checkServerCertificate(loaded)];
      this.#configuredDigest = loaded.digest;
      await rm(replacementPath(this.#config), { force: true });
      this.#show({ ...loaded, warnings }, "was renewed");
      return true;
    });
  }

  /** Stops checking the files. */
  close(): void {
    clearInterval(this.#timer);
  }

  #show(certificate: ServerCertificate, how: string): void {
    this.#current = withSetOf(this.#origin, certificate);
    for (const listener of this.#listeners) listener(this.#current);
    const until = day(Date.parse(certificate.certificate.validTo));
    this.#reports.changed(`The server certificate ${how}: ${certificate.path}, until ${until}`);
    for (const warning of certificate.warnings) this.#reports.failed(warning);
  }

  /** Reloads changed files, and retries until they are usable: certificate and key are written one after the other. */
  async #look(): Promise<void> {
    const files = await filesState(this.#config);
    if (files === this.#filesSeen && this.#looksFailed === 0) return;
    if (files !== this.#filesSeen) this.#looksFailed = 0;
    this.#filesSeen = files;
    try {
      await this.reload();
      this.#looksFailed = 0;
    } catch (error) {
      this.#looksFailed++;
      if (this.#looksFailed !== 2) return;
      this.#reports.failed(`The server certificate is unchanged: ${(error as Error).message}.`);
    }
  }

  #inTurn<T>(run: () => Promise<T>): Promise<T> {
    const result = this.#turn.then(run);
    this.#turn = result.catch(() => undefined);
    return result;
  }
}

function certificatesFolder(config: Config): string {
  return join(resolve(config.dataFolder), "certs");
}

/** Returns the path of the certificate that is presented unless it was replaced. */
function configuredPath(config: Config): string {
  return config.certificatePath === undefined
    ? join(certificatesFolder(config), "server.crt")
    : resolve(config.certificatePath);
}

function replacementPath(config: Config): string {
  return join(certificatesFolder(config), "replacement.json");
}

/** @throws StartError certificate-unreadable if it cannot be read */
async function readReplacement(config: Config): Promise<Replacement | undefined> {
  const path = replacementPath(config);
  try {
    return JSON.parse(await readFile(path, "utf8")) as Replacement;
  } catch (error) {
    if (["ENOENT", "ENOTDIR"].includes(String((error as { code?: unknown }).code)))
      return undefined;
    throw new StartError(
      "certificate-unreadable",
      `The replacement certificate cannot be read from ${path} (${(error as Error).message}); ` +
        "remove that file to use the configured one",
      { cause: error },
    );
  }
}

/**
 * Loads the configured certificate; without a setting, the one in the data folder, generated if missing. @throws
 * StartError
 */
async function loadConfigured(
  config: Config,
  keeps: (loaded: ServerCertificate) => boolean,
): Promise<ServerCertificate> {
  if (config.certificatePath !== undefined) {
    return loadServerCertificate(configuredPath(config), config.certificatePassword);
  }
  const host = bareHost(config.serverUrl.hostname);
  const publicHost = config.publicServerUrl && bareHost(config.publicServerUrl.hostname);
  const folder = certificatesFolder(config);
  const hosts = servedHosts(host, publicHost === undefined ? [] : [publicHost]);
  try {
    return await loadOrMakeServerCertificate(folder, domainOf(hosts[0] as string), hosts, keeps);
  } catch (error) {
    if (error instanceof StartError) throw error;
    throw new StartError(
      "data-folder-unusable",
      `Certificates cannot be stored in ${folder} (${(error as Error).message}); ` +
        "check its owner and mode, or set DataDir to another",
      { cause: error },
    );
  }
}

/** Returns the replacement if it replaced this certificate and is still valid, else this one. @throws StartError */
async function chooseShown(
  config: Config,
  configured: ServerCertificate,
  replacement: Replacement | undefined,
): Promise<ServerCertificate> {
  let warning: string | undefined;
  if (replacement !== undefined && replacement.Replaces === configured.digest) {
    const path = replacementPath(config);
    try {
      const bytes = Buffer.from(replacement.Certificate, "base64");
      return withSetOf(configured, await readSent(config, bytes, replacement.Password, path));
    } catch (error) {
      warning = `The replacement certificate is no longer presented: ${(error as Error).message}.`;
    }
  }
  const warnings = [...configured.warnings, ...checkServerCertificate(configured)];
  return { ...configured, warnings: warning === undefined ? warnings : [warning, ...warnings] };
}

/** Parses and checks a certificate of a request. `path` is its name in messages. @throws StartError */
async function readSent(
  config: Config,
  bytes: Buffer,
  password: string,
  path: string,
): Promise<ServerCertificate> {
  const origin = { path, passwordName: "its Password", isFile: false };
  const sent = await readServerCertificate(origin, bytes, password === "" ? undefined : password);
  const warnings = [...sent.warnings, ...checkServerCertificate(sent)];
  const host = config.publicServerUrl && bareHost(config.publicServerUrl.hostname);
  if (host !== undefined && !names(sent.certificate, host)) {
    throw new StartError(
      "certificate-usage",
      `The certificate ${path} does not cover ${host} of PublicServerUrl; use one that does`,
    );
  }
  return { ...sent, warnings };
}

/** Returns `certificate` with the admin's files of the set, and with its CA if that signed it. */
function withSetOf(origin: ServerCertificate, certificate: ServerCertificate): ServerCertificate {
  const { admin, authorityPath } = origin;
  const isOfSet = authorityPath !== undefined && isSignedBy(certificate.certificate, authorityPath);
  return { ...certificate, admin, authorityPath: isOfSet ? authorityPath : undefined };
}

function isSignedBy(certificate: X509Certificate, authorityPath: string): boolean {
  try {
    const authority = new X509Certificate(readFileSync(authorityPath));
    return certificate.checkIssued(authority) && certificate.verify(authority.publicKey);
  } catch {
    return false; // the operator may have moved it away
  }
}

/** Changes when a file of the configured certificate changes. */
async function filesState(config: Config): Promise<string> {
  const path = configuredPath(config);
  let text = "";
  for (const file of [path, keyPathOf(path)]) {
    const found = await stat(file).catch(() => undefined);
    text += found === undefined ? "none " : `${found.ino} ${found.size} ${found.mtimeMs} `;
  }
  return text;
}
