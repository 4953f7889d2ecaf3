/**
 * The code of an HTTP thread (a worker thread).
 *
 * Invariants:
 * - An exception that nobody handles is reported, and ends neither the thread nor other connections.
 */
import type { AddressInfo, Server } from "node:net";
import { type MessagePort, parentPort, workerData } from "node:worker_threads";
import { returnMemory } from "../../engine/base/memory/memory-return.ts";
import { commandReader, EventWriter } from "../link/records.ts";
import { ThreadLink } from "../link/thread-link.ts";
import { HttpFront } from "./http-front.ts";
import type { ThreadData, ThreadOrder, ThreadReport } from "./thread-orders.ts";

const countsMs = 1_000;

const port = parentPort as MessagePort; // this is a worker thread
const { memory, limits } = workerData as ThreadData;
const link = new ThreadLink(port, memory, false);
const front = new HttpFront(limits, () => new EventWriter(link));
link.receive(commandReader(front));
returnMemory();

process.on("uncaughtException", (error) => report({ kind: "mistake", error }));

port.on("message", (order: ThreadOrder | null) => {
  if (order === null) link.wake();
  else void obey(order);
});

let seen = performance.eventLoopUtilization();
setInterval(() => {
  const now = performance.eventLoopUtilization();
  const { utilization } = performance.eventLoopUtilization(now, seen);
  seen = now;
  report({ kind: "counts", counts: front.counts, busyShare: utilization });
}, countsMs).unref();

async function obey(order: ThreadOrder): Promise<void> {
  switch (order.kind) {
    case "listen":
      try {
        const server = await front.listen(order.target, order.secure);
        report({ kind: "listening", ...placeOf(server) });
      } catch (error) {
        // Messages between threads do not transfer the code of an error.
        const { message, code } = error as NodeJS.ErrnoException;
        report({ kind: "not-listening", message, code });
      }
      return;
    case "certificate":
      front.setCertificate(order.secure);
      return;
    case "close":
      await front.close(order.timeoutMs, order.closesSocket);
      report({ kind: "closed" });
  }
}

/** The port of a listening server, and its descriptor, which has no public name in Node; -1: there is none. */
function placeOf(server: Server): { readonly port: number; readonly fd: number } {
  const handle = (server as unknown as { readonly _handle?: { readonly fd?: number } | null })
    ._handle;
  return { port: (server.address() as AddressInfo).port, fd: handle?.fd ?? -1 };
}

function report(made: ThreadReport): void {
  port.postMessage(made);
}
