/**
 * The folder with a server's set of certificates: finds its files, and creates it with all files, with mode 0600.
 *
 *   ca.crt ca.key                                   signs the others
 *   server.crt server.key                           presented by the server
 *   admin.client.certificate.<domain>.crt .key .pfx the first cluster admin
 *
 * Invariants:
 * - The folder is created atomically: it is filled under a temporary name and then renamed.
 */
import { existsSync } from "node:fs";
import { mkdir, open, readdir, readFile, rename, rm } from "node:fs/promises";
import { dirname, join } from "node:path";
import {
  type CertificatePair,
  makeAuthority,
  makeClientCertificate,
  makeServerCertificate,
} from "./authority.ts";
import { writePfx } from "./pfx.ts";

export interface CertificatePaths {
  readonly folder: string;
  readonly authority: string;
  readonly authorityKey: string;
  readonly server: string;
  readonly serverKey: string;
  /** Undefined if the folder has no admin client certificate. */
  readonly admin: AdminPaths | undefined;
}

export interface AdminPaths {
  /** File name without extension: `admin.client.certificate.<domain>`. */
  readonly name: string;
  readonly certificate: string;
  readonly key: string;
  readonly pfx: string;
}

const adminPrefix = "admin.client.certificate.";

function adminPaths(folder: string, name: string): AdminPaths {
  return {
    name,
    certificate: join(folder, `${name}.crt`),
    key: join(folder, `${name}.key`),
    pfx: join(folder, `${name}.pfx`),
  };
}

/** Finds the files of a folder created by `makeCertificateFolder`; undefined if it does not exist. */
export async function findCertificateFolder(folder: string): Promise<CertificatePaths | undefined> {
  if (!existsSync(folder)) return undefined;
  const names = await readdir(folder);
  const admin = names.find((name) => name.startsWith(adminPrefix) && name.endsWith(".crt"));
  return {
    folder,
    authority: join(folder, "ca.crt"),
    authorityKey: join(folder, "ca.key"),
    server: join(folder, "server.crt"),
    serverKey: join(folder, "server.key"),
    admin: admin === undefined ? undefined : adminPaths(folder, admin.slice(0, -4)),
  };
}

/**
 * Creates a complete set. `domain` is part of the admin file names; `hosts` are the server's names and addresses. The
 * folder must not exist. @throws node:fs errors
 */
export async function makeCertificateFolder(
  folder: string,
  domain: string,
  hosts: readonly string[],
): Promise<CertificatePaths> {
  const partial = `${folder}.partial-${process.pid}`;
  await mkdir(dirname(folder), { recursive: true });
  await rm(partial, { recursive: true, force: true });
  await mkdir(partial, { mode: 0o700 });
  try {
    const authority = await makeAuthority(domain);
    const server = await makeServerCertificate(authority, hosts);
    const name = adminPrefix + domain;
    const admin = await makeClientCertificate(authority, name);
    await writePair(join(partial, "ca"), authority);
    await writePair(join(partial, "server"), server);
    await writePair(join(partial, name), admin);
    await writePrivate(join(partial, `${name}.pfx`), await writePfx(admin, "", name));
    await rename(partial, folder);
  } catch (error) {
    await rm(partial, { recursive: true, force: true });
    throw error;
  }
  return (await findCertificateFolder(folder)) as CertificatePaths;
}

/** Replaces the server certificate with one for `hosts`, signed by the folder's CA. */
export async function remakeServerCertificate(
  paths: CertificatePaths,
  hosts: readonly string[],
): Promise<CertificatePair> {
  const server = await makeServerCertificate(await readAuthority(paths), hosts);
  // Certificate and key always match: until the key is in its own file, both are in the certificate's file.
  await replacePrivate(paths.server, server.certificate + server.key);
  await replacePrivate(paths.serverKey, server.key);
  await replacePrivate(paths.server, server.certificate);
  return server;
}

/** Reads the CA of a folder. @throws node:fs errors */
export async function readAuthority(paths: CertificatePaths): Promise<CertificatePair> {
  const [certificate, key] = await Promise.all([
    readFile(paths.authority, "utf8"),
    readFile(paths.authorityKey, "utf8"),
  ]);
  return { certificate, key };
}

async function writePair(path: string, pair: CertificatePair): Promise<void> {
  await writePrivate(`${path}.key`, pair.key);
  await writePrivate(`${path}.crt`, pair.certificate);
}

/** Writes a file readable only by its owner, replacing an existing file atomically and durably. */
export async function replacePrivate(path: string, content: string | Buffer): Promise<void> {
  await writePrivate(path, content);
  const folder = await open(dirname(path), "r");
  try {
    await folder.sync();
  } finally {
    await folder.close();
  }
}

/** Writes a file readable only by its owner, replacing an existing file; the content is durable when this resolves. */
async function writePrivate(path: string, content: string | Buffer): Promise<void> {
  const partial = `${path}.partial`;
  await rm(partial, { force: true });
  const file = await open(partial, "wx", 0o600);
  try {
    await file.writeFile(content);
    await file.sync();
  } finally {
    await file.close();
  }
  await rename(partial, path);
}
