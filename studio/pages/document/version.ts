/** A document as the server has it. */
import { getText } from "../../base/client.ts";
import {
  type JsonMembers,
  type JsonNode,
  memberOf,
  parseSource,
  printSource,
} from "../../json/json-source.ts";

export interface Version {
  readonly content: JsonMembers;
  /** Its metadata without what the server makes. */
  readonly metadata: JsonMembers;
  /** As the server has it. */
  readonly wholeMetadata: JsonMembers;
  readonly changeVector: string;
  readonly lastModified: string;
}

/** Members of the metadata that the server makes. */
const made = [
  "@id",
  "@change-vector",
  "@last-modified",
  "@flags",
  "@attachments",
  "@counters",
  "@timeseries",
  "@timeseries-snapshot",
  "@counters-snapshot",
];
const nothing: JsonMembers = new Map();

export async function readVersion(
  base: string,
  id: string,
  signal?: AbortSignal,
): Promise<Version> {
  const { body } = await getText(`${base}/docs?id=${encodeURIComponent(id)}`, signal);
  const [found] = memberOf(parseSource(body), "Results") as JsonNode[];
  return versionOf(found as JsonMembers);
}

export function versionOf(found: JsonMembers): Version {
  const content = new Map(found);
  const wholeMetadata = (content.get("@metadata") as JsonMembers | undefined) ?? nothing;
  const metadata = new Map(wholeMetadata);
  content.delete("@metadata");
  const text = (name: string) => String(metadata.get(name) ?? "");
  const [changeVector, lastModified] = [text("@change-vector"), text("@last-modified")];
  for (const name of made) metadata.delete(name);
  return { content, metadata, wholeMetadata, changeVector, lastModified };
}

/** The text of a version from which `versionOf` makes it again. */
export function textOf({ content, wholeMetadata }: Version): string {
  return printSource(new Map(content).set("@metadata", wholeMetadata), 0);
}

export function collectionOf({ metadata }: Version): string | undefined {
  const name = metadata.get("@collection");
  return typeof name === "string" ? name : undefined;
}
