import { lazyRouteComponent } from '@tanstack/react-router';
import type { ComponentType } from 'react';

/** A component in a chunk of its own: `lazy(() => import('./list.tsx'), 'FileShareList')`. */
export function lazy<T extends Record<string, unknown>, K extends keyof T & string>(load: () => Promise<T>, name: K) {
  // A chunk that is gone is undefined while stale-chunks.ts reloads the page.
  const loaded = async () => (await load()) ?? new Promise<T>(() => {});
  return lazyRouteComponent(loaded as () => Promise<Record<string, ComponentType>>, name);
}
