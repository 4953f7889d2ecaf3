/**
 * Well-known text -> shapes: POINT, MULTIPOINT, LINESTRING, MULTILINESTRING, POLYGON, MULTIPOLYGON, GEOMETRYCOLLECTION,
 * and as RavenDB reads them: CIRCLE(x y d=radius), BUFFER(POINT(x y), degrees) and ENVELOPE(minX, maxX, maxY, minY);
 * points `x y` and `y,x`, boxes `minX minY maxX maxY`, and CIRCLE(y,x d=radius) of its older versions.
 * Words are in any case. A third and fourth coordinate are read and ignored.
 *
 * Written here because no kept package reads the last three, and for the limits.
 */
import { EngineError } from "../../base/errors.ts";
import { shapePlacesMax, shapeTextLengthMax } from "../../base/limits.ts";
import type { Area, Circle, Shape } from "./shape.ts";
import { badShape, checkPlace, distanceOf, type Space, type SpatialUnits } from "./space.ts";

/** Collections inside collections. */
const depthMax = 16;
const tokenPattern = /\s*(?:([A-Za-z]+)|([-+]?(?:\d+\.?\d*|\.\d+)(?:[eE][-+]?\d+)?)|([(),=]))/y;

/** Beginning of a shape without a type name. */
const numberFirst = /^\s*[-+.\d]/;

/** A point of a list, and the following character. Hot: shapes have thousands of them. */
const placePattern =
  /\s*([-+]?(?:\d+\.?\d*|\.\d+)(?:[eE][-+]?\d+)?)\s+([-+]?(?:\d+\.?\d*|\.\d+)(?:[eE][-+]?\d+)?)(?:\s+[-+]?[\d.]+(?:[eE][-+]?\d+)?){0,2}\s*([,)])/y;

/**
 * Returns the shape that a text denotes. `units`: units of the radius of a circle.
 * @throws EngineError shape-invalid, too-large
 */
export function parseWkt(text: string, space: Space, units: SpatialUnits): Shape {
  if (text.length > shapeTextLengthMax) {
    throw new EngineError(
      "too-large",
      `The text of a shape has more than ${shapeTextLengthMax} characters.`,
    );
  }
  const reader = new WktReader(text, space, units);
  if (numberFirst.test(text)) reader.numbers();
  else reader.shape(0);
  reader.end();
  const { points, lines, areas, circles } = reader;
  return { points: Float64Array.from(points), lines, areas, circles };
}

class WktReader {
  readonly points: number[] = [];
  readonly areas: Area[] = [];
  readonly lines: Float64Array[] = [];
  readonly circles: Circle[] = [];
  readonly #text: string;
  readonly #space: Space;
  readonly #units: SpatialUnits;
  #at = 0;
  #placeCount = 0;

  constructor(text: string, space: Space, units: SpatialUnits) {
    this.#text = text;
    this.#space = space;
    this.#units = units;
  }

  /** word ( 'Z' | 'M' | 'ZM' )? ( 'EMPTY' | contents ) */
  shape(depth: number): void {
    const word = this.#word()?.toUpperCase();
    if (word === undefined || depth > depthMax) throw this.#unknown();
    const more = this.#peekWord();
    if (more === "Z" || more === "M" || more === "ZM") this.#word();
    if (this.#peekWord() === "EMPTY") {
      this.#word();
      if (!known.has(word)) throw this.#unknown();
      return;
    }
    switch (word) {
      case "POINT":
        this.points.push(...this.#inside(() => this.#place()));
        return;
      case "MULTIPOINT":
        for (const place of this.#list(() => this.#maybeInside())) this.points.push(...place);
        return;
      case "LINESTRING":
        this.#addLine(this.#places());
        return;
      case "MULTILINESTRING":
        for (const line of this.#list(() => this.#places())) this.#addLine(line);
        return;
      case "POLYGON":
        this.#addArea(this.#list(() => this.#places()));
        return;
      case "MULTIPOLYGON":
        for (const area of this.#list(() => this.#list(() => this.#places()))) this.#addArea(area);
        return;
      case "GEOMETRYCOLLECTION":
        this.#list(() => this.shape(depth + 1));
        return;
      case "ENVELOPE":
        this.#envelope();
        return;
      case "CIRCLE":
        this.#circle();
        return;
      case "BUFFER":
        this.#buffer();
        return;
      default:
        throw this.#unknown();
    }
  }

  /** x y | y ',' x | minX minY maxX maxY */
  numbers(): void {
    const first = this.#number();
    if (this.#takes(",")) {
      this.points.push(...this.#counted(this.#number(), first));
      return;
    }
    const second = this.#number();
    const third = this.#takeNumber();
    if (third === null) this.points.push(...this.#counted(first, second));
    else this.#box(first, third, this.#number(), second);
  }

  end(): void {
    if (this.#text.slice(this.#at).trim() !== "") throw this.#unknown();
  }

  /** '(' ( x y | y ',' x ) 'd' '=' radius ')' */
  #circle(): void {
    const { x, y, radius } = this.#inside(() => {
      const first = this.#number();
      const isReversed = this.#takes(",");
      const second = this.#number();
      const [x, y] = isReversed ? this.#counted(second, first) : this.#counted(first, second);
      if (this.#word()?.toLowerCase() !== "d" || !this.#takes("=")) throw this.#unknown();
      return { x, y, radius: this.#number() };
    });
    this.#addCircle(x, y, distanceOf(this.#space, radius, this.#units));
  }

  /** '(' 'POINT' '(' x y ')' ',' degrees ')' */
  #buffer(): void {
    const { place, radius } = this.#inside(() => {
      if (this.#word()?.toUpperCase() !== "POINT") throw this.#unknown();
      const place = this.#inside(() => this.#place());
      if (!this.#takes(",")) throw this.#unknown();
      return { place, radius: this.#number() };
    });
    this.#addCircle(place[0], place[1], radius);
  }

  #addCircle(x: number, y: number, radius: number): void {
    if (!(radius >= 0)) throw badShape(`distance must be >= 0; got ${radius}`);
    this.circles.push({ x, y, radius });
  }

  /** '(' minX ',' maxX ',' maxY ',' minY ')'; on the globe minX > maxX crosses the date line. */
  #envelope(): void {
    const values = this.#list(() => this.#number());
    const [minX, maxX, maxY, minY] = values as [number, number, number, number];
    if (values.length !== 4) throw this.#unknown();
    this.#box(minX, maxX, maxY, minY);
  }

  #box(minX: number, maxX: number, maxY: number, minY: number): void {
    checkPlace(this.#space, minX, minY);
    checkPlace(this.#space, maxX, maxY);
    if (minY > maxY) throw badShape(`maxY must be >= minY: ${minY} to ${maxY}`);
    const box = (left: number, right: number) =>
      this.areas.push([
        Float64Array.of(left, minY, right, minY, right, maxY, left, maxY, left, minY),
      ]);
    if (minX <= maxX) box(minX, maxX);
    else if (this.#space.type === "Cartesian") {
      throw badShape(`maxX must be >= minX: ${minX} to ${maxX}`);
    } else {
      box(minX, maxX + 360);
      box(minX - 360, maxX);
    }
  }

  #addLine(line: Float64Array): void {
    const count = line.length / 2;
    if (count === 1) {
      throw badShape(`Invalid number of points in LineString (found ${count} - must be 0 or >= 2)`);
    }
    if (count > 0) this.lines.push(...this.#unwrapped([line]).flat());
  }

  #addArea(rings: readonly Float64Array[]): void {
    const [outer] = rings;
    if (outer === undefined || outer.length === 0) return;
    for (const ring of rings) {
      const count = ring.length / 2;
      if (count < 4) {
        const found = `(found ${count} - must be 0 or >= 4)`;
        throw badShape(`Invalid number of points in LinearRing ${found}`);
      }
      if (ring[0] !== ring.at(-2) || ring[1] !== ring.at(-1)) {
        throw badShape("points must form a closed linestring");
      }
    }
    this.areas.push(...this.#unwrapped(rings));
  }

  /**
   * Returns the rings unchanged, or twice if they cross the date line. The first ring determines the shift of the
   * others.
   */
  #unwrapped(rings: readonly Float64Array[]): (readonly Float64Array[])[] {
    if (this.#space.type === "Cartesian") return [rings];
    let isCrossing = false;
    const unwrapped = rings.map((ring) => {
      let turn = 0;
      return ring.map((value, i) => {
        if (i % 2 === 1) return value;
        const step = i === 0 ? 0 : value - (ring[i - 2] as number);
        if (step > 180 && step < 360) turn -= 360;
        else if (step < -180 && step > -360) turn += 360;
        if (turn !== 0) isCrossing = true;
        return value + turn;
      });
    });
    if (!isCrossing) return [rings];
    const [outer] = unwrapped;
    const start = leastX(outer as Float64Array);
    const moved = (ring: Float64Array, by: number) =>
      ring.map((value, i) => (i % 2 === 0 ? value + by : value));
    const placed = unwrapped.map((ring) => moved(ring, leastX(ring) < start ? 360 : 0));
    const isWest = start < -180;
    return [placed, placed.map((ring) => moved(ring, isWest ? 360 : -360))];
  }

  /** '(' place ( ',' place )* ')' */
  #places(): Float64Array {
    if (this.#peekWord() === "EMPTY") {
      this.#word();
      return new Float64Array(0);
    }
    if (!this.#takes("(")) throw this.#unknown();
    const places: number[] = [];
    for (let isMore = true; isMore; ) {
      placePattern.lastIndex = this.#at;
      const found = placePattern.exec(this.#text);
      if (found === null) throw this.#unknown();
      this.#at = placePattern.lastIndex;
      places.push(...this.#counted(Number(found[1]), Number(found[2])));
      isMore = found[3] === ",";
    }
    return Float64Array.from(places);
  }

  /** Returns a place of a MULTIPOINT, with or without parentheses. */
  #maybeInside(): [number, number] {
    if (!this.#takes("(")) return this.#place();
    const place = this.#place();
    if (!this.#takes(")")) throw this.#unknown();
    return place;
  }

  /** x y z? m? */
  #place(): [number, number] {
    const x = this.#number();
    const y = this.#number();
    for (let i = 0; i < 2 && this.#takeNumber() !== null; i++);
    return this.#counted(x, y);
  }

  #counted(x: number, y: number): [number, number] {
    if (++this.#placeCount > shapePlacesMax) {
      throw new EngineError("too-large", `A shape has more than ${shapePlacesMax} places.`);
    }
    checkPlace(this.#space, x, y);
    return [x, y];
  }

  #inside<Result>(read: () => Result): Result {
    if (!this.#takes("(")) throw this.#unknown();
    const result = read();
    if (!this.#takes(")")) throw this.#unknown();
    return result;
  }

  #list<Item>(read: () => Item): Item[] {
    return this.#inside(() => {
      const items = [read()];
      while (this.#takes(",")) items.push(read());
      return items;
    });
  }

  #number(): number {
    const value = this.#takeNumber();
    if (value === null) throw this.#unknown();
    return value;
  }

  #takeNumber(): number | null {
    const text = this.#token(2);
    return text === undefined ? null : Number(text);
  }

  #word(): string | undefined {
    return this.#token(1);
  }

  #peekWord(): string | undefined {
    const at = this.#at;
    const word = this.#token(1)?.toUpperCase();
    this.#at = at;
    return word;
  }

  #takes(sign: string): boolean {
    const at = this.#at;
    if (this.#token(3) === sign) return true;
    this.#at = at;
    return false;
  }

  /** Returns the next token when it is of this group of the pattern. */
  #token(group: number): string | undefined {
    tokenPattern.lastIndex = this.#at;
    const found = tokenPattern.exec(this.#text);
    const text = found?.[group];
    if (text !== undefined) this.#at = tokenPattern.lastIndex;
    return text;
  }

  #unknown(): EngineError {
    const shown = this.#text.length > 200 ? `${this.#text.slice(0, 200)}…` : this.#text;
    return badShape(`Unknown Shape definition [${shown}]`);
  }
}

function leastX(ring: Float64Array): number {
  let least = Number.POSITIVE_INFINITY;
  for (let i = 0; i < ring.length; i += 2) least = Math.min(least, ring[i] as number);
  return least;
}

const known = new Set([
  "POINT",
  "MULTIPOINT",
  "LINESTRING",
  "MULTILINESTRING",
  "POLYGON",
  "MULTIPOLYGON",
  "GEOMETRYCOLLECTION",
]);
