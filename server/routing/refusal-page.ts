/** Shown to refused browsers: the same page for every address, without data. */
export const refusalPage = `<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<title>Certificate needed</title>
<style>body{font:16px/1.5 system-ui,sans-serif;max-width:42rem;margin:4rem auto;padding:0 1rem}code{background:#eee;padding:0 .2rem}</style>
</head>
<body>
<h1>This server needs your certificate</h1>
<p>The browser showed none, or one that this server does not know or that may not see this page.</p>
<ol>
<li>Get a certificate as a <code>.pfx</code> file. The server's administrator makes one; the first is in the folder
<code>certs</code> of the server's data folder (<code>admin.client.certificate.&hellip;.pfx</code>, no password).</li>
<li>Import it. Chrome and Edge on Windows: open the file. macOS: open it in Keychain Access. Chrome on Linux:
Settings, Privacy and security, Security, Manage certificates. Firefox: Settings, Privacy &amp; Security, View Certificates,
Your Certificates, Import.</li>
<li>Close all windows of the browser, come back, and choose the certificate when asked.</li>
</ol>
<p>The warning about the server's own certificate goes away when you import <code>ca.crt</code> of the same folder as an authority.</p>
</body>
</html>
`;
