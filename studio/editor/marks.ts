/** Error marks in an editor: underlined text, a dot beside the line, and the message as a tooltip. */
import { RangeSet, StateEffect, StateField } from "@codemirror/state";
import { Decoration, type DecorationSet, EditorView, GutterMarker, gutter } from "@codemirror/view";

export interface Mark {
  readonly from: number;
  readonly to: number;
  readonly message: string;
}

/** Replaces all marks. */
export const setMarks = StateEffect.define<readonly Mark[]>();

const marked = StateField.define<DecorationSet>({
  create: () => Decoration.none,
  update(before, { changes, effects, newDoc: { length } }) {
    let marks = before.map(changes);
    for (const effect of effects) {
      if (effect.is(setMarks)) marks = Decoration.set(decorationsOf(effect.value, length), true);
    }
    return marks;
  },
  provide: (field) => EditorView.decorations.from(field),
});

/** A mark without length, or at the end, covers the preceding character. */
function decorationsOf(marks: readonly Mark[], length: number) {
  return marks.flatMap(({ from, to, message }) => {
    const start = Math.max(0, Math.min(from, length - 1));
    const end = Math.min(Math.max(to, start + 1), length);
    const attributes = { class: "cm-mistake", title: message };
    return start < end ? [Decoration.mark({ attributes, message }).range(start, end)] : [];
  });
}

class ErrorDot extends GutterMarker {
  override elementClass = "cm-mistake-dot";
  readonly message: string;

  constructor(message: string) {
    super();
    this.message = message;
  }

  override eq(other: ErrorDot): boolean {
    return other.message === this.message;
  }

  override toDOM(): Node {
    const dot = document.createElement("i");
    dot.title = this.message;
    return dot;
  }
}

const dots = gutter({
  class: "cm-mistakes",
  markers: ({ state }) => {
    const found = new Map<number, ErrorDot>();
    state.field(marked).between(0, state.doc.length, (from, _to, { spec }) => {
      const line = state.doc.lineAt(from).from;
      if (!found.has(line)) found.set(line, new ErrorDot((spec as { message: string }).message));
    });
    return RangeSet.of([...found].map(([line, dot]) => dot.range(line)));
  },
});

export const markExtensions = [
  marked,
  dots,
  EditorView.theme({
    ".cm-mistake": { textDecoration: "underline wavy var(--bad)" },
    ".cm-mistakes": { width: "14px" },
    ".cm-mistake-dot i": {
      display: "block",
      width: "8px",
      height: "8px",
      margin: "5px 3px",
      borderRadius: "50%",
      background: "var(--bad-fill)",
    },
  }),
];
