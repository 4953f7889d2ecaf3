/** The threads of this process and their processor time, as Linux tells them; other systems tell none. */
import { readdirSync, readFileSync } from "node:fs";

export interface ThreadFigures {
  readonly id: number;
  readonly name: string;
  /** One letter, as the kernel calls it: `R` runs, `S` sleeps, … */
  readonly state: string;
  readonly userMs: number;
  readonly systemMs: number;
  /** Milliseconds from the start of the machine to that of the thread. */
  readonly startedMs: number;
}

const folder = "/proc/self/task";
/** The kernel tells times to programs in hundredths of a second. */
const tickMs = 10;

export function threadsOfProcess(): ThreadFigures[] {
  return idsIn(folder).flatMap((id) => {
    try {
      return [threadOf(readFileSync(`${folder}/${id}/stat`, "utf8"))];
    } catch {
      // It has ended meanwhile.
      return [];
    }
  });
}

/** Of a line of `stat`: the name is in brackets, and may have brackets and spaces itself. */
export function threadOf(line: string): ThreadFigures {
  const open = line.indexOf("(");
  const end = line.lastIndexOf(")");
  const [state = "", ...numbers] = line.slice(end + 2).split(" ");
  const ticks = (position: number) => Number(numbers[position]) * tickMs;
  return {
    id: Number(line.slice(0, open)),
    name: line.slice(open + 1, end),
    state,
    userMs: ticks(10),
    systemMs: ticks(11),
    startedMs: ticks(18),
  };
}

function idsIn(path: string): string[] {
  try {
    return readdirSync(path);
  } catch {
    return [];
  }
}
