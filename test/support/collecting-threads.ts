/** Threads that make V8 collect for the first time at the same moment. Prints how many of them failed. */
import { once } from "node:events";
import { isMainThread, Worker, workerData } from "node:worker_threads";
import { countPassing } from "../../engine/base/memory/gc-hints.ts";

const rounds = 10;
const threads = 4;
/** Milliseconds in which all threads of a round start. */
const startMs = 200;

if (isMainThread) {
  let failures = 0;
  for (let round = 0; round < rounds; round++) {
    const untilMs = Date.now() + startMs;
    const running = Array.from({ length: threads }, () => {
      const worker = new Worker(new URL(import.meta.url), { workerData: untilMs });
      worker.on("error", () => failures++);
      return once(worker, "exit").catch(() => undefined); // an error is counted above
    });
    await Promise.all(running);
  }
  console.log(`${failures} failures`);
} else {
  while (Date.now() < (workerData as number));
  countPassing(Number.MAX_SAFE_INTEGER);
}
