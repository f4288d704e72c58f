/** Sign-in with a real OpenID Connect provider, which is another site for the browser. */
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import type { Page } from 'playwright-core';
import { afterAll, describe, expect, it } from 'vitest';
import { openProvider, testClient, type TestProvider } from '../oidc-provider.ts';
import { checkPage, signIn, useConsole } from './console.ts';

let provider: TestProvider;
const consoleOf = useConsole({ CLOUDYARD_SESSION_IDLE_TIMEOUT: '8' }, async ({ url, folder }) => {
  provider = await openProvider(`${url}/cloudyard/v1/sign_in/oidc/callback`, { address: '127.0.0.2', hasForm: true });
  const groups = join(folder, 'groups.yaml');
  writeFileSync(groups, 'groups:\n  - { group: admins, client: 1, role: admin }\n');
  return {
    CLOUDYARD_PUBLIC_URL: url,
    CLOUDYARD_OIDC_ISSUER: provider.issuer,
    CLOUDYARD_OIDC_CLIENT_ID: testClient.clientId,
    CLOUDYARD_OIDC_CLIENT_SECRET: testClient.clientSecret,
    CLOUDYARD_OIDC_GROUPS_FILE: groups,
    CLOUDYARD_OIDC_SCOPES: 'openid email groups',
  };
});
afterAll(() => provider?.stop());

const visit = (path: string) => consoleOf.visit(path, { otherOrigin: provider.issuer });
const button = (page: Page) => page.getByRole('link', { name: 'Sign in with single sign-on' });
const signInAtProvider = (page: Page) => page.getByRole('button', { name: 'Sign in at the provider' }).click();
const person = (name: string, groups: string[]) => ({ sub: name, email: `${name}@example.org`, groups });

describe('single sign-on', () => {
  it('signs in at the provider, and leads to the page that was asked for', async () => {
    provider.person = person('ada', ['admins']);
    const page = await visit('/p/1/r/1/tasks?state=error');
    await button(page).waitFor();
    await checkPage(page);
    await button(page).click();
    await signInAtProvider(page);
    await page.getByRole('heading', { name: 'Tasks', level: 1 }).waitFor();
    const { pathname, search } = new URL(page.url());
    expect(pathname + search).toBe('/console/p/1/r/1/tasks?state=error');
    await page.getByRole('button', { name: /^Account/ }).click();
    await page.getByText('ada@example.org').first().waitFor();
    // A new document has the session as well.
    await page.reload();
    await page.getByRole('heading', { name: 'Tasks', level: 1 }).waitFor();
    expect(await page.evaluate<string>('document.cookie')).toBe('');
  });

  it('refuses a person without a role, and says why', async () => {
    provider.person = person('eve', ['guests']);
    const page = await visit('/p/1/r/1/tasks');
    await button(page).click();
    await signInAtProvider(page);
    await page.getByRole('heading', { name: 'The sign-in failed' }).waitFor();
    await page.getByText('none of the groups of eve@example.org has access').waitFor();
    await page.getByRole('link', { name: 'Back to the sign-in' }).click();
    await page.getByLabel('API token').waitFor();
  });

  it('renews a session in another tab, and keeps the text of the page', async () => {
    provider.person = person('grace', ['admins']);
    const page = await visit('/p/1/r/1/networks/new');
    await button(page).click();
    await signInAtProvider(page);
    await page.getByLabel('Name', { exact: true }).fill('typed-before');
    const dialog = page.getByRole('dialog', { name: 'Sign in' });
    await dialog.getByText('The session has ended').waitFor({ timeout: 60_000 });
    const [tab] = await Promise.all([page.waitForEvent('popup'), button(page).click()]);
    await tab.locator('.frame').waitFor();
    await tab.close();
    await page.evaluate('dispatchEvent(new Event("focus"))');
    await dialog.waitFor({ state: 'detached' });
    expect(await page.getByLabel('Name', { exact: true }).inputValue()).toBe('typed-before');
  });

  // The last test: it stops the provider.
  it('reports a provider that is away, and still accepts tokens', async () => {
    await provider.stop();
    await consoleOf.restart();
    const page = await visit('/p/1/r/1/tasks');
    await button(page).click();
    await page.getByRole('heading', { name: 'The sign-in failed' }).waitFor();
    await page.getByText('the OpenID Connect provider does not answer; sign in with a token').waitFor();
    await page.getByRole('link', { name: 'Back to the sign-in' }).click();
    await signIn(page);
    await page.locator('.frame').waitFor();
  });
});
