/** Details of a certificate: its access and use; renew, edit or revoke it. */

import { useState } from "preact/hooks";
import {
  type Certificate,
  type CertificateUse,
  clearanceTexts,
  editCertificate,
  expiryOf,
  revokeCertificate,
  timeOf,
} from "../base/certificates.ts";
import { ago, counted, moment, until } from "../base/format.ts";
import { may } from "../base/identity.ts";
import { Confirmation } from "../components/confirmation.tsx";
import { Drawer } from "../components/drawer.tsx";
import { Icon } from "../components/icon.tsx";
import { Failure } from "../components/messages.tsx";
import { NewCertificate, TermsFields } from "./certificate-form.tsx";

export function CertificateDrawer({
  certificate,
  isOwn,
  use,
  changed,
  close,
}: {
  certificate: Certificate;
  isOwn: boolean;
  use: CertificateUse | undefined;
  changed: () => void;
  close: () => void;
}) {
  const { Name, SecurityClearance, Permissions } = certificate;
  const [isRenewing, setRenewing] = useState(false);
  const isServer = certificate.Usage === "RavenServer";
  // Users cannot grant or revoke more access than their own.
  const isAbove = SecurityClearance.startsWith("Cluster") && !may("cluster-admin");
  const used = use?.Results.find(({ Thumbprint }) => Thumbprint === certificate.Thumbprint);
  return (
    <Drawer title={Name} label={`Certificate ${Name}`} close={close}>
      <Expiry certificate={certificate} isOwn={isOwn} />
      {!isServer && !isAbove && (
        <button type="button" class="btn" onClick={() => setRenewing(true)}>
          Renew and download
        </button>
      )}
      <dl class="facts">
        <dt>Clearance</dt>
        <dd>{clearanceTexts[SecurityClearance] ?? SecurityClearance}</dd>
        <dt>Thumbprint</dt>
        <dd class="mono break">{certificate.Thumbprint}</dd>
        <dt>Valid</dt>
        <dd>
          {moment(timeOf(certificate.NotBefore))} to {moment(timeOf(certificate.NotAfter))}
        </dd>
        {!isServer && use !== undefined && (
          <>
            <dt>Last seen</dt>
            <dd>
              {used === undefined
                ? `not since the server start, ${ago(use.Since, Date.now())}`
                : ago(used.LastUsed, Date.now())}
            </dd>
            <dt>Connections</dt>
            <dd>{used === undefined ? "none open" : `${used.OpenConnections} open`}</dd>
          </>
        )}
      </dl>
      {isServer ? (
        <p class="soft">This is the server's own certificate. It cannot be changed here.</p>
      ) : isAbove ? (
        <p class="soft">Only cluster administrators can change it.</p>
      ) : (
        <>
          <Rights certificate={certificate} isOwn={isOwn} changed={changed} />
          <Revoke
            certificate={certificate}
            isOwn={isOwn}
            open={used?.OpenConnections ?? 0}
            lastUsed={used?.LastUsed}
            revoked={() => {
              close();
              changed();
            }}
          />
        </>
      )}
      {isRenewing && (
        <NewCertificate
          title={`Renew ${Name}`}
          terms={{ Name, SecurityClearance, Permissions }}
          changed={changed}
          close={() => setRenewing(false)}
        />
      )}
    </Drawer>
  );
}

function Expiry({ certificate, isOwn }: { certificate: Certificate; isOwn: boolean }) {
  const { state, atMs } = expiryOf(certificate, Date.now());
  if (state === "good") return null;
  const whose = isOwn ? "Your certificate" : "It";
  return (
    <div class={state === "over" ? "note bad" : "note warn"}>
      <Icon name={state === "over" ? "bad" : "warn"} />
      <span>
        {state === "over"
          ? `${whose} expired ${ago(atMs, Date.now())} and is rejected.`
          : `${whose} expires ${until(atMs, Date.now())}. A renewed certificate has the same access; revoke this one when it is no longer used.`}
      </span>
    </div>
  );
}

function Rights({
  certificate,
  isOwn,
  changed,
}: {
  certificate: Certificate;
  isOwn: boolean;
  changed: () => void;
}) {
  const { Name, SecurityClearance, Permissions, Thumbprint } = certificate;
  const before = { Name, SecurityClearance, Permissions };
  const [terms, setTerms] = useState(before);
  const [error, setError] = useState<Error | null>(null);
  const [isSaved, setSaved] = useState(false);
  const isChanged = JSON.stringify(terms) !== JSON.stringify(before);
  const save = async () => {
    setError(null);
    try {
      await editCertificate(Thumbprint, terms);
      setSaved(true);
      changed();
    } catch (failed) {
      setError(failed as Error);
    }
  };
  return (
    <section class="stack" aria-label="Access">
      <h3>Access</h3>
      <TermsFields
        terms={terms}
        change={(next) => {
          setTerms(next);
          setSaved(false);
        }}
      />
      {isOwn && (
        <p class="soft">
          You are signed in with this certificate, so you cannot lower its clearance.
        </p>
      )}
      {error !== null && <Failure error={error} />}
      <div class="row">
        <button
          type="button"
          class="btn primary"
          disabled={!isChanged || terms.Name === ""}
          onClick={() => void save()}
        >
          Save access
        </button>
        <span role="status" class="muted">
          {isSaved && !isChanged ? "Saved" : ""}
        </span>
      </div>
    </section>
  );
}

function Revoke({
  certificate: { Name, Thumbprint },
  isOwn,
  open,
  lastUsed,
  revoked,
}: {
  certificate: Certificate;
  isOwn: boolean;
  open: number;
  lastUsed: string | undefined;
  revoked: () => void;
}) {
  const [isAsking, setAsking] = useState(false);
  const revoke = async () => {
    await revokeCertificate(Thumbprint);
    revoked();
  };
  return (
    <section class="stack end" aria-label="Revoke">
      <button
        type="button"
        class="btn danger"
        disabled={isOwn}
        aria-describedby="revoke-note"
        onClick={() => setAsking(true)}
      >
        Revoke…
      </button>
      <p class="muted" id="revoke-note">
        {isOwn
          ? "You are signed in with this certificate. Another administrator can revoke it."
          : `Also rejects its ${counted(open, "open connection")} immediately.`}
      </p>
      {isAsking && (
        <Confirmation
          title={`Revoke ${Name}?`}
          yes={`Revoke ${Name}`}
          no="Cancel"
          close={() => setAsking(false)}
          act={revoke}
        >
          <p>
            Its {counted(open, "open connection")} will be rejected immediately. This cannot be
            undone.{" "}
            {lastUsed === undefined
              ? "It was not used since the server start."
              : `It was last used ${ago(lastUsed, Date.now())}.`}
          </p>
        </Confirmation>
      )}
    </section>
  );
}
