/** An open page when its session becomes idle. */
import { describe, expect, it } from 'vitest';
import { signIn, useConsole } from './console.ts';

const consoleOf = useConsole({ CLOUDYARD_SESSION_IDLE_TIMEOUT: '8' });
const { open } = consoleOf;

describe('a session without requests', () => {
  it('ends although a page is open, which keeps its text and continues after a sign-in', async () => {
    const page = await open('networks/new');
    await page.getByLabel('Name', { exact: true }).fill('typed-before');
    // The event stream of the page is open all the time and does not count as use.
    const dialog = page.getByRole('dialog', { name: 'Sign in' });
    await dialog.getByText('The session has ended').waitFor({ timeout: 60_000 });
    await signIn(page);
    await dialog.waitFor({ state: 'detached' });
    expect(await page.getByLabel('Name', { exact: true }).inputValue()).toBe('typed-before');
    await page.getByRole('dialog').getByRole('button', { name: 'Create network' }).click();
    await page.getByText('Created network typed-before').waitFor();
  });
});
