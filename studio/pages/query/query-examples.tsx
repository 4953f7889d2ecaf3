/** An empty query page: examples with names from the database. */
import { useEffect, useState } from "preact/hooks";
import { get } from "../../base/client.ts";
import { Empty } from "../../components/messages.tsx";

interface Names {
  readonly collection: string;
  readonly fields: Readonly<Record<string, string>>;
  readonly index: string | undefined;
}

export function Examples({ base, use }: { base: string; use: (text: string) => void }) {
  const [texts, setTexts] = useState<readonly Example[] | null>(null);
  useEffect(() => {
    let isGone = false;
    namesIn(base).then(
      (names) => {
        if (!isGone) setTexts(names === null ? [] : examplesOf(names));
      },
      () => undefined,
    );
    return () => {
      isGone = true;
    };
  }, [base]);
  return (
    <Empty icon="query" title="Query with RQL">
      <p>
        <kbd>Ctrl Enter</kbd> runs it, <kbd>Ctrl Space</kbd> completes. A name with a dollar sign is
        a parameter.
      </p>
      {texts?.length === 0 && <p>There are no documents to query yet.</p>}
      {texts !== null && (
        <ul class="picks" aria-label="Examples">
          {texts.map(([text, meaning]) => (
            <li key={text}>
              <button type="button" onClick={() => use(text)}>
                <code>{text}</code>
                <small>{meaning}</small>
              </button>
            </li>
          ))}
        </ul>
      )}
    </Empty>
  );
}

/** Returns names of the largest collection, or null. */
async function namesIn(base: string): Promise<Names | null> {
  const { body } = await get<{ Collections: Record<string, number> }>(`${base}/collections/stats`);
  const found = Object.entries(body.Collections).filter(
    ([name, n]) => !name.startsWith("@") && n > 0,
  );
  const collection = found.sort(([, a], [, b]) => b - a)[0]?.[0];
  if (collection === undefined) return null;
  const query = new URLSearchParams({ collection, prefix: "" });
  const [fields, indexes] = await Promise.all([
    get<Record<string, string>>(`${base}/studio/collections/fields?${query}`),
    get<{ Results: readonly string[] }>(`${base}/indexes?namesOnly=true`),
  ]);
  const index = indexes.body.Results.find((name) => !name.startsWith("Auto/"));
  return { collection, fields: fields.body, index };
}

/** A query with its description. */
type Example = readonly [text: string, meaning: string];

function examplesOf({ collection, fields, index }: Names): Example[] {
  const ofType = (type: string) =>
    Object.keys(fields).find((name) => fields[name] === type && /^[A-Za-z]\w*$/.test(name));
  const [text, number] = [ofType("String"), ofType("Number")];
  const from = `from ${collection}`;
  const examples = [
    [from, "All documents of a collection"],
    text && [`${from} where ${text} = $value`, "Documents with a value, given as a parameter"],
    text && [`${from} where search(${text}, $words)`, "Full text: any of the words"],
    number && [`${from} order by ${number} as double desc limit 10`, "The ten largest"],
    text && [
      `${from} group by ${text} order by count() as long desc select ${text}, count() as Count`,
      "Number of documents per value",
    ],
    text &&
      number && [`${from} where ${number} > $least select ${text}, ${number}`, "Two fields only"],
    text && [
      `${from} as one select { Id: id(one), Length: one.${text}.length }`,
      "Computed in JavaScript",
    ],
    index && [`from index '${index}' limit 25`, "By an index"],
  ];
  return examples.filter((one): one is [string, string] => Array.isArray(one)).slice(0, 7);
}
