/**
 * A separate listener for health and metrics without TLS, for a scraper on the same machine or network: GET /metrics,
 * /livez, /readyz, and /healthz only.
 */
import { createServer, type Server } from "node:http";
import { listenErrorOf } from "../settings/listen-error.ts";
import { alive, type HealthAnswer } from "./health.ts";
import type { Metrics, MetricsReader } from "./metrics.ts";

/** The source of the replies. */
interface Monitored {
  ready(): Promise<HealthAnswer>;
  metrics(): Promise<Metrics>;
}

/** Every client that reaches this address may see all metrics. */
const everything: MetricsReader = { mayRead: () => true, isOperator: true };
const connectionsMax = 64;
const requestMs = 5_000;
const plain = "text/plain; charset=utf-8";

export class MonitoringListener {
  readonly #server: Server;

  private constructor(monitoring: Monitored) {
    this.#server = createServer(
      { requestTimeout: requestMs, headersTimeout: requestMs },
      (request, response) => {
        request.resume();
        const answer = (status: number, body: string, type = plain): void => {
          response.writeHead(status, {
            "content-type": type,
            "content-length": Buffer.byteLength(body),
          });
          response.end(request.method === "HEAD" ? undefined : body);
        };
        reply(
          monitoring,
          request.method ?? "",
          (request.url ?? "").split("?")[0] ?? "",
          answer,
        ).catch(() => answer(500, "The metrics are not available.\n"));
      },
    );
    this.#server.maxConnections = connectionsMax;
  }

  /** @throws StartError port-in-use, address-unavailable */
  static async open(monitoring: Monitored, url: URL): Promise<MonitoringListener> {
    const listener = new MonitoringListener(monitoring);
    const server = listener.#server;
    await new Promise<void>((resolve, reject) => {
      server.once("error", (error) =>
        reject(listenErrorOf(url.href, "Monitoring.ServerUrl", error)),
      );
      const host = url.hostname.replace(/^\[|\]$/g, "");
      server.listen(url.port === "" ? 80 : Number(url.port), host, resolve);
    });
    return listener;
  }

  get port(): number {
    const address = this.#server.address();
    return typeof address === "object" && address !== null ? address.port : 0;
  }

  unref(): void {
    this.#server.unref();
  }

  close(): void {
    this.#server.close();
    this.#server.closeAllConnections();
  }
}

async function reply(
  monitoring: Monitored,
  method: string,
  path: string,
  answer: (status: number, body: string, type?: string) => void,
): Promise<void> {
  if (method !== "GET" && method !== "HEAD") answer(405, "Only GET is supported.\n");
  else if (path === "/livez") answer(alive.status, alive.body);
  else if (path === "/readyz" || path === "/healthz") {
    const { status, body } = await monitoring.ready();
    answer(status, body);
  } else if (path === "/metrics") {
    const metrics = await monitoring.metrics();
    answer(200, await metrics.text(everything), metrics.contentType);
  } else answer(404, "Not found. Use /metrics, /livez, /readyz or /healthz.\n");
}
