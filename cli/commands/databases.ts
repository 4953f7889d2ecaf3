/** `jackdaw databases`: list, create, delete, enable, disable. */
import type { CommandContext } from "../command.ts";
import { Failure } from "../failure.ts";
import { askQuestion, isInteractive } from "../question.ts";
import { printDatabases } from "./status.ts";

export async function run(context: CommandContext): Promise<void> {
  const { command, client, options, print } = context;
  const [name = ""] = context.arguments;
  const action = command.name.split(" ")[1];
  if (action === "list") {
    const { Databases } = (await client().json("/databases")) as {
      Databases: Parameters<typeof printDatabases>[1];
    };
    if (options.is("json")) print(JSON.stringify(Databases));
    else printDatabases(context, Databases);
    return;
  }
  if (action === "create") {
    const body = { DatabaseName: name };
    await client().json("/admin/databases", { method: "PUT", query: { name }, body });
  } else if (action === "delete") {
    await requireExisting(context, name);
    await confirm(context, name);
    const body = { DatabaseNames: [name], HardDelete: true };
    await client().json("/admin/databases", { method: "DELETE", body });
  } else {
    await requireExisting(context, name);
    const body = { DatabaseNames: [name] };
    await client().json(`/admin/databases/${action}`, { method: "POST", body });
  }
  print(options.is("json") ? JSON.stringify({ Name: name }) : `${name} ${action}d`);
}

async function requireExisting({ client }: CommandContext, name: string): Promise<void> {
  const answer = await client().send("/databases", {
    query: { name, namesOnly: true },
    accepts: [404],
  });
  if (answer.status === 404) {
    throw new Failure(
      "missing",
      `Database '${name}' does not exist; 'jackdaw databases' lists all databases`,
    );
  }
}

/** Requires the name of the database, or --yes. @throws Failure usage, failed */
async function confirm({ options, streams }: CommandContext, name: string): Promise<void> {
  if (options.is("yes")) return;
  if (!isInteractive(streams)) {
    throw new Failure("usage", `All documents of '${name}' would be deleted; add --yes to confirm`);
  }
  const typed = await askQuestion(
    streams,
    `All documents of '${name}' will be deleted. Type its name: `,
  );
  if (typed !== name) throw new Failure("failed", "The name does not match; nothing was deleted");
}
