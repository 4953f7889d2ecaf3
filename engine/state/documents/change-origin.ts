/**
 * Identity of a writing database on a node of a cluster, used in change vectors, server-made ids and parts of counters.
 * The tag is a setting of the node and is stored nowhere: the hash identifies the database when the tag changes.
 */

export class ChangeOrigin {
  readonly nodeTag: string;
  /** 22 characters of base64: 128 bits that identify the database. */
  readonly hash: string;
  /** `hash` in ASCII. */
  readonly hashBytes: Buffer;
  /** `"@change-vector":"A:`: the text before the etag in a document's metadata. */
  readonly metadataOpen: Buffer;

  constructor(nodeTag: string, hash: string) {
    this.nodeTag = nodeTag;
    this.hash = hash;
    this.hashBytes = Buffer.from(hash, "latin1");
    this.metadataOpen = Buffer.from(`"@change-vector":"${nodeTag}:`, "latin1");
  }

  /** Returns the default change vector of a write, whose only entry is this database's. */
  changeVectorAt(etag: number): string {
    return `${this.nodeTag}:${etag}-${this.hash}`;
  }

  /** `A-<hash>`: the key of this database's part in the values of counters and incremental time series. */
  get partKey(): string {
    return `${this.nodeTag}-${this.hash}`;
  }
}
