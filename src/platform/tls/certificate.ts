/** Certificates of servers: parsing and checking PEM files. */
import { createPrivateKey, X509Certificate } from 'node:crypto';
import { createSecureContext } from 'node:tls';

export interface Certificate {
  /** PEM: the certificate, then its issuers. */
  certificate: string;
  /** PEM. */
  key: string;
  /** DNS names and addresses. */
  names: string[];
  notBefore: Date;
  expiresAt: Date;
}

/** A certificate that cannot be used. The message says why, and never contains the key. */
export class CertificateError extends Error {}

/** What serves TLS connections, and follows a source that replaces it. */
export interface CertificateSource {
  /** Null until there is a first certificate; handshakes fail until then. */
  current(): Certificate | null;
  /** Why the source needs attention; null if it does not. */
  problem(): string | null;
  /** Calls `use` with every later certificate. */
  onChange(use: (certificate: Certificate) => void): void;
  stop(): void | Promise<void>;
}

/** What `/healthz` and the metrics show of a source. */
export interface CertificateStatus {
  healthy: boolean;
  detail: string;
  expiresAt: Date | null;
}

/** Unhealthy without a certificate, with an expired one, and while its source has a problem. */
export function statusOf(source: Pick<CertificateSource, 'current' | 'problem'>, now: Date): CertificateStatus {
  const certificate = source.current();
  const expired = certificate && expiredBy(certificate, now);
  const problem = source.problem() ?? expired;
  const { names = [], expiresAt = null } = certificate ?? {};
  return { healthy: certificate !== null && problem === null, detail: problem ?? names.join(', '), expiresAt };
}

/** Parses a certificate and its key. @throws CertificateError if TLS cannot use them */
export function parseCertificate(pem: { certificate: string; key: string }): Certificate {
  const certificate = parsed('the certificate is not a PEM certificate', () => new X509Certificate(pem.certificate));
  const key = parsed('the key is not an unencrypted PEM private key', () => createPrivateKey(pem.key));
  if (!certificate.checkPrivateKey(key)) throw new CertificateError('the key does not belong to the certificate');
  const refusal = refusalOfOpenSsl(pem.certificate, pem.key);
  if (refusal !== null) throw new CertificateError(refusal);
  return {
    ...pem,
    names: namesOf(certificate),
    notBefore: new Date(certificate.validFrom),
    expiresAt: new Date(certificate.validTo),
  };
}

/** Why OpenSSL cannot load a certificate with its issuers and its key, for instance a key that is too short; null if it can. */
export function refusalOfOpenSsl(cert: string, key: string): string | null {
  try {
    createSecureContext({ cert, key, ca: [] });
    return null;
  } catch (error) {
    return `OpenSSL refuses it: ${(error as { reason?: string }).reason ?? 'it cannot be loaded'}`;
  }
}

/** Why a certificate is expired at this time; null if it is not. */
export function expiredBy({ expiresAt }: Certificate, now: Date): string | null {
  return expiresAt <= now ? `the certificate expired at ${expiresAt.toISOString()}` : null;
}

function parsed<T>(message: string, parse: () => T): T {
  try {
    return parse();
  } catch (cause) {
    throw new CertificateError(message, { cause });
  }
}

function namesOf({ subjectAltName = '' }: X509Certificate): string[] {
  return subjectAltName.split(', ').flatMap((name) => /^(?:DNS|IP Address):(.+)$/.exec(name)?.[1] ?? []);
}
