/** One certificate beside the list: what it may do, who uses it; renewed, changed or revoked. */

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
  // Nobody gives or takes more than he has.
  const isAbove = SecurityClearance.startsWith("Cluster") && !may("cluster-admin");
  const used = use?.Results.find(({ Thumbprint }) => Thumbprint === certificate.Thumbprint);
  return (
    <Drawer title={Name} label={`Certificate ${Name}`} close={close}>
      <Ending certificate={certificate} isOwn={isOwn} />
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
                ? `not since the server was started, ${ago(use.Since, Date.now())}`
                : ago(used.LastUsed, Date.now())}
            </dd>
            <dt>Connections</dt>
            <dd>{used === undefined ? "none open" : `${used.OpenConnections} open`}</dd>
          </>
        )}
      </dl>
      {isServer ? (
        <p class="soft">The server shows it to everybody who connects. It is not changed here.</p>
      ) : isAbove ? (
        <p class="soft">Cluster administrators change it.</p>
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

function Ending({ certificate, isOwn }: { certificate: Certificate; isOwn: boolean }) {
  const { state, atMs } = expiryOf(certificate, Date.now());
  if (state === "good") return null;
  const whose = isOwn ? "Yours " : "";
  return (
    <div class={state === "over" ? "note bad" : "note warn"}>
      <Icon name={state === "over" ? "bad" : "warn"} />
      <span>
        {state === "over"
          ? `${whose}ended ${ago(atMs, Date.now())}: nobody gets in with it.`
          : `${whose}ends ${until(atMs, Date.now())}. A renewed one has the same rights; revoke this one when nobody uses it any more.`}
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
    <section class="stack" aria-label="What it may do">
      <h3>What it may do</h3>
      <TermsFields
        terms={terms}
        change={(next) => {
          setTerms(next);
          setSaved(false);
        }}
      />
      {isOwn && (
        <p class="soft">
          This is the certificate you are signed in with: it cannot lower its own clearance.
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
          Save the rights
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
          ? "This is the certificate you are signed in with. Another administrator can revoke it."
          : `Ends its ${counted(open, "open connection")} at once.`}
      </p>
      {isAsking && (
        <Confirmation
          title={`Revoke ${Name}?`}
          yes={`Revoke ${Name}`}
          no="Keep it"
          close={() => setAsking(false)}
          act={revoke}
        >
          <p>
            Its {counted(open, "open connection")} can do nothing from now on, and it cannot come
            back.{" "}
            {lastUsed === undefined
              ? "It was not used since the server was started."
              : `It was used ${ago(lastUsed, Date.now())}.`}
          </p>
        </Confirmation>
      )}
    </section>
  );
}
