import { useState } from 'react';
import { useLiveness } from '../api/events.ts';
import { useSession } from '../api/session.ts';
import { Icon } from './icons.tsx';
import { SignOutButton } from './sign-out.tsx';

type Theme = 'system' | 'light' | 'dark';
const KEY = 'cloudyard-theme';
const LIVENESS = { connecting: 'connecting', live: 'live', polling: 'every 5 seconds' } as const;

export function AccountMenu({ openHelp }: { openHelp: () => void }) {
  const session = useSession();
  const liveness = useLiveness();
  return (
    <>
      <button type="button" className="button quiet icon" popoverTarget="account" aria-label="Account and settings">
        <Icon name="user" />
      </button>
      <div id="account" popover="auto" className="popover">
        <ul className="menu-list">
          <li>
            <div>
              <bdi>{session.token_name}</bdi>
              <span className="badge">{session.role}</span>
            </div>
          </li>
          <li>
            <div>
              <span className="muted">Client</span>
              <bdi>{session.client_name}</bdi>
            </div>
          </li>
          <li>
            <div>
              <span className="muted">Updates</span>
              <span>{LIVENESS[liveness]}</span>
            </div>
          </li>
          <li>
            <ThemeChoice />
          </li>
          <li>
            <button type="button" onClick={openHelp} popoverTarget="account">
              Keyboard shortcuts <kbd>?</kbd>
            </button>
          </li>
          <li>
            <a href="/docs">API reference</a>
          </li>
          <li>
            <SignOutButton />
          </li>
        </ul>
      </div>
    </>
  );
}

function ThemeChoice() {
  const [theme, setTheme] = useState<Theme>(() => (localStorage.getItem(KEY) as Theme | null) ?? 'system');
  function choose(next: Theme): void {
    setTheme(next);
    if (next === 'system') {
      localStorage.removeItem(KEY);
      delete document.documentElement.dataset['theme'];
    } else {
      localStorage.setItem(KEY, next);
      document.documentElement.dataset['theme'] = next;
    }
  }
  return (
    <div>
      <label className="muted" htmlFor="theme">
        Theme
      </label>
      <span>
        <select id="theme" value={theme} onChange={(event) => choose(event.target.value as Theme)}>
          <option value="system">System</option>
          <option value="light">Light</option>
          <option value="dark">Dark</option>
        </select>
      </span>
    </div>
  );
}
