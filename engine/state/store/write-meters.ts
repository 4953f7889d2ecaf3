/** What was committed since the opening, by kind, counted as RavenDB 7.2.7 does. Replay of the log is not counted. */
import { Meter } from "../../base/scheduling/meter.ts";
import type { EntryKeyspace } from "../keyspaces/entry-keyspace.ts";
import type { KeyspaceTable } from "../keyspaces/keyspace-table.ts";

export class PutMeters {
  readonly puts: Meter;
  readonly bytes: Meter;

  constructor(sinceMicros: number) {
    this.puts = new Meter(sinceMicros);
    this.bytes = new Meter(sinceMicros);
  }

  add(puts: number, bytes: number, atMicros: number): void {
    this.puts.add(puts, atMicros);
    this.bytes.add(bytes, atMicros);
  }
}

export class WriteMeters {
  /** Stored documents, also those whose metadata follow a change of attachments, counters or series, and their records. */
  readonly documents: PutMeters;
  /** Stored names, and the bytes of their contents, whether the contents were stored before or not. */
  readonly attachments: PutMeters;
  /** Stored values, and their records. */
  readonly counters: PutMeters;
  /** Entries appended, incremented or deleted, and the records of the segments that were written for them. */
  readonly timeSeries: PutMeters;

  constructor(sinceMicros: number) {
    this.documents = new PutMeters(sinceMicros);
    this.attachments = new PutMeters(sinceMicros);
    this.counters = new PutMeters(sinceMicros);
    this.timeSeries = new PutMeters(sinceMicros);
  }

  /** Returns the meters of the entries of a keyspace, or undefined if they are not counted. */
  of(keyspace: EntryKeyspace<unknown>, keyspaces: KeyspaceTable): PutMeters | undefined {
    if (keyspace === keyspaces.timeSeriesSegments) return this.timeSeries;
    if (keyspace === keyspaces.counters) return this.counters;
    return keyspace === keyspaces.attachments ? this.attachments : undefined;
  }
}
