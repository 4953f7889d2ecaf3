/**
 * Certificates of the nodes of a test: one authority, one server certificate per node, one
 * administrator.
 */
import { X509Certificate } from "node:crypto";
import { mkdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import {
  makeAuthority,
  makeClientCertificate,
  makeServerCertificate,
} from "../../certs/authority.ts";
import { writePfx } from "../../certs/pfx.ts";
import type { ClientCertificate } from "./http-sender.ts";

export class ClusterCertificates {
  readonly admin: ClientCertificate;
  /** For the official client: PKCS#12 without a password. */
  readonly pfx: Buffer;
  readonly #folder: string;
  readonly #thumbprint: string;

  private constructor(folder: string, admin: ClientCertificate, pfx: Buffer) {
    this.#folder = folder;
    this.admin = admin;
    this.pfx = pfx;
    this.#thumbprint = new X509Certificate(admin.cert).fingerprint.replaceAll(":", "");
  }

  static async make(parent: string, count: number): Promise<ClusterCertificates> {
    const folder = join(parent, "certificates");
    mkdirSync(folder, { recursive: true });
    const authority = await makeAuthority("cluster");
    for (let at = 0; at < count; at++) {
      const pair = await makeServerCertificate(authority, ["localhost", "127.0.0.1"]);
      writeFileSync(join(folder, `${at}.pem`), `${pair.certificate}\n${pair.key}\n`);
    }
    const admin = await makeClientCertificate(authority, "admin");
    const pfx = await writePfx(admin, "", "admin");
    const { certificate: cert, key } = admin;
    return new ClusterCertificates(folder, { ca: authority.certificate, cert, key }, pfx);
  }

  /** The certificate of the node with that number. */
  flags(at: number): string[] {
    return [
      `--Security.Certificate.Path=${join(this.#folder, `${at}.pem`)}`,
      `--Security.WellKnownCertificates.Admin=${this.#thumbprint}`,
    ];
  }
}
