/**
 * Requests a certificate with the program lego, in a temporary folder.
 *
 * lego writes responses to HTTP challenges into a folder and then asks the ACME server to validate them. Each is passed on to
 * `onChallenge` when it appears, so that any server can answer.
 */
import { existsSync, mkdirSync, readdirSync, readFileSync, rmSync, statSync, watch, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { runChild } from '../child-process.ts';
import { readOrEmpty } from '../read-or-empty.ts';
import type { AcmeSettings } from './settings.ts';
import type { AcmeState } from './store.ts';

export const attemptSeconds = 240;

interface Request {
  settings: AcmeSettings;
  /** A folder of its own, which is deleted. */
  folder: string;
  /** The account of earlier requests; null: registers one. */
  account: AcmeState['account'] | null;
  onChallenge(token: string, response: string): Promise<void>;
  signal: AbortSignal;
}

/** A failed request. Its message is the last error of lego. */
export class AcmeError extends Error {
  /** The account, which may be new. */
  account: AcmeState['account'] = {};
}

/** @throws AcmeError */
export async function requestCertificate({ settings, folder, account, ...request }: Request): Promise<AcmeState> {
  rmSync(folder, { recursive: true, force: true });
  const challenges = join(folder, 'webroot', '.well-known', 'acme-challenge');
  mkdirSync(challenges, { recursive: true, mode: 0o700 });
  for (const [path, text] of Object.entries(account ?? {})) {
    mkdirSync(dirname(join(folder, path)), { recursive: true, mode: 0o700 });
    writeFileSync(join(folder, path), text, { mode: 0o600 });
  }
  const stopWatching = watchChallenges(challenges, request.onChallenge);
  try {
    await runLego(settings, folder, request.signal);
    const files = filesIn(folder, 'certificates');
    // `.issuer.crt` has the issuers alone.
    const find = (pattern: RegExp) => Object.entries(files).find(([path]) => pattern.test(path))?.[1] ?? '';
    const certificate = find(/(?<!\.issuer)\.crt$/);
    return { account: accountIn(folder), certificate, key: find(/\.key$/), server: settings.server };
  } catch (error) {
    if (error instanceof AcmeError) error.account = accountIn(folder);
    throw error;
  } finally {
    stopWatching();
    rmSync(folder, { recursive: true, force: true });
  }
}

async function runLego(settings: AcmeSettings, folder: string, signal: AbortSignal): Promise<void> {
  const { domains, email, server, caFile, dnsHook, dnsResolvers } = settings;
  const challenge = dnsHook
    ? ['--dns', 'exec', '--dns.disable-cp', ...dnsResolvers.flatMap((each) => ['--dns.resolvers', each])]
    : ['--http', '--http.webroot', join(folder, 'webroot')];
  const args = ['--path', folder, '--server', server, '--email', email, '--accept-tos', ...challenge];
  const env = { ...(caFile && { LEGO_CA_CERTIFICATES: caFile }), ...(dnsHook && { EXEC_PATH: dnsHook }) };
  const names = domains.flatMap((domain) => ['--domains', domain]);
  try {
    await runChild('lego', [...args, ...names, 'run'], { env, signal, timeout: attemptSeconds * 1000 });
  } catch (cause) {
    throw new AcmeError(reasonOf(cause as ChildError), { cause });
  }
}

type ChildError = Error & { code?: unknown; stderr?: string; killed?: boolean };

const maxReason = 500;

function reasonOf({ code, killed, stderr = '', message }: ChildError): string {
  if (code === 'ENOENT') return 'the program lego is not installed (package lego)';
  if (killed) return `no certificate within ${attemptSeconds} s`;
  const lines = stderr.split('\n').flatMap((line) => line.trim() || []);
  const reason = lines.slice(lines.findLastIndex((line) => /Could not|error:|Error/.test(line))).join(' ');
  return (reason || message).replace(/^\d{4}\/\d\d\/\d\d \d\d:\d\d:\d\d /, '').slice(0, maxReason);
}

/** Calls `onChallenge` for each challenge in the folder. Returns a function that ends the watch. */
function watchChallenges(folder: string, onChallenge: Request['onChallenge']): () => void {
  const watcher = watch(folder, (_event, name) => {
    const response = name === null ? '' : readOrEmpty(join(folder, name));
    // Empty until lego has written it. A lost response shows as a failed attempt.
    if (response.includes('.')) void onChallenge(name!, response).catch(() => {});
  });
  return () => watcher.close();
}

function accountIn(folder: string): AcmeState['account'] {
  return existsSync(join(folder, 'accounts')) ? filesIn(folder, 'accounts') : {};
}

/** The contents of all files below, by path from `root`. */
function filesIn(root: string, folder: string): Record<string, string> {
  const entries = readdirSync(join(root, folder), { recursive: true, encoding: 'utf8' });
  const paths = entries.map((entry) => join(folder, entry)).filter((path) => statSync(join(root, path)).isFile());
  return Object.fromEntries(paths.map((path) => [path, readFileSync(join(root, path), 'utf8')]));
}
