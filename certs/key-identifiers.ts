/**
 * Adds the identifiers of keys to a certificate (RFC 5280, 4.2.1.1 and 4.2.1.2): its own, and its issuer's. Strict clients, such as
 * Python 3.13, refuse a chain without them, and `selfsigned` cannot write them. The certificate is signed anew for it.
 *
 * `pkijs` is loaded when the first certificate is made.
 */
import { createHash, sign } from "node:crypto";
import type { CertificatePair } from "./authority.ts";

const subjectKeyIdentifier = "2.5.29.14";
const authorityKeyIdentifier = "2.5.29.35";

/**
 * The certificate with identifiers. `issuer`: who signed it, and signs again; with `key` not encrypted. A CA of its own is its
 * own issuer, and says so by its subject alone.
 */
export async function withKeyIdentifiers(
  certificate: string,
  issuer: CertificatePair,
  isOwnIssuer: boolean,
): Promise<string> {
  const [pkijs, asn1] = await Promise.all([import("pkijs"), import("asn1js")]);
  const parse = (pem: string) => pkijs.Certificate.fromBER(derOf(pem));
  const keyIdOf = ({ subjectPublicKeyInfo }: InstanceType<typeof pkijs.Certificate>) => {
    const { valueHexView } = subjectPublicKeyInfo.subjectPublicKey.valueBlock;
    return new asn1.OctetString({
      valueHex: new Uint8Array(createHash("sha1").update(valueHexView).digest()).buffer,
    });
  };
  const made = parse(certificate);
  const extensions = made.extensions ?? [];
  const add = (extnID: string, value: { toBER(): ArrayBuffer }) => {
    extensions.push(new pkijs.Extension({ extnID, extnValue: value.toBER() }));
  };
  add(subjectKeyIdentifier, keyIdOf(made));
  if (!isOwnIssuer) {
    const keyIdentifier = keyIdOf(parse(issuer.certificate));
    const identifier = new pkijs.AuthorityKeyIdentifier({ keyIdentifier });
    add(authorityKeyIdentifier, identifier.toSchema());
  }
  made.extensions = extensions;
  const signed = made.encodeTBS().toBER();
  made.tbsView = new Uint8Array(signed);
  made.signatureValue = new asn1.BitString({
    valueHex: new Uint8Array(sign("sha256", Buffer.from(signed), issuer.key)).buffer,
  });
  return pemOf(Buffer.from(made.toSchema(false).toBER()));
}

function derOf(pem: string): ArrayBuffer {
  const text = pem.replace(/-----[^-]+-----|\s/g, "");
  return new Uint8Array(Buffer.from(text, "base64")).buffer;
}

function pemOf(der: Buffer): string {
  const lines = der.toString("base64").match(/.{1,64}/g) ?? [];
  return `-----BEGIN CERTIFICATE-----\n${lines.join("\n")}\n-----END CERTIFICATE-----\n`;
}
