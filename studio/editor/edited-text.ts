/** State of an editor's text: typed by the user, or replaced by the page. */
import { useCallback, useState } from "preact/hooks";

interface EditedText {
  readonly text: string;
  /** Incremented when `text` must replace the typed text. */
  readonly revision: number;
  typed(text: string): void;
  replace(text: string): void;
}

export function useEditedText(first: string): EditedText {
  const [{ text, revision }, set] = useState({ text: first, revision: 0 });
  const typed = useCallback(
    (now: string) => set((before) => ({ text: now, revision: before.revision })),
    [],
  );
  const replace = useCallback(
    (now: string) => set((before) => ({ text: now, revision: before.revision + 1 })),
    [],
  );
  return { text, revision, typed, replace };
}
