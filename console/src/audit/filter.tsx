import { useManagesClients } from '../api/session.ts';
import { FilterInput } from '../ui/filter-input.tsx';
import { type ListState, useListState } from '../ui/list-state.ts';
import { useScope } from '../ui/scope.tsx';
import type { AuditFilter } from './data.ts';

/** Texts of the URL that are filters of the API by the same name. */
const TEXTS = [
  ['operation', 'Operation', 'Operation'],
  ['table', 'Table', 'Table'],
  ['row_id', 'Resource ID', 'Resource ID'],
  ['row_name', 'Resource name', 'Name (with table)'],
  ['request_id', 'Request ID', 'Request ID'],
] as const;
const IDS = ['client_id', 'token_id', 'project_id'] as const;
const DATES = [
  ['from_timestamp', 'From'],
  ['to_timestamp', 'To'],
] as const;

/** The filter in the URL. It is not validated here: the API refuses invalid values with a message. */
export function useAuditFilter(): AuditFilter {
  const state = useListState();
  const filter: Record<string, string | number> = {};
  for (const [name] of TEXTS) if (state.get(name)) filter[name] = state.get(name).trim();
  for (const name of [...IDS, 'before']) if (state.get(name)) filter[name] = Number(state.get(name));
  for (const [name] of DATES) {
    const date = new Date(state.get(name));
    if (!Number.isNaN(date.getTime())) filter[name] = date.toISOString();
  }
  return filter as AuditFilter;
}

const NAMES = [...TEXTS.map(([name]) => name), ...IDS, ...DATES.map(([name]) => name)];

function isFiltered(state: ListState): boolean {
  return NAMES.some((name) => state.get(name) !== '');
}

const NO_FILTER = Object.fromEntries(NAMES.map((name) => [name, '']));

export function AuditTools() {
  const state = useListState();
  const { project } = useScope();
  // The operator's log has the changes of all clients.
  const isOfAll = useManagesClients();
  const shownProject = state.get('project_id');
  const input = (name: string, label: string, type: string, placeholder?: string) => (
    <FilterInput
      key={name}
      state={state}
      name={name}
      type={type}
      aria-label={label}
      title={label}
      placeholder={placeholder}
    />
  );
  return (
    <div className="list-tools audit-tools" role="search">
      {TEXTS.map(([name, label, placeholder]) => input(name, label, 'search', placeholder))}
      {isOfAll && input('client_id', 'Client ID', 'number', 'Client ID')}
      {input('token_id', 'Token ID', 'number', 'Token ID')}
      <select
        aria-label="Project"
        value={shownProject}
        onChange={({ target }) => state.set({ project_id: target.value })}
      >
        <option value="">Project: all</option>
        <option value={project}>this project</option>
        {!['', String(project)].includes(shownProject) && <option value={shownProject}>project {shownProject}</option>}
      </select>
      {DATES.map(([name, label]) => (
        <label key={name} className="row">
          {label} {input(name, label, 'datetime-local')}
        </label>
      ))}
      {isFiltered(state) && (
        <button type="button" className="button small" onClick={() => state.set(NO_FILTER)}>
          Clear the filter
        </button>
      )}
    </div>
  );
}
