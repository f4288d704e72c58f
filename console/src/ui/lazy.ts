import { lazyRouteComponent } from '@tanstack/react-router';
import type { ComponentType } from 'react';
import { loadChunk } from './chunks.ts';

/** A component in a chunk of its own: `lazy(() => import('./list.tsx'), 'FileShareList')`. */
export function lazy<T extends Record<string, unknown>, K extends keyof T & string>(load: () => Promise<T>, name: K) {
  const loaded = () => loadChunk(load);
  return lazyRouteComponent(loaded as () => Promise<Record<string, ComponentType>>, name);
}
