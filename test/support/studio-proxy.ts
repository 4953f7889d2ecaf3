/** A client of `jackdaw studio` for tests, with the headers of a browser. */
import * as http from "node:http";
import type { StudioProxy } from "../../cli/studio/studio-proxy.ts";
import { type Reply, type RequestOptions, requestHttp1 } from "./start-test-server.ts";

export class ProxyClient {
  readonly origin: string;
  readonly proxy: StudioProxy;
  /** Both halves of the session; empty before `enter`. */
  session: Readonly<Record<string, string>> = {};

  constructor(proxy: StudioProxy) {
    this.proxy = proxy;
    this.origin = `http://127.0.0.1:${proxy.port}`;
  }

  /** Opens a session like the page. */
  async enter(code = codeOf(this.proxy.newAddress())): Promise<Reply> {
    const reply = await this.request("/studio/session", {
      method: "POST",
      body: JSON.stringify({ code }),
    });
    if (reply.status === 200) {
      const cookie = String(reply.headers["set-cookie"]).split(";")[0] as string;
      const { Session } = reply.json as { Session: string };
      this.session = { cookie, "x-jackdaw-session": Session };
    }
    return reply;
  }

  /** The address with a ticket. */
  async withTicket(path: string): Promise<string> {
    const body = JSON.stringify({ path });
    const { json } = await this.request("/studio/ticket", { method: "POST", body });
    const { Ticket } = json as { Ticket: string };
    return `${path}${path.includes("?") ? "&" : "?"}jackdaw-ticket=${Ticket}`;
  }

  request(path: string, options: RequestOptions = {}): Promise<Reply> {
    const headers = { ...this.headers(), ...options.headers };
    return requestHttp1(this.origin + path, { ...options, headers });
  }

  /** A request whose body the test writes. */
  open(path: string, method: string): http.ClientRequest {
    return http.request(this.origin + path, { method, headers: this.headers(), agent: false });
  }

  headers(): Record<string, string> {
    return { "sec-fetch-site": "same-origin", origin: this.origin, ...this.session };
  }
}

export function codeOf(address: string): string {
  return address.split("#code=")[1] as string;
}
