/** Instructions for users whom the server does not recognize. */
import { lacksCertificate } from "../base/identity.ts";
import { signedOut } from "../base/session.ts";

export function SignInPage() {
  return (
    <main class="page narrow" id="main" tabIndex={-1}>
      {lacksCertificate.value ? <NoCertificate /> : <NoSession />}
    </main>
  );
}

function NoCertificate() {
  return (
    <>
      <h1>This server requires a client certificate</h1>
      <p>Your browser presented no certificate, or one that is not registered.</p>
      <p>
        Quickest: run this command on a machine with a certificate. It opens this page signed in.
      </p>
      <pre class="panel">
        <code>jackdaw studio --url {window.location.origin}</code>
      </pre>
      <p>
        Or import the <code>.pfx</code> file into the browser:
      </p>
      <ul>
        <li>
          <b>Chrome, Edge</b>: on Windows open the file; on a Mac open it in Keychain Access; on
          Linux Settings, Privacy and security, Security, Manage certificates
        </li>
        <li>
          <b>Firefox</b>: Settings, Privacy &amp; Security, View Certificates, Your Certificates,
          Import
        </li>
        <li>
          <b>Safari</b>: open the file in Keychain Access
        </li>
      </ul>
      <p>Then close all browser windows and reopen this page.</p>
    </>
  );
}

function NoSession() {
  const isRefused = signedOut.value === "code-refused";
  return (
    <>
      <h1>{isRefused ? "This address has expired" : "This page is not signed in"}</h1>
      <p>
        {isRefused
          ? "An address can be used once, within a minute after it was printed."
          : "The session has ended, or belongs to another window that was closed."}
      </p>
      <p>
        Press Enter where <code>jackdaw studio</code> runs to print another address, or run it
        again.
      </p>
    </>
  );
}
