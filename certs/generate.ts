/**
 * Command that creates a set of certificates in a new folder, without a server.
 *
 *   npm run certs -- --domain=db.example.com --out=./certs [--hosts=10.0.0.5,db2.example.com]
 */
import { existsSync } from "node:fs";
import { basename } from "node:path";
import { pathToFileURL } from "node:url";
import { parseArgs } from "node:util";
import { makeCertificateFolder } from "./certificate-folder.ts";
import { domainOf, servedHosts } from "./hosts.ts";

const usage = "npm run certs -- --domain=db.example.com --out=./certs [--hosts=name,address]";

/** Runs the command. @returns the exit code: 0 success, 2 wrong arguments, 1 any other error */
export async function generate(
  argv: readonly string[],
  print: (line: string) => void,
): Promise<number> {
  let domain: string;
  let out: string;
  let more: string[];
  try {
    const { values } = parseArgs({
      args: [...argv],
      options: {
        domain: { type: "string", default: "localhost" },
        out: { type: "string", default: "./certs" },
        hosts: { type: "string", default: "" },
      },
    });
    domain = values.domain;
    out = values.out;
    more = values.hosts.split(",").filter((host) => host !== "");
  } catch (error) {
    print(`${(error as Error).message.split("\n")[0]} Usage: ${usage}`);
    return 2;
  }
  if (domainOf(domain) !== domain) {
    print(`'${domain}' is not a host name. Usage: ${usage}`);
    return 2;
  }
  if (existsSync(out)) {
    print(`${out} already exists; nothing was changed. Choose another --out, or move the folder.`);
    return 2;
  }
  const { admin, ...paths } = await makeCertificateFolder(out, domain, servedHosts(domain, more));
  print(`CA:      ${paths.authority}`);
  print(`Server:  ${paths.server} and ${basename(paths.serverKey)}`);
  print(
    `Client:  ${admin?.certificate}, ${basename(admin?.key ?? "")} and ${basename(admin?.pfx ?? "")}`,
  );
  print(
    `Start:   npm start -- --Security.Certificate.Path=${paths.server} --ServerUrl=https://${domain}:8443`,
  );
  return 0;
}

if (import.meta.url === pathToFileURL(process.argv[1] ?? "").href) {
  process.exitCode = await generate(process.argv.slice(2), (line) => console.log(line));
}
