/** The settings of HTTPS. */
import { readAcmeSettings } from '../acme/settings.ts';
import type { CoreSettingName } from '../setting-meanings.ts';
import type { SettingReader } from '../setting-reader.ts';
import type { CertificateFiles } from './certificate-files.ts';

/** Errors are rejected through the reader, which throws them together. */
export function readTlsSettings(reader: SettingReader<CoreSettingName>) {
  const { integer, reject } = reader;
  const files = certificateFilesIn(reader, 'CLOUDYARD_TLS_CERTIFICATE', 'CLOUDYARD_TLS_KEY');
  const redirectPort = integer('CLOUDYARD_HTTP_REDIRECT_PORT', 0, 0, 65535);
  const hstsSeconds = integer('CLOUDYARD_HSTS_SECONDS', 0, 0, 2 * 365 * 86_400);
  const acme = readAcmeSettings(reader);
  if (files && acme) reject('CLOUDYARD_TLS_CERTIFICATE conflicts with CLOUDYARD_ACME_DOMAINS; set only one');
  if (!files && !acme && redirectPort > 0) {
    reject('CLOUDYARD_HTTP_REDIRECT_PORT requires CLOUDYARD_TLS_CERTIFICATE or CLOUDYARD_ACME_DOMAINS');
  }
  if (acme?.challenge === 'http-01' && redirectPort === 0) {
    reject(
      'CLOUDYARD_ACME_CHALLENGE=http-01 requires CLOUDYARD_HTTP_REDIRECT_PORT, which serves port 80 of the domains',
    );
  }
  return {
    /** Files of the certificate; null: plain HTTP, unless ACME supplies one. */
    files,
    /** Where the certificate comes from; null: from files, or plain HTTP. */
    acme,
    /** A port that redirects HTTP to HTTPS; 0: none. */
    redirectPort,
    /** `max-age` of Strict-Transport-Security; 0: the header is not sent. */
    hstsSeconds,
  };
}

/** The files that two settings name; null if neither is set. */
export function certificateFilesIn<Name extends string>(
  { path, reject }: SettingReader<Name>,
  certificateName: Name,
  keyName: Name,
): CertificateFiles | null {
  const [certificate, key] = [path(certificateName), path(keyName)];
  if (certificate && key) return { certificate, key };
  if (certificate || key) reject(`${certificateName} and ${keyName} must be set together`);
  return null;
}
