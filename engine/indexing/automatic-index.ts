/** An automatic index: the fields that queries needed, over one collection. */

import type { FollowedCollection } from "./collection-follower.ts";
import { type IndexDefinition, indexType } from "./definitions/index-definition.ts";
import type { IndexHost } from "./index-host.ts";
import { FieldMapper, MapIndex } from "./map-index.ts";
import { type CollectionProgress, type IndexType, OpenIndex } from "./open-index.ts";
import { GroupIndex } from "./reduce/group-index.ts";
import { type Analyzer, lowerKeywordAnalyzer } from "./text/analyzer.ts";

export class AutomaticIndex extends OpenIndex {
  readonly definition: IndexDefinition;
  override readonly wordsOnly: ReadonlySet<string>;
  index: MapIndex | GroupIndex;
  readonly isStatic = false;
  readonly stored = null;
  readonly invalidity = null;
  /** The index that replaces this one; it covers its fields, or will. */
  successor: AutomaticIndex | null = null;

  constructor(name: string, definition: IndexDefinition, host: IndexHost) {
    super(name, host);
    this.definition = definition;
    const isWordsOnly = definition.fields.filter((field) => field.isWordsOnly === true);
    this.wordsOnly = new Set(isWordsOnly.map(({ name }) => name));
    this.index = this.blank();
  }

  blank(): MapIndex | GroupIndex {
    const { definition, host } = this;
    return definition.groupBy !== null
      ? new GroupIndex(definition, host)
      : new MapIndex(definition.collection, new FieldMapper(definition, host), host);
  }

  /** Everything that determines the contents of its entries. */
  get fingerprint(): string {
    return JSON.stringify(this.definition);
  }

  get type(): IndexType {
    return indexType(this.definition);
  }

  get isNew(): boolean {
    return !this.hasCaughtUp;
  }

  isKnownField(): boolean {
    return true;
  }

  suggestionAnalyzer(name: string): Analyzer | null | undefined {
    const field = this.definition.fields.find((one) => one.name === name);
    if (field === undefined) return undefined;
    return field.hasSuggest ? lowerKeywordAnalyzer : null;
  }

  protected progress(): readonly CollectionProgress[] {
    const { collection } = this.definition;
    const [source] = this.index.sources as [FollowedCollection];
    return [
      {
        name: collection,
        lastDocumentEtag: source.documentEtag,
        lastDeletionEtag: source.deletionEtag,
        documentLag: this.host.countSince(source.collection, source.documentEtag),
      },
    ];
  }
}
