/** Certificates and their access, for operators. */

import { useState } from "preact/hooks";
import {
  type Certificate,
  type CertificateUse,
  clearanceTexts,
  expiryOf,
  rightsText,
  shortThumbprint,
} from "../base/certificates.ts";
import { ago, counted, moment, until } from "../base/format.ts";
import { identity, may } from "../base/identity.ts";
import { useResource } from "../base/resource.ts";
import { address, setQuery } from "../base/router.ts";
import { AccessDenied } from "../components/access-denied.tsx";
import { Icon } from "../components/icon.tsx";
import { Empty, Failure, Skeleton } from "../components/messages.tsx";
import { Table } from "../components/table.tsx";
import { usePage } from "../shell/page.ts";
import { CertificateDrawer } from "./certificate-drawer.tsx";
import { NewCertificate } from "./certificate-form.tsx";

const pollMs = 30_000;

export function CertificatesPage() {
  usePage("certificates", [{ text: "Certificates" }]);
  const mayAsk = may("operator");
  const list = useResource<{ Results: Certificate[] }>(
    mayAsk ? "/admin/certificates?metadataOnly=true" : null,
    pollMs,
  );
  const use = useResource<CertificateUse>(mayAsk ? "/admin/certificates/usage" : null, pollMs);
  const mine = useResource<{ Thumbprint?: string } | null>("/certificates/whoami");
  const [isMaking, setMaking] = useState(false);
  const all = list.body?.Results ?? [];
  const wanted = address.value.query.get("select");
  const chosen = all.find(({ Thumbprint }) => Thumbprint === wanted);
  const nowMs = Date.now();
  const ending = all.filter((one) => expiryOf(one, nowMs).state !== "good").length;
  const own = mine.body?.Thumbprint;
  const reload = () => {
    list.reload();
    use.reload();
  };
  return (
    <div class="beside">
      <div class="page">
        <div class="head">
          <h1>Certificates</h1>
          <span class="muted cut">
            {list.body === undefined ? "" : counted(all.length, "certificate")}
            {ending > 0 && `, ${ending} ${ending === 1 ? "expires" : "expire"} soon or expired`}
          </span>
          <span class="grow" />
          {mayAsk && (
            <button type="button" class="btn primary" onClick={() => setMaking(true)}>
              <Icon name="plus" />
              New certificate
            </button>
          )}
        </div>
        {identity.value !== null && !mayAsk && (
          <AccessDenied title="Certificates require operator access" />
        )}
        {list.error !== undefined && <Failure error={list.error} retry={list.reload} />}
        {list.isLoading && <Skeleton rows={5} />}
        {list.body !== undefined && all.length === 0 && <Unsecured />}
        {all.length > 0 && <CertificateTable all={all} own={own} chosen={chosen} nowMs={nowMs} />}
        {all.length > 0 && (
          <p class="muted">
            Only certificates in this list are accepted. Revoking a certificate aborts its open
            requests immediately.
          </p>
        )}
      </div>
      {chosen !== undefined && (
        <CertificateDrawer
          key={chosen.Thumbprint}
          certificate={chosen}
          isOwn={chosen.Thumbprint === own}
          use={use.body}
          changed={reload}
          close={() => setQuery({ select: undefined })}
        />
      )}
      {isMaking && (
        <NewCertificate
          title="New certificate"
          terms={{ Name: "", SecurityClearance: "ValidUser", Permissions: {} }}
          changed={reload}
          close={() => setMaking(false)}
        />
      )}
    </div>
  );
}

function CertificateTable({
  all,
  own,
  chosen,
  nowMs,
}: {
  all: readonly Certificate[];
  own: string | undefined;
  chosen: Certificate | undefined;
  nowMs: number;
}) {
  return (
    <div class="panel scroll">
      <Table
        kind="lines"
        label="Certificates"
        columns={["Name", "Clearance", "Databases", "Expires", "Thumbprint"]}
      >
        {all.map((one) => (
          <tr key={one.Thumbprint} aria-selected={one === chosen}>
            <td class="l1">
              <button
                type="button"
                class="link"
                onClick={() => setQuery({ select: one.Thumbprint })}
              >
                {one.Name}
              </button>{" "}
              {one.Thumbprint === own && <span class="chip">You</span>}
            </td>
            <td class="l3">{clearanceTexts[one.SecurityClearance] ?? one.SecurityClearance}</td>
            <td class="l0 soft">{one.Usage === "RavenServer" ? "–" : rightsText(one)}</td>
            <td class="l2">
              <Ends certificate={one} nowMs={nowMs} />
            </td>
            <td class="l0 mono" title={one.Thumbprint}>
              {shortThumbprint(one.Thumbprint)}
            </td>
          </tr>
        ))}
      </Table>
    </div>
  );
}

function Ends({ certificate, nowMs }: { certificate: Certificate; nowMs: number }) {
  const { state, atMs } = expiryOf(certificate, nowMs);
  if (certificate.Disabled)
    return (
      <span class="state muted">
        <Icon name="pause" />
        Disabled
      </span>
    );
  if (state === "over")
    return (
      <span class="state bad" title={moment(atMs)}>
        <Icon name="bad" />
        {ago(atMs, nowMs)}
      </span>
    );
  if (state === "soon")
    return (
      <span class="state warn" title={moment(atMs)}>
        <Icon name="warn" />
        {until(atMs, nowMs)}
      </span>
    );
  return <span title={moment(atMs)}>{until(atMs, nowMs)}</span>;
}

function Unsecured() {
  return (
    <Empty icon="cert" title="This server requires no certificates">
      <p>
        Anyone who can reach it has full access. Start it with an address that begins with https://,
        and it generates certificates for itself and for you.
      </p>
    </Empty>
  );
}
