/**
 * Client certificates: generate, register, list, edit, delete, whoami; and replacement of the server's certificate.
 * Shapes are those of RavenDB 7.2.7.
 *
 * Invariants:
 * - Nobody can grant, change or revoke a clearance above their own; a ClusterNode counts as a ClusterAdmin.
 * - A private key generated here is sent once and not stored.
 */
import { createHash, X509Certificate } from "node:crypto";
import { EngineError } from "../../engine/base/errors.ts";
import { dateText, unzonedDateText } from "../http/dates.ts";
import type { Exchange } from "../http/exchange.ts";
import { parseObject } from "../http/json-body.ts";
import { forbidden } from "../http/request-error.ts";
import { zip } from "../http/zip.ts";
import type { Context, Route } from "../routing/route.ts";
import type { ServerServices } from "../routing/services.ts";
import {
  clearanceRank,
  type DatabaseAccess,
  databaseAccesses,
  type Identity,
  refusalMessage,
  type SecurityClearance,
  securityClearances,
} from "../security/access.ts";
import { type RegisteredCertificate, thumbprintOf } from "../security/certificate-store.ts";
import { StartError } from "../settings/start-error.ts";

const path = "/admin/certificates";

export const certificateRoutes: readonly Route[] = [
  { kind: "server", method: "GET", path, access: "operator", handle: listCertificates },
  { kind: "server", method: "POST", path, access: "operator", handle: generateCertificate },
  { kind: "server", method: "PUT", path, access: "operator", handle: putCertificate },
  { kind: "server", method: "DELETE", path, access: "operator", handle: deleteCertificate },
  { kind: "server", method: "GET", path: `${path}/usage`, access: "operator", handle: getUsage },
  {
    kind: "server",
    method: "POST",
    path: `${path}/edit`,
    access: "operator",
    handle: editCertificate,
  },
  {
    kind: "server",
    method: "POST",
    path: `${path}/replace-cluster-cert`,
    access: "cluster-admin",
    handle: replaceServerCertificate,
  },
  {
    kind: "server",
    method: "POST",
    path: `${path}/refresh`,
    access: "cluster-admin",
    handle: refreshServerCertificate,
  },
  { kind: "server", method: "GET", path: "/certificates/whoami", access: "open", handle: whoAmI },
];

const nameLengthMax = 256;

/** Fields of a request body, not validated yet. */
interface CertificateBody {
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
interface Terms {
  readonly Name: string;
  readonly SecurityClearance: SecurityClearance;
  readonly Permissions: Readonly<Record<string, DatabaseAccess>>;
  readonly Disabled: boolean;
}

/** `?thumbprint`, `?name`, `?start`, `?pageSize`, `?metadataOnly`. The server's own certificate comes first. */
function listCertificates(exchange: Exchange, { server }: Context): void {
  const { query } = exchange;
  const withBytes = !query.bool("metadataOnly", false);
  const thumbprint = query.get("thumbprint");
  const name = query.get("name");
  const own = server.certificates.serverCertificate;
  const all = server.certificates.list().map((one) => describe(one, withBytes));
  if (own !== undefined) all.unshift(describeOwn(own, withBytes));
  const matching = all.filter(
    (one) =>
      (!thumbprint || one.Thumbprint === thumbprint.toUpperCase()) && (!name || one.Name === name),
  );
  if (thumbprint && matching.length === 0) {
    exchange.reply(404);
    return;
  }
  const start = query.int("start", 0);
  const admins = server.certificates.wellKnownAdminThumbprints;
  exchange.replyJson(200, {
    Results: matching.slice(start, start + query.int("pageSize", 2_147_483_647)),
    LoadedServerCert: own === undefined ? null : thumbprintOf(own),
    WellKnownAdminCerts: admins.length === 0 ? null : admins,
    WellKnownIssuers: [],
  });
}

/**
 * GET /admin/certificates/usage: `{"Since":time,"Results":[{"Thumbprint","OpenConnections","LastUsed"}]}` of those that were
 * used since the server was started; RavenDB has no such list
 */
function getUsage(exchange: Exchange, { server }: Context): void {
  const nowMs = performance.now();
  const all = server.certificates.list().map(({ Thumbprint }) => Thumbprint);
  const used = all.flatMap((Thumbprint) => {
    const { openCount, usedMs } = server.certificateUse(Thumbprint);
    if (usedMs === null) return [];
    const LastUsed = dateText(new Date(Date.now() - (nowMs - usedMs)));
    return [{ Thumbprint, OpenConnections: openCount, LastUsed }];
  });
  exchange.replyJson(200, { Since: dateText(server.startedAt), Results: used });
}

/** Generates a key and certificate, registers it, and replies with both in a zip archive. */
async function generateCertificate(exchange: Exchange, context: Context): Promise<void> {
  const { server } = context;
  const body: CertificateBody = parseObject(await exchange.body());
  const terms = readTerms(body);
  exchange.changedNames = [terms.Name];
  checkRank(exchange.identity, terms.SecurityClearance);
  const password = typeof body.Password === "string" ? body.Password : "";
  const notAfter = readNotAfter(body.NotAfter);
  const { makeClientPackage } = await import("../security/client-package.ts");
  const made = await makeClientPackage(server.config, terms.Name, password, notAfter);
  await server.certificates.put(new X509Certificate(made.certificate), terms);
  const archive = await zip(
    made.files.map(({ name, content }) => ({ name, content, isPrivate: true })),
  );
  exchange.reply(
    200,
    {
      "content-type": "application/octet-stream",
      "content-disposition": attachment(`${terms.Name}.zip`),
    },
    archive,
  );
}

/** Registers an existing certificate: base64 of its DER bytes or of its PEM text. */
async function putCertificate(exchange: Exchange, { server }: Context): Promise<void> {
  const body: CertificateBody = parseObject(await exchange.body());
  const terms = readTerms(body);
  exchange.changedNames = [terms.Name];
  checkRank(exchange.identity, terms.SecurityClearance);
  const certificate = readCertificate(body.Certificate);
  const own = server.certificates.serverCertificate;
  if (own?.fingerprint256 === certificate.fingerprint256) {
    throw new EngineError(
      "invalid-operation",
      "The server's own certificate is registered by itself and cannot be put.",
    );
  }
  checkNotExpired(new Date(certificate.validTo));
  const known = server.certificates.find(thumbprintOf(certificate));
  if (known !== undefined) checkRank(exchange.identity, known.SecurityClearance);
  await server.certificates.put(certificate, terms);
  exchange.reply(201);
}

/** Registering an expired certificate is a mistake. (RavenDB 7.2.7 accepts it.) @throws EngineError invalid-argument */
function checkNotExpired(validTo: Date): void {
  if (validTo.getTime() > Date.now()) return;
  throw new EngineError(
    "invalid-argument",
    `The certificate expired on ${validTo.toISOString()}: nobody gets in with it. Register one that is still good.`,
  );
}

/** Deletes a certificate; a no-op when it is not registered. */
async function deleteCertificate(exchange: Exchange, { server }: Context): Promise<void> {
  const thumbprint = exchange.query.required("thumbprint").toUpperCase();
  const known = server.certificates.find(thumbprint);
  if (thumbprint === exchange.identity.thumbprint) {
    throw new EngineError(
      "invalid-operation",
      `Cannot delete ${known?.Name ?? thumbprint} because it's the current client certificate being used. ` +
        "Use another certificate to delete it.",
    );
  }
  const own = server.certificates.serverCertificate;
  if (own !== undefined && thumbprintOf(own) === thumbprint) {
    throw new EngineError("invalid-operation", "The server's own certificate cannot be deleted.");
  }
  if (known !== undefined) {
    checkRank(exchange.identity, known.SecurityClearance);
    await server.certificates.delete(thumbprint);
  }
  exchange.reply(204);
}

/**
 * Changes Name, SecurityClearance, Permissions and Disabled of a registered certificate; omitted fields keep their
 * values.
 */
async function editCertificate(exchange: Exchange, { server }: Context): Promise<void> {
  const body: CertificateBody = parseObject(await exchange.body());
  const thumbprint = body.Thumbprint;
  if (typeof thumbprint !== "string" || thumbprint === "") {
    throw new EngineError(
      "invalid-argument",
      "Thumbprint is a required field when a certificate is edited",
    );
  }
  const known = server.certificates.find(thumbprint);
  if (known === undefined) {
    throw new EngineError(
      "invalid-operation",
      `Cannot edit permissions for certificate with thumbprint '${thumbprint}'. It doesn't exist in the cluster.`,
    );
  }
  checkRank(exchange.identity, known.SecurityClearance);
  const terms = readTerms({ ...known, ...body });
  exchange.changedNames = [`${terms.Name} (${known.Thumbprint})`];
  checkRank(exchange.identity, terms.SecurityClearance);
  const isSelf = known.Thumbprint === exchange.identity.thumbprint;
  if (
    isSelf &&
    (terms.Disabled || clearanceRank[terms.SecurityClearance] < exchange.identity.rank)
  ) {
    throw new EngineError(
      "invalid-operation",
      "A certificate cannot disable itself or lower its own clearance. Use another certificate.",
    );
  }
  await server.certificates.put(
    new X509Certificate(Buffer.from(known.Certificate, "base64")),
    terms,
  );
  exchange.reply(201);
}

/**
 * Presents another certificate from now on: body `{"Certificate","Password"?}`, the base64 of a PFX or of PEM with its
 * key. A single node waits for no other, so `?replaceImmediately` makes no difference.
 */
async function replaceServerCertificate(exchange: Exchange, { server }: Context): Promise<void> {
  exchange.query.bool("replaceImmediately", false);
  const body: CertificateBody = parseObject(await exchange.body());
  const password = typeof body.Password === "string" ? body.Password : "";
  const { shownCertificate } = server;
  if (shownCertificate === undefined) throw notShown();
  await orRefuse(shownCertificate.replace(bytesOf(body.Certificate), password));
  exchange.reply(201);
}

/** Reloads the configured certificate, as the server does by itself soon after its file has changed. */
async function refreshServerCertificate(exchange: Exchange, { server }: Context): Promise<void> {
  const { shownCertificate } = server;
  if (shownCertificate === undefined) throw notShown();
  await orRefuse(shownCertificate.reload());
  exchange.reply(204);
}

function notShown(): EngineError {
  return new EngineError(
    "invalid-operation",
    "This server is unsecured and shows no certificate: there is none to replace.",
  );
}

/** @throws EngineError invalid-argument for a certificate that is not suitable */
async function orRefuse(change: Promise<unknown>): Promise<void> {
  try {
    await change;
  } catch (error) {
    if (!(error instanceof StartError)) throw error;
    throw new EngineError(
      "invalid-argument",
      `Unable to load the provided certificate. The server goes on with the one before. ${error.message}.`,
      { cause: error },
    );
  }
}

/** The caller's own certificate; 204 when it is not registered. */
function whoAmI(exchange: Exchange, { server }: Context): void {
  const { identity, remoteCertificate } = exchange;
  if (identity.standing !== "known" || remoteCertificate === undefined) {
    exchange.reply(204);
    return;
  }
  const description = describeCaller(server, identity, remoteCertificate);
  exchange.replyJson(200, { ...description, HasTwoFactor: false, TwoFactorExpirationDate: null });
}

function describeCaller(
  server: ServerServices,
  identity: Identity,
  certificate: X509Certificate,
): Description {
  const registered = server.certificates.find(identity.thumbprint);
  if (registered !== undefined) return describe(registered, true);
  const own = server.certificates.serverCertificate;
  if (own?.fingerprint256 === certificate.fingerprint256) return describeOwn(certificate, true);
  // Any other known caller is a well-known admin.
  return describe(
    {
      Name: "Well-known admin",
      Thumbprint: identity.thumbprint,
      SecurityClearance: "ClusterAdmin",
      Permissions: {},
      Disabled: false,
      Certificate: certificate.raw.toString("base64"),
    },
    true,
  );
}

type Description = { readonly Name: string; readonly Thumbprint: string } & Readonly<
  Record<string, unknown>
>;

function describe(
  registered: RegisteredCertificate,
  withBytes: boolean,
  usage: "Client" | "RavenServer" = "Client",
): Description {
  const certificate = new X509Certificate(Buffer.from(registered.Certificate, "base64"));
  const publicKey = certificate.publicKey.export({ type: "spki", format: "der" });
  return {
    Name: registered.Name,
    ...(withBytes ? { Certificate: registered.Certificate } : {}),
    Thumbprint: registered.Thumbprint,
    SecurityClearance: registered.SecurityClearance,
    Permissions: registered.Permissions,
    NotAfter: unzonedDateText(new Date(certificate.validTo)),
    NotBefore: unzonedDateText(new Date(certificate.validFrom)),
    CollectionSecondaryKeys: [],
    CollectionPrimaryKey: "",
    PublicKeyPinningHash: createHash("sha256").update(publicKey).digest("base64"),
    Disabled: registered.Disabled,
    Usage: usage,
    Sha256Thumbprint: certificate.fingerprint256.replaceAll(":", ""),
  };
}

function describeOwn(certificate: X509Certificate, withBytes: boolean): Description {
  const terms: RegisteredCertificate = {
    Name: "Server Certificate",
    Thumbprint: thumbprintOf(certificate),
    SecurityClearance: "ClusterNode",
    Permissions: {},
    Disabled: false,
    Certificate: certificate.raw.toString("base64"),
  };
  return describe(terms, withBytes, "RavenServer");
}

/** @throws EngineError invalid-argument, invalid-format, not-supported */
function readTerms(body: CertificateBody): Terms {
  if (body.TwoFactorAuthenticationKey) {
    throw new EngineError(
      "not-supported",
      "Two-factor authentication of certificates is not supported by this server; leave TwoFactorAuthenticationKey out.",
    );
  }
  return {
    Name: readName(body.Name),
    SecurityClearance: readClearance(body.SecurityClearance),
    Permissions: readPermissions(body.Permissions),
    Disabled: body.Disabled === true,
  };
}

/** The name becomes part of file names on somebody's machine. */
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

function readNotAfter(value: unknown): Date | undefined {
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

/** The bytes in a field `Certificate`: PEM text, or base64. */
function bytesOf(value: unknown): Buffer {
  if (typeof value !== "string") return Buffer.alloc(0);
  return value.includes("-----BEGIN") ? Buffer.from(value) : Buffer.from(value, "base64");
}

function readCertificate(value: unknown): X509Certificate {
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

/** @throws RequestError 403 when `clearance` is above the caller's */
function checkRank(identity: Identity, clearance: SecurityClearance): void {
  if (clearanceRank[clearance] <= identity.rank) return;
  throw forbidden(
    `${refusalMessage(identity, "cluster-admin", undefined)} ` +
      `Only who has the clearance ${clearance} may give, change or take it.`,
  );
}

/** Content-Disposition for a file name with arbitrary characters (RFC 6266). */
export function attachment(fileName: string): string {
  const plain = fileName.replace(/[^\x20-\x7e]|["\\%]/g, "_");
  return `attachment; filename="${plain}"; filename*=UTF-8''${encodeURIComponent(fileName)}`;
}
