/** The threads of this process and their processor time; Linux only, empty on other systems. */
import { readdirSync, readFileSync } from "node:fs";

export interface ThreadFigures {
  readonly id: number;
  readonly name: string;
  /** State letter of the kernel: `R` running, `S` sleeping, … */
  readonly state: string;
  readonly userMs: number;
  readonly systemMs: number;
  /** Start of the thread in milliseconds after the start of the machine. */
  readonly startedMs: number;
}

const folder = "/proc/self/task";
/** The kernel reports times in hundredths of a second. */
const tickMs = 10;

export function threadsOfProcess(): ThreadFigures[] {
  return idsIn(folder).flatMap((id) => {
    try {
      return [threadOf(readFileSync(`${folder}/${id}/stat`, "utf8"))];
    } catch {
      // The thread has ended meanwhile.
      return [];
    }
  });
}

/** Parses a line of `stat`: the name is in brackets, and may itself contain brackets and spaces. */
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
