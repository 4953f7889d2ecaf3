/**
 * The points and boxes of a field's shapes, derived from its terms: searched by a condition, and in the order of
 * distances. It is updated when a query needs it, in slices, and is not saved: a million points take some tenths of a
 * second after a restart.
 *
 *   terms, in order of arrival ──► trees of 65,536 ──► a tree for most of the rest ──► a small tree for the newest
 *
 * Terms are never removed: terms of removed entries have no live entries, and disappear when the index is compacted.
 *
 * Invariants:
 * - Between two steps of `refresh` it is consistent, and up to date with the first `#termCount` terms.
 */
import type { Work, WorkBudget } from "../../base/scheduling/work-budget.ts";
import { difference, EntrySet, EntrySetBuilder } from "../columns/entry-set.ts";
import type { EntryView } from "../columns/entry-view.ts";
import type { FieldColumn } from "../columns/field-column.ts";
import { grownFloat64, grownUint32 } from "../columns/packed.ts";
import { firstTerm, shapeKind } from "../columns/term-dictionary.ts";
import { BoxTree } from "./box-tree.ts";
import { NearestItems, type PlacedTree } from "./nearest.ts";
import { intersects, isCovered, PreparedShape } from "./relations.ts";
import { type Box, boxesOf, centerOf, placeCountOf, type Shape } from "./shape.ts";
import { haversine, type Space } from "./space.ts";
import { placeOfPoint, shapeOf } from "./spatial-terms.ts";

export type SpatialRelation = "within" | "contains" | "intersects" | "disjoint";

/** Number of items of a full tree: building a tree takes at most some ten milliseconds. */
const treeItemsMax = 65_536;
/** Items of the newest tree, which is built again when there are more. */
const newestItemsMax = 1024;
/** Cost of parsing a point, of building a tree for each item, and of comparing an item, in units. */
const pointUnits = 32;
const itemUnits = 16;
/** Cost of a search in a tree that finds nothing. */
const treeUnits = 64;
/** Entries of a place that are added without checking the budget. */
const addedPerStep = 16;
/** Entries between two checks of the budget. */
const stride = 1024;
/** Places of the parsed shapes that are kept. */
const keptPlacesMax = 65_536;

const spatialColumns = new WeakMap<FieldColumn, SpatialColumn>();

/** Returns the spatial column of a field's column. `space`: space of the field, always the same. */
export function spatialColumnOf(column: FieldColumn, space: Space): SpatialColumn {
  let found = spatialColumns.get(column);
  if (found === undefined) {
    found = new SpatialColumn(column, space);
    spatialColumns.set(column, found);
  }
  return found;
}

/** Items of one kind in trees: points by term, or boxes of shapes. */
class Forest {
  readonly width: 2 | 4;
  /** Corners by item. */
  corners: Float64Array = new Float64Array(64);
  readonly #full: BoxTree[] = [];
  /** Tree of most items since the last full tree, and tree of the items after them. */
  #recent: BoxTree | null = null;
  #newest: BoxTree | null = null;
  /** Items since the last full tree. */
  #loose: Uint32Array = new Uint32Array(64);
  #looseCount = 0;

  constructor(width: 2 | 4) {
    this.width = width;
  }

  add(item: number): void {
    this.#loose = grownUint32(this.#loose, this.#looseCount + 1);
    this.#loose[this.#looseCount++] = item;
  }

  get isFull(): boolean {
    return this.#looseCount >= treeItemsMax;
  }

  /** Adds the newest items to trees. @returns the cost */
  grow(bounds: Box): number {
    const count = this.#looseCount;
    if (this.isFull) {
      this.#full.push(this.#treeOf(0, count, bounds));
      this.#recent = null;
      this.#newest = null;
      this.#looseCount = 0;
      return count * itemUnits;
    }
    const inRecent = this.#recent?.items.length ?? 0;
    const rest = count - inRecent;
    if (rest === (this.#newest?.items.length ?? 0)) return 0;
    if (rest <= newestItemsMax) {
      this.#newest = this.#treeOf(inRecent, count, bounds);
      return rest * itemUnits;
    }
    this.#recent = this.#treeOf(0, count, bounds);
    this.#newest = null;
    return count * itemUnits;
  }

  get trees(): readonly BoxTree[] {
    return [...this.#full, this.#recent, this.#newest].filter((tree) => tree !== null);
  }

  #treeOf(from: number, to: number, bounds: Box): BoxTree {
    return new BoxTree(this.#loose.slice(from, to), this.corners, this.width, bounds);
  }
}

/** The candidate entries of a nearest-neighbor search, and their order at equal distances. */
interface NearestAmong {
  accepts(entry: number): boolean;
  rankOf(entry: number): number;
}

export class SpatialColumn {
  readonly space: Space;
  readonly #column: FieldColumn;
  /** Items are terms. */
  readonly #points = new Forest(2);
  /** Items are boxes; a shape has several when it crosses the date line or has parts. */
  readonly #boxes = new Forest(4);
  /** By box. */
  #termOfBox: Uint32Array = new Uint32Array(16);
  #boxCount = 0;
  /**
   * By term: x and y of its center, NaN for a term that is not a shape. Centers of points are their corners in
   * `#points`.
   */
  #places: Float64Array = new Float64Array(64).fill(Number.NaN);
  #termCount = firstTerm;
  /** Entries without a shape, ascending. */
  #without: Uint32Array = new Uint32Array(16);
  #withoutCount = 0;
  #entryCount = 0;
  readonly #parsed = new Map<number, PreparedShape>();
  #parsedPlaces = 0;

  constructor(column: FieldColumn, space: Space) {
    this.#column = column;
    this.space = space;
  }

  /** Adds new terms and entries. */
  *refresh(budget: WorkBudget): Work<void> {
    const { dictionary } = this.#column;
    const bounds: Box = this.space;
    while (this.#termCount < dictionary.count) {
      const end = Math.min(this.#termCount + stride / 16, dictionary.count);
      let units = 0;
      while (this.#termCount < end) units += this.#takeTerm(this.#termCount++);
      if (this.#points.isFull) units += this.#points.grow(bounds);
      if (this.#boxes.isFull) units += this.#boxes.grow(bounds);
      budget.spend(units);
      if (budget.isDue) yield;
    }
    // All terms of these entries are known; entries added during a pause wait for the next call.
    const { entryCount } = this.#column;
    budget.spend(this.#points.grow(bounds) + this.#boxes.grow(bounds));
    while (this.#entryCount < entryCount) {
      const end = Math.min(this.#entryCount + stride, entryCount);
      while (this.#entryCount < end) this.#takeEntry(this.#entryCount++);
      budget.spend(stride);
      if (budget.isDue) yield;
    }
  }

  #takeTerm(term: number): number {
    this.#places = grownFloat64(this.#places, (term + 1) * 2);
    this.#points.corners = this.#places;
    this.#places[term * 2] = Number.NaN;
    this.#places[term * 2 + 1] = Number.NaN;
    const { dictionary } = this.#column;
    if (dictionary.kindOf(term) !== shapeKind) return 1;
    const text = dictionary.textOf(term);
    const place = placeOfPoint(text);
    if (place !== null) {
      this.#setPlace(term, place);
      this.#points.add(term);
      return pointUnits;
    }
    const shape = shapeOf(text, this.space);
    if (shape === null) return pointUnits;
    const boxes = boxesOf(shape, this.space);
    if (boxes.length > 0) this.#setPlace(term, centerOf(shape));
    for (const box of boxes) this.#addBox(term, box);
    return pointUnits + text.length;
  }

  #setPlace(term: number, { x, y }: { readonly x: number; readonly y: number }): void {
    this.#places[term * 2] = x;
    this.#places[term * 2 + 1] = y;
  }

  #addBox(term: number, { minX, minY, maxX, maxY }: Box): void {
    const box = this.#boxCount++;
    this.#termOfBox = grownUint32(this.#termOfBox, box + 1);
    this.#termOfBox[box] = term;
    this.#boxes.corners = grownFloat64(this.#boxes.corners, (box + 1) * 4);
    this.#boxes.corners.set([minX, minY, maxX, maxY], box * 4);
    this.#boxes.add(box);
  }

  #takeEntry(entry: number): void {
    const { starts, terms, isPacked } = this.#column;
    const packed = isPacked ? this.#column.termsOf(entry) : null;
    const from = packed === null ? (starts[entry] as number) : 0;
    const to = packed === null ? (starts[entry + 1] as number) : packed.length;
    for (let at = from; at < to; at++) {
      const term = (packed ?? terms)[at] as number;
      // Not NaN: it is a shape.
      if ((this.#places[term * 2] as number) <= Infinity) return;
    }
    this.#without = grownUint32(this.#without, this.#withoutCount + 1);
    this.#without[this.#withoutCount++] = entry;
  }

  /** Returns the entries of the view without a shape, ascending; some are no longer live. */
  withoutShape(view: EntryView): Uint32Array {
    let count = this.#withoutCount;
    while (count > 0 && (this.#without[count - 1] as number) >= view.size) count--;
    return this.#without.subarray(0, count);
  }

  /** Whether some entry has, or had, more than one shape. */
  get hasSeveral(): boolean {
    return this.#column.valueCount + this.#withoutCount > this.#column.entryCount;
  }

  /**
   * Returns the live entries whose shapes have this relation to a shape. Call `refresh` first. Cost: proportional to
   * the number of entries near it.
   */
  *find(
    relation: SpatialRelation,
    shape: Shape,
    view: EntryView,
    budget: WorkBudget,
  ): Work<EntrySet> {
    // Parsing and preparing a large shape use a time slice each.
    const units = placeCountOf(shape) * itemUnits;
    budget.spend(units);
    if (budget.isDue) yield;
    const sought = new PreparedShape(shape, this.space);
    budget.spend(units);
    if (budget.isDue) yield;
    if (relation === "disjoint") {
      const met = yield* this.#findMeeting("intersects", sought, view, budget);
      budget.spend(Math.ceil(view.size / stride));
      const without = EntrySet.ofSorted(this.withoutShape(view).slice());
      return difference(difference(view.all(), without), met);
    }
    return yield* this.#findMeeting(relation, sought, view, budget);
  }

  *#findMeeting(
    relation: SpatialRelation,
    sought: PreparedShape,
    view: EntryView,
    budget: WorkBudget,
  ): Work<EntrySet> {
    const builder = new EntrySetBuilder(view.size);
    for (const box of boxesOf(sought.shape, this.space)) {
      for (const forest of [this.#points, this.#boxes]) {
        for (const tree of forest.trees) {
          const found: number[] = [];
          tree.search(box, forest.corners, found);
          budget.spend(treeUnits + found.length);
          if (budget.isDue) yield;
          if (forest === this.#points)
            yield* this.#testPoints(found, sought, view, builder, budget);
          else yield* this.#testShapes(found, relation, sought, view, builder, budget);
        }
      }
    }
    return builder.finish();
  }

  /** For points all relations but `disjoint` are one, as in RavenDB. */
  *#testPoints(
    terms: readonly number[],
    sought: PreparedShape,
    view: EntryView,
    builder: EntrySetBuilder,
    budget: WorkBudget,
  ): Work<void> {
    const { placeUnits } = sought;
    for (const term of terms) {
      const places = this.#places;
      budget.spend(placeUnits);
      if (sought.covers(places[term * 2] as number, places[term * 2 + 1] as number)) {
        if (this.#column.isPacked || (this.#column.counts[term] as number) > addedPerStep) {
          yield* this.#addEntries(term, view, builder, budget);
        } else this.#addFew(term, view, builder);
      }
      if (budget.isDue) yield;
    }
  }

  *#testShapes(
    boxes: readonly number[],
    relation: SpatialRelation,
    sought: PreparedShape,
    view: EntryView,
    builder: EntrySetBuilder,
    budget: WorkBudget,
  ): Work<void> {
    const tested = new Set<number>();
    for (const box of boxes) {
      const term = this.#termOfBox[box] as number;
      if (tested.has(term)) continue;
      tested.add(term);
      const own = this.#preparedOf(term, budget);
      const isFound =
        relation === "within"
          ? yield* isCovered(own, sought, budget)
          : relation === "contains"
            ? yield* isCovered(sought, own, budget)
            : yield* intersects(own, sought, budget);
      if (isFound) yield* this.#addEntries(term, view, builder, budget);
      budget.spend(pointUnits);
      if (budget.isDue) yield;
    }
  }

  #preparedOf(term: number, budget: WorkBudget): PreparedShape {
    const known = this.#parsed.get(term);
    if (known !== undefined) return known;
    const text = this.#column.dictionary.textOf(term);
    // It has a box, so its text is a shape.
    const shape = new PreparedShape(shapeOf(text, this.space) as Shape, this.space);
    budget.spend(text.length);
    const count = placeCountOf(shape.shape);
    if (this.#parsedPlaces + count > keptPlacesMax) {
      this.#parsed.clear();
      this.#parsedPlaces = 0;
    }
    this.#parsedPlaces += count;
    this.#parsed.set(term, shape);
    return shape;
  }

  /** Most places have one entry. */
  #addFew(term: number, view: EntryView, builder: EntrySetBuilder): void {
    const { firsts, nexts, entries } = this.#column;
    for (let at = firsts[term] as number; at !== 0; at = nexts[at - 1] as number) {
      const entry = entries[at - 1] as number;
      if (entry < view.size && view.isLive(entry)) builder.add(entry);
    }
  }

  *#addEntries(
    term: number,
    view: EntryView,
    builder: EntrySetBuilder,
    budget: WorkBudget,
  ): Work<void> {
    for (const entry of this.#column.entriesOf(term)) {
      if (entry < view.size && view.isLive(entry)) builder.add(entry);
      budget.spend(1);
      if (budget.isDue) yield;
    }
  }

  /**
   * How far the nearest shape of each entry is from a place, by position: a haversine on the globe, in a plane the square
   * of the distance; NaN without a shape. Call `refresh` first.
   */
  *keysOf(entries: Uint32Array, x: number, y: number, budget: WorkBudget): Work<Float64Array> {
    const keys = new Float64Array(entries.length);
    for (let i = 0; i < entries.length; i++) {
      keys[i] = this.keyOf(entries[i] as number, x, y);
      budget.spend(4);
      if (budget.isDue) yield;
    }
    return keys;
  }

  /** As `keysOf`, of one entry. */
  keyOf(entry: number, x: number, y: number): number {
    const { starts, terms, isPacked } = this.#column;
    if (!isPacked) {
      return this.#leastKey(terms, starts[entry] as number, starts[entry + 1] as number, x, y);
    }
    const packed = this.#column.termsOf(entry);
    return this.#leastKey(packed, 0, packed.length, x, y);
  }

  #leastKey(terms: Uint32Array, from: number, to: number, x: number, y: number): number {
    let least = Number.NaN;
    for (let at = from; at < to; at++) {
      const term = terms[at] as number;
      if (!((this.#places[term * 2] as number) <= Infinity)) continue;
      const key = this.#keyOfTerm(term, x, y);
      if (!(key >= least)) least = key;
    }
    return least;
  }

  /** Returns the place of the nearest shape of an entry, or null. */
  placeOf(entry: number, x: number, y: number): { readonly x: number; readonly y: number } | null {
    const term = this.nearestTermOf(entry, x, y);
    if (term < 0) return null;
    return { x: this.#places[term * 2] as number, y: this.#places[term * 2 + 1] as number };
  }

  /** Returns the term of the nearest shape of an entry, or -1. */
  nearestTermOf(entry: number, x: number, y: number): number {
    let least = Infinity;
    let nearest = -1;
    for (const term of this.#column.termsOf(entry)) {
      if (!((this.#places[term * 2] as number) <= Infinity)) continue;
      const key = this.#keyOfTerm(term, x, y);
      if (nearest >= 0 && key >= least) continue;
      least = key;
      nearest = term;
    }
    return nearest;
  }

  #keyOfTerm(term: number, x: number, y: number): number {
    const px = this.#places[term * 2] as number;
    const py = this.#places[term * 2 + 1] as number;
    if (this.space.type === "Cartesian") return (px - x) ** 2 + (py - y) ** 2;
    return haversine(x, y, px, py);
  }

  /**
   * Returns the `count` accepted entries nearest to a point, and all entries whose keys (`keysOf`) exceed that of the
   * last of them by at most `slack`, by distance, then by place. Call `refresh` first. Cost: proportional to the
   * entries visited.
   */
  *nearest(
    x: number,
    y: number,
    count: number,
    slack: number,
    { accepts, rankOf }: NearestAmong,
    budget: WorkBudget,
  ): Work<Uint32Array> {
    const search = new NearestItems(this.#placedTrees(), this.#places, x, y, this.space);
    const found: { readonly entry: number; readonly key: number }[] = [];
    const seen = new Set<number>();
    let last = Number.POSITIVE_INFINITY;
    let steps = 0;
    while (search.next()) {
      const { key, place } = search;
      if (key > last) break;
      for (const entry of this.#column.entriesOf(place)) {
        budget.spend(1);
        if (seen.has(entry) || !accepts(entry)) continue;
        seen.add(entry);
        found.push({ entry, key });
        if (found.length === count) last = key + slack;
      }
      budget.spend(1 + (search.steps - steps) * 4);
      steps = search.steps;
      if (budget.isDue) yield;
    }
    found.sort((a, b) => a.key - b.key || rankOf(a.entry) - rankOf(b.entry));
    return Uint32Array.from(found, ({ entry }) => entry);
  }

  #placedTrees(): PlacedTree[] {
    const termOfBox = this.#termOfBox;
    return [
      ...this.#points.trees.map((tree) => ({ tree, placeOf: (term: number) => term })),
      ...this.#boxes.trees.map((tree) => ({
        tree,
        placeOf: (box: number) => termOfBox[box] as number,
      })),
    ];
  }
}
