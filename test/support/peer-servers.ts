/** Requests to other nodes, for tests: the test's servers by their tags, over HTTP without TLS. */
import { request } from "node:http";
import { EngineError } from "../../engine/base/errors.ts";
import type { PeerLink, PeerReply, PeerRequest } from "../../server/cluster/peer-link.ts";

export class PeerServers implements PeerLink {
  /** `http://…` by tag. Other nodes are unreachable. */
  readonly urls = new Map<string, string>();
  /** Sent requests, as `B GET /path`. */
  readonly sent: string[] = [];
  /** May reply instead of the other node. */
  answer: (tag: string, requested: PeerRequest) => PeerReply | undefined = () => undefined;

  upgrade(): Promise<never> {
    return Promise.reject(new Error("web sockets are not used in this test"));
  }

  send(tag: string, requested: PeerRequest): Promise<PeerReply> {
    this.sent.push(`${tag} ${requested.method} ${requested.target}`);
    const own = this.answer(tag, requested);
    if (own !== undefined) return Promise.resolve(own);
    const url = this.urls.get(tag);
    return new Promise((resolve, reject) => {
      const failed = (cause?: unknown) => {
        const message = `Node ${tag} cannot be reached.`;
        reject(
          new EngineError("node-unreachable", message, { cause, details: { wasSent: false } }),
        );
      };
      if (url === undefined) {
        failed();
        return;
      }
      const { method, headers, signal } = requested;
      const options = {
        method,
        agent: false as const,
        ...(headers === undefined ? {} : { headers }),
        ...(signal === undefined ? {} : { signal }),
      };
      const sent = request(url + requested.target, options, (reply) =>
        resolve({ status: reply.statusCode ?? 0, headers: reply.headers, body: reply }),
      );
      sent.on("error", failed);
      sent.end();
    });
  }
}
