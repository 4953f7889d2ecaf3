/**
 * Client certificates: generate, register, list, edit, delete, whoami; and replacement of the server's certificate.
 * Shapes are those of RavenDB 7.2.7.
 *
 * Invariants:
 * - No client can grant, change, or revoke a clearance above its own; a ClusterNode counts as a ClusterAdmin.
 * - A private key generated here is sent once and not stored.
 */
import { createHash, X509Certificate } from "node:crypto";
import { assert } from "../../../engine/base/assert.ts";
import { EngineError } from "../../../engine/base/errors.ts";
import { dateText, unzonedDateText } from "../../http/dates.ts";
import type { Exchange } from "../../http/exchange.ts";
import { formField } from "../../http/form-field.ts";
import { parseObject } from "../../http/json-body.ts";
import { forbidden } from "../../http/request-error.ts";
import { noContentType } from "../../http/response.ts";
import { zip } from "../../http/zip.ts";
import type { Context, Route } from "../../routing/route.ts";
import type { ServerServices } from "../../routing/services.ts";
import {
  clearanceRank,
  type Identity,
  refusalMessage,
  type SecurityClearance,
} from "../../security/access.ts";
import { type RegisteredCertificate, thumbprintOf } from "../../security/certificate-store.ts";
import {
  bytesOf,
  type CertificateBody,
  nameLengthMax,
  readCertificate,
  readNotAfter,
  readTerms,
} from "../../security/certificate-terms.ts";
import { StartError } from "../../settings/start-error.ts";

const path = "/admin/certificates";

export const certificateRoutes: readonly Route[] = [
  { kind: "server", method: "GET", path, access: "operator", handle: listCertificates },
  { kind: "server", method: "POST", path, access: "operator", handle: generateCertificate },
  { kind: "server", method: "PUT", path, access: "operator", handle: putCertificate },
  { kind: "server", method: "DELETE", path, access: "operator", handle: deleteCertificate },
  { kind: "server", method: "GET", path: `${path}/usage`, access: "operator", handle: getUsage },
  { kind: "server", method: "GET", path: `${path}/mode`, access: "cluster-admin", handle: getMode },
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
 * GET /admin/certificates/usage: `{"Since":time,"Results":[{"Thumbprint","OpenConnections","LastUsed"}]}`, the certificates
 * used since the start of the server; not part of RavenDB's interface
 */
function getUsage(exchange: Exchange, { server }: Context): void {
  exchange.replyJson(200, { Since: dateText(server.startedAt), Results: usedCertificates(server) });
}

interface UsedCertificate {
  readonly Thumbprint: string;
  readonly OpenConnections: number;
  readonly LastUsed: string;
}

/** Returns the registered certificates that were used since the start of the server. */
export function usedCertificates(server: ServerServices): UsedCertificate[] {
  const nowMs = performance.now();
  return server.certificates.list().flatMap(({ Thumbprint }) => {
    const { openCount, usedMs } = server.certificateUse(Thumbprint);
    if (usedMs === null) return [];
    const LastUsed = dateText(new Date(Date.now() - (nowMs - usedMs)));
    return [{ Thumbprint, OpenConnections: openCount, LastUsed }];
  });
}

/** GET /admin/certificates/mode: `{"SetupMode":"None"}`, because RavenDB's setup wizard was not used */
function getMode(exchange: Exchange): void {
  exchange.replyJson(200, { SetupMode: "None" });
}

/**
 * POST /admin/certificates?operationId: generates a key and certificate, registers it, and replies with both in a zip
 * archive. The terms are the body, or the field `Options` of a form, as RavenDB's Studio sends them; `operationId`: as an
 * operation of the server
 */
async function generateCertificate(exchange: Exchange, { server }: Context): Promise<void> {
  const body: CertificateBody = parseObject(formField(exchange, await exchange.body(), "Options"));
  const id = exchange.query.long("operationId", undefined);
  if (id === undefined) {
    sendArchive(exchange, await generated(exchange, server, body));
    return;
  }
  let made: Generated | undefined;
  const what = `Generate certificate: ${shownName(body.Name)}`;
  const work = async () => {
    made = await generated(exchange, server, body);
    return { Message: "Client certificate was generated." };
  };
  const { ended } = await server.operations.start("CertificateGeneration", what, work, { id });
  const { error } = await ended;
  if (error !== undefined) throw error;
  assert(made !== undefined, "work that throws nothing has made a certificate");
  sendArchive(exchange, made);
}

/** Returns a name for the description of an operation; the value is not validated yet. */
function shownName(value: unknown): string {
  return typeof value === "string" ? value.slice(0, nameLengthMax) : "";
}

interface Generated {
  readonly name: string;
  readonly archive: Buffer;
}

async function generated(
  exchange: Exchange,
  server: ServerServices,
  body: CertificateBody,
): Promise<Generated> {
  const terms = readTerms(body);
  exchange.changedNames = [terms.Name];
  checkRank(exchange.identity, terms.SecurityClearance);
  const password = typeof body.Password === "string" ? body.Password : "";
  const notAfter = readNotAfter(body.NotAfter);
  const { makeClientPackage } = await import("../../security/client-package.ts");
  const made = await makeClientPackage(server.config, terms.Name, password, notAfter);
  await server.certificates.put(new X509Certificate(made.certificate), terms);
  const archive = await zip(
    made.files.map(({ name, content }) => ({ name, content, isPrivate: true })),
  );
  return { name: terms.Name, archive };
}

function sendArchive(exchange: Exchange, { name, archive }: Generated): void {
  exchange.reply(
    200,
    {
      "content-type": "application/octet-stream",
      "content-disposition": attachment(`${name}.zip`),
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
      "The server's own certificate is registered automatically and cannot be added.",
    );
  }
  checkNotExpired(new Date(certificate.validTo));
  const known = server.certificates.find(thumbprintOf(certificate));
  if (known !== undefined) checkRank(exchange.identity, known.SecurityClearance);
  await server.certificates.put(certificate, terms);
  exchange.reply(201, { "content-type": noContentType });
}

/** Refuses an expired certificate. (RavenDB 7.2.7 accepts it.) @throws EngineError invalid-argument */
function checkNotExpired(validTo: Date): void {
  if (validTo.getTime() > Date.now()) return;
  throw new EngineError(
    "invalid-argument",
    `The certificate expired on ${validTo.toISOString()} and grants no access. Register a valid one.`,
  );
}

/** Deletes a certificate; has no effect if it is not registered. */
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
  exchange.reply(201, { "content-type": noContentType });
}

/**
 * Presents another certificate from now on: body `{"Certificate","Password"?}`, the base64 of a PFX or of PEM with its
 * key. A single node waits for no other node, so `?replaceImmediately` has no effect.
 */
async function replaceServerCertificate(exchange: Exchange, { server }: Context): Promise<void> {
  exchange.query.bool("replaceImmediately", false);
  const body: CertificateBody = parseObject(await exchange.body());
  const password = typeof body.Password === "string" ? body.Password : "";
  const { presentedCertificate } = server;
  if (presentedCertificate === undefined) throw notShown();
  await mapConflict(presentedCertificate.replace(bytesOf(body.Certificate), password));
  exchange.reply(201, { "content-type": noContentType });
}

/** Reloads the configured certificate, as the server does soon after a change of the file. */
async function refreshServerCertificate(exchange: Exchange, { server }: Context): Promise<void> {
  const { presentedCertificate } = server;
  if (presentedCertificate === undefined) throw notShown();
  await mapConflict(presentedCertificate.reload());
  exchange.reply(204);
}

function notShown(): EngineError {
  return new EngineError(
    "invalid-operation",
    "This server is unsecured and presents no certificate.",
  );
}

/** @throws EngineError invalid-argument for a certificate that is not suitable */
async function mapConflict(change: Promise<unknown>): Promise<void> {
  try {
    await change;
  } catch (error) {
    if (!(error instanceof StartError)) throw error;
    throw new EngineError(
      "invalid-argument",
      `Unable to load the provided certificate. The server keeps the previous one. ${error.message}.`,
      { cause: error },
    );
  }
}

/** The caller's own certificate; 204 if it is not registered. */
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

/** @throws RequestError 403 if `clearance` is above the caller's */
function checkRank(identity: Identity, clearance: SecurityClearance): void {
  if (clearanceRank[clearance] <= identity.rank) return;
  throw forbidden(
    `${refusalMessage(identity, "cluster-admin", undefined)} ` +
      `Only a certificate with the clearance ${clearance} may grant, change or revoke it.`,
  );
}

/** Content-Disposition for a file name with arbitrary characters (RFC 6266). */
export function attachment(fileName: string): string {
  const plain = fileName.replace(/[^\x20-\x7e]|["\\%]/g, "_");
  return `attachment; filename="${plain}"; filename*=UTF-8''${encodeURIComponent(fileName)}`;
}
