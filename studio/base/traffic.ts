/** Completed requests of other clients, received over a web socket; the newest are kept. */
import { useLiveRows } from "./live-rows.ts";

export interface SeenRequest {
  readonly RequestId: number;
  readonly TimeStamp: string;
  readonly DatabaseName: string;
  /** Query text with masked values, or an id; "N/A" for neither. */
  readonly CustomInfo: string;
  readonly CertificateName: string | null;
  readonly ClientIP: string | null;
  readonly HttpMethod: string;
  readonly ElapsedMilliseconds: number;
  readonly ResponseStatusCode: number;
  readonly RequestUri: string;
  readonly ResponseSizeInBytes: number;
  readonly Type: string;
}

const requestsMax = 200;

/** Watches the requests of a database, or of the server if `database` is null. Pauses while `isHeld`. */
export function useTraffic(database: string | null, isHeld: boolean) {
  const name = database === null ? "" : `?resourceName=${encodeURIComponent(database)}`;
  return useLiveRows<SeenRequest>(
    `/admin/traffic-watch${name}`,
    requestsMax,
    (one) => !isHeld && !isOwn(one),
  );
}

/** Returns true for the periodic requests of the studio itself, which are hidden. */
function isOwn({ RequestUri }: SeenRequest): boolean {
  return /\/(metrics\/history|debug\/queries\/running)(\?|$)/.test(RequestUri);
}

/** Returns the request as a curl command; the certificate options are left to the user. */
export function curlOf({ HttpMethod, RequestUri }: SeenRequest): string {
  const quoted = RequestUri.replaceAll("'", "'\\''");
  return `curl --cert client.crt --key client.key -X ${HttpMethod} '${quoted}'`;
}
