/**
 * The requests of workers and their replies, with times. It is the only input of the checks
 * (`checks.ts`).
 *
 * Invariants:
 * - An operation without a reply, or with an inconclusive one, is `unknown`: it may have been
 * executed, or may be later.
 */
import { NoReply } from "./http-sender.ts";

/** `failed`: certainly not executed. */
export type Outcome = "ok" | "failed" | "unknown";

interface Timed {
  readonly outcome: Outcome;
  /** Nanoseconds of one clock. */
  readonly call: number;
  readonly return: number;
}

/** An increasing number, written to one document by one worker. */
interface PutEvent extends Timed {
  readonly kind: "put";
  readonly id: string;
  readonly n: number;
}

/** An item appended to a document's list; with several ids, to each in one transaction. */
interface AppendEvent extends Timed {
  readonly kind: "append";
  readonly ids: readonly string[];
  readonly item: string;
  /**
   * Whether the sender may have retried. Then only its effect is checked, not that it is present
   * once.
   */
  readonly isRepeated: boolean;
}

interface CountEvent extends Timed {
  readonly kind: "count";
  readonly id: string;
  readonly delta: number;
}

interface AttachEvent extends Timed {
  readonly kind: "attach";
  readonly id: string;
  readonly name: string;
  /** SHA-256 in hexadecimal. */
  readonly hash: string;
}

interface DeleteEvent extends Timed {
  readonly kind: "delete";
  readonly id: string;
}

/** A read of one session at one node; a session ends when its node loses its data. */
interface ReadEvent extends Timed {
  readonly kind: "read";
  readonly session: string;
  readonly id: string;
  /** 0 if the document did not exist. */
  readonly n: number;
  /** Whether this session's own write was acknowledged by the queried leader. */
  readonly isAtLeader: boolean;
}

/** A document of a subscription, put once. */
interface EventPutEvent extends Timed {
  readonly kind: "event";
  readonly id: string;
}

/** An item delivered to a worker of the subscription. */
interface DeliveredEvent {
  readonly kind: "delivered";
  readonly id: string;
}

/** For the linearizability checker, in the format of `test/linearizability`. */
export interface RegisterEvent {
  readonly kind: "register";
  readonly group: string;
  readonly client: number;
  readonly call: number;
  readonly return: number;
  readonly outcome: "read" | "written" | "refused" | "none" | "unknown";
  readonly reads?: Readonly<Record<string, { readonly version: string; readonly value: string }>>;
  readonly writes?: Readonly<
    Record<string, { readonly expected: string; readonly version: string; readonly value: string }>
  >;
}

export type HistoryEvent =
  | PutEvent
  | AppendEvent
  | CountEvent
  | AttachEvent
  | DeleteEvent
  | ReadEvent
  | EventPutEvent
  | DeliveredEvent
  | RegisterEvent;

export class History {
  readonly events: HistoryEvent[] = [];

  now(): number {
    return Math.round(performance.now() * 1e6);
  }

  add(event: HistoryEvent): void {
    this.events.push(event);
  }

  of<Kind extends HistoryEvent["kind"]>(kind: Kind): Extract<HistoryEvent, { kind: Kind }>[] {
    return this.events.filter((event) => event.kind === kind) as never;
  }

  /** The number of operations per outcome, by type, as a measure of coverage. */
  summary(): string {
    const counts = new Map<string, Record<string, number>>();
    for (const event of this.events) {
      const outcome = "outcome" in event ? event.outcome : "ok";
      const row = counts.get(event.kind) ?? {};
      row[outcome] = (row[outcome] ?? 0) + 1;
      counts.set(event.kind, row);
    }
    return [...counts]
      .map(([kind, row]) => {
        const parts = Object.entries(row).map(([outcome, count]) => `${count} ${outcome}`);
        return `${kind}: ${parts.join(", ")}`;
      })
      .join("; ");
  }
}

interface Response<Result> {
  readonly call: number;
  readonly return: number;
  readonly outcome: Outcome;
  /** null without a reply. */
  readonly reply: Result | null;
  readonly problem: string | null;
}

const nothingDone = /nothing was (?:done|written)/;

/**
 * Sends a request that changes something. A 5xx status may arrive after the change was forwarded,
 * unless the reply states that nothing was done, which is as binding as an acknowledgment. A 4xx
 * status is a rejection.
 */
export async function sendRequest<
  Result extends { readonly status: number; readonly text: string },
>(history: History, send: () => Promise<Result>): Promise<Response<Result>> {
  const call = history.now();
  try {
    const reply = await send();
    const isRefused = reply.status < 500 || nothingDone.test(reply.text);
    const outcome = reply.status < 300 ? "ok" : isRefused ? "failed" : "unknown";
    const problem = outcome === "ok" ? null : `${reply.status} ${reply.text.slice(0, 300)}`;
    return { call, return: history.now(), outcome, reply, problem };
  } catch (error) {
    if (!(error instanceof NoReply)) throw error;
    const outcome = error.mayBeDone ? "unknown" : "failed";
    return { call, return: history.now(), outcome, reply: null, problem: error.message };
  }
}
