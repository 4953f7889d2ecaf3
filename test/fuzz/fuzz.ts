/**
 * `npm run stress fuzz -- --seed N --requests N`: mutated requests over every route; each failure is printed with the
 * command that repeats it. `--from N` starts at a later request. The last line counts the run as one passed test, or
 * each failure as a failed one.
 */
import { parseArgs } from "node:util";
import { fuzz } from "./fuzz-run.ts";

const { values } = parseArgs({
  options: {
    seed: { type: "string", default: "1" },
    requests: { type: "string", default: "20000" },
    from: { type: "string", default: "0" },
    failures: { type: "string", default: "100" },
  },
});

const began = Date.now();
console.log(`seed ${values.seed}, ${values.requests} requests from number ${values.from}`);
const { sent, failures, statuses, spentMs } = await fuzz({
  seed: Number(values.seed),
  from: Number(values.from),
  count: Number(values.requests),
  failuresMax: Number(values.failures),
  onFailure: (text) => console.log(text),
  onRound: (text) => console.log(`${Math.round((Date.now() - began) / 1000)} s: ${text}`),
});
const counts = [...statuses].sort(([one], [other]) => one - other);
console.log(counts.map(([status, count]) => `${status || "conversation"}: ${count}`).join(", "));
const slow = [...spentMs].sort(([, one], [, other]) => other - one).slice(0, 8);
console.log(slow.map(([path, ms]) => `${path} ${Math.round(ms)} ms`).join("\n"));
console.log(`${sent} requests sent`);
console.log(`${failures === 0 ? 1 : 0} passed, ${failures} failed`);
process.exit(failures === 0 ? 0 : 1);
