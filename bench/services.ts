/** The services in this process on the server's database, to record statements and seed rows. */
import { systemClock } from '../src/platform/clock.ts';
import { connect } from '../src/platform/db.ts';
import { createKeyring } from '../src/platform/encryption.ts';
import { silentLogger } from '../src/platform/log.ts';
import { readSettings } from '../src/main/settings.ts';
import { checkoutPlaces, root } from '../src/platform/program-files.ts';
import { configurationFiles, readConfiguration } from '../src/main/configuration.ts';
import { createServices, type Services } from '../src/main/services.ts';
import type { Cloudyard } from './cloudyard.ts';
import type { Workplace } from './workplace.ts';

export async function openServices(workplace: Workplace, cloudyard: Cloudyard): Promise<Services> {
  const db = connect({ ...cloudyard.database, name: 'bench', poolSize: 2, log: silentLogger });
  const configuration = readConfiguration(
    configurationFiles(readSettings({}, checkoutPlaces(root), false)),
    silentLogger,
  );
  const keyring = createKeyring([]);
  const services = await createServices({ db, clock: systemClock, log: silentLogger, configuration, keyring });
  workplace.closing(async () => {
    services.caches.stop();
    await db.$client.end();
  });
  return services;
}
