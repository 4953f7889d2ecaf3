/** Deletes documents, and restores them unchanged. */
import { getText, send, sendText } from "../../base/client.ts";
import { type JsonNode, memberOf, parseSource, printSource } from "../../json/json-source.ts";
import { serverMembers } from "../document/version.ts";

/** Documents before their deletion. */
interface Deleted {
  readonly documents: readonly { readonly id: string; readonly text: string }[];
}

/** Maximum number of ids per request. */
const idsMax = 100;

export async function deleteAll(base: string, ids: readonly string[]): Promise<Deleted> {
  const documents: { id: string; text: string }[] = [];
  for (let from = 0; from < ids.length; from += idsMax) {
    const query = ids.slice(from, from + idsMax).map((id) => `id=${encodeURIComponent(id)}`);
    const { body } = await getText(`${base}/docs?${query.join("&")}`);
    const results = memberOf(parseSource(body), "Results") as JsonNode[];
    for (const found of results) if (found instanceof Map) documents.push(asStored(found));
  }
  await send("POST", `${base}/bulk_docs`, {
    json: { Commands: ids.map((Id) => ({ Id, ChangeVector: null, Type: "DELETE" })) },
  });
  return { documents };
}

function asStored(found: Map<string, JsonNode>): { id: string; text: string } {
  const document = new Map(found);
  const metadata = new Map(document.get("@metadata") as Map<string, JsonNode>);
  const id = String(metadata.get("@id"));
  for (const name of serverMembers) metadata.delete(name);
  document.set("@metadata", metadata);
  return { id, text: printSource(document, 0) };
}

export async function restoreAll(base: string, { documents }: Deleted): Promise<void> {
  // Documents are sent as text, so that no number is rounded. Documents recreated meanwhile are not overwritten.
  const commands = documents.map(
    ({ id, text }) =>
      `{"Id":${JSON.stringify(id)},"ChangeVector":"","Type":"PUT","Document":${text}}`,
  );
  await sendText("POST", `${base}/bulk_docs`, { text: `{"Commands":[${commands.join(",")}]}` });
}
