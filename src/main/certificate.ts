/** The certificate of HTTPS, and the port that redirects to it. */
import { startHttpsRedirect } from '../http/https-redirect.ts';
import type { Logger } from '../platform/log.ts';
import { followCertificateFiles } from '../platform/tls/certificate-files.ts';
import type { CertificateSource } from '../platform/tls/certificate.ts';
import type { Settings } from './settings.ts';
import type { ShutdownSteps } from './shutdown.ts';

interface Parts {
  settings: Settings;
  log: Logger;
  closing: ShutdownSteps;
}

/** The certificate that the API serves; undefined for plain HTTP. @throws CertificateError if it cannot be used */
export function openCertificate({ settings: { tls }, log, closing }: Parts): CertificateSource | undefined {
  if (!tls.files) return undefined;
  const source = followCertificateFiles({ files: tls.files, log });
  closing.push(async () => source.stop());
  return source;
}

/** Redirects HTTP to the API at `url`, if a port is set for this. */
export async function openRedirect({ settings, log, closing }: Parts, url: string): Promise<void> {
  const { host, publicUrl, tls } = settings;
  if (tls.redirectPort === 0) return;
  const httpsPort = Number(new URL(url).port) || 443;
  const redirect = await startHttpsRedirect({ ...{ host, publicUrl, httpsPort, log }, port: tls.redirectPort });
  closing.push(redirect.stop);
}
