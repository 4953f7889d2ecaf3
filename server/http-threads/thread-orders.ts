/** What the engine thread and an HTTP thread tell each other besides the records of the link: messages of worker threads. */
import type { SecureContextOptions } from "node:tls";
import type { LinkMemory } from "../link/thread-link.ts";
import type { FrontLimits } from "./front-host.ts";
import type { FrontCounts, ListenTarget } from "./http-front.ts";

/** `workerData` of an HTTP thread. */
export interface ThreadData {
  readonly memory: LinkMemory;
  readonly limits: FrontLimits;
}

/** From the engine thread. A message without content wakes the receiver of the link. */
export type ThreadOrder =
  | {
      readonly kind: "listen";
      readonly target: ListenTarget;
      readonly secure: SecureContextOptions | undefined;
    }
  | { readonly kind: "certificate"; readonly secure: SecureContextOptions }
  | { readonly kind: "close"; readonly timeoutMs: number; readonly closesSocket: boolean };

/** From an HTTP thread; likewise. */
export type ThreadReport =
  | { readonly kind: "listening"; readonly port: number; readonly fd: number }
  | { readonly kind: "not-listening"; readonly message: string; readonly code: string | undefined }
  | { readonly kind: "counts"; readonly counts: FrontCounts; readonly busyShare: number }
  | { readonly kind: "mistake"; readonly error: Error }
  | { readonly kind: "closed" };
