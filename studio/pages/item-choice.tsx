/** Selection of the item types in a dump. */
const items = [
  { key: "Documents", text: "Documents" },
  { key: "RevisionDocuments", text: "Revisions" },
  { key: "Attachments", text: "Attachments" },
  { key: "CounterGroups", text: "Counters" },
  { key: "TimeSeries", text: "Time series" },
  { key: "Indexes", text: "Indexes" },
  { key: "Identities", text: "Identities" },
  { key: "CompareExchange", text: "Compare-exchange values" },
  { key: "Subscriptions", text: "Subscriptions" },
  { key: "DatabaseRecord", text: "Settings of the database" },
] as const;

export const usualItems: ReadonlySet<string> = new Set(items.map(({ key }) => key));

/** Returns the selection in the format of the smuggler's options. */
export function itemsToSend(chosen: ReadonlySet<string>): string {
  const more = chosen.has("TimeSeries") ? ["TimeSeriesDeletedRanges"] : [];
  return [...chosen, ...more].join(", ");
}

export function ItemChoice({
  chosen,
  change,
}: {
  chosen: ReadonlySet<string>;
  change: (chosen: ReadonlySet<string>) => void;
}) {
  const toggle = (key: string) => {
    const next = new Set(chosen);
    if (!next.delete(key)) next.add(key);
    change(next);
  };
  return (
    <fieldset class="choices">
      <legend>Items</legend>
      {items.map(({ key, text }) => (
        <label key={key} class="check">
          <input type="checkbox" checked={chosen.has(key)} onChange={() => toggle(key)} />
          <span>{text}</span>
        </label>
      ))}
    </fieldset>
  );
}
