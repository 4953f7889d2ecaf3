/**
 * The editor for JSON and RQL: CodeMirror, in a separate chunk. It is mounted in a shadow root, where its styles are
 * adopted style sheets, which the content security policy allows.
 */
import {
  autocompletion,
  type Completion,
  type CompletionContext,
  closeBrackets,
  completionKeymap,
} from "@codemirror/autocomplete";
import {
  history,
  historyKeymap,
  indentLess,
  indentMore,
  standardKeymap,
} from "@codemirror/commands";
import {
  bracketMatching,
  codeFolding,
  foldGutter,
  foldKeymap,
  foldService,
  HighlightStyle,
  indentOnInput,
  indentUnit,
  StreamLanguage,
  syntaxHighlighting,
} from "@codemirror/language";
import { closeSearchPanel, findNext, findPrevious, openSearchPanel } from "@codemirror/search";
import { Compartment, EditorState, type Extension } from "@codemirror/state";
import {
  drawSelection,
  EditorView,
  highlightActiveLine,
  keymap,
  lineNumbers,
} from "@codemirror/view";
import { tags } from "@lezer/highlight";
import { jsTokens } from "./js-tokens.ts";
import { foldOf, jsonTokens } from "./json-tokens.ts";
import { type Mark, markExtensions, setMarks } from "./marks.ts";
import { rqlTokens } from "./rql-tokens.ts";

export interface EditorOptions {
  readonly language: "json" | "rql" | "javascript";
  readonly label: string;
  readonly text: string;
  readonly isReadOnly: boolean;
  changed(text: string): void;
  /** Commands by key, for example `Mod-s`. */
  readonly commands: Readonly<Record<string, () => void>>;
  complete?: (word: string, before: string) => Promise<readonly Completion[]>;
}

export interface Editor {
  setText(text: string): void;
  setMarks(marks: readonly Mark[]): void;
  setReadOnly(isReadOnly: boolean): void;
  focus(): void;
  destroy(): void;
}

const languages = { json: jsonTokens, rql: rqlTokens, javascript: jsTokens };

const colours = HighlightStyle.define([
  { tag: [tags.propertyName, tags.keyword], color: "var(--accent-text)", fontWeight: "600" },
  { tag: tags.string, color: "var(--ok)" },
  { tag: [tags.number, tags.bool, tags.null], color: "var(--warn)" },
  { tag: tags.comment, color: "var(--text-3)", fontStyle: "italic" },
  { tag: tags.function(tags.variableName), color: "var(--text-2)" },
]);

const theme = EditorView.theme({
  "&": { height: "100%", color: "var(--text)", backgroundColor: "var(--surface)" },
  "&.cm-focused": { outline: "none" },
  ".cm-scroller": { font: "12px/19px var(--mono)", overflow: "auto" },
  ".cm-content": { padding: "8px 0", caretColor: "var(--text)" },
  ".cm-cursor": { borderLeftColor: "var(--text)" },
  ".cm-gutters": {
    backgroundColor: "var(--surface)",
    color: "var(--text-3)",
    border: "0",
    paddingLeft: "4px",
  },
  ".cm-activeLine, .cm-activeLineGutter": { backgroundColor: "var(--sunken)" },
  "&.cm-focused .cm-selectionBackground, .cm-selectionBackground": {
    backgroundColor: "var(--accent-soft) !important",
  },
  ".cm-tooltip": {
    backgroundColor: "var(--surface)",
    color: "var(--text)",
    border: "1px solid var(--line)",
    borderRadius: "6px",
  },
  ".cm-tooltip-autocomplete ul li[aria-selected]": {
    backgroundColor: "var(--accent-soft)",
    color: "var(--accent-text)",
  },
  ".cm-tooltip.cm-completionInfo": { padding: "4px 8px", font: "12px/17px var(--sans)" },
  ".cm-panels": { backgroundColor: "var(--sunken)", color: "var(--text)" },
  ".cm-foldPlaceholder": {
    backgroundColor: "var(--sunken)",
    border: "0",
    color: "var(--text-3)",
    padding: "0 6px",
  },
});

/** The search keys of the package, without keys that open a dialog or create multiple cursors. */
const searchKeys = [
  { key: "Mod-f", run: openSearchPanel },
  { key: "F3", run: findNext, shift: findPrevious, preventDefault: true },
  { key: "Mod-g", run: findNext, shift: findPrevious, preventDefault: true },
  { key: "Escape", run: closeSearchPanel },
].map((binding) => ({ ...binding, scope: "editor search-panel" }));

/** Mounts an editor in the empty element `host`. */
export function mountEditor(host: HTMLElement, options: EditorOptions): Editor {
  const root = host.shadowRoot ?? host.attachShadow({ mode: "open" });
  const readOnly = new Compartment();
  const indent = new Compartment();
  let isSetting = false;
  const view = new EditorView({
    root,
    parent: root as unknown as Element,
    state: EditorState.create({
      doc: options.text,
      extensions: [
        ...basics(options),
        indent.of(indentUnit.of(indentOf(options.text))),
        readOnly.of(EditorState.readOnly.of(options.isReadOnly)),
        EditorView.updateListener.of((update) => {
          if (update.docChanged && !isSetting) options.changed(update.state.doc.toString());
        }),
      ],
    }),
  });
  return {
    setText(text) {
      if (view.state.doc.toString() === text) return;
      isSetting = true;
      view.dispatch({
        changes: { from: 0, to: view.state.doc.length, insert: text },
        effects: indent.reconfigure(indentUnit.of(indentOf(text))),
      });
      isSetting = false;
    },
    setMarks(marks) {
      view.dispatch({ effects: setMarks.of(marks) });
    },
    setReadOnly(isReadOnly) {
      view.dispatch({ effects: readOnly.reconfigure(EditorState.readOnly.of(isReadOnly)) });
    },
    focus: () => view.focus(),
    destroy: () => view.destroy(),
  };
}

/** Returns the indentation of the first indented line. */
function indentOf(text: string): string {
  return /\n(\t|(?: {2}){1,4})(?=\S)/.exec(text)?.[1] ?? "    ";
}

function basics({ language, label, commands, complete }: EditorOptions): Extension[] {
  const own = Object.entries(commands).map(([key, run]) => ({
    key,
    preventDefault: true,
    run: () => {
      run();
      return true;
    },
  }));
  const source = complete === undefined ? null : completions(complete);
  return [
    lineNumbers(),
    markExtensions,
    foldGutter(),
    codeFolding(),
    history(),
    drawSelection(),
    indentOnInput(),
    bracketMatching(),
    closeBrackets(),
    highlightActiveLine(),
    selectionReplacement,
    StreamLanguage.define<unknown>(languages[language]),
    language === "json" ? foldService.of(foldOf) : [],
    syntaxHighlighting(colours),
    source === null ? [] : autocompletion({ override: [source], icons: false }),
    EditorView.contentAttributes.of({ "aria-label": label, tabindex: "0" }),
    keymap.of([
      ...own,
      ...completionKeymap,
      ...standardKeymap,
      { key: "Mod-]", run: indentMore },
      { key: "Mod-[", run: indentLess },
      ...historyKeymap,
      ...foldKeymap,
      ...searchKeys,
    ]),
    theme,
  ];
}

/**
 * Replaces a selection by typed text. Browsers would copy the style of the selected text with a style attribute,
 * which the content security policy rejects with a message.
 */
const selectionReplacement = EditorView.domEventHandlers({
  beforeinput(event, view) {
    const { inputType, data, isComposing } = event as InputEvent;
    const { from, to, empty } = view.state.selection.main;
    const isOne = view.state.selection.ranges.length === 1;
    if (inputType !== "insertText" || isComposing || !data || empty || !isOne) return false;
    event.preventDefault();
    const insert = () =>
      view.state.update(view.state.replaceSelection(data), { userEvent: "input.type" });
    const handlers = view.state.facet(EditorView.inputHandler);
    if (!handlers.some((handle) => handle(view, from, to, data, insert))) view.dispatch(insert());
    return true;
  },
});

function completions(complete: NonNullable<EditorOptions["complete"]>) {
  return async (context: CompletionContext) => {
    const word = context.matchBefore(/[\w@$.]*/);
    if (word === null || (word.from === word.to && !context.explicit)) return null;
    const before = context.state.sliceDoc(0, word.from);
    const options = await complete(word.text, before);
    return {
      from: word.from + word.text.lastIndexOf(".") + 1,
      options: [...options],
      validFor: /^[\w@$]*$/,
    };
  };
}
