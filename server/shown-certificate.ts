/**
 * The certificate that the server shows, and how another takes its place while it runs: one that an administrator sends, or a
 * file that was renewed. New connections get it at once; those that are open stay as they are.
 *
 * What is sent is kept in `<data folder>/certs/replacement.json`: files that the operator brought are never written. It holds
 * until the file changes whose place it took. Who renews that later wants it to be shown.
 *
 * Invariants:
 * - What would be a reason not to start is not shown, and leaves everything as it was.
 * - A replacement is on the disk before it is shown.
 * - Changes are made one after another.
 */
import { createHash, X509Certificate } from "node:crypto";
import { readFileSync } from "node:fs";
import { mkdir, readFile, rm, stat } from "node:fs/promises";
import { join, resolve } from "node:path";
import { bareHost, domainOf, servedHosts } from "../certs/hosts.ts";
import type { Config } from "./config.ts";
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
import { StartError } from "./start-error.ts";

/** Milliseconds between two looks at whether the certificate's files are other ones. */
const watchMs = 2_000;

/** As in `replacement.json`. */
interface Replacement {
  /** Base64 of a PFX, or of PEM with certificate and key. */
  readonly Certificate: string;
  readonly Password: string;
  /** `digestOf` the configured certificate whose place it took. */
  readonly Replaces: string;
}

/** What is told to the operator. */
export interface CertificateReports {
  readonly changed: (line: string) => void;
  readonly failed: (line: string) => void;
}

export class ShownCertificate {
  readonly #config: Config;
  readonly #reports: CertificateReports;
  readonly #listeners = new Set<(certificate: ServerCertificate) => void>();
  readonly #timer: NodeJS.Timeout;
  /** What the settings gave at the start; its set of files stays. */
  readonly #origin: ServerCertificate;
  /** Of what stands in the configured files, shown or replaced. */
  #configuredDigest: string;
  #current: ServerCertificate;
  /** Of the configured files, when they were looked at last. */
  #filesSeen: string;
  /** Looks since the files changed at which they were not fit to be shown. */
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
    this.#configuredDigest = digestOf(origin);
    this.#current = current;
    this.#filesSeen = filesSeen;
    this.#timer = setInterval(() => void this.#look(), watchMs).unref();
  }

  /** Finds or makes the certificate of a secured server. @throws StartError */
  static async open(config: Config, reports: CertificateReports): Promise<ShownCertificate> {
    const filesSeen = await filesState(config);
    const replacement = await readReplacement(config);
    const origin = await loadConfigured(
      config,
      (loaded) => replacement?.Replaces === digestOf(loaded),
    );
    const current = chooseShown(config, origin, replacement);
    return new ShownCertificate(config, reports, origin, current, filesSeen);
  }

  get current(): ServerCertificate {
    return this.#current;
  }

  /** `listener` is called with each certificate that is shown from then on. */
  onChange(listener: (certificate: ServerCertificate) => void): void {
    this.#listeners.add(listener);
  }

  /**
   * Shows `bytes` (PFX, or PEM with certificate and key) instead. It is on the disk, and shown, when this resolves.
   * @throws StartError when it is not fit to be shown; errors of node:fs
   */
  replace(bytes: Buffer, password: string): Promise<void> {
    return this.#inTurn(async () => {
      const sent = readSent(this.#config, bytes, password, "of the request");
      const replacement: Replacement = {
        Certificate: bytes.toString("base64"),
        Password: password,
        Replaces: this.#configuredDigest,
      };
      const path = replacementPath(this.#config);
      await mkdir(certificatesFolder(this.#config), { recursive: true, mode: 0o700 });
      const { replacePrivate } = await import("../certs/certificate-folder.ts");
      await replacePrivate(path, JSON.stringify(replacement));
      this.#show({ ...sent, path }, "was replaced");
    });
  }

  /**
   * Reads the configured files again, and shows what is in them when that is another one than before.
   * @returns whether it was. @throws StartError when it is not fit to be shown
   */
  reload(): Promise<boolean> {
    return this.#inTurn(async () => {
      const path = configuredPath(this.#config);
      const loaded = loadServerCertificate(path, this.#config.certificatePassword);
      const digest = digestOf(loaded);
      if (digest === this.#configuredDigest) return false;
      const warnings = checkServerCertificate(loaded);
      this.#configuredDigest = digest;
      await rm(replacementPath(this.#config), { force: true });
      this.#show({ ...loaded, warnings }, "was renewed");
      return true;
    });
  }

  /** Ends looking at the files. */
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

  /** Reads the files again when they look different, and until they can be read: certificate and key come one by one. */
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
      this.#reports.failed(`The server certificate stays as it was: ${(error as Error).message}.`);
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

/** Where the certificate stands that is shown unless another was sent. */
function configuredPath(config: Config): string {
  return config.certificatePath === undefined
    ? join(certificatesFolder(config), "server.crt")
    : resolve(config.certificatePath);
}

function replacementPath(config: Config): string {
  return join(certificatesFolder(config), "replacement.json");
}

/** @throws StartError certificate-unreadable when it cannot be read */
async function readReplacement(config: Config): Promise<Replacement | undefined> {
  const path = replacementPath(config);
  try {
    return JSON.parse(await readFile(path, "utf8")) as Replacement;
  } catch (error) {
    if (["ENOENT", "ENOTDIR"].includes(String((error as { code?: unknown }).code)))
      return undefined;
    throw new StartError(
      "certificate-unreadable",
      `The certificate that was sent to the server cannot be read from ${path} (${(error as Error).message}); ` +
        "remove that file to go back to the one before",
      { cause: error },
    );
  }
}

/** What stands where the settings say; made when nothing is set and there is none. @throws StartError */
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
      `Certificates cannot be kept in ${folder} (${(error as Error).message}); ` +
        "check its owner and mode, or set DataDir to another",
      { cause: error },
    );
  }
}

/** The replacement, if it took the place of this one and is still good. @throws StartError */
function chooseShown(
  config: Config,
  configured: ServerCertificate,
  replacement: Replacement | undefined,
): ServerCertificate {
  let warning: string | undefined;
  if (replacement !== undefined && replacement.Replaces === digestOf(configured)) {
    const path = replacementPath(config);
    try {
      const bytes = Buffer.from(replacement.Certificate, "base64");
      return withSetOf(configured, readSent(config, bytes, replacement.Password, path));
    } catch (error) {
      warning = `The server certificate that was sent is no longer shown: ${(error as Error).message}.`;
    }
  }
  const warnings = [...configured.warnings, ...checkServerCertificate(configured)];
  return { ...configured, warnings: warning === undefined ? warnings : [warning, ...warnings] };
}

/** What was sent, when a server may show it. `path`: how messages call it. @throws StartError */
function readSent(
  config: Config,
  bytes: Buffer,
  password: string,
  path: string,
): ServerCertificate {
  const origin = { path, passwordName: "its Password", isFile: false };
  const sent = readServerCertificate(origin, bytes, password === "" ? undefined : password);
  const warnings = checkServerCertificate(sent);
  const host = config.publicServerUrl && bareHost(config.publicServerUrl.hostname);
  if (host !== undefined && !names(sent.certificate, host)) {
    throw new StartError(
      "certificate-usage",
      `The certificate ${path} does not name ${host}, which PublicServerUrl tells the clients; bring one that does`,
    );
  }
  return { ...sent, warnings };
}

/** `certificate` with the set of files that it is shown from: the admin's, and the CA if that signed it. */
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

/** The same for the same certificates and key. */
function digestOf({ tls }: ServerCertificate): string {
  const hash = createHash("sha256");
  for (const part of [tls.cert, tls.key, tls.pfx]) hash.update(`${String(part)}\n`);
  return hash.digest("hex");
}

/** Changes when a file of the configured certificate does. */
async function filesState(config: Config): Promise<string> {
  const path = configuredPath(config);
  let text = "";
  for (const file of [path, keyPathOf(path)]) {
    const found = await stat(file).catch(() => undefined);
    text += found === undefined ? "none " : `${found.ino} ${found.size} ${found.mtimeMs} `;
  }
  return text;
}
