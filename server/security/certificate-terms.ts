/** Parses the requested properties of a certificate: name, clearance, permissions, end of validity. */
import { X509Certificate } from "node:crypto";
import { EngineError } from "../../engine/base/errors.ts";
import {
  type DatabaseAccess,
  databaseAccesses,
  type SecurityClearance,
  securityClearances,
} from "./access.ts";

export const nameLengthMax = 256;

/** Fields of a request body, not validated yet. */
export interface CertificateBody {
  readonly Name?: unknown;
  readonly SecurityClearance?: unknown;
  readonly Permissions?: unknown;
  readonly Disabled?: unknown;
  readonly Password?: unknown;
  readonly NotAfter?: unknown;
  readonly Certificate?: unknown;
  readonly Thumbprint?: unknown;
  readonly TwoFactorAuthenticationKey?: unknown;
}

/** The requested registration of a certificate. */
interface CertificateTerms {
  readonly Name: string;
  readonly SecurityClearance: SecurityClearance;
  readonly Permissions: Readonly<Record<string, DatabaseAccess>>;
  readonly Disabled: boolean;
}

/** @throws EngineError invalid-argument, invalid-format, not-supported */
export function readTerms(body: CertificateBody): CertificateTerms {
  if (body.TwoFactorAuthenticationKey) {
    throw new EngineError(
      "not-supported",
      "Two-factor authentication of certificates is not supported by this server. Omit TwoFactorAuthenticationKey.",
    );
  }
  return {
    Name: readName(body.Name),
    SecurityClearance: readClearance(body.SecurityClearance),
    Permissions: readPermissions(body.Permissions),
    Disabled: body.Disabled === true,
  };
}

/** The name becomes part of file names on client machines. */
function readName(value: unknown): string {
  if (typeof value !== "string" || value.trim() === "") {
    throw new EngineError(
      "invalid-argument",
      "Name is a required field in the certificate definition",
    );
  }
  const isUnsafe = /[/\\\p{Cc}\u2028\u2029\u202a-\u202e\u2066-\u2069]/u.test(value);
  if (isUnsafe || value === "." || value === ".." || value.length > nameLengthMax) {
    throw new EngineError(
      "invalid-argument",
      `Name must have at most ${nameLengthMax} characters, and no '/', '\\' or control characters; it was ${JSON.stringify(value)}`,
    );
  }
  return value;
}

function readClearance(value: unknown): SecurityClearance {
  const known = securityClearances.find((clearance) => clearance === value);
  if (known !== undefined) return known;
  throw new EngineError(
    "invalid-format",
    `SecurityClearance must be one of ${securityClearances.join(", ")}; it was ${JSON.stringify(value)}`,
  );
}

function readPermissions(value: unknown): Record<string, DatabaseAccess> {
  const permissions: Record<string, DatabaseAccess> = Object.create(null) as Record<
    string,
    DatabaseAccess
  >;
  if (value === undefined || value === null) return permissions;
  if (typeof value !== "object" || Array.isArray(value)) {
    throw new EngineError(
      "invalid-argument",
      "Permissions must be an object of database names and access levels",
    );
  }
  for (const [database, level] of Object.entries(value)) {
    const access = databaseAccesses.find((one) => one === level);
    if (access === undefined) {
      throw new EngineError(
        "invalid-argument",
        `The permission on '${database}' must be one of ${databaseAccesses.join(", ")}; it was ${JSON.stringify(level)}`,
      );
    }
    permissions[database] = access;
  }
  return permissions;
}

export function readNotAfter(value: unknown): Date | undefined {
  if (value === undefined || value === null) return undefined;
  const date = new Date(
    typeof value === "string" ? value.replace(/(\.\d{3})\d*/, "$1") : Number.NaN,
  );
  if (Number.isNaN(date.getTime()) || date.getTime() <= Date.now()) {
    throw new EngineError(
      "invalid-argument",
      `NotAfter must be a date in the future; it was ${JSON.stringify(value)}`,
    );
  }
  return date;
}

/** Returns the bytes of a field `Certificate`: PEM text, or base64. */
export function bytesOf(value: unknown): Buffer {
  if (typeof value !== "string") return Buffer.alloc(0);
  return value.includes("-----BEGIN") ? Buffer.from(value) : Buffer.from(value, "base64");
}

export function readCertificate(value: unknown): X509Certificate {
  try {
    return new X509Certificate(bytesOf(value));
  } catch (error) {
    throw new EngineError(
      "invalid-argument",
      "Unable to load the provided certificate. Certificate must be the base64 text of a certificate in DER or PEM form.",
      { cause: error },
    );
  }
}
