/** `jackdaw cert`: the client certificates that a server lets in. */
import type { Surroundings } from "../command.ts";
import { Failure } from "../failure.ts";
import { painter, tableLines } from "../output.ts";

interface ListedCertificate {
  readonly Name: string;
  readonly Thumbprint: string;
  readonly SecurityClearance: string;
  readonly NotAfter: string;
  readonly Disabled: boolean;
}

export async function run(surroundings: Surroundings): Promise<void> {
  const { command, arguments: given, client, options, print, streams, environment } = surroundings;
  const reply = await client().json("/admin/certificates", { query: { metadataOnly: true } });
  const { Results } = reply as { Results: ListedCertificate[] };
  if (command.name === "cert revoke") {
    const [wanted = ""] = given;
    const found = Results.filter(
      ({ Name, Thumbprint }) => Name === wanted || Thumbprint === wanted.toUpperCase(),
    );
    const [one] = found;
    if (one === undefined) {
      throw new Failure(
        "missing",
        `No certificate is called '${wanted}'; 'jackdaw cert' lists them`,
      );
    }
    if (found.length > 1) {
      throw new Failure(
        "usage",
        `${found.length} certificates are called '${wanted}'; give the thumbprint`,
      );
    }
    const query = { thumbprint: one.Thumbprint };
    await client().send("/admin/certificates", { method: "DELETE", query });
    print(options.is("json") ? JSON.stringify(one) : `${one.Name} is let in no more`);
    return;
  }
  if (options.is("json")) {
    print(JSON.stringify(Results));
    return;
  }
  const rows = Results.map((one) => [
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
