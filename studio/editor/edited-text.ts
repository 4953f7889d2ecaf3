/** The text of an editor: what is typed, and what is put in its place. */
import { useCallback, useState } from "preact/hooks";

export interface EditedText {
  readonly text: string;
  /** Another number: the editor shows `text`, whatever was typed. */
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
