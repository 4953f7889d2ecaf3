/** Data of a database that readers of its records need, because records do not contain it. */
import type { ChangeOrigin } from "./change-origin.ts";
import type { ShapeTable } from "./shapes.ts";

export interface RecordContext {
  readonly shapes: Pick<ShapeTable, "get">;
  readonly origin: ChangeOrigin;
  /** Returns the metadata member of a collection's documents when no metadata is stored. */
  collectionMember(collectionId: number): Buffer;
}
