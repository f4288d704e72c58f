/** Reads the configuration files: regions, default quotas and price books. */
import { dirname, join, resolve } from 'node:path';
import type { Logger } from '../platform/log.ts';
import type { CoreSettings } from '../platform/settings.ts';
import { readYamlFile } from '../platform/yaml-file.ts';
import type { DefaultLimits } from '../quota/quota.ts';
import { globalKinds, regionalKinds } from '../quota/kinds.ts';
import { PriceBook } from '../resources/pricing/schema.ts';
import { type BookOfRegion, checkPriceBook } from '../resources/pricing/service.ts';
import { QuotasFile } from '../resources/quotas/schema.ts';
import { type RegionConfiguration, RegionsFile } from '../resources/regions/schema.ts';
import { checkRegions } from '../resources/regions/service.ts';
import { root } from '../platform/program-files.ts';

/** Absolute paths: those of the settings, or the files of the installation. */
export function configurationFiles(settings: CoreSettings): { regions: string; quotas: string } {
  return {
    regions: settings.regionsFile ?? join(root, 'config', 'regions.yaml'),
    quotas: settings.quotasFile ?? join(root, 'config', 'quotas.yaml'),
  };
}

/** The contents of the files in config/, or of the operator's own. */
export interface Configuration {
  regions: RegionConfiguration[];
  defaultLimits: DefaultLimits;
  bookOfRegion: BookOfRegion;
}

/**
 * Reads the regions, quotas and price files. The server starts even if a price book is invalid: its errors are logged, and
 * price previews in its region return `price_status: "error"`.
 * @throws ConfigurationFileError if the regions or quotas file is invalid
 */
export function readConfiguration(files: { regions: string; quotas: string }, log: Logger): Configuration {
  const { regions } = readYamlFile(files.regions, RegionsFile, ({ regions }) => checkRegions(regions));
  const limits = readYamlFile(files.quotas, QuotasFile).default_limits;
  const books = new Map<number, PriceBook | Error>();
  for (const { id, price_book } of regions) {
    if (price_book === undefined) continue;
    try {
      books.set(id, readYamlFile(resolve(dirname(files.regions), price_book), PriceBook, checkPriceBook));
    } catch (error) {
      log.error({ regionId: id, faults: (error as Error).message.split('\n') }, 'the price book is invalid');
      books.set(id, error as Error);
    }
  }
  return {
    regions,
    defaultLimits: Object.fromEntries(
      [...regionalKinds, ...globalKinds].map((kind) => [kind, limits[kind] ?? 0]),
    ) as DefaultLimits,
    bookOfRegion(regionId) {
      const book = books.get(regionId) ?? null;
      if (book instanceof Error) throw book;
      return book;
    },
  };
}
