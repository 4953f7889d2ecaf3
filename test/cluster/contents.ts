/** All contents of a database on a node, from its own copy. */
import { createHash } from "node:crypto";
import type { Contents } from "./checks.ts";
import type { ClusterNode, ClusterNodes } from "./cluster-nodes.ts";

const pageSize = 2_000;

interface MetadataOf {
  readonly "@id": string;
  readonly "@counters"?: readonly string[];
  readonly "@attachments"?: readonly { readonly Name: string }[];
}

type Row = Readonly<Record<string, unknown>> & { readonly "@metadata": MetadataOf };

export async function contentsOf({ send }: ClusterNode, database: string): Promise<Contents> {
  const path = `/databases/${database}`;
  const get = async (target: string) => {
    const reply = await send.get(path + target, { timeoutMs: 30_000 });
    if (reply.status !== 200) throw new Error(`${target}: ${reply.status} ${reply.text}`);
    return reply;
  };
  const documents = new Map<string, Row>();
  for (let start = 0; ; start += pageSize) {
    const { text } = await get(`/docs?start=${start}&pageSize=${pageSize}`);
    const { Results } = JSON.parse(text) as { Results: Row[] };
    for (const row of Results) documents.set(row["@metadata"]["@id"], row);
    if (Results.length < pageSize) break;
  }
  const counters = new Map<string, number>();
  const attachments = new Map<string, string>();
  for (const [id, { "@metadata": metadata }] of documents) {
    const encoded = encodeURIComponent(id);
    if (metadata["@counters"] !== undefined) {
      const { text } = await get(`/counters?docId=${encoded}`);
      const { Counters } = JSON.parse(text) as {
        Counters: { CounterName: string; TotalValue: number }[];
      };
      for (const one of Counters) counters.set(`${id}/${one.CounterName}`, one.TotalValue);
    }
    for (const { Name } of metadata["@attachments"] ?? []) {
      const { body } = await get(`/attachments?id=${encoded}&name=${encodeURIComponent(Name)}`);
      attachments.set(`${id}/${Name}`, createHash("sha256").update(body).digest("hex"));
    }
  }
  const values = new Map<string, string>();
  const { text } = await get("/cmpxchg?start=0&pageSize=1000000");
  for (const row of (JSON.parse(text) as { Results: { Key: string }[] }).Results) {
    values.set(row.Key, JSON.stringify(row));
  }
  return { documents, counters, attachments, values };
}

/** Resolves when all nodes report the same size and end of their copies. */
export async function caughtUp(cluster: ClusterNodes, database: string): Promise<void> {
  await cluster.eventually("all copies end at the same position", async () => {
    const ends = new Map<string, string>();
    for (const { tag, send } of cluster.nodes) {
      const { status, text } = await send.get(`/databases/${database}/stats`);
      if (status !== 200) return `${tag}: ${status} ${text}`;
      const { LastDatabaseEtag, CountOfDocuments, DatabaseChangeVector } = JSON.parse(text);
      ends.set(tag, JSON.stringify({ LastDatabaseEtag, CountOfDocuments, DatabaseChangeVector }));
    }
    return new Set(ends.values()).size === 1
      ? null
      : [...ends].map(([tag, end]) => `${tag} ${end}`).join("; ");
  });
}
