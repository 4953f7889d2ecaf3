/** The editor component. Shows the text without an editor until the chunk is loaded. */
import { useEffect, useRef, useState } from "preact/hooks";
import { type LoadFailure, loadChunk, NotLoaded } from "../base/lazy.tsx";
import type { Editor, EditorOptions } from "./code-mirror.ts";
import type { Mark } from "./marks.ts";

interface Properties extends Omit<EditorOptions, "isReadOnly"> {
  readonly isReadOnly?: boolean;
  /** Incremented when `text` must replace the typed text. */
  readonly revision: number;
  readonly marks?: readonly Mark[];
}

const noMarks: readonly Mark[] = [];

export function CodeEditor(properties: Properties) {
  const { text, revision, isReadOnly = false, marks = noMarks } = properties;
  const host = useRef<HTMLDivElement>(null);
  const editor = useRef<Editor | null>(null);
  const [isThere, setThere] = useState(false);
  const [failure, setFailure] = useState<LoadFailure | null>(null);
  // The editor always calls the handlers of the latest rendering.
  const latest = useRef(properties);
  latest.current = properties;
  useEffect(() => {
    const mount = ({ mountEditor }: typeof import("./code-mirror.ts")) => {
      if (host.current === null) return;
      const { language, label, commands, complete } = latest.current;
      editor.current = mountEditor(host.current, {
        language,
        label,
        text: latest.current.text,
        isReadOnly: latest.current.isReadOnly ?? false,
        changed: (changed) => latest.current.changed(changed),
        commands: Object.fromEntries(
          Object.keys(commands).map((key) => [key, () => latest.current.commands[key]?.()]),
        ),
        ...(complete === undefined
          ? {}
          : {
              complete: async (word, before) =>
                (await latest.current.complete?.(word, before)) ?? [],
            }),
      });
      setThere(true);
      setFailure(null);
    };
    const stop = loadChunk(() => import("./code-mirror.ts"), mount, setFailure);
    return () => {
      stop();
      editor.current?.destroy();
      editor.current = null;
    };
  }, []);
  useEffect(() => editor.current?.setText(latest.current.text), [revision, isThere]);
  useEffect(() => editor.current?.setReadOnly(isReadOnly), [isReadOnly, isThere]);
  useEffect(() => editor.current?.setMarks(marks), [marks, isThere]);
  return (
    <div class="editor">
      {failure !== null && <NotLoaded failure={failure} />}
      {!isThere && <pre class="source scroll">{text}</pre>}
      <div ref={host} class="editor-host" hidden={!isThere} />
    </div>
  );
}
