/** Makes the bundle of the server before tests start processes of it, so that these do not wait for it. */
import { serverBundle } from '../bin/server-bundle.mjs';

export default async function bundleServer(): Promise<void> {
  await serverBundle();
}
