/** A drop zone for files, with a file chooser. */
import { useRef, useState } from "preact/hooks";
import { Icon } from "./icon.tsx";

interface Properties {
  /** Purpose of the files, for example "File to import". */
  readonly label: string;
  /** Accepted types, like the attribute of an input: `.json,.csv`; undefined for all. Dropped files are not checked. */
  readonly accept?: string;
  /** Description of the accepted formats. */
  readonly hint?: string;
  readonly isMany?: boolean;
  /** Receives at least one file; exactly one unless `isMany`. */
  take(files: readonly File[]): void;
}

export function FileDrop({ label, accept, hint, isMany = false, take }: Properties) {
  const input = useRef<HTMLInputElement>(null);
  const [isOver, setOver] = useState(false);
  const given = (files: FileList | null | undefined) => {
    const list = [...(files ?? [])];
    if (list.length > 0) take(isMany ? list : list.slice(0, 1));
  };
  return (
    // biome-ignore lint/a11y/useSemanticElements: a fieldset does not accept drops in every browser
    <div
      class={isOver ? "drop over" : "drop"}
      role="group"
      aria-label={label}
      onDragOver={(event) => {
        event.preventDefault();
        setOver(true);
      }}
      onDragLeave={() => setOver(false)}
      onDrop={(event) => {
        event.preventDefault();
        setOver(false);
        given(event.dataTransfer?.files);
      }}
    >
      <Icon name="file" />
      <p>
        <b>{isMany ? "Drop files here" : "Drop a file here"}</b> or{" "}
        <button type="button" class="link" onClick={() => input.current?.click()}>
          {isMany ? "choose some" : "choose one"}
        </button>
      </p>
      {hint !== undefined && <p class="muted">{hint}</p>}
      <input
        ref={input}
        type="file"
        hidden
        aria-label={label}
        {...(accept === undefined ? {} : { accept })}
        multiple={isMany}
        onChange={(event) => {
          given(event.currentTarget.files);
          // Allow the same file to be chosen again.
          event.currentTarget.value = "";
        }}
      />
    </div>
  );
}
