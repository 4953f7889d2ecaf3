/**
 * Fragments of `highlight()` on an index for Lucene, as RavenDB 7.2.7 has them there: the words that were found are in
 * tags, without their surroundings, and a fragment is centered on its words. It is cut between words.
 */
import { type Analyzer, lowerInvariant } from "../../indexing/text/analyzer.ts";

/** What is searched for in a field: consecutive words, or the part of a word that a wildcard has. */
export interface SoughtTerm {
  readonly words: readonly string[];
  readonly isPrefix: boolean;
  /** Its position among all searched texts of the query, which determines its tags. */
  readonly position: number;
}

interface Word {
  readonly text: string;
  readonly start: number;
  readonly end: number;
}

interface Match {
  readonly start: number;
  readonly end: number;
  readonly position: number;
}

/** Returns the words of a text that are not stop words, with their places in UTF-16 units. */
function placedWords(text: string, analyze: Analyzer): Word[] {
  const words: Word[] = [];
  // White space always ends a word: each run of other characters is searched by itself, once in all.
  for (const { 0: run, index } of text.matchAll(/\S+/gu)) {
    const lower = lowerInvariant(run);
    let from = 0;
    analyze(run, (word) => {
      const found = lower.indexOf(lowerInvariant(word), from);
      const isFound = found >= 0;
      // An acronym is indexed without its points.
      const start = isFound ? found : 0;
      let end = isFound ? found + word.length : run.length;
      if (isFound && /^'s/i.test(run.slice(end, end + 2))) end += 2;
      words.push({ text: word, start: index + start, end: index + end });
      from = end;
    });
  }
  return words;
}

function matchesOf(words: readonly Word[], sought: readonly SoughtTerm[]): Match[] {
  const matches: Match[] = [];
  for (let at = 0; at < words.length; at++) {
    const term = sought.find(({ words: wanted, isPrefix }) =>
      wanted.every((one, i) => {
        const text = words[at + i]?.text;
        return text === one || (isPrefix && text?.startsWith(one) === true);
      }),
    );
    if (term === undefined) continue;
    const last = words[at + term.words.length - 1] as Word;
    matches.push({ start: (words[at] as Word).start, end: last.end, position: term.position });
    at += term.words.length - 1;
  }
  return matches;
}

interface TermFragmentForm {
  /** Length of a fragment in UTF-16 units, without tags. */
  readonly length: number;
  readonly countMax: number;
  readonly tags: (position: number) => { readonly pre: string; readonly post: string };
}

/** Returns the fragments of a text, in its order. `onFragment` is called with the length of each. */
export function termFragments(
  text: string,
  sought: readonly SoughtTerm[],
  analyze: Analyzer,
  { length, countMax, tags }: TermFragmentForm,
  onFragment: (length: number) => void,
): string[] {
  const fragments: string[] = [];
  const matches = matchesOf(placedWords(text, analyze), sought);
  for (let at = 0; at < matches.length && fragments.length < countMax; ) {
    const first = matches[at] as Match;
    const within = [first];
    while (++at < matches.length) {
      const next = matches[at] as Match;
      if (next.end - first.start > length) break;
      within.push(next);
    }
    const last = within[within.length - 1] as Match;
    const start = Math.max(0, first.start - Math.max(0, (length - last.end + first.start) >> 1));
    const from = start === 0 ? 0 : wordStart(text, start, first.start);
    const to = wordEnd(text, Math.max(last.end, start + length), last.end);
    let fragment = "";
    let done = from;
    for (const { start: wordFrom, end, position } of within) {
      const { pre, post } = tags(position);
      fragment += text.slice(done, wordFrom) + pre + text.slice(wordFrom, end) + post;
      done = end;
    }
    fragment += text.slice(done, to);
    onFragment(fragment.length);
    fragments.push(fragment);
  }
  return fragments;
}

/** Returns the first start of a word from `at` on, at most `max`. */
function wordStart(text: string, at: number, max: number): number {
  if (text[at - 1] === " ") return at;
  const space = text.indexOf(" ", at);
  return space < 0 || space >= max ? max : space + 1;
}

/** Returns the last end of a word up to `at`, at least `min`. */
function wordEnd(text: string, at: number, min: number): number {
  if (at >= text.length || text[at] === " ") return Math.min(at, text.length);
  return Math.max(min, text.lastIndexOf(" ", at));
}
