/**
 * The certificate of this installation from an ACME server. All servers poll its row and serve what it contains; the one
 * that takes an advisory lock requests a new certificate when less than a third of its life remains, or when it does not
 * match the settings.
 *
 * Invariant: a certificate that cannot be used never replaces another one, and a failure is retried with growing delays.
 *
 * The ACME server counts failed challenges of an account and refuses further requests for an hour after a few. So a server that
 * does not start, because a port is in use for example, requests no certificate.
 *
 * Failure modes: a stored certificate that cannot be decrypted is reported, and a new one is requested. While the ACME server,
 * the database or the key file is not available, all servers keep the certificate that they have. If a server dies while it
 * requests one, PostgreSQL releases its lock.
 */
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { type Db, openUnboundedPool } from '../db.ts';
import type { Keyring } from '../encryption.ts';
import type { Logger } from '../log.ts';
import { type Certificate, type CertificateSource, parseCertificate } from '../tls/certificate.ts';
import { challengeResponses } from './challenges.ts';
import { AcmeError, attemptSeconds, requestCertificate } from './lego.ts';
import type { AcmeSettings } from './settings.ts';
import * as store from './store.ts';
import { type AcmeRow, type AcmeState, maxRetrySeconds } from './store.ts';

export interface AcmeOptions {
  settings: AcmeSettings;
  db: Db;
  keyring: Keyring;
  dataDir: string;
  log: Logger;
  /** Whether this process also requests certificates. */
  renews: boolean;
  /** Resolves when challenges are answered: no certificate is requested before. Absent: they are answered already. */
  challengesAnswered?: Promise<void>;
  pollSeconds?: number;
  /** Seconds until the first retry; doubled with each failure, up to 6 hours. */
  retrySeconds?: number;
}

export interface Acme extends CertificateSource {
  /** The response to an HTTP challenge; null for an unknown token. */
  findChallenge(token: string): Promise<string | null>;
  stop(): Promise<void>;
}

const lock = 0x61636d65;
/** Servers whose settings differ would otherwise replace the certificates of each other until the ACME server refuses. */
const maxPauseSeconds = 3600;

/** Resolves when a stored certificate is in use, if there is one. */
export async function openAcme(options: AcmeOptions): Promise<Acme> {
  const { settings, db, log, keyring, pollSeconds = 5 } = options;
  const listeners: ((certificate: Certificate) => void)[] = [];
  const over = new AbortController();
  let current: Certificate | null = null;
  /** URL of the ACME server of `current`. */
  let issuer: string | undefined;
  let version = 0;
  let failure: string | null = 'no certificate was issued yet';
  /** Why the certificate of `version` cannot be used. */
  let unusable: string | null = null;

  const adopt = (row: AcmeRow | null) => {
    failure = row?.error ?? unusable ?? (current || row?.version ? null : failure);
    if (!row?.state || row.version === version) return;
    version = row.version;
    let next: Certificate;
    try {
      const state = store.decryptState(keyring, row.state);
      next = parseCertificate(state);
      issuer = state.server;
    } catch (error) {
      // With another key file, for example. The installation can do without this certificate: a new one is requested.
      failure = unusable = `the stored certificate cannot be used: ${(error as Error).message}`;
      log.error({ err: error }, 'the stored TLS certificate cannot be used; a new one will be requested');
      return;
    }
    current = next;
    unusable = null;
    failure = row.error;
    for (const use of listeners) use(next);
    log.info({ names: next.names, expiresAt: next.expiresAt }, 'using a new TLS certificate');
  };

  const poll = async () => {
    const row = await store.findRow(db);
    adopt(row);
    if (options.renews && awaited === undefined && isDue(row)) {
      await withLock(options, async () => {
        const latest = await store.findRow(db);
        adopt(latest);
        if (isDue(latest)) await renew(options, latest, over.signal);
      });
      adopt(await store.findRow(db));
    }
  };

  const isDue = (row: AcmeRow | null): boolean => {
    if (row?.paused) return false;
    if (!current || issuer !== settings.server) return true;
    if (!settings.domains.every((domain) => current!.names.includes(domain))) return true;
    const [start, end] = [current.notBefore.getTime(), current.expiresAt.getTime()];
    return Date.now() > end - (end - start) / 3;
  };

  let awaited = options.challengesAnswered?.then(() => void (awaited = undefined));
  const run = async () => {
    while (!over.signal.aborted) {
      await poll().catch((error: unknown) => {
        if (!over.signal.aborted) log.error({ err: error }, 'the TLS certificate cannot be checked');
      });
      const pause = sleep(pollSeconds * 1000, undefined, { ref: false, signal: over.signal }).catch(() => {});
      await (awaited ? Promise.race([pause, awaited]) : pause);
    }
  };

  adopt(await store.findRow(db));
  const running = run();
  return {
    current: () => current,
    problem: () => failure,
    onChange: (use) => void listeners.push(use),
    findChallenge: challengeResponses(async () => (await store.findChallenges(db))!, over.signal),
    async stop() {
      over.abort();
      await running;
    },
  };
}

/** Does nothing if another server has the lock. */
async function withLock({ db, log }: AcmeOptions, work: () => Promise<void>): Promise<void> {
  const pool = openUnboundedPool(db, log);
  try {
    const client = await pool.connect();
    try {
      const { rows } = await client.query<{ taken: boolean }>('select pg_try_advisory_lock($1) as taken', [lock]);
      if (rows[0]!.taken) await work();
    } finally {
      client.release(true);
    }
  } finally {
    await pool.end();
  }
}

/** Requests a certificate and stores it, or the reason why there is none. */
async function renew(options: AcmeOptions, row: AcmeRow | null, signal: AbortSignal): Promise<void> {
  const { settings, db, log, keyring, dataDir, retrySeconds: firstRetrySeconds = 60 } = options;
  const account = accountOf(row, keyring);
  await store.beginAttempt(db, attemptSeconds);
  try {
    const state = await requestCertificate({
      ...{ settings, account, signal, folder: join(dataDir, 'acme') },
      onChallenge: async (token, response) => void (await store.storeChallenge(db, token, response)),
    });
    const { notBefore, expiresAt } = parseCertificate(state);
    const thirdOfLife = (expiresAt.getTime() - notBefore.getTime()) / 3000;
    await store.storeState(db, keyring, state, Math.min(thirdOfLife, maxPauseSeconds));
    log.info({ domains: settings.domains, expiresAt }, 'the ACME server issued a TLS certificate');
  } catch (error) {
    if (signal.aborted) return;
    const account = error instanceof AcmeError ? error.account : {};
    const retrySeconds = Math.min(firstRetrySeconds * 2 ** Math.min(row?.failures ?? 0, 20), maxRetrySeconds);
    await store.storeFailure(db, keyring, { error: (error as Error).message, retrySeconds, account });
    log.error({ err: error, retrySeconds }, 'the ACME server issued no TLS certificate');
  }
}

/** Null without an account, or if the key that encrypted it is missing: lego then registers another one. */
function accountOf(row: AcmeRow | null, keyring: Keyring): AcmeState['account'] | null {
  if (!row?.state) return null;
  try {
    return store.decryptState(keyring, row.state).account;
  } catch {
    return null;
  }
}
