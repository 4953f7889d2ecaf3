/**
 * All connections subscribed to the changes of one database. Receives each change once, and forwards its message to the
 * connections that watch it.
 *
 * Invariants:
 * - The hub listens to the database while it has connections, and to writes only while a connection watches them.
 * - When the database is disabled, closed or deleted, all connections are closed.
 * - An error for one connection closes that one, which may have missed a change; it never reaches the writer.
 */
import { foldedName } from "../../engine/base/case-folding.ts";
import type { Change, Database, IndexChange, OperationInfo } from "../../engine/engine.ts";
import {
  cacheMessage,
  counterMessage,
  documentMessage,
  indexMessage,
  operationMessage,
  timeSeriesMessage,
} from "./change-message.ts";
import { ChangeScheduler } from "./change-scheduler.ts";
import type { ChangesConnection } from "./changes-connection.ts";

/** Changes queued for delivery. */
const lateChangesMax = 65_536;

/** Index events that may change the results of queries. */
const resultEvents: ReadonlySet<IndexChange["type"]> = new Set([
  "BatchCompleted",
  "IndexRemoved",
  "SideBySideReplace",
]);

export class ChangeHub {
  readonly #database: Database;
  readonly #connections = new Set<ChangesConnection>();
  /** The connections that watch writes. */
  readonly #writeWatchers = new Set<ChangesConnection>();
  readonly #changes = new ChangeScheduler<Change>(
    (change) => this.#guarded(() => this.#send(change)),
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

  /** Removes a closed connection. */
  remove(connection: ChangesConnection): void {
    this.#connections.delete(connection);
    this.#writeWatchers.delete(connection);
    this.#followWrites();
    if (this.#connections.size > 0) return;
    this.#changes.clear();
    this.#stopListening?.();
    this.#stopListening = undefined;
  }

  /** Called when the watches of a connection have changed. */
  watchesChanged(connection: ChangesConnection): void {
    const isWatcher = this.#connections.has(connection) && connection.watches.needsWrites;
    if (isWatcher) this.#writeWatchers.add(connection);
    else this.#writeWatchers.delete(connection);
    this.#followWrites();
  }

  #followWrites(): void {
    if (this.#writeWatchers.size > 0)
      this.#stopWrites ??= this.#database.changes.listen((change) => this.#changes.add(change));
    else {
      this.#stopWrites?.();
      this.#stopWrites = undefined;
    }
  }

  #listen(): () => void {
    const { changes, operations } = this.#database;
    const ends = [
      changes.listenToIndexes((change) => this.#guarded(() => this.#sendIndex(change))),
      operations.listen((info) => this.#guarded(() => this.#sendOperation(info))),
      changes.listenToEnd((reason) => {
        this.#each((connection) => connection.close(1001, reason));
      }),
    ];
    return () => {
      for (const end of ends) end();
    };
  }

  /** Runs a delivery that concerns all connections: if it fails, each of them has missed a change. */
  #guarded(send: () => void): void {
    try {
      send();
    } catch (error) {
      for (const connection of this.connections) connection.fail(error);
    }
  }

  #each(send: (connection: ChangesConnection) => void): void {
    for (const connection of this.#connections) {
      try {
        send(connection);
      } catch (error) {
        connection.fail(error);
      }
    }
  }

  #send(change: Change): void {
    if (change.kind === "document") {
      const { facts, message } = documentMessage(change);
      this.#each((connection) => {
        const { watches } = connection;
        if (watches.isAll("aggressive-caching")) connection.sendOnce(cacheMessage);
        if (watches.wantsDocument(facts)) connection.sendOfDocument(facts.lowerId, message);
      });
    } else if (change.kind === "counter") {
      const { facts, message } = counterMessage(change);
      this.#each((connection) => {
        if (connection.watches.wantsCounter(facts)) connection.send(message);
      });
    } else {
      const { facts, message } = timeSeriesMessage(change);
      this.#each((connection) => {
        if (connection.watches.wantsTimeSeries(facts)) connection.send(message);
      });
    }
  }

  #sendIndex(change: IndexChange): void {
    const lowerName = foldedName(change.name);
    const message = indexMessage(change);
    this.#each((connection) => {
      const { watches } = connection;
      if (watches.isAll("aggressive-caching") && resultEvents.has(change.type)) {
        connection.sendOnce(cacheMessage);
      }
      if (watches.wantsIndex(lowerName)) connection.sendOnce(message);
    });
  }

  #sendOperation(info: OperationInfo): void {
    // Listeners expect progress figures, and there are none yet.
    if (info.state.status === "running" && info.state.progress === null) return;
    const watching = this.connections.filter(({ watches }) => watches.wantsOperation(info.id));
    if (watching.length === 0) return;
    const message = operationMessage(info);
    for (const connection of watching) connection.send(message);
  }
}
