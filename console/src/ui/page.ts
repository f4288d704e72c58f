import type { lazy } from './lazy.ts';

/** What a resource folder registers in its page.ts, as plain data. The router, the navigation and the palette read it. */
export interface Page {
  readonly title: string;
  /** First segment of its URLs below `/console/p/<project>/r/<region>/`, named like the folder. */
  readonly path: string;
  readonly section: Section;
  /** Hidden from readers and from tokens that are limited to projects, which may not read webhooks. */
  readonly hasWebhooks?: boolean;
  /** Shown to admins only. */
  readonly adminOnly?: boolean;
  /** Shown to admins of the operator only. */
  readonly operatorOnly?: boolean;
  /** Shown in development mode only. */
  readonly developmentOnly?: boolean;
  /** The create form, for the palette. */
  readonly create?: { readonly title: string; readonly path: string };
  readonly routes: readonly PageRoute[];
}

export interface PageRoute {
  /** Relative to the parent route; `$name` is a parameter. */
  readonly path: string;
  readonly component: ReturnType<typeof lazy>;
  /** Dialogs: rendered in the <Outlet/> of the parent. */
  readonly children?: readonly PageRoute[];
}

export const SECTIONS = ['Project', 'Storage', 'Network', 'Containers', 'Account', 'Operator'] as const;
type Section = (typeof SECTIONS)[number];
