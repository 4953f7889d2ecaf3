/** The TLS policy of every port of this server. Clients are authorized later, by their registered certificates. */
import { constants } from "node:crypto";
import type { TlsOptions } from "node:tls";

/** All have forward secrecy. The CBC suites of TLS 1.2 are for older Windows. */
const ciphers = [
  "TLS_AES_256_GCM_SHA384:TLS_CHACHA20_POLY1305_SHA256:TLS_AES_128_GCM_SHA256",
  "ECDHE+AESGCM:ECDHE+CHACHA20",
  "ECDHE-ECDSA-AES256-SHA384:ECDHE-RSA-AES256-SHA384",
  "ECDHE-ECDSA-AES128-SHA256:ECDHE-RSA-AES128-SHA256",
].join(":");

export const tlsPolicy: TlsOptions = {
  minVersion: "TLSv1.2",
  ciphers,
  // The client's identity is established once per connection.
  secureOptions: constants.SSL_OP_NO_RENEGOTIATION,
  requestCert: true,
  // Not verified by chain: a registered certificate may have any issuer.
  rejectUnauthorized: false,
};
