/** Related data of a document: revisions, attachments, counters, time series, and related documents. */
import { useEffect, useMemo, useState } from "preact/hooks";
import { get } from "../../base/client.ts";
import { address, setQuery } from "../../base/router.ts";
import { panel, Tabs } from "../../components/tabs.tsx";
import { useLetters } from "../../shell/keys.ts";
import { Attachments, attachmentsOf } from "./attachments.tsx";
import { Counters } from "./counters.tsx";
import { Related, referencesIn } from "./related.tsx";
import { Revisions } from "./revisions.tsx";
import { Series } from "./series.tsx";
import type { Version } from "./version.ts";

interface Properties {
  readonly database: string;
  readonly base: string;
  readonly id: string;
  readonly version: Version;
  /** Text of the editor. */
  readonly text: string;
  readonly hasChanges: boolean;
  reread(): void;
}

const sides = ["revisions", "attachments", "counters", "series", "related"] as const;
type SideName = (typeof sides)[number];

function isSide(name: string | null): name is SideName {
  return (sides as readonly (string | null)[]).includes(name);
}

export function Side({ database, base, id, version, text, hasChanges, reread }: Properties) {
  const asked = address.value.query.get("side");
  const chosen = isSide(asked) ? asked : "revisions";
  const [revisions, setRevisions] = useState<number>();
  const [counters, setCounters] = useState<number>();
  const listed = (name: string) => {
    const names = version.wholeMetadata.get(name);
    return Array.isArray(names) ? names.length : 0;
  };
  useEffect(() => {
    const abort = new AbortController();
    get<{ RevisionsCount: number }>(
      `${base}/revisions/count?id=${encodeURIComponent(id)}`,
      abort.signal,
    ).then(
      ({ body }) => setRevisions(body.RevisionsCount),
      // The tab shows no count.
      () => undefined,
    );
    return () => abort.abort();
  }, [base, id, version.changeVector]);
  const choose = (key: SideName) =>
    setQuery({ side: key === "revisions" ? undefined : key, rev: undefined, with: undefined });
  useLetters((key) => {
    const side = sides[Number(key) - 1];
    if (side !== undefined) choose(side);
    return side !== undefined;
  });
  const references = useMemo(() => referencesIn(version.content, id).length, [version, id]);
  const [referring, setReferring] = useState<number>();
  useEffect(() => setReferring(undefined), [id]);
  const tabs = [
    { key: "revisions", text: "Revisions", count: revisions },
    { key: "attachments", text: "Attachments", count: attachmentsOf(version).length },
    { key: "counters", text: "Counters", count: counters ?? listed("@counters") },
    { key: "series", text: "Time series", count: listed("@timeseries") },
    {
      key: "related",
      text: "Related",
      count: referring === undefined ? undefined : references + referring,
    },
  ] as const;
  return (
    <div class="pane">
      <Tabs label="Related data" name="side" tabs={tabs} chosen={chosen} choose={choose} />
      <div class="pane grow" {...panel("side", chosen)}>
        {chosen === "revisions" && (
          <Revisions
            base={base}
            id={id}
            version={version}
            text={text}
            hasChanges={hasChanges}
            restored={reread}
            counted={setRevisions}
          />
        )}
        {chosen === "attachments" && (
          <Attachments base={base} id={id} version={version} reread={reread} />
        )}
        {chosen === "counters" && (
          <Counters database={database} base={base} id={id} counted={setCounters} />
        )}
        {chosen === "series" && <Series database={database} base={base} id={id} />}
        {chosen === "related" && (
          <Related
            database={database}
            base={base}
            id={id}
            content={version.content}
            counted={setReferring}
          />
        )}
      </div>
    </div>
  );
}
