/**
 * The clients of the `http1` bench, in a separate process: GET or PUT of documents over HTTP/1.1. Started with
 * fork(); replies to each `DocumentLoad` of its parent with a `RawResult`.
 */
import { seeded } from "../harness.ts";
import { type RawLoad, runRaw } from "./raw-client.ts";

export interface DocumentLoad extends RawLoad {
  readonly method: "GET" | "PUT";
  /** Number of documents; ids are `users/<n>` with n below this. */
  readonly documents: number;
  /** Body of a PUT. */
  readonly body: string;
  readonly seed: number;
}

process.on("message", (load: DocumentLoad) => {
  const { method, documents, body } = load;
  const random = seeded(load.seed);
  const next = () => {
    const path = `/databases/bench/docs?id=users%2F${random() % documents}`;
    return method === "GET" ? { method, path } : { method, path, body };
  };
  runRaw(load, next).then(
    (result) => process.send?.(result),
    (error: unknown) => {
      console.error(error);
      process.exit(1);
    },
  );
});
process.once("disconnect", () => process.exit(0));
