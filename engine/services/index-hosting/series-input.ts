/**
 * A segment of a time series as the maps of an index see it: `{Name, DocumentId, Count, Start, End, Entries: [{Tag,
 * Timestamp, Value, Values}]}`. Its size is bounded by the size of segments, so it is not charged to a run's limits.
 *
 * In JavaScript, names are in lower case and times are dates; in C#, names are in the stored case, times are texts, and
 * all values are doubles. The ids of documents are in lower case. [measured on RavenDB 7.2.7]
 */

import { lowerCased } from "../../base/case-folding.ts";
import { inputDouble, inputLong } from "../../scripting/csharp/csharp-numbers.ts";
import {
  newObject,
  ScriptArray,
  ScriptDate,
  type ScriptObject,
  setOwn,
  type Value,
} from "../../scripting/language/script-values.ts";
import type { Segment } from "../../state/keyspaces/time-series/series-segment.ts";
import { seriesTimeText } from "../../state/keyspaces/time-series/time-series.ts";

/** How values are presented to a language. */
export interface SeriesForm {
  readonly number: (value: number) => Value;
  /** The value of a counter. */
  readonly integer: (digits: string) => Value;
  readonly time: (time: number) => Value;
  /** Whether names are in lower case. */
  readonly isLower: boolean;
}

export const scriptForm: SeriesForm = {
  number: (value) => value,
  integer: Number,
  time: (time) => new ScriptDate(time),
  isLower: true,
};

export const csharpForm: SeriesForm = {
  number: inputDouble,
  integer: inputLong,
  time: seriesTimeText,
  isLower: false,
};

/** `name`: in the stored case. */
export function segmentObject(
  segment: Segment,
  documentId: string,
  name: string,
  form: SeriesForm,
): ScriptObject {
  const object = newObject();
  setOwn(object, "Name", form.isLower ? lowerCased(name) : name);
  setOwn(object, "DocumentId", documentId);
  setOwn(object, "Count", segment.count);
  setOwn(object, "Start", form.time(segment.first));
  setOwn(object, "End", form.time(segment.last));
  setOwn(object, "Entries", new ScriptArray(entriesOf(segment, form)));
  return object;
}

function entriesOf(segment: Segment, form: SeriesForm): Value[] {
  const unpacked = segment.unpack();
  const entries: Value[] = [];
  for (let i = 0; i < unpacked.count; i++) {
    const { time, values, tag } = unpacked.entry(i);
    const entry = newObject();
    const numbers = values.map(form.number);
    setOwn(entry, "Tag", tag);
    setOwn(entry, "Timestamp", form.time(time));
    setOwn(entry, "Value", numbers[0]);
    setOwn(entry, "Values", new ScriptArray(numbers));
    entries.push(entry);
  }
  return entries;
}
