/**
 * Adds to the output of `selfsigned` what it does not support: key identifiers (RFC 5280, 4.2.1.1 and 4.2.1.2),
 * without which strict clients such as Python 3.13 reject a chain; and a key of another type than its issuer's. The
 * certificate is then signed again, always with ECDSA and SHA-256.
 *
 * `pkijs` is loaded for the first certificate.
 */
import { createHash, type KeyObject, sign } from "node:crypto";
import type { CertificatePair } from "./authority.ts";

const subjectKeyIdentifier = "2.5.29.14";
const authorityKeyIdentifier = "2.5.29.35";

/**
 * Adds the identifiers and signs again. `issuer` is undefined for a self-signed certificate; `signingKey` is the PEM
 * of an unencrypted EC key; `publicKey` replaces the one in the certificate.
 */
export async function completeCertificate(
  certificate: string,
  issuer: CertificatePair | undefined,
  signingKey: string,
  publicKey?: KeyObject,
): Promise<string> {
  const [pkijs, asn1] = await Promise.all([import("pkijs"), import("asn1js")]);
  const keyIdOf = ({ subjectPublicKeyInfo }: InstanceType<typeof pkijs.Certificate>) => {
    const { valueHexView } = subjectPublicKeyInfo.subjectPublicKey.valueBlock;
    const valueHex = toArrayBuffer(createHash("sha1").update(valueHexView).digest());
    return new asn1.OctetString({ valueHex });
  };
  const made = pkijs.Certificate.fromBER(derOf(certificate));
  if (publicKey !== undefined) {
    const der = publicKey.export({ type: "spki", format: "der" });
    made.subjectPublicKeyInfo = pkijs.PublicKeyInfo.fromBER(toArrayBuffer(der));
  }
  const extensions = made.extensions ?? [];
  const add = (extnID: string, value: { toBER(): ArrayBuffer }) => {
    extensions.push(new pkijs.Extension({ extnID, extnValue: value.toBER() }));
  };
  add(subjectKeyIdentifier, keyIdOf(made));
  if (issuer !== undefined) {
    const keyIdentifier = keyIdOf(pkijs.Certificate.fromBER(derOf(issuer.certificate)));
    add(authorityKeyIdentifier, new pkijs.AuthorityKeyIdentifier({ keyIdentifier }).toSchema());
  }
  made.extensions = extensions;
  const signed = made.encodeTBS().toBER();
  made.tbsView = new Uint8Array(signed);
  made.signatureValue = new asn1.BitString({
    valueHex: toArrayBuffer(sign("sha256", Buffer.from(signed), signingKey)),
  });
  return pemOf(Buffer.from(made.toSchema(false).toBER()));
}

function derOf(pem: string): ArrayBuffer {
  return toArrayBuffer(Buffer.from(pem.replace(/-----[^-]+-----|\s/g, ""), "base64"));
}

function toArrayBuffer(bytes: Buffer): ArrayBuffer {
  return new Uint8Array(bytes).buffer;
}

function pemOf(der: Buffer): string {
  const lines = der.toString("base64").match(/.{1,64}/g) ?? [];
  return `-----BEGIN CERTIFICATE-----\n${lines.join("\n")}\n-----END CERTIFICATE-----\n`;
}
