/** What somebody sees whom the server does not know, and how that changes. */
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
      <h1>This server knows people by certificate</h1>
      <p>Your browser showed none, or one that the server does not know.</p>
      <p>Quickest: run this on a machine that has one. It opens this page signed in.</p>
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
      <p>Then close all windows of the browser and come back.</p>
    </>
  );
}

function NoSession() {
  const isRefused = signedOut.value === "code-refused";
  return (
    <>
      <h1>{isRefused ? "This address is used up" : "This page is not signed in"}</h1>
      <p>
        {isRefused
          ? "An address opens the studio once, within a minute after it was printed."
          : "The session is over, or belongs to another window that is closed."}
      </p>
      <p>
        Press Enter where <code>jackdaw studio</code> runs: it prints another address. Or run it
        again.
      </p>
    </>
  );
}
