/**
 * Locates a point relative to an area: the edges of its rings are sorted into horizontal strips, so that a point is
 * compared only with those of its strip.
 */
import { orient2d } from "robust-predicates";
import { type Area, boxOf } from "./shape.ts";

const stripsMax = 1024;
/** Maximum number of edges in all strips together, per edge of the area: more strips would not help. */
const copiesMax = 8;

export class AreaLocator {
  /** Units of work of one place. */
  readonly units: number;
  readonly #minX: number;
  readonly #minY: number;
  readonly #maxX: number;
  readonly #maxY: number;
  /** Edges as x1, y1, x2, y2; strip s has #edges[#starts[s], #starts[s + 1]). */
  readonly #edges: Float64Array;
  readonly #starts: Uint32Array;

  constructor(area: Area) {
    const { minX, minY, maxX, maxY } = boxOf(area[0] ?? new Float64Array(0));
    this.#minX = minX;
    this.#minY = minY;
    this.#maxX = maxX;
    this.#maxY = maxY;
    let count = 0;
    for (const ring of area) count += Math.max(0, ring.length / 2 - 1);
    let strips = Math.max(1, Math.min(stripsMax, count >>> 2));
    while (strips > 1 && this.#copiesIn(area, strips) > count * copiesMax) strips >>>= 1;
    const starts = this.#countsOf(area, strips);
    this.#starts = starts;
    this.#edges = this.#filled(area, strips, starts);
    this.units = 4 + Math.ceil((starts[strips] as number) / strips);
  }

  /** Positive: inside; 0: on the boundary; negative: outside. */
  locate(x: number, y: number): number {
    if (!(x >= this.#minX && x <= this.#maxX && y >= this.#minY && y <= this.#maxY)) return -1;
    const strip = this.#stripOf(y, this.#starts.length - 1);
    const end = this.#starts[strip + 1] as number;
    const edges = this.#edges;
    let isInside = false;
    for (let i = (this.#starts[strip] as number) * 4; i < end * 4; i += 4) {
      const x1 = edges[i] as number;
      const y1 = edges[i + 1] as number;
      const x2 = edges[i + 2] as number;
      const y2 = edges[i + 3] as number;
      if ((x < x1 && x < x2) || (y < y1 && y < y2) || (y > y1 && y > y2)) continue;
      const isRight = x > x1 && x > x2;
      // Positive: on the right-hand side of the directed edge.
      const side = isRight ? (y2 > y1 ? 1 : -1) : orient2d(x1, y1, x2, y2, x, y);
      if (side === 0) return 0;
      if (y1 > y === y2 > y) continue;
      if (y2 > y1 === side > 0) isInside = !isInside;
    }
    return isInside ? 1 : -1;
  }

  #stripOf(y: number, strips: number): number {
    const height = (this.#maxY - this.#minY) / strips;
    if (!(height > 0)) return 0;
    return Math.max(0, Math.min(strips - 1, Math.floor((y - this.#minY) / height)));
  }

  /** Edges in all strips together. */
  #copiesIn(area: Area, strips: number): number {
    let copies = 0;
    for (const ring of area) {
      for (let i = 1; i + 2 < ring.length; i += 2) {
        const [y1, y2] = [ring[i] as number, ring[i + 2] as number];
        const first = this.#stripOf(Math.min(y1, y2), strips);
        copies += this.#stripOf(Math.max(y1, y2), strips) - first + 1;
      }
    }
    return copies;
  }

  /** Where the edges of each strip begin. */
  #countsOf(area: Area, strips: number): Uint32Array {
    const starts = new Uint32Array(strips + 1);
    this.#visit(area, strips, (strip) => {
      starts[strip + 1] = (starts[strip + 1] as number) + 1;
    });
    for (let s = 0; s < strips; s++) {
      starts[s + 1] = (starts[s + 1] as number) + (starts[s] as number);
    }
    return starts;
  }

  #filled(area: Area, strips: number, starts: Uint32Array): Float64Array {
    const edges = new Float64Array((starts[strips] as number) * 4);
    const next = starts.slice();
    this.#visit(area, strips, (strip, ring, i) => {
      const at = (next[strip] as number) * 4;
      for (let k = 0; k < 4; k++) edges[at + k] = ring[i + k] as number;
      next[strip] = (next[strip] as number) + 1;
    });
    return edges;
  }

  #visit(
    area: Area,
    strips: number,
    visit: (strip: number, ring: Float64Array, i: number) => void,
  ): void {
    for (const ring of area) {
      for (let i = 0; i + 3 < ring.length; i += 2) {
        const y1 = ring[i + 1] as number;
        const y2 = ring[i + 3] as number;
        const last = this.#stripOf(Math.max(y1, y2), strips);
        for (let s = this.#stripOf(Math.min(y1, y2), strips); s <= last; s++) visit(s, ring, i);
      }
    }
  }
}
