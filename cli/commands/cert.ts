/** `jackdaw cert`: the client certificates that a server lets in; and the renewal of the server's own. */
import { createPrivateKey, X509Certificate } from "node:crypto";
import { existsSync } from "node:fs";
import { mkdir, open, readFile, rm } from "node:fs/promises";
import { join, resolve } from "node:path";
import type { CertificatePair } from "../../certs/authority.ts";
import type { Surroundings } from "../command.ts";
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

export async function run(surroundings: Surroundings): Promise<void> {
  const action = surroundings.command.name.split(" ")[1] ?? "";
  if (action === "list") await list(surroundings);
  else if (action === "make") await make(surroundings);
  else if (action === "revoke") await revoke(surroundings);
  else await renew(surroundings);
}

async function registered({ client }: Surroundings): Promise<ListedCertificate[]> {
  const reply = await client().json(path, { query: { metadataOnly: true } });
  return (reply as { Results: ListedCertificate[] }).Results;
}

async function list(surroundings: Surroundings): Promise<void> {
  const { options, print, streams, environment } = surroundings;
  const all = await registered(surroundings);
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

/** The certificate of this name or thumbprint. @throws Failure missing; usage when several have the name */
async function found(surroundings: Surroundings): Promise<ListedCertificate> {
  const [wanted = ""] = surroundings.arguments;
  const all = await registered(surroundings);
  const [one, other] = all.filter(
    ({ Name, Thumbprint }) => Name === wanted || Thumbprint === wanted.toUpperCase(),
  );
  if (one === undefined) {
    throw new Failure("missing", `No certificate is called '${wanted}'; 'jackdaw cert' lists them`);
  }
  if (other !== undefined) {
    throw new Failure("usage", `Several certificates are called '${wanted}'; give the thumbprint`);
  }
  return one;
}

async function revoke(surroundings: Surroundings): Promise<void> {
  const { client, options, print } = surroundings;
  const one = await found(surroundings);
  await client().send(path, { method: "DELETE", query: { thumbprint: one.Thumbprint } });
  print(options.is("json") ? JSON.stringify(one) : `${one.Name} is let in no more`);
}

async function make(surroundings: Surroundings): Promise<void> {
  const { arguments: given, options } = surroundings;
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
  await register(surroundings, { Name, SecurityClearance, Permissions });
}

/**
 * With a name, a client's certificate: another one with the same rights; the old one is let in until it is revoked. Without, that
 * which a local server has made for itself; the server takes it from the file within seconds.
 */
async function renew(surroundings: Surroundings): Promise<void> {
  if (surroundings.arguments.length > 0) {
    const { Name, SecurityClearance, Permissions, Thumbprint } = await found(surroundings);
    await register(surroundings, { Name, SecurityClearance, Permissions });
    if (surroundings.options.is("json")) return;
    surroundings.print(`The old one is let in until 'jackdaw cert revoke ${Thumbprint}'`);
    return;
  }
  const { options, environment, print } = surroundings;
  const data = options.text("data") ?? (environment["JACKDAW_DATA"] || undefined);
  const folder = join(resolve(data ?? localSettings(environment).dataFolder), "certs");
  const { findCertificateFolder, remakeServerCertificate } = await import(
    "../../certs/certificate-folder.ts"
  );
  const paths = await findCertificateFolder(folder);
  if (paths === undefined || !existsSync(paths.authorityKey)) {
    throw new Failure(
      "missing",
      `No server has made certificates in ${folder}; name its data folder with --data, or renew your own certificate where it comes from`,
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
      : `${paths.server} is good until ${until}; a running server shows it within seconds`,
  );
}

/** Names and addresses in a certificate. */
function hostsOf({ subjectAltName = "" }: X509Certificate): string[] {
  return subjectAltName.split(", ").map((one) => one.replace(/^(DNS|IP Address):/, ""));
}

interface Terms {
  readonly Name: string;
  readonly SecurityClearance: string;
  readonly Permissions: Readonly<Record<string, string>>;
}

/**
 * Makes a key here, registers its certificate with the server, and writes NAME.crt, NAME.key and NAME.pfx. The key
 * never leaves this machine.
 */
async function register(surroundings: Surroundings, terms: Terms): Promise<void> {
  const { client, options, print } = surroundings;
  const { Name } = terms;
  const files = await newFiles(options.text("out") ?? ".", Name);
  try {
    const pair = await newPair(surroundings, Name);
    const password = passwordOf(surroundings);
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
      `${Name} is let in until ${until} as ${terms.SecurityClearance}, thumbprint ${Thumbprint}`,
    );
    for (const file of Files) print(file);
  } catch (error) {
    for (const file of files) await rm(file.path, { force: true });
    throw error;
  } finally {
    for (const { handle } of files) await handle.close();
  }
}

/** The issuer is made for this one and forgotten: a server knows clients by their certificates alone. */
async function newPair({ options }: Surroundings, name: string): Promise<CertificatePair> {
  const { makeAuthority, makeClientCertificate, clientDays } = await import(
    "../../certs/authority.ts"
  );
  const days = numberOr(options.text("days"), clientDays, "--days");
  const notAfter = new Date(Date.now() + days * dayMs);
  return await makeClientCertificate(await makeAuthority(name), name, { keyType: "rsa", notAfter });
}

function passwordOf({ options, environment }: Surroundings): string {
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

/** Opens NAME.crt, .key and .pfx, which must not exist. @throws Failure usage */
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
        ? `${base}.* are there already and are never overwritten; give another folder with --out`
        : `${base}.* cannot be written: ${reasonOf(error)}; give another folder with --out`;
    throw new Failure("usage", why, { cause: error });
  }
}

/** In any case: RavenDB's own names begin with a capital. */
function choice(table: Readonly<Record<string, string>>, given: string, what: string): string {
  const lower = given.toLowerCase();
  const known = Object.hasOwn(table, lower) ? table[lower] : undefined;
  if (known !== undefined) return known;
  throw new Failure("usage", `${what} '${given}' must be one of ${Object.keys(table).join(", ")}`);
}
