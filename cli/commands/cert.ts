/** `jackdaw cert`: registered client certificates, and the renewal of the server's own certificate. */
import { createPrivateKey, X509Certificate } from "node:crypto";
import { existsSync } from "node:fs";
import { mkdir, open, readFile, rm } from "node:fs/promises";
import { join, resolve } from "node:path";
import type { CertificatePair } from "../../certs/authority.ts";
import { curlCommand } from "../../server/security/curl-command.ts";
import type { Client } from "../client.ts";
import type { CommandContext } from "../command.ts";
import { localSettings } from "../connection.ts";
import { Failure } from "../failure.ts";
import { reasonOf } from "../input-file.ts";
import { painter, tableLines } from "../output.ts";
import { numberOr } from "../values.ts";

interface ListedCertificate {
  readonly Name: string;
  readonly Thumbprint: string;
  readonly SecurityClearance: string;
  readonly Permissions: Readonly<Record<string, string>>;
  readonly NotAfter: string;
  readonly Disabled: boolean;
}

const path = "/admin/certificates";
const dayMs = 86_400_000;

const clearances: Readonly<Record<string, string>> = {
  user: "ValidUser",
  operator: "Operator",
  admin: "ClusterAdmin",
};
const accesses: Readonly<Record<string, string>> = {
  read: "Read",
  write: "ReadWrite",
  admin: "Admin",
};

export async function run(context: CommandContext): Promise<void> {
  const action = context.command.name.split(" ")[1] ?? "";
  if (action === "list") await list(context);
  else if (action === "make") await make(context);
  else if (action === "revoke") await revoke(context);
  else await renew(context);
}

async function registered({ client }: CommandContext): Promise<ListedCertificate[]> {
  const reply = await client().json(path, { query: { metadataOnly: true } });
  return (reply as { Results: ListedCertificate[] }).Results;
}

async function list(context: CommandContext): Promise<void> {
  const { options, print, streams, environment } = context;
  const all = await registered(context);
  if (options.is("json")) {
    print(JSON.stringify(all));
    return;
  }
  const rows = all.map((one) => [
    one.Name,
    one.SecurityClearance,
    one.NotAfter.slice(0, 10),
    one.Disabled ? "disabled" : "",
    one.Thumbprint,
  ]);
  const paint = painter(streams.output.isTTY === true, environment);
  const header = ["name", "clearance", "until", "", "thumbprint"];
  for (const line of tableLines(header, rows, streams.output.columns, paint)) print(line);
}

/** Returns the certificate with this name or thumbprint. @throws Failure missing; usage when the name is not unique */
async function found(context: CommandContext): Promise<ListedCertificate> {
  const [wanted = ""] = context.arguments;
  const all = await registered(context);
  const [one, other] = all.filter(
    ({ Name, Thumbprint }) => Name === wanted || Thumbprint === wanted.toUpperCase(),
  );
  if (one === undefined) {
    throw new Failure(
      "missing",
      `Certificate '${wanted}' does not exist; 'jackdaw cert' lists all certificates`,
    );
  }
  if (other !== undefined) {
    throw new Failure(
      "usage",
      `Several certificates have the name '${wanted}'; specify the thumbprint`,
    );
  }
  return one;
}

async function revoke(context: CommandContext): Promise<void> {
  const { client, options, print } = context;
  const one = await found(context);
  await client().send(path, { method: "DELETE", query: { thumbprint: one.Thumbprint } });
  print(options.is("json") ? JSON.stringify(one) : `${one.Name} was revoked`);
}

async function make(context: CommandContext): Promise<void> {
  const { arguments: given, options } = context;
  const [Name = ""] = given;
  const SecurityClearance = choice(clearances, options.text("clearance") ?? "user", "--clearance");
  const Permissions = Object.fromEntries(
    options.all("access").map((one) => {
      const [, database = "", access = ""] = /^(.+)=(\w+)$/.exec(one) ?? [];
      if (database === "")
        throw new Failure("usage", `--access '${one}' must be DATABASE=read|write|admin`);
      return [database, choice(accesses, access, "--access")];
    }),
  );
  if (SecurityClearance === "ValidUser" && Object.keys(Permissions).length === 0) {
    throw new Failure(
      "usage",
      "A user needs --access DATABASE=read|write|admin, once for each database",
    );
  }
  await register(context, { Name, SecurityClearance, Permissions });
}

/**
 * With a name, creates another client certificate with the same access; the old certificate is valid until it is
 * revoked. Without a name, renews the generated certificate of a local server, which loads it within seconds.
 */
async function renew(context: CommandContext): Promise<void> {
  if (context.arguments.length > 0) {
    const { Name, SecurityClearance, Permissions, Thumbprint } = await found(context);
    await register(context, { Name, SecurityClearance, Permissions });
    if (context.options.is("json")) return;
    context.print(
      `The old certificate remains valid; revoke it with 'jackdaw cert revoke ${Thumbprint}'`,
    );
    return;
  }
  const { options, environment, print } = context;
  const data = options.text("data") ?? (environment["JACKDAW_DATA"] || undefined);
  const folder = join(resolve(data ?? localSettings(environment).dataFolder), "certs");
  const { findCertificateFolder, remakeServerCertificate } = await import(
    "../../certs/certificate-folder.ts"
  );
  const paths = await findCertificateFolder(folder);
  if (paths === undefined || !existsSync(paths.authorityKey)) {
    throw new Failure(
      "missing",
      `${folder} contains no generated certificates; specify the data folder with --data, or renew your own certificate with its issuer`,
    );
  }
  const before = new X509Certificate(await readFile(paths.server));
  const made = new X509Certificate(
    (await remakeServerCertificate(paths, hostsOf(before))).certificate,
  );
  const until = new Date(made.validTo).toISOString().slice(0, 10);
  print(
    options.is("json")
      ? JSON.stringify({ File: paths.server, NotAfter: made.validTo })
      : `${paths.server} is valid until ${until}; a running server loads it within seconds`,
  );
}

/** Returns the names and addresses in a certificate. */
function hostsOf({ subjectAltName = "" }: X509Certificate): string[] {
  return subjectAltName.split(", ").map((one) => one.replace(/^(DNS|IP Address):/, ""));
}

interface Terms {
  readonly Name: string;
  readonly SecurityClearance: string;
  readonly Permissions: Readonly<Record<string, string>>;
}

/**
 * Creates a key, registers its certificate with the server, and writes NAME.crt, NAME.key and NAME.pfx. The key is
 * never sent to the server.
 */
async function register(context: CommandContext, terms: Terms): Promise<void> {
  const { client, options, print } = context;
  const { Name } = terms;
  const files = await newFiles(options.text("out") ?? ".", Name);
  try {
    const pair = await newPair(context, Name);
    const password = passwordOf(context);
    const { writePfx } = await import("../../certs/pfx.ts");
    const cipher = { cipher: "aes-256-cbc", passphrase: password } as const;
    const key =
      password === ""
        ? pair.key
        : createPrivateKey(pair.key).export({ type: "pkcs8", format: "pem", ...cipher });
    const contents = [pair.certificate, key, await writePfx(pair, password, Name)];
    for (const [at, { handle }] of files.entries()) {
      await handle.writeFile(contents[at] ?? "");
      await handle.sync();
    }
    const { raw, fingerprint, validTo } = new X509Certificate(pair.certificate);
    const body = { ...terms, Certificate: raw.toString("base64"), Disabled: false };
    await client().send(path, { method: "PUT", body });
    const Thumbprint = fingerprint.replaceAll(":", "");
    const Files = files.map((file) => file.path);
    if (options.is("json")) {
      print(JSON.stringify({ ...terms, Thumbprint, NotAfter: validTo, Files }));
      return;
    }
    const until = new Date(validTo).toISOString().slice(0, 10);
    print(
      `${Name} is registered until ${until} as ${terms.SecurityClearance}, thumbprint ${Thumbprint}`,
    );
    for (const file of Files) print(file);
    print(tryLine(client(), Files));
  } catch (error) {
    for (const file of files) await rm(file.path, { force: true });
    throw error;
  } finally {
    for (const { handle } of files) await handle.close();
  }
}

/** Returns a curl command that lists the databases of the certificate. */
function tryLine({ url, caPath }: Client, [certificate = "", key = ""]: readonly string[]): string {
  const trust = caPath === undefined ? [] : ["--cacert", resolve(caPath)];
  const target = new URL("/databases", url).href;
  return `Try it: ${curlCommand(target, { certificate, key }, trust)}`;
}

/** Creates a certificate with a temporary issuer: the server identifies clients by their certificates alone. */
async function newPair({ options }: CommandContext, name: string): Promise<CertificatePair> {
  const { makeAuthority, makeClientCertificate, clientDays } = await import(
    "../../certs/authority.ts"
  );
  const days = numberOr(options.text("days"), clientDays, "--days");
  const notAfter = new Date(Date.now() + days * dayMs);
  return await makeClientCertificate(await makeAuthority(name), name, { keyType: "rsa", notAfter });
}

function passwordOf({ options, environment }: CommandContext): string {
  const variable = options.text("password-variable");
  if (variable === undefined) return "";
  const password = environment[variable];
  if (password) return password;
  throw new Failure("usage", `--password-variable: the variable ${variable} is empty`);
}

interface NewFile {
  readonly path: string;
  readonly handle: Awaited<ReturnType<typeof open>>;
}

/** Creates NAME.crt, .key and .pfx, which must not exist. @throws Failure usage */
async function newFiles(folder: string, name: string): Promise<NewFile[]> {
  const files: NewFile[] = [];
  const base = join(resolve(folder), name.replace(/[^\p{L}\p{N}._@-]+/gu, "-"));
  try {
    await mkdir(resolve(folder), { recursive: true, mode: 0o700 });
    for (const ending of ["crt", "key", "pfx"]) {
      const file = `${base}.${ending}`;
      files.push({ path: file, handle: await open(file, "wx", 0o600) });
    }
    return files;
  } catch (error) {
    for (const file of files) {
      await file.handle.close();
      await rm(file.path);
    }
    const { code } = error as { code?: string };
    const why =
      code === "EEXIST"
        ? `${base}.* already exist and are not overwritten; specify another folder with --out`
        : `${base}.* cannot be written: ${reasonOf(error)}; specify another folder with --out`;
    throw new Failure("usage", why, { cause: error });
  }
}

/** Looks up an option value, case-insensitive. @throws Failure usage for an unknown value */
function choice(table: Readonly<Record<string, string>>, given: string, what: string): string {
  const lower = given.toLowerCase();
  const known = Object.hasOwn(table, lower) ? table[lower] : undefined;
  if (known !== undefined) return known;
  throw new Failure("usage", `${what} '${given}' must be one of ${Object.keys(table).join(", ")}`);
}
