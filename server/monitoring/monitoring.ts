/** Health and metrics of one server. The metrics and their library are loaded on first use. */
import { Figures } from "./figures.ts";
import { alive, type Health, type HealthAnswer, notReady } from "./health.ts";
import type { HttpThreadFigures, Metrics, MetricsHost } from "./metrics.ts";
import { MonitoringListener } from "./monitoring-listener.ts";

export class Monitoring {
  readonly health: Health;
  readonly figures: Figures;
  readonly #host: MetricsHost;
  #metrics: Promise<Metrics> | null = null;
  #listener: MonitoringListener | null = null;

  constructor(host: MetricsHost) {
    this.#host = host;
    this.health = host.health;
    this.figures = new Figures(host);
    host.requests.figures = this.figures;
    this.figures.start();
  }

  /** Whether the server is ready. */
  async ready(): Promise<HealthAnswer> {
    const found = await this.health.findings();
    return found.size === 0 ? alive : notReady;
  }

  /** Starts to watch the cluster, and to listen at `url` if it is given. @throws StartError port-in-use, address-unavailable */
  async start(url: URL | undefined): Promise<void> {
    this.#host.cluster.start();
    if (url !== undefined) this.#listener = await MonitoringListener.open(this, url);
  }

  /** The HTTP threads, as of the last second; empty if HTTP runs on the engine thread. */
  get httpThreads(): readonly HttpThreadFigures[] {
    return this.#host.http().threadFigures;
  }

  /** Port of that listener, or undefined. */
  get port(): number | undefined {
    return this.#listener?.port;
  }

  unref(): void {
    this.#listener?.unref();
  }

  close(): void {
    this.figures.stop();
    this.#host.cluster.stop();
    this.#listener?.close();
  }

  metrics(): Promise<Metrics> {
    this.#metrics ??= import("./metrics.ts").then(({ Metrics }) => new Metrics(this.#host));
    return this.#metrics;
  }
}
