import type { ShapeTable } from "./keyspaces/shapes.ts";

/** Context from a database that is needed to read its documents' records. */
export interface RecordContext {
  readonly shapes: Pick<ShapeTable, "get">;
  /** The hash of the database in change vectors, in ASCII. */
  readonly databaseHashBytes: Buffer;
  /** The metadata member of a collection's documents when no metadata is stored. */
  collectionMember(collectionId: number): Buffer;
}
