/** The storage of a database by its parts: collections, indexes, attachments, and space that compaction can release. */
import { bytes, count } from "../base/format.ts";
import { useResource } from "../base/resource.ts";
import { address, setQuery } from "../base/router.ts";
import { Failure, Skeleton } from "../components/messages.tsx";
import { numeric, Table } from "../components/table.tsx";

interface Sized {
  readonly Name: string;
  readonly NumberOfEntries: number;
  readonly AllocatedSpaceInBytes: number;
}

interface Reply {
  readonly Report: {
    readonly DataFile: { readonly FreeSpaceInBytes: number };
    readonly Trees: readonly Sized[];
    readonly Tables: readonly Sized[];
  };
}

interface Part {
  readonly what: string;
  readonly name: string;
  readonly entries: number | null;
  readonly size: number;
}

const kinds: Readonly<Record<string, string>> = {
  Documents: "Documents",
  Revisions: "Revisions",
  TimeSeries: "Time series",
};

/** The server reads the sizes of all documents, so the parts are loaded on request. */
export function StorageParts({ database }: { database: string }) {
  const isShown = address.value.query.get("storage") === "parts";
  const name = encodeURIComponent(database);
  const { body, error, reload } = useResource<Reply>(
    isShown
      ? `/databases/${name}/debug/storage/environment/report?name=${name}&type=Documents`
      : null,
  );
  return (
    <section aria-label="Storage by part" class="stack">
      <div class="row">
        <h2>Storage</h2>
        <button
          type="button"
          class="btn"
          aria-expanded={isShown}
          onClick={() => setQuery({ storage: isShown ? undefined : "parts" })}
        >
          {isShown ? "Hide the parts" : "Show the parts"}
        </button>
        {isShown && (
          <button type="button" class="btn quiet" onClick={reload}>
            Refresh
          </button>
        )}
      </div>
      {error !== undefined && <Failure error={error} retry={reload} />}
      {isShown && body === undefined && error === undefined && <Skeleton rows={4} />}
      {isShown && body !== undefined && <PartTable parts={partsOf(body)} />}
    </section>
  );
}

function PartTable({ parts }: { parts: readonly Part[] }) {
  const total = parts.reduce((sum, { size }) => sum + size, 0);
  return (
    <div class="panel scroll">
      <Table
        kind="lines"
        label="Parts"
        columns={["Part", "Name", "Share", numeric("Entries"), numeric("Size")]}
      >
        {parts.map(({ what, name, entries, size }) => (
          <tr key={`${what} ${name}`}>
            <td class="l1">{what}</td>
            <td class="l2">{name}</td>
            <td class="l0">
              <div class="took">
                {size > 0 && <i style={{ width: `${(size / total) * 100}%` }} />}
              </div>
            </td>
            <td class="num l0">{entries === null ? "" : count(entries)}</td>
            <td class="num l3">{bytes(size)}</td>
          </tr>
        ))}
        <tr>
          <td class="l1">
            <b>Total</b>
          </td>
          <td class="l2" />
          <td class="l0" />
          <td class="l0" />
          <td class="num l3">
            <b>{bytes(total)}</b>
          </td>
        </tr>
      </Table>
    </div>
  );
}

/** Returns the parts, largest first. */
function partsOf({ Report: { DataFile, Trees, Tables } }: Reply): Part[] {
  const parts = [...Tables.map(partOfTable), ...Trees.map(partOfTree)];
  const free = DataFile.FreeSpaceInBytes;
  parts.push({ what: "Log", name: "dead records and free space", entries: null, size: free });
  return parts
    .filter(({ size, what }) => size > 0 || what === "Log")
    .sort((one, other) => other.size - one.size);
}

function partOfTable({ Name, NumberOfEntries, AllocatedSpaceInBytes: size }: Sized): Part {
  const [, kind = "", collection = ""] = /^Collection\.(\w+)\.(.*)$/.exec(Name) ?? [];
  return kind === ""
    ? { what: "Log", name: "other live records", entries: null, size }
    : { what: kinds[kind] ?? kind, name: collection, entries: NumberOfEntries, size };
}

function partOfTree({ Name, NumberOfEntries, AllocatedSpaceInBytes: size }: Sized): Part {
  if (Name === "Attachments") return { what: Name, name: "", entries: NumberOfEntries, size };
  if (!Name.startsWith("Index/")) return { what: Name, name: "", entries: null, size };
  return { what: "Index", name: Name.slice("Index/".length), entries: null, size };
}
