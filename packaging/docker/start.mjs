/**
 * The entry point of the image: does what the one of RavenDB's image does with variables that are no settings of the
 * server, and becomes the server, in this process.
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

/** Creates the database as soon as the server answers, unless it is there. */
async function create(name) {
  const url = insideUrl();
  if (url.protocol === "https:") {
    console.error(`RAVEN_DATABASE needs a certificate: create ${name} with one that may do so.`);
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
