/** The page for refused browsers: instructions, without data. It is the same for every address of a server. */
import type { Exchange } from "../http/exchange.ts";

const policy = "default-src 'none'; style-src 'unsafe-inline'; frame-ancestors 'none'";

export function isBrowser(exchange: Pick<Exchange, "method" | "header">): boolean {
  return exchange.method === "GET" && exchange.header("accept")?.includes("text/html") === true;
}

/** Replies with the page. */
export function replyRefusal(exchange: Exchange, status: 200 | 403): void {
  const headers = {
    "content-type": "text/html; charset=utf-8",
    "content-security-policy": policy,
    "cache-control": "no-store",
  };
  exchange.reply(status, headers, refusalPage(exchange.authority));
}

/** @param host host and port of the request, shown if it contains only characters of a host */
export function refusalPage(host = ""): string {
  const url = /^[\w.:[\]-]+$/.test(host) ? ` --url https://${host}` : "";
  return `<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="light dark">
<title>Jackdaw: certificate required</title>
<style>
:root{--text:#1b2030;--dim:#586076;--page:#f4f5f9;--card:#fff;--line:#dcdfe8;--mark:#3d56c5}
@media (prefers-color-scheme:dark){:root{--text:#e6e8f0;--dim:#a3abc2;--page:#14161d;--card:#1c1f29;--line:#323748;--mark:#9db0ff}}
body{margin:0;background:var(--page);color:var(--text);font:15px/1.55 system-ui,sans-serif}
main{max-width:40rem;margin:8vh auto;padding:2rem;background:var(--card);border:1px solid var(--line);border-radius:12px}
@media (max-width:46rem){main{margin:1rem;padding:1.25rem}}
h1{margin:0 0 .5rem;font-size:1.35rem}h2{margin:1.75rem 0 .5rem;font-size:1rem}p{margin:.5rem 0}
.dim{color:var(--dim)}b{color:var(--mark)}
code{font:13px/1.5 ui-monospace,monospace}pre{margin:.5rem 0;padding:.6rem .8rem;border:1px solid var(--line);border-radius:8px;overflow-x:auto;background:var(--page)}
li{margin:.35rem 0}ul,ol{padding-left:1.25rem;margin:.5rem 0}
</style>
</head>
<body>
<main>
<p class="dim">Jackdaw</p>
<h1>This server requires a client certificate</h1>
<p>The browser presented no certificate, or one that is not registered or has no access to this page.</p>
<h2>With the command line</h2>
<p>Run this on a machine that has a certificate. On the machine of the server, run it in the folder of the server. It opens
the studio, signed in.</p>
<pre><code>jackdaw studio${url}</code></pre>
<h2>With a certificate in the browser</h2>
<ol>
<li>Get the <code>.pfx</code> file of a certificate. The first one is in the folder <code>certs</code> of the server's data
folder: <code>admin.client.certificate.&hellip;.pfx</code>, without a password. For others, ask an administrator of the
server, who creates them with <code>jackdaw cert make</code> or in the studio.</li>
<li>Import it:
<ul>
<li><b>Chrome, Edge</b>: on Windows open the file; on a Mac open it in Keychain Access; on Linux Settings, Privacy and
security, Security, Manage certificates</li>
<li><b>Firefox</b>: Settings, Privacy &amp; Security, View Certificates, Your Certificates, Import</li>
<li><b>Safari</b>: open the file in Keychain Access</li>
</ul></li>
<li>Close all windows of the browser, open this page again, and choose the certificate.</li>
</ol>
<p class="dim">The browser trusts the server after you import <code>ca.crt</code> of the same folder as an authority.</p>
</main>
</body>
</html>
`;
}
