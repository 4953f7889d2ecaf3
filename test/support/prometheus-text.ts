/**
 * Parses Prometheus's text format (version 0.0.4) strictly: anything that a scraper might reject or
 * misread is an error.
 */

interface Family {
  readonly kind: string;
  readonly help: string;
  readonly samples: Sample[];
}

interface Sample {
  readonly name: string;
  readonly labels: Readonly<Record<string, string>>;
  readonly value: number;
}

const name = "[a-zA-Z_:][a-zA-Z0-9_:]*";
const helpLine = new RegExp(`^# HELP (${name}) ((?:[^\\\\\\n]|\\\\[\\\\n])+)$`);
const typeLine = new RegExp(`^# TYPE (${name}) (counter|gauge|histogram|summary|untyped)$`);
const sampleLine = new RegExp(`^(${name})(?:\\{(.*)\\})? (\\S+)$`);
const label = /^([a-zA-Z_][a-zA-Z0-9_]*)="((?:[^"\\\n]|\\["\\n])*)"(,(?=.)|$)/;

/** @throws Error for the first invalid line */
export function parsePrometheus(text: string): Map<string, Family> {
  const families = new Map<string, Family>();
  const seen = new Set<string>();
  let current: { name: string; family: Family } | null = null;
  let help: { name: string; text: string } | null = null;
  const lines = text.split("\n");
  if (lines.pop() !== "") throw new Error("the last line does not end");
  for (const line of lines) {
    const refuse = (why: string): never => {
      throw new Error(`${why}: ${line}`);
    };
    if (line === "") continue;
    if (line.startsWith("# HELP")) {
      const found = helpLine.exec(line) ?? refuse("no help");
      help = { name: found[1] as string, text: found[2] as string };
    } else if (line.startsWith("# TYPE")) {
      const found = typeLine.exec(line) ?? refuse("no type");
      const family = { kind: found[2] as string, help: help?.text ?? "", samples: [] };
      if (help?.name !== found[1]) refuse("a type without its help before it");
      if (families.has(found[1] as string)) refuse("a family that comes twice");
      if (family.kind === "counter" && !/_total$/.test(found[1] as string))
        refuse("a counter's name");
      current = { name: found[1] as string, family };
      families.set(current.name, family);
    } else {
      const found = sampleLine.exec(line) ?? refuse("no sample");
      const of = current ?? refuse("a sample without a type");
      const suffix = (found[1] as string).slice(of.name.length);
      const isHistogram = of.family.kind === "histogram";
      const isOwn = (found[1] as string).startsWith(of.name);
      const suffixes = isHistogram ? ["_bucket", "_sum", "_count"] : [""];
      if (!isOwn || !suffixes.includes(suffix)) refuse(`a sample within ${of.name}`);
      const value = Number(found[3]);
      if (Number.isNaN(value) && found[3] !== "NaN") refuse("no number");
      const labels = labelsOf(found[2] ?? "", refuse);
      const key = `${found[1]} ${JSON.stringify(Object.entries(labels).sort())}`;
      if (seen.has(key)) refuse("a series that comes twice");
      seen.add(key);
      of.family.samples.push({ name: found[1] as string, labels, value });
    }
  }
  for (const [family, { kind, samples }] of families) {
    if (kind === "histogram") checkHistogram(family, samples);
    if (kind === "counter" && samples.some(({ value }) => value < 0)) {
      throw new Error(`${family} is negative`);
    }
  }
  return families;
}

function labelsOf(text: string, refuse: (why: string) => never): Record<string, string> {
  const labels: Record<string, string> = {};
  for (let rest = text; rest !== ""; ) {
    const found = label.exec(rest) ?? refuse("no label");
    const key = found[1] as string;
    if (key in labels) refuse("a label that comes twice");
    labels[key] = (found[2] as string).replace(/\\(.)/g, (_, c: string) => (c === "n" ? "\n" : c));
    rest = rest.slice(found[0].length);
  }
  return labels;
}

/** Buckets increase with their bounds, and the last one, without a bound, contains the total. */
function checkHistogram(family: string, samples: readonly Sample[]): void {
  const series = new Map<string, { le: number; value: number }[]>();
  const keyOf = ({ le: _, ...others }: Sample["labels"]) => JSON.stringify(others);
  for (const { name: own, labels, value } of samples) {
    if (own !== `${family}_bucket`) continue;
    const { le } = labels;
    if (le === undefined) throw new Error(`${family} has a bucket without a bound`);
    const bound = le === "+Inf" ? Number.POSITIVE_INFINITY : Number(le);
    const buckets = series.get(keyOf(labels)) ?? [];
    buckets.push({ le: bound, value });
    series.set(keyOf(labels), buckets);
  }
  for (const [key, buckets] of series) {
    buckets.reduce((one, next) => {
      if (!(one.le < next.le && one.value <= next.value)) {
        throw new Error(`${family} ${key}: buckets are out of order`);
      }
      return next;
    });
    const count = samples.find(
      (one) => one.name === `${family}_count` && keyOf(one.labels) === key,
    );
    const sum = samples.find((one) => one.name === `${family}_sum` && keyOf(one.labels) === key);
    const last = buckets.at(-1);
    if (last?.le !== Number.POSITIVE_INFINITY || last.value !== count?.value || sum === undefined) {
      throw new Error(`${family} ${key}: its count is not that of its last bucket`);
    }
  }
}
