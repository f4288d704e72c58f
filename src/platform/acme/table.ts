import { integer, pgTable, text } from 'drizzle-orm/pg-core';
import { bytes, instant } from '../columns.ts';

/** One row: the account at the ACME server, and the certificate that all servers serve. */
export const acmeCertificates = pgTable('acme_certificates', {
  id: integer('id').primaryKey(),
  /** Encrypted: the account and the certificate with its key. */
  state: bytes('state'),
  /** Increases with each certificate; 0: none yet. */
  version: integer('version').notNull().default(0),
  /** While a server requests a certificate, until when challenges may come. */
  issuingUntil: instant('issuing_until'),
  nextAttemptAt: instant('next_attempt_at'),
  /** Failed attempts since the last certificate, and why the last one failed. */
  failures: integer('failures').notNull().default(0),
  error: text('error'),
});

/** What the ACME server expects at a path of the domain (HTTP-01), while a certificate is requested. */
export const acmeChallenges = pgTable('acme_challenges', {
  token: text('token').primaryKey(),
  response: text('response').notNull(),
});
