/** `cloudyard login`: signs a person in with the OpenID Connect provider of the server, and keeps the token in a context. */
import { setTimeout as sleep } from 'node:timers/promises';
import type { Command } from 'commander';
import { checkedUrl, type Context, contextsFile, readContexts, requireContextName, saveContext } from './contexts.ts';
import { CommandError, exitCodes, usageError } from './errors.ts';
import { type Api, createApi } from './http.ts';
import type { Io } from './io.ts';

const path = '/cloudyard/v1/sign_in/device';

export function addLoginCommand(program: Command, io: Io): void {
  program
    .command('login')
    .summary('Sign in with single sign-on')
    .description(
      'Sign in with the OpenID Connect provider of the server: prints a link, waits until you have confirmed it in a ' +
        'browser, and keeps the token in the context.',
    )
    .argument('[context]', 'name of the context; default: the current one')
    .option('--url <URL>', 'URL of the server, for a context that does not exist yet')
    .action(async (name: string | undefined, { url }: { url?: string }) => {
      const file = contextsFile(io.env);
      const known = readContexts(file);
      const chosen = name ?? (io.env['CLOUDYARD_CONTEXT'] || known.current) ?? 'default';
      requireContextName(chosen);
      const context = contextFor(Object.hasOwn(known.contexts, chosen) ? known.contexts[chosen] : undefined, url);
      const api = createApi({ url: context.url, token: undefined, project: '', region: '' });
      const token = await signIn(api, io);
      // Another command may have changed the file meanwhile.
      saveContext(file, chosen, { ...context, token });
      io.err.write(`Signed in to ${context.url} as the context ${chosen}.\n`);
    });
}

/** The context to sign in to. One of another server loses its project and region. */
function contextFor(existing: Context | undefined, url: string | undefined): Context {
  if (url === undefined) {
    if (existing) return existing;
    throw usageError('no server: run "cloudyard login NAME --url URL"');
  }
  const checked = checkedUrl(url);
  return existing?.url === checked ? existing : { url: checked };
}

async function signIn(api: Api, io: Io): Promise<string> {
  const { body: started } = await api.send({ method: 'POST', path });
  const { device, user_code: code, verification_uri: uri, verification_uri_complete: complete } = started;
  io.err.write(`Open ${complete ?? uri} and confirm the code ${code}.\n`);
  const deadline = performance.now() + started.expires_in * 1000;
  while (performance.now() < deadline) {
    await sleep(started.interval * 1000);
    const { body } = await api.send({ method: 'POST', path: `${path}/token`, body: { device } });
    if (body.status === 'complete') return body.token;
  }
  throw new CommandError('the code has expired; run the command again', exitCodes.timedOut);
}
