/** Certificates for tests, made with openssl. */
import { execFileSync } from 'node:child_process';
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { basename, join } from 'node:path';

export interface TestPem {
  certificate: string;
  key: string;
}

/** A self-signed certificate of localhost and 127.0.0.1. `endsAt`: default in 30 days. */
export function testCertificate({ endsAt = new Date(Date.now() + 30 * 86_400_000) } = {}): TestPem {
  const folder = mkdtempSync(join(tmpdir(), 'cloudyard-certificate-'));
  const path = (name: string) => join(folder, name);
  const openssl = (...args: string[]) => execFileSync('openssl', args, { cwd: folder, stdio: 'pipe' });
  try {
    const names = 'subjectAltName=DNS:localhost,IP:127.0.0.1';
    openssl(
      ...['req', '-new', '-newkey', 'ec', '-pkeyopt', 'ec_paramgen_curve:P-256', '-nodes'],
      ...['-subj', `/CN=${basename(folder)}`, '-addext', names, '-keyout', 'key.pem', '-out', 'request.pem'],
    );
    writeFileSync(path('index.txt'), '');
    writeFileSync(path('serial'), '01\n');
    writeFileSync(
      path('ca.cnf'),
      '[ca]\ndefault_ca=own\n[own]\ndatabase=index.txt\nserial=serial\nnew_certs_dir=.\ndefault_md=sha256\n' +
        'policy=any\ncopy_extensions=copy\n[any]\ncommonName=supplied\n',
    );
    const startsAt = new Date(Math.min(Date.now(), endsAt.getTime()) - 86_400_000);
    openssl(
      ...['ca', '-batch', '-selfsign', '-config', 'ca.cnf', '-keyfile', 'key.pem', '-in', 'request.pem'],
      ...['-startdate', instant(startsAt), '-enddate', instant(endsAt), '-notext', '-out', 'certificate.pem'],
    );
    return { certificate: readFileSync(path('certificate.pem'), 'utf8'), key: readFileSync(path('key.pem'), 'utf8') };
  } finally {
    rmSync(folder, { recursive: true });
  }
}

/** `YYYYMMDDHHMMSSZ`. */
function instant(date: Date): string {
  return `${date.toISOString().replace(/\D/g, '').slice(0, 14)}Z`;
}
