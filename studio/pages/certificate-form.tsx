/** Form for the access of a certificate, and for a new certificate, whose key is downloaded once. */

import { useState } from "preact/hooks";
import {
  accesses,
  accessTexts,
  type CertificateTerms,
  type Clearance,
  clearances,
  clearanceTexts,
  type DatabaseRight,
  newCertificate,
  type Rights,
} from "../base/certificates.ts";
import { saveDownload } from "../base/download.ts";
import { may } from "../base/identity.ts";
import { useResource } from "../base/resource.ts";
import { Dialog, FormEnd } from "../components/dialog.tsx";
import { Icon } from "../components/icon.tsx";
import { serverOrigin } from "../shell/server.ts";

const validityOptions = [
  { months: 3, text: "3 months" },
  { months: 12, text: "1 year" },
  { months: 36, text: "3 years" },
  { months: 60, text: "5 years" },
] as const;

export function NewCertificate({
  title,
  terms: given,
  changed,
  close,
}: {
  title: string;
  terms: CertificateTerms;
  changed: () => void;
  close: () => void;
}) {
  const [terms, setTerms] = useState(given);
  const [months, setMonths] = useState(12);
  const [password, setPassword] = useState("");
  const [file, setFile] = useState<string | null>(null);
  const [isBusy, setBusy] = useState(false);
  const [error, setError] = useState<Error | null>(null);
  const make = async () => {
    setBusy(true);
    setError(null);
    try {
      const name = await saveDownload({
        method: "POST",
        path: "/admin/certificates",
        json: newCertificate(terms, months, password),
        name: `${terms.Name}.zip`,
        signal: new AbortController().signal,
        received: () => undefined,
      });
      setFile(name);
      changed();
    } catch (failed) {
      setError(failed as Error);
    } finally {
      setBusy(false);
    }
  };
  if (file !== null) return <CreatedCertificate file={file} name={terms.Name} close={close} />;
  return (
    <Dialog title={title} close={close}>
      <form
        class="stack"
        onSubmit={(event) => {
          event.preventDefault();
          if (terms.Name !== "" && !isBusy) void make();
        }}
      >
        <TermsFields terms={terms} change={setTerms} />
        <div class="two-fields">
          <label class="form">
            Valid for
            <select
              class="field"
              value={months}
              onChange={(event) => setMonths(Number(event.currentTarget.value))}
            >
              {validityOptions.map((one) => (
                <option key={one.months} value={one.months}>
                  {one.text}
                </option>
              ))}
            </select>
          </label>
          <label class="form">
            Password of the .pfx file
            <div class="field">
              <input
                type="password"
                autocomplete="new-password"
                placeholder="none"
                value={password}
                onInput={(event) => setPassword(event.currentTarget.value)}
              />
            </div>
          </label>
        </div>
        <p class="soft">
          The download contains the certificate and its key. The server does not store the key.
        </p>
        <FormEnd error={error} close={close} isReady={terms.Name !== "" && !isBusy}>
          {isBusy ? "Creating" : "Create and download"}
        </FormEnd>
      </form>
    </Dialog>
  );
}

/** Describes the downloaded file and how to use it. */
function CreatedCertificate({
  file,
  name,
  close,
}: {
  file: string;
  name: string;
  close: () => void;
}) {
  return (
    <Dialog title={`${name} is created`} close={close}>
      <div class="note" role="status">
        <Icon name="check" />
        <span>
          <b>{file}</b> was downloaded. It contains the only copy of the key.
        </span>
      </div>
      <p class="soft">
        It contains <code>.pfx</code> for browsers and for RavenDB's clients, and <code>.crt</code>{" "}
        with <code>.key</code> for other clients. With curl:
      </p>
      <pre class="panel body scroll">
        curl --cacert ca.crt --cert {shellQuoted(`${name.replaceAll(":", "\\:")}.crt`)} --key{" "}
        {shellQuoted(`${name}.key`)} {serverOrigin()}/databases
      </pre>
      <p class="soft">
        Omit <code>--cacert</code> if the download has no <code>ca.crt</code>: the server then uses
        a certificate of your own issuer.
      </p>
      <footer class="row">
        <span class="grow" />
        <button type="button" class="btn primary" onClick={close}>
          Done
        </button>
      </footer>
    </Dialog>
  );
}

/** Returns a text as one word of a POSIX shell. */
function shellQuoted(text: string): string {
  return /^[\w.@+-]+$/.test(text) ? text : `'${text.replaceAll("'", "'\\''")}'`;
}

/** Fields for name, clearance and access. */
export function TermsFields({
  terms,
  change,
}: {
  terms: CertificateTerms;
  change: (terms: CertificateTerms) => void;
}) {
  const { Name, SecurityClearance, Permissions } = terms;
  return (
    <>
      <label class="form">
        Name
        <div class="field">
          <input
            value={Name}
            placeholder="shop-api"
            onInput={(event) => change({ ...terms, Name: event.currentTarget.value })}
          />
        </div>
      </label>
      <label class="form">
        May
        <select
          class="field"
          value={SecurityClearance}
          onChange={(event) =>
            change({ ...terms, SecurityClearance: event.currentTarget.value as Clearance })
          }
        >
          {(may("cluster-admin") ? clearances : clearances.slice(1)).map((one) => (
            <option key={one} value={one}>
              {mayTexts[one]}
            </option>
          ))}
          {(!clearances.some((one) => one === SecurityClearance) ||
            (SecurityClearance === clearances[0] && !may("cluster-admin"))) && (
            <option value={SecurityClearance}>
              {clearanceTexts[SecurityClearance] ?? SecurityClearance}
            </option>
          )}
        </select>
      </label>
      {SecurityClearance === "ValidUser" && (
        <RightsGrid
          rights={Permissions}
          change={(next) => change({ ...terms, Permissions: next })}
        />
      )}
    </>
  );
}

const mayTexts: Readonly<Record<Clearance, string>> = {
  ClusterAdmin: "full access (cluster admin)",
  Operator: "full access except to admins (operator)",
  ValidUser: "selected databases",
};

/** Access levels by database. */
function RightsGrid({ rights, change }: { rights: Rights; change: (rights: Rights) => void }) {
  const known = useResource<{ Databases: readonly string[] }>("/databases?namesOnly=true");
  const given = Object.keys(rights);
  const others = (known.body?.Databases ?? []).filter((name) => !given.includes(name));
  const set = (name: string, access: DatabaseRight | null) => {
    const { [name]: _before, ...rest } = rights;
    change(access === null ? rest : { ...rights, [name]: access });
  };
  return (
    <fieldset class="plain stack">
      <legend class="hidden-label">Access</legend>
      {given.length > 0 && (
        <div class="grid-rights">
          <span class="muted">Database</span>
          {accesses.map((one) => (
            <span key={one} class="muted">
              {one === "ReadWrite" ? "Write" : one}
            </span>
          ))}
          <span />
          {given.map((name) => (
            <RightsRow key={name} name={name} access={rights[name]} set={set} />
          ))}
        </div>
      )}
      {given.length === 0 && (
        <div class="note warn" role="status">
          <Icon name="warn" />
          <span>Without a database, this certificate can read and write nothing.</span>
        </div>
      )}
      {others.length > 0 && (
        <select
          class="field"
          aria-label="Add a database"
          value=""
          onChange={(event) => set(event.currentTarget.value, "ReadWrite")}
        >
          <option value="">Add a database…</option>
          {others.map((name) => (
            <option key={name} value={name}>
              {name}
            </option>
          ))}
        </select>
      )}
    </fieldset>
  );
}

function RightsRow({
  name,
  access,
  set,
}: {
  name: string;
  access: DatabaseRight | undefined;
  set: (name: string, access: DatabaseRight | null) => void;
}) {
  return (
    <>
      <span class="cut">{name}</span>
      {accesses.map((one) => (
        <input
          key={one}
          type="radio"
          name={`right-${name}`}
          aria-label={`${name}, ${accessTexts[one]}`}
          checked={access === one}
          onChange={() => set(name, one)}
        />
      ))}
      <button
        type="button"
        class="btn quiet icon"
        aria-label={`Remove ${name}`}
        onClick={() => set(name, null)}
      >
        <Icon name="x" />
      </button>
    </>
  );
}
