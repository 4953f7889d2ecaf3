/** What every TLS port of this server asks of a handshake. Who is let in is decided later, by what is registered. */
import { constants } from "node:crypto";
import type { TlsOptions } from "node:tls";

/** Forward secrecy in all of them. The CBC ones of TLS 1.2 are for older Windows. */
const ciphers = [
  "TLS_AES_256_GCM_SHA384:TLS_CHACHA20_POLY1305_SHA256:TLS_AES_128_GCM_SHA256",
  "ECDHE+AESGCM:ECDHE+CHACHA20",
  "ECDHE-ECDSA-AES256-SHA384:ECDHE-RSA-AES256-SHA384",
  "ECDHE-ECDSA-AES128-SHA256:ECDHE-RSA-AES128-SHA256",
].join(":");

export const tlsPolicy: TlsOptions = {
  minVersion: "TLSv1.2",
  ciphers,
  // Who is on a connection is decided once.
  secureOptions: constants.SSL_OP_NO_RENEGOTIATION,
  requestCert: true,
  // Not by a chain: a registered certificate may come from anywhere.
  rejectUnauthorized: false,
};
