/**
 * The SBOM of the package, in CycloneDX: npm's list of installed packages, reduced to those named in the licences of
 * the bundle. Pure: the same input gives the same text.
 */

interface Component {
  readonly "bom-ref": string;
  readonly name: string;
  readonly version: string;
  readonly licenses?: readonly unknown[];
  readonly [member: string]: unknown;
}
interface Dependency {
  readonly ref: string;
  readonly dependsOn?: readonly string[];
}
/** Output of `npm sbom --sbom-format cyclonedx`. */
export interface Sbom {
  readonly metadata: { readonly component: Component; readonly [member: string]: unknown };
  readonly components: readonly Component[];
  readonly dependencies: readonly Dependency[];
  readonly [member: string]: unknown;
}

/** Returns `name@version` of each package in the text of dist/bundle/LICENSES.txt. */
export function bundledPackages(licences: string): string[] {
  const heads = licences.matchAll(/^((?:@[\w.-]+\/)?[\w.-]+) (\d+\.\d+\.\d+\S*) \(.+\)$/gm);
  return [...new Set([...heads].map(([, name, version]) => `${name}@${version}`))].sort();
}

/**
 * Reduces `all` to the packages in `bundled`.
 * @param identity name and version of the package @param time time of the release, ISO 8601
 * @throws Error when a bundled package is not in `all`, or has no licence there
 */
export function sbomOf(
  all: Sbom,
  bundled: readonly string[],
  identity: { readonly name: string; readonly version: string },
  time: string,
): Sbom {
  const own = `${identity.name}@${identity.version}`;
  const components = bundled.map((wanted) => {
    const found = all.components.find(({ name, version }) => `${name}@${version}` === wanted);
    if (found === undefined) throw new Error(`${wanted} is bundled but not installed`);
    if (!found.licenses?.length) throw new Error(`${wanted} has no licence`);
    // npm marks them as development dependencies, which applies to the repository but not to the package.
    return { ...found, scope: "required", properties: [] };
  });
  const refs = new Set(components.map((component) => component["bom-ref"]));
  const kept = (refsOf: readonly string[] = []) => refsOf.filter((ref) => refs.has(ref));
  const { serialNumber: _random, ...stable } = all;
  return {
    ...stable,
    metadata: {
      ...all.metadata,
      timestamp: time,
      component: { ...all.metadata.component, ...identity, "bom-ref": own },
    },
    components,
    dependencies: [
      { ref: own, dependsOn: [...refs] },
      ...all.dependencies
        .filter(({ ref }) => refs.has(ref))
        .map(({ ref, dependsOn }) => ({ ref, dependsOn: kept(dependsOn) })),
    ],
  };
}
