/**
 * Generates the files for a new client: certificate, key, both in a `.pfx`, and the server's generated CA, which the client
 * has to trust. Loaded on first use.
 */
import { createPrivateKey, randomUUID } from "node:crypto";
import { join, resolve } from "node:path";
import {
  type CertificatePair,
  makeAuthority,
  makeClientCertificate,
} from "../../certs/authority.ts";
import { findCertificateFolder, readAuthority } from "../../certs/certificate-folder.ts";
import { writePfx } from "../../certs/pfx.ts";
import type { Config } from "../settings/config.ts";

interface ClientPackage {
  /** PEM. */
  readonly certificate: string;
  readonly files: readonly { readonly name: string; readonly content: Buffer | string }[];
}

/** With an empty `password`, key and pfx are not encrypted. `name` must be safe as a file name. */
export async function makeClientPackage(
  config: Config,
  name: string,
  password: string,
  notAfter: Date | undefined,
): Promise<ClientPackage> {
  const own = await findAuthority(config);
  const pair = await makeClientCertificate(own ?? (await makeAuthority(randomUUID())), name, {
    keyType: "rsa",
    ...(notAfter === undefined ? {} : { notAfter }),
  });
  const key = password === "" ? pair.key : encryptKey(pair.key, password);
  return {
    certificate: pair.certificate,
    files: [
      { name: `${name}.pfx`, content: await writePfx(pair, password, name) },
      { name: `${name}.crt`, content: pair.certificate },
      { name: `${name}.key`, content: key },
      ...(own === undefined ? [] : [{ name: "ca.crt", content: own.certificate }]),
    ],
  };
}

/**
 * Returns the CA of our own certificate set. A server with an operator's certificate has none: a CA is then generated for
 * the client's certificate alone and discarded, because clients are authorized by thumbprint, not by issuer.
 */
async function findAuthority(config: Config): Promise<CertificatePair | undefined> {
  if (config.certificatePath !== undefined) return undefined;
  const paths = await findCertificateFolder(join(resolve(config.dataFolder), "certs"));
  return paths === undefined ? undefined : readAuthority(paths);
}

function encryptKey(key: string, password: string): string {
  return createPrivateKey(key)
    .export({ type: "pkcs8", format: "pem", cipher: "aes-256-cbc", passphrase: password })
    .toString();
}
