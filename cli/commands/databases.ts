/** `jackdaw databases`: list, create, delete, enable, disable. */
import type { Surroundings } from "../command.ts";
import { Failure } from "../failure.ts";
import { ask, canAsk } from "../question.ts";
import { printDatabases } from "./status.ts";

export async function run(surroundings: Surroundings): Promise<void> {
  const { command, client, options, print } = surroundings;
  const [name = ""] = surroundings.arguments;
  const action = command.name.split(" ")[1];
  if (action === "list") {
    const { Databases } = (await client().json("/databases")) as {
      Databases: Parameters<typeof printDatabases>[1];
    };
    if (options.is("json")) print(JSON.stringify(Databases));
    else printDatabases(surroundings, Databases);
    return;
  }
  if (action === "create") {
    const body = { DatabaseName: name };
    await client().json("/admin/databases", { method: "PUT", query: { name }, body });
  } else if (action === "delete") {
    await requireExisting(surroundings, name);
    await confirm(surroundings, name);
    const body = { DatabaseNames: [name], HardDelete: true };
    await client().json("/admin/databases", { method: "DELETE", body });
  } else {
    await requireExisting(surroundings, name);
    const body = { DatabaseNames: [name] };
    await client().json(`/admin/databases/${action}`, { method: "POST", body });
  }
  print(options.is("json") ? JSON.stringify({ Name: name }) : `${name} ${action}d`);
}

async function requireExisting({ client }: Surroundings, name: string): Promise<void> {
  const answer = await client().send("/databases", {
    query: { name, namesOnly: true },
    accepts: [404],
  });
  if (answer.status === 404) {
    throw new Failure("missing", `There is no database '${name}'; 'jackdaw databases' lists them`);
  }
}

/** What is deleted is gone: its name is typed again, or --yes is given. */
async function confirm({ options, streams }: Surroundings, name: string): Promise<void> {
  if (options.is("yes")) return;
  if (!canAsk(streams)) {
    throw new Failure("usage", `All documents of '${name}' would be deleted; add --yes to do it`);
  }
  const typed = await ask(streams, `All documents of '${name}' will be deleted. Type its name: `);
  if (typed !== name) throw new Failure("failed", "That is another name; nothing was deleted");
}
