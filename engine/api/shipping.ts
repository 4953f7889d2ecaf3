/** Ships a database to another place, for continuous backups: a base, then the commits. */

import { type BlobReader, hashOfContentName } from "../storage/log/blob-store.ts";
import type { LogPoint } from "../storage/log/log-follower.ts";
import { Shipment, type ShippedFile } from "../storage/shipping/shipment.ts";
import type { OpenDatabase } from "./database/open-database.ts";

export type { LogPoint, Shipment, ShippedFile };

export class Shipping {
  readonly #database: OpenDatabase;

  constructor(database: OpenDatabase) {
    this.#database = database;
  }

  /** Begins with a base: the state of this moment. @throws EngineError not-supported for a database in memory */
  begin(): { readonly base: ShippedFile; readonly shipment: Shipment } {
    this.#database.assertServing();
    return Shipment.begin(this.#database.shipped);
  }

  /**
   * Continues after the commit `point`: later commits are retained from the opening of the database on.
   * @param known names of the contents of attachments that were shipped before
   * @returns null if this is not possible: the shipment must start over
   */
  resume(point: LogPoint, known: ReadonlySet<string>): Promise<Shipment | null> {
    return this.#database.resumeShipment(point, known);
  }

  /**
   * Opens the content of that name, the hash as hex digits: of an attachment, or of an open shipment. Close it.
   * @throws EngineError record-damaged when it is not there, read-failed
   */
  openContent(name: string): Promise<BlobReader> {
    return this.#database.blobs.open(hashOfContentName(name));
  }

  /** All shipments that go on have been resumed. */
  resumed(): void {
    this.#database.releaseKept();
  }
}
