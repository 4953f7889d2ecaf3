/** Change notices in the format of the server, and which command matches which notice. */

export type Notice =
  | { readonly Type: "DocumentChange"; readonly Value: DocumentChange }
  | { readonly Type: "IndexChange"; readonly Value: IndexChange }
  | { readonly Type: "OperationStatusChange"; readonly Value: OperationChange }
  | { readonly Type: "CounterChange"; readonly Value: PartChange }
  | { readonly Type: "TimeSeriesChange"; readonly Value: PartChange }
  /** Created by the client: notices may have been lost, so the displayed data may be outdated. */
  | { readonly Type: "Missed" };

interface DocumentChange {
  readonly Type: "Put" | "Delete" | string;
  readonly Id: string;
  readonly CollectionName: string;
  readonly ChangeVector: string | null;
}

interface IndexChange {
  readonly Type: string;
  readonly Name: string;
}

interface OperationChange {
  readonly OperationId: number;
  readonly State: {
    readonly Status: string;
    readonly Progress: unknown;
    readonly Result: unknown;
  };
}

/** A change of a counter or a time series. */
interface PartChange {
  readonly Type: string;
  readonly Name: string;
  readonly DocumentId: string;
}

export type WatchCommand =
  | "watch-docs"
  | "watch-collection"
  | "watch-doc"
  | "watch-prefix"
  | "watch-indexes"
  | "watch-index"
  | "watch-operations"
  | "watch-operation"
  | "watch-document-counters"
  | "watch-all-document-timeseries";

/** Returns true if a command matches a notice. Ids and names are case-insensitive. */
export function isAbout(command: WatchCommand, param: string | null, notice: Notice): boolean {
  if (notice.Type === "Missed") return true;
  const is = (name: string) => name.toLowerCase() === param?.toLowerCase();
  switch (notice.Type) {
    case "DocumentChange":
      if (command === "watch-docs") return true;
      if (command === "watch-collection") return is(notice.Value.CollectionName);
      if (command === "watch-prefix")
        return notice.Value.Id.toLowerCase().startsWith((param ?? "").toLowerCase());
      return command === "watch-doc" && is(notice.Value.Id);
    case "IndexChange":
      return command === "watch-indexes" || (command === "watch-index" && is(notice.Value.Name));
    case "OperationStatusChange":
      return (
        command === "watch-operations" ||
        (command === "watch-operation" && String(notice.Value.OperationId) === param)
      );
    case "CounterChange":
      return command === "watch-document-counters" && is(notice.Value.DocumentId);
    case "TimeSeriesChange":
      return command === "watch-all-document-timeseries" && is(notice.Value.DocumentId);
  }
}
