/** Files that are dropped on the list of documents open the import page, with the collection of the list. */
import { useState } from "preact/hooks";
import { may } from "../../base/identity.ts";
import { href, open } from "../../base/router.ts";
import { handOver } from "../import-form.tsx";

/** @returns whether a file is over the page, and the event handlers of its root */
export function useDropImport(database: string, collection: string | undefined) {
  const [isOver, setOver] = useState(false);
  const hasFile = ({ dataTransfer }: DragEvent) =>
    may("write") && dataTransfer?.types.includes("Files") === true;
  return {
    isOver,
    handlers: {
      onDragOver(event: DragEvent) {
        if (!hasFile(event)) return;
        event.preventDefault();
        setOver(true);
      },
      onDragLeave(event: DragEvent) {
        // Moving between elements of the page is no leaving.
        const to = event.relatedTarget as Node | null;
        if (!(event.currentTarget as Element).contains(to)) setOver(false);
      },
      onDrop(event: DragEvent) {
        const file = event.dataTransfer?.files[0];
        setOver(false);
        if (!hasFile(event) || file === undefined) return;
        event.preventDefault();
        handOver(file);
        open(href(["db", database, "backup"], { tab: "import", collection }));
      },
    },
  };
}
