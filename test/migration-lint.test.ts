import { readdirSync, readFileSync } from 'node:fs';
import { expect, it } from 'vitest';
import { breakingMigrations } from '../src/main/older-processes.ts';
import { lintMigration } from './migration-lint.ts';

const exempt = ['0000_initial', ...breakingMigrations].map((name) => `${name}.sql`);

it('migrations do not break servers of the previous release', () => {
  const files = readdirSync('migrations').filter((file) => /^\d{4}_.*\.sql$/.test(file) && !exempt.includes(file));
  expect(files.length).toBeGreaterThan(5);
  expect(files.flatMap((file) => lintMigration(file, readFileSync(`migrations/${file}`, 'utf8')))).toEqual([]);
});

it.each([
  'ALTER TABLE "a" DROP COLUMN "b";',
  'DROP TABLE a;',
  'ALTER TABLE "a" RENAME COLUMN "b" TO "c";',
  'ALTER TABLE "a" RENAME TO "c";',
  'ALTER TABLE "a" ALTER COLUMN "b" SET DATA TYPE bigint;',
  'ALTER TABLE "a" ALTER COLUMN "b" TYPE bigint;',
  'ALTER TABLE "a" ALTER COLUMN "b" SET NOT NULL;',
  'ALTER TABLE "a" ADD COLUMN "b" text NOT NULL;',
  'CREATE UNIQUE INDEX "x" ON "a" USING btree ("b");',
  'ALTER TABLE "a" ADD CONSTRAINT "x" CHECK ("b" > 0);',
  'DELETE FROM "a";',
])('%s is refused', (statement) => {
  expect(lintMigration('x', statement)).toHaveLength(1);
  expect(lintMigration('x', `-- contract: unused since 1.0.0\n${statement}`)).toEqual([]);
});

it.each([
  'ALTER TABLE "a" ADD COLUMN "b" text;',
  `ALTER TABLE "a" ADD COLUMN "b" text DEFAULT '' NOT NULL;`,
  'ALTER TABLE "a" ALTER COLUMN "b" DROP NOT NULL;',
  'CREATE INDEX "x" ON "a" USING btree ("b");',
  'ALTER TABLE "a" ADD CONSTRAINT "x" CHECK ("b" > 0) NOT VALID;',
  'CREATE TABLE "a" ("b" int NOT NULL);--> statement-breakpoint\nCREATE UNIQUE INDEX "x" ON "a" ("b");',
  'CREATE TABLE "a" ("b" int);--> statement-breakpoint\nALTER TABLE "a" ADD CONSTRAINT "x" FOREIGN KEY ("b") REFERENCES "c"("d");',
  '-- DROP TABLE a;\nCREATE INDEX "x" ON "a" ("b");',
])('%s is accepted', (statement) => {
  expect(lintMigration('x', statement)).toEqual([]);
});
