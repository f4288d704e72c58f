/** The certificate of HTTPS, and the port that redirects to it. */
import { startHttpsRedirect } from '../http/https-redirect.ts';
import type { Acme, AcmeOptions } from '../platform/acme/acme.ts';
import type { AcmeSettings } from '../platform/acme/settings.ts';
import { portOf } from '../platform/own-ports.ts';
import { isServerProcess } from '../platform/server-processes.ts';
import { followOnceUsable } from '../platform/tls/certificate-files.ts';
import type { CertificateSource } from '../platform/tls/certificate.ts';
import { listenOnceFree } from './listen.ts';
import type { Opened } from './open-services.ts';

type Parts = Pick<Opened, 'settings' | 'services' | 'keyring' | 'log' | 'closing'>;

/**
 * The certificate that the API serves; undefined for plain HTTP. `challengesAnswered` resolves after `openRedirect`.
 * @throws CertificateError if files stay unusable
 */
export async function openCertificate(
  parts: Parts,
  challengesAnswered?: Promise<void>,
): Promise<CertificateSource | undefined> {
  const { settings, log, closing } = parts;
  const { files, acme } = settings.tls;
  if (!files && !acme) return undefined;
  const source = files ? await followOnceUsable({ files, log }) : await openAcmeOf(parts, challengesAnswered);
  closing.push(async () => source.stop());
  return source;
}

/** Of the processes of a server, the first one requests certificates. */
async function openAcmeOf(
  { settings, services, keyring, log }: Parts,
  challengesAnswered?: Promise<void>,
): Promise<Acme> {
  const { openAcme } = await import('../platform/acme/acme.ts');
  const { dataDir, tls } = settings;
  const renewal = { renews: !isServerProcess, ...(challengesAnswered && { challengesAnswered }) };
  return openAcme({ settings: tls.acme!, db: services.db, keyring, dataDir, log, ...renewal });
}

/**
 * Opens the certificate from ACME if its domains include the host; null: they do not. The API servers request it; this
 * follows what they store.
 */
export function acmeFollowerFor(
  host: string,
  settings: AcmeSettings | null,
  parts: Pick<AcmeOptions, 'db' | 'keyring' | 'dataDir' | 'log'>,
): (() => Promise<CertificateSource>) | null {
  const isFor = (domain: string) => domain === host || (domain.startsWith('*.') && domain.slice(2) === parentOf(host));
  if (!settings?.domains.some(isFor)) return null;
  return async () => {
    const { openAcme } = await import('../platform/acme/acme.ts');
    return openAcme({ settings, ...parts, renews: false });
  };
}

const parentOf = (host: string): string => host.slice(host.indexOf('.') + 1);

/** Redirects HTTP to the API at `url`, if a port is set for this. Answers the challenges of `source`. */
export async function openRedirect(parts: Parts, url: string, source: CertificateSource | undefined): Promise<void> {
  const { settings, log, closing } = parts;
  const { host, publicUrl, tls } = settings;
  if (tls.redirectPort === 0) return;
  const findChallenge = tls.acme && { findChallenge: (source as Acme).findChallenge };
  const options = { host, publicUrl, httpsPort: portOf(url), log, port: tls.redirectPort, ...findChallenge };
  const place = { host, port: tls.redirectPort, setting: 'CLOUDYARD_HTTP_REDIRECT_PORT' };
  const redirect = await listenOnceFree(place, () => startHttpsRedirect(options));
  closing.push(redirect.stop);
}
