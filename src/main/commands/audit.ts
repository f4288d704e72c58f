import { Readable } from 'node:stream';
import { pipeline } from 'node:stream/promises';
import { escapeControls } from '../../client/output.ts';
import { ClientError } from '../../errors/catalogue.ts';
import { type ExportFormat, exportFormats } from '../../resources/audit/schema.ts';
import { command, type Command } from '../command-line.ts';
import { UsageError } from '../usage-error.ts';
import { dateForms, dateOf } from './values.ts';
import { idNumber, withServices } from './with-services.ts';

const exportLog = command({
  name: 'audit export',
  summary: 'Write the audit log to standard output, the newest entry first',
  options: {
    format: { type: 'string', default: 'jsonl', value: exportFormats.join('|'), description: 'the format' },
    client: { type: 'string', value: 'N', description: 'only changes of this client' },
    operation: { type: 'string', value: 'ID', description: 'only changes by this operation' },
    table: { type: 'string', value: 'NAME', description: 'only changes of this table' },
    row: { type: 'string', value: 'ID', description: 'only changes of the resource with this ID' },
    from: { type: 'string', value: 'DATE', description: 'only changes at or after this date' },
    to: { type: 'string', value: 'DATE', description: 'only changes at or before this date' },
  },
  async run(settings, { format, client, operation, table, row, from, to }) {
    if (!(exportFormats as readonly string[]).includes(format)) {
      throw new UsageError(`--format must be ${exportFormats.join(' or ')}`);
    }
    const query = {
      ...(client !== undefined && { client_id: idNumber('--client', client) }),
      ...(operation !== undefined && { operation }),
      ...(table !== undefined && { table }),
      ...(row !== undefined && { row_id: row }),
      ...(from !== undefined && { from_timestamp: await instantText('--from', from) }),
      ...(to !== undefined && { to_timestamp: await instantText('--to', to) }),
    };
    const { exportText } = await import('../../resources/audit/export.ts');
    await withServices(settings, async ({ auditLog }) => {
      try {
        const text = exportText(format as ExportFormat, auditLog.exportAll(query));
        await pipeline(Readable.from(escaped(text)), process.stdout, { end: false });
      } catch (error) {
        // The reader, such as `head`, has enough.
        if ((error as NodeJS.ErrnoException).code === 'EPIPE') return;
        if (error instanceof ClientError) throw new UsageError(error.message);
        throw error;
      }
    });
  },
});

export const auditCommands: Command[] = [exportLog];

/** In JSON, the same text: lossless. Clients choose some texts, so no character controls the terminal. */
async function* escaped(parts: AsyncIterable<string>): AsyncGenerator<string> {
  for await (const part of parts) yield escapeControls(part);
}

/** @throws UsageError that names the option */
async function instantText(option: string, text: string): Promise<string> {
  const date = await dateOf(text);
  if (date === null) throw new UsageError(`${option} must be ${dateForms}, not ${JSON.stringify(text)}`);
  return date.toISOString();
}
