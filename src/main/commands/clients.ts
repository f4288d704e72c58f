import { command, type Command } from '../command-line.ts';
import { program } from '../program.ts';
import { UsageError } from '../usage-error.ts';
import { errorOf } from './values.ts';
import { idNumber, print, printTable, requireClient, withServices } from './with-services.ts';

const create = command({
  name: 'client create',
  operands: 'NAME...',
  summary: 'Create a client with a project and, in each region, a network',
  async run(settings, _, words) {
    const name = words.join(' ').trim();
    const { CreateClient } = await import('../../resources/clients/schema.ts');
    const error = await errorOf(name, CreateClient.properties.name);
    if (error !== undefined) throw new UsageError(`NAME ${error}`);
    await withServices(settings, async ({ clients }) => {
      const { violatedConstraint } = await import('../../platform/db-errors.ts');
      const { clientId, projectId } = await clients.create(name).catch((error: unknown) => {
        throw violatedConstraint(error) ? new Error(`a client named ${JSON.stringify(name)} already exists`) : error;
      });
      print(`created client ${clientId} with project ${projectId}`);
      print(`to create a token for it: ${program} token create --client ${clientId}`);
    });
  },
});

const list = command({
  name: 'client list',
  summary: 'List clients with their weights',
  run: (settings) =>
    withServices(settings, async ({ clients }) => {
      printTable(
        (await clients.list()).map(({ id, name, operator, weight }) => [
          ...[id, name],
          ...(operator ? ['operator'] : []),
          ...(weight === 1 ? [] : [`weight ${weight}`]),
        ]),
      );
    }),
});

const weight = command({
  name: 'client weight',
  operands: 'ID WEIGHT',
  summary: 'Set the share of servers and workers that a client gets relative to others, 1 (default) to 100',
  async run(settings, _, [id = '', weight = '']) {
    const clientId = idNumber('ID', id);
    if (!/^([1-9]\d?|100)$/.test(weight)) throw new UsageError('WEIGHT must be a whole number from 1 to 100');
    await withServices(settings, async (services) => {
      await requireClient(services, clientId);
      await services.clients.setWeight(clientId, Number(weight));
      print(`client ${clientId} has weight ${weight}; every server applies it within a second`);
    });
  },
});

export const clientCommands: Command[] = [create, list, weight];
