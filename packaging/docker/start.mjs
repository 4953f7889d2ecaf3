/**
 * Entry point of the image: handles the variables of RavenDB's image that are not server settings, and runs the
 * server in this process.
 */
import { dataFolder, insideUrl, serverUrl } from "./container.mjs";

const { env } = process;
const database = env.RAVEN_DATABASE;
delete env.RAVEN_DATABASE;
env.RAVEN_ServerUrl = serverUrl();
env.RAVEN_DataDir = dataFolder();

const program = new URL("./bin/jackdaw", import.meta.url);
process.argv[1] = program.pathname;
await import(program.href);
if (database) await create(database);

/** Creates the database as soon as the server responds, unless it exists. */
async function create(name) {
  const url = insideUrl();
  if (url.protocol === "https:") {
    console.error(
      `RAVEN_DATABASE is not supported with https: create ${name} with an operator's certificate.`,
    );
    return;
  }
  const path = `/admin/databases?name=${encodeURIComponent(name)}`;
  const body = JSON.stringify({ DatabaseName: name });
  for (;;) {
    const reply = await fetch(new URL(path, url), { method: "PUT", body }).catch(() => undefined);
    if (reply?.status === 201 || reply?.status === 409) return;
    if (reply !== undefined) {
      console.error(`RAVEN_DATABASE: ${name} was not created: ${await reply.text()}`);
      return;
    }
    await new Promise((resolve) => setTimeout(resolve, 100));
  }
}
