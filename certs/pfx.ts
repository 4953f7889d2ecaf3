/**
 * Writes and reads PKCS#12 files: certificates and keys in one file, as imported by browsers and .NET. Files are
 * written with PBES2, AES-256 and HMAC-SHA-256. Files with any PBES2 encryption, or without encryption, can be read.
 *
 * `pkijs` is loaded for the first file.
 */
import { createPrivateKey, type KeyObject, X509Certificate } from "node:crypto";
import type { OctetString } from "asn1js";
import type { CertBag, SafeBag } from "pkijs";
import type { CertificatePair } from "./authority.ts";

/** Key derivation iterations for files with a password. */
const passwordIterations = 100_000;
/** Iterations for the MAC, which is computed in JavaScript, and for files without a password. */
const minimalIterations = 2048;

const unencryptedKeyBagId = "1.2.840.113549.1.12.10.1.1";
const keyBagId = "1.2.840.113549.1.12.10.1.2";
const certificateBagId = "1.2.840.113549.1.12.10.1.3";
const friendlyNameId = "1.2.840.113549.1.9.20";
const localKeyId = "1.2.840.113549.1.9.21";

/**
 * Returns a `.pfx` file with `pair`, whose key must be unencrypted. If `password` is empty, the key in the file is
 * readable by anyone.
 */
export async function writePfx(
  pair: CertificatePair,
  password: string,
  friendlyName: string,
): Promise<Buffer> {
  const [pkijs, asn1] = await Promise.all([import("pkijs"), import("asn1js")]);
  const certificate = new X509Certificate(pair.certificate);
  const keyDer = createPrivateKey(pair.key).export({ type: "pkcs8", format: "der" });
  const secret = toArrayBuffer(Buffer.from(password, "utf8"));
  const iterationCount = password === "" ? minimalIterations : passwordIterations;
  const encryption = {
    password: secret,
    contentEncryptionAlgorithm: { name: "AES-CBC", length: 256 },
    hmacHashAlgorithm: "SHA-256",
    iterationCount,
  };
  // Readers match key and certificate by this id.
  const keyId = toArrayBuffer(Buffer.from(certificate.fingerprint.replaceAll(":", ""), "hex"));
  const attributes = () => [
    new pkijs.Attribute({
      type: friendlyNameId,
      values: [new asn1.BmpString({ value: friendlyName })],
    }),
    new pkijs.Attribute({
      type: localKeyId,
      values: [new asn1.OctetString({ valueHex: keyId })],
    }),
  ];
  const keyBag = new pkijs.PKCS8ShroudedKeyBag({
    parsedValue: pkijs.PrivateKeyInfo.fromBER(toArrayBuffer(keyDer)),
  });
  await keyBag.makeInternalValues(encryption);
  const safes = new pkijs.AuthenticatedSafe({
    parsedValue: {
      safeContents: [
        {
          privacyMode: 0,
          value: new pkijs.SafeContents({
            safeBags: [
              new pkijs.SafeBag({
                bagId: keyBagId,
                bagValue: keyBag,
                bagAttributes: attributes(),
              }),
            ],
          }),
        },
        {
          privacyMode: 1,
          value: new pkijs.SafeContents({
            safeBags: [
              new pkijs.SafeBag({
                bagId: certificateBagId,
                bagValue: new pkijs.CertBag({
                  parsedValue: pkijs.Certificate.fromBER(toArrayBuffer(certificate.raw)),
                }),
                bagAttributes: attributes(),
              }),
            ],
          }),
        },
      ],
    },
  });
  await safes.makeInternalValues({ safeContents: [{}, encryption] });
  const pfx = new pkijs.PFX({ parsedValue: { integrityMode: 0, authenticatedSafe: safes } });
  await pfx.makeInternalValues({
    password: secret,
    iterations: minimalIterations,
    pbkdf2HashAlgorithm: "SHA-256",
    hmacHashAlgorithm: "SHA-256",
  });
  return Buffer.from(pfx.toSchema().toBER());
}

interface PfxContents {
  readonly keys: readonly KeyObject[];
  readonly certificates: readonly X509Certificate[];
}

/**
 * Returns the keys and the certificates of a `.pfx`, in the order of the file. The MAC is not checked.
 * @throws Error for a wrong password, and for encryptions other than PBES2
 */
export async function readPfx(bytes: Buffer, password: string): Promise<PfxContents> {
  const pkijs = await import("pkijs");
  const secret = toArrayBuffer(Buffer.from(password, "utf8"));
  const pfx = pkijs.PFX.fromBER(toArrayBuffer(bytes));
  await pfx.parseInternalValues({ password: secret, checkIntegrity: false });
  const safes = pfx.parsedValue?.authenticatedSafe;
  if (safes === undefined) throw new Error("the file has no contents");
  await safes.parseInternalValues({
    safeContents: safes.safeContents.map(() => ({ password: secret })),
  });
  const parsed: readonly { value: { safeBags: SafeBag[] } }[] = safes.parsedValue.safeContents;
  const bags = parsed.flatMap(({ value }) => value.safeBags);
  const keys = bags
    .filter(({ bagId }) => bagId === keyBagId || bagId === unencryptedKeyBagId)
    .map(({ bagValue }) =>
      createPrivateKey({
        key: Buffer.from(bagValue.toSchema().toBER()),
        format: "der",
        type: "pkcs8",
        passphrase: password,
      }),
    );
  // Use the original bytes: pkijs might encode the parsed certificate differently.
  const certificates = bags
    .filter(({ bagId }) => bagId === certificateBagId)
    .map(({ bagValue }) => (bagValue as CertBag).certValue as OctetString)
    .map((der) => new X509Certificate(new Uint8Array(der.getValue())));
  return { keys, certificates };
}

function toArrayBuffer(bytes: Buffer): ArrayBuffer {
  const copy = new ArrayBuffer(bytes.length);
  new Uint8Array(copy).set(bytes);
  return copy;
}
