import type { ShapeTable } from "./keyspaces/shapes.ts";

/** What of a database its documents' records do not say themselves, and their readers need. */
export interface RecordContext {
  readonly shapes: Pick<ShapeTable, "get">;
  /** The hash of the database in change vectors, in ASCII. */
  readonly databaseHashBytes: Buffer;
  /** What the metadata of a collection's documents says when nothing else is stored. */
  collectionMember(collectionId: number): Buffer;
}
