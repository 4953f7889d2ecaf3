/** A version of a document on the server. */
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
  /** Metadata without the members that the server sets. */
  readonly metadata: JsonMembers;
  /** Metadata as stored on the server. */
  readonly wholeMetadata: JsonMembers;
  readonly changeVector: string;
  readonly lastModified: string;
}

/** Metadata members that the server sets. */
export const serverMembers = [
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
  for (const name of serverMembers) metadata.delete(name);
  return { content, metadata, wholeMetadata, changeVector, lastModified };
}

/** Returns the text of a version; the inverse of `versionOf`. */
export function textOf({ content, wholeMetadata }: Version): string {
  return printSource(new Map(content).set("@metadata", wholeMetadata), 0);
}

export function collectionOf({ metadata }: Version): string | undefined {
  const name = metadata.get("@collection");
  return typeof name === "string" ? name : undefined;
}
