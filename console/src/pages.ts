import { fileShares } from './file-shares/page.ts';
import type { Page } from './ui/page.ts';

/** Every page of the console, in the order of the navigation. A new page is its folder and one line here. */
export const pages: readonly Page[] = [fileShares];
