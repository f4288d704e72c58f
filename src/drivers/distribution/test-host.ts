/** A host of registries for tests, with its own data directory and port. Its token server does not exist. */
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { onTestFinished } from 'vitest';
import { silentLogger } from '../../platform/log.ts';
import { runtimeFolder } from '../confined.ts';
import { freePort } from '../../../test/free-port.ts';
import type { RegistryHosting } from '../registry.ts';
import { findDistribution } from './detect.ts';
import { createDistributionDriver, type DistributionDriverOptions } from './driver.ts';
import { type Layout, layoutOf, makeFolders } from './layout.ts';
import { testStorage } from './test-storage.ts';

/** Any certificate: these tests send no valid token. */
const certificate = `-----BEGIN CERTIFICATE-----
MIIBdjCCARugAwIBAgIUOkxrO1FvTaY/DOeF/teEaS/Xg4IwCgYIKoZIzj0EAwIw
DzENMAsGA1UEAwwEdGVzdDAgFw0yNjExMjAxNTA5NTFaGA8yMTI2MTAyNzE1MDk1
MVowDzENMAsGA1UEAwwEdGVzdDBZMBMGByqGSM49AgEGCCqGSM49AwEHA0IABJer
hBuD3nuCxFfonpCojCn43Xx6AuS+40uJ6G+YharOZrcm33YEW3tHkCOls9zHBzwK
uOX0UcjdyLrzooQlkdejUzBRMB0GA1UdDgQWBBSqM3NV1nN9lzFxBdeCs8JnnE2W
AjAfBgNVHSMEGDAWgBSqM3NV1nN9lzFxBdeCs8JnnE2WAjAPBgNVHRMBAf8EBTAD
AQH/MAoGCCqGSM49BAMCA0kAMEYCIQCOMMg5JUaBbBocWMp7/+Cod8tnitDY4HlZ
XmSyaWZWnAIhAIF8qvZ4a9d0SefHMKUIPd/3fDa0kEdkpRFQVuJDPtR2
-----END CERTIFICATE-----
`;

export const testHosting: RegistryHosting = {
  realm: 'http://127.0.0.1:9/token',
  service: 'test',
  issuer: 'test',
  certificate,
  httpSecret: 'test',
  events: { url: 'http://127.0.0.1:9/events', secret: 'test' },
};

export async function registryTestHost() {
  const dataDir = await mkdtemp(join(tmpdir(), 'cloudyard-registries-'));
  const port = await freePort();
  const host = '127.0.0.1';
  const given = { dataDir, host, port, address: `${host}:${port}`, openCertificate: null, patience: 60 };
  const common = { ...given, diskReserve: 5, log: silentLogger };
  const layout = layoutOf(dataDir);
  return {
    dataDir,
    port,
    layout,
    storage: testStorage(layout),
    driver: (options: Partial<DistributionDriverOptions> = {}) =>
      createDistributionDriver({ ...common, finding: findDistribution(), ...options }),
    cleanUp: () => removeDataDir(dataDir),
  };
}

/** The folders of the driver in a new data directory, which is removed when the test has ended. */
export async function newFolders(): Promise<Layout> {
  const dataDir = await mkdtemp(join(tmpdir(), 'cloudyard-registries-'));
  onTestFinished(() => removeDataDir(dataDir));
  const layout = layoutOf(dataDir);
  await makeFolders(layout);
  return layout;
}

/** Removes what `makeFolders` has made, too, which is outside the data directory. */
async function removeDataDir(dataDir: string): Promise<void> {
  for (const each of [dataDir, runtimeFolder(layoutOf(dataDir).root)]) await rm(each, { recursive: true, force: true });
}
