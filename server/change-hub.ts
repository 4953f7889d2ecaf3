/**
 * All connections that follow the changes of one database: hears of each change once, and hands its message to those that
 * watch it.
 *
 * Invariants:
 * - The database is listened to while there are connections; its writes only while one of them watches what writes do.
 * - When the database is disabled, closed or deleted, all connections are closed.
 * - What goes wrong for one connection ends that one, which may have missed something; nothing of it reaches who writes.
 */
import type { Change, IndexChange } from "../engine/changes.ts";
import type { Database } from "../engine/database.ts";
import type { OperationInfo } from "../engine/operations.ts";
import {
  cacheMessage,
  counterMessage,
  documentMessage,
  indexMessage,
  operationMessage,
  timeSeriesMessage,
} from "./change-message.ts";
import { ChangeTurns } from "./change-turns.ts";
import type { ChangesConnection } from "./changes-connection.ts";

/** Changes that wait to be told. */
const lateChangesMax = 65_536;

/** Events of indexes after which queries may answer differently. */
const resultEvents: ReadonlySet<IndexChange["type"]> = new Set([
  "BatchCompleted",
  "IndexRemoved",
  "SideBySideReplace",
]);

export class ChangeHub {
  readonly #database: Database;
  readonly #connections = new Set<ChangesConnection>();
  /** Those of them that watch what writes do. */
  readonly #writeWatchers = new Set<ChangesConnection>();
  readonly #changes = new ChangeTurns<Change>(
    (change) => this.#guarded(() => this.#tell(change)),
    lateChangesMax,
  );
  #stopListening: (() => void) | undefined;
  #stopWrites: (() => void) | undefined;

  constructor(database: Database) {
    this.#database = database;
  }

  get connections(): readonly ChangesConnection[] {
    return [...this.#connections];
  }

  add(connection: ChangesConnection): void {
    this.#connections.add(connection);
    this.#stopListening ??= this.#listen();
  }

  /** A connection is gone. */
  remove(connection: ChangesConnection): void {
    this.#connections.delete(connection);
    this.#writeWatchers.delete(connection);
    this.#followWrites();
    if (this.#connections.size > 0) return;
    this.#changes.clear();
    this.#stopListening?.();
    this.#stopListening = undefined;
  }

  /** A connection watches something else than before. */
  watchesChanged(connection: ChangesConnection): void {
    const isWatcher = this.#connections.has(connection) && connection.watches.needsWrites;
    if (isWatcher) this.#writeWatchers.add(connection);
    else this.#writeWatchers.delete(connection);
    this.#followWrites();
  }

  #followWrites(): void {
    if (this.#writeWatchers.size > 0)
      this.#stopWrites ??= this.#database.feed.listen((change) => this.#changes.add(change));
    else {
      this.#stopWrites?.();
      this.#stopWrites = undefined;
    }
  }

  #listen(): () => void {
    const { feed, operations } = this.#database;
    const ends = [
      feed.listenToIndexes((change) => this.#guarded(() => this.#tellIndex(change))),
      operations.listen((info) => this.#guarded(() => this.#tellOperation(info))),
      feed.listenToEnd((reason) => {
        this.#each((connection) => connection.close(1001, reason));
      }),
    ];
    return () => {
      for (const end of ends) end();
    };
  }

  /** For what concerns all connections: when it fails, each of them has missed it. */
  #guarded(tell: () => void): void {
    try {
      tell();
    } catch (error) {
      for (const connection of this.connections) connection.fail(error);
    }
  }

  #each(tell: (connection: ChangesConnection) => void): void {
    for (const connection of this.#connections) {
      try {
        tell(connection);
      } catch (error) {
        connection.fail(error);
      }
    }
  }

  #tell(change: Change): void {
    if (change.kind === "document") {
      const { facts, message } = documentMessage(this.#database, change);
      this.#each((connection) => {
        const { watches } = connection;
        if (watches.isAll("aggressive-caching")) connection.sendOnce(cacheMessage);
        if (watches.wantsDocument(facts)) connection.sendOfDocument(facts.lowerId, message);
      });
    } else if (change.kind === "counter") {
      const { facts, message } = counterMessage(this.#database, change);
      this.#each((connection) => {
        if (connection.watches.wantsCounter(facts)) connection.send(message);
      });
    } else {
      const { facts, message } = timeSeriesMessage(this.#database, change);
      this.#each((connection) => {
        if (connection.watches.wantsTimeSeries(facts)) connection.send(message);
      });
    }
  }

  #tellIndex(change: IndexChange): void {
    const lowerName = change.name.toLowerCase();
    const message = indexMessage(change);
    this.#each((connection) => {
      const { watches } = connection;
      if (watches.isAll("aggressive-caching") && resultEvents.has(change.type)) {
        connection.sendOnce(cacheMessage);
      }
      if (watches.wantsIndex(lowerName)) connection.sendOnce(message);
    });
  }

  #tellOperation(info: OperationInfo): void {
    // Who listens is told of figures, and there are none yet.
    if (info.state.status === "running" && info.state.progress === null) return;
    const watching = this.connections.filter(({ watches }) => watches.wantsOperation(info.id));
    if (watching.length === 0) return;
    const message = operationMessage(info);
    for (const connection of watching) connection.send(message);
  }
}
