/**
 * A certificate in two PEM files, read again when they change.
 *
 * Invariant: a certificate that cannot be used never replaces one that can. Between the writes of the two files they do not
 * match; this is not reported unless it lasts.
 *
 * The files are polled: ACME clients and Kubernetes replace symbolic links, which notifications of the kernel do not follow.
 */
import { readFileSync, statSync } from 'node:fs';
import { setTimeout as sleep } from 'node:timers/promises';
import type { Logger } from '../log.ts';
import {
  type Certificate,
  CertificateError,
  type CertificateSource,
  expiredBy,
  parseCertificate,
} from './certificate.ts';

export interface CertificateFiles {
  /** Paths of PEM files. */
  certificate: string;
  key: string;
}

interface Options {
  files: CertificateFiles;
  log: Logger;
  pollMs?: number;
}

const defaultPollMs = 1000;
const defaultWaitMs = 10_000;

/**
 * Reads the files and follows them. An expired certificate is accepted at a start, because without it nothing would be
 * served; later it does not replace another one. @throws CertificateError if the files cannot be used
 */
export function followCertificateFiles(options: Options): CertificateSource {
  const { files, log, pollMs = defaultPollMs } = options;
  const listeners: ((certificate: Certificate) => void)[] = [];
  let stamp = stampOf(files);
  let current = readCertificateFiles(files);
  let problem: string | null = null;
  let failures = 0;

  const reload = () => {
    const next = readCertificateFiles(files);
    const expired = expiredBy(next, new Date());
    if (expired !== null) throw new CertificateError(`${files.certificate}: ${expired}`);
    if (next.certificate === current.certificate && next.key === current.key) return;
    current = next;
    for (const use of listeners) use(next);
    log.info({ names: next.names, expiresAt: next.expiresAt }, 'using a new TLS certificate');
  };

  const poll = () => {
    const found = stampOf(files);
    if (found === stamp && failures === 0) return;
    const isSettled = found === stamp;
    stamp = found;
    try {
      reload();
      [problem, failures] = [null, 0];
    } catch (error) {
      if (!(error instanceof CertificateError)) throw error;
      if (!isSettled) failures = 1;
      else if (problem !== error.message) {
        problem = error.message;
        log.error({ err: error }, 'the new TLS certificate cannot be used; the previous one stays in use');
      }
    }
  };

  const timer = setInterval(poll, pollMs).unref();
  return {
    current: () => current,
    problem: () => problem,
    onChange: (use) => void listeners.push(use),
    stop: () => clearInterval(timer),
  };
}

/**
 * As `followCertificateFiles`, but waits up to `waitMs` for usable files: a tool may be replacing them at the moment. The wait
 * also spaces the starts by systemd while they stay unusable. @throws CertificateError
 */
export async function followOnceUsable(options: Options & { waitMs?: number }): Promise<CertificateSource> {
  const { log, waitMs = defaultWaitMs, pollMs = defaultPollMs } = options;
  const deadline = performance.now() + waitMs;
  let reported = '';
  for (;;) {
    try {
      return followCertificateFiles(options);
    } catch (error) {
      if (!(error instanceof CertificateError) || performance.now() > deadline) throw error;
      if (reported !== error.message) log.error({ err: error }, 'waiting for a usable TLS certificate');
      reported = error.message;
      await sleep(pollMs);
    }
  }
}

/** @throws CertificateError that names the file */
export function readCertificateFiles(files: CertificateFiles): Certificate {
  const pem = { certificate: readPem(files.certificate), key: readPem(files.key) };
  try {
    return parseCertificate(pem);
  } catch (error) {
    if (!(error instanceof CertificateError)) throw error;
    throw new CertificateError(`${files.certificate}, ${files.key}: ${error.message}`, { cause: error });
  }
}

function readPem(file: string): string {
  try {
    return readFileSync(file, 'utf8');
  } catch (cause) {
    throw new CertificateError(`${file} cannot be read (${(cause as NodeJS.ErrnoException).code})`, { cause });
  }
}

/** Changes with either file, or the targets of their links. */
function stampOf({ certificate, key }: CertificateFiles): string {
  return `${stampOfFile(certificate)} ${stampOfFile(key)}`;
}

function stampOfFile(file: string): string {
  try {
    const { ino, size, mtimeNs, ctimeNs } = statSync(file, { bigint: true });
    return `${ino} ${size} ${mtimeNs} ${ctimeNs}`;
  } catch (error) {
    // A missing file, a folder that may not be read, a loop of links: reading it reports the reason.
    return String((error as NodeJS.ErrnoException).code);
  }
}
