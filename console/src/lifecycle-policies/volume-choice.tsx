import './lifecycle-policies.css';
import { useQuery } from '@tanstack/react-query';
import { useEffect, useId, useState } from 'react';
import { FieldErrors } from '../ui/form/field.tsx';
import type { Form } from '../ui/form/use-form.ts';
import { formatGib } from '../ui/numbers.ts';
import { useScope } from '../ui/scope.tsx';
import { volumesQuery } from '../volumes/data.ts';

const SHOWN = 100;

/** Checkboxes for `volume_ids`, with a filter. `excluded`: volumes that are not offered. */
export function VolumeChoice({ form, excluded = [] }: { form: Form; excluded?: readonly string[] }) {
  const id = useId();
  const { data } = useQuery(volumesQuery(useScope()));
  const [text, setText] = useState('');
  useEffect(() => form.register('volume_ids'));
  const chosen = (form.get('volume_ids') as readonly string[] | undefined) ?? [];
  const offered = (data?.results ?? []).filter((volume) => !excluded.includes(volume.id));
  const found = offered.filter((volume) =>
    `${volume.name} ${volume.id}`.toLowerCase().includes(text.trim().toLowerCase()),
  );
  const toggle = (volume: string) =>
    form.set('volume_ids', chosen.includes(volume) ? chosen.filter((each) => each !== volume) : [...chosen, volume]);
  return (
    <fieldset className="field" aria-describedby={`${id}-error`}>
      <legend>
        Volumes <span className="optional">({chosen.length} chosen)</span>
      </legend>
      <input
        type="search"
        aria-label="Filter volumes"
        placeholder="Filter volumes"
        value={text}
        onChange={(event) => setText(event.target.value)}
        // Enter would send the form.
        onKeyDown={(event) => event.key === 'Enter' && event.preventDefault()}
      />
      <div className="volume-choice">
        {found.slice(0, SHOWN).map((volume) => (
          <label key={volume.id}>
            <input type="checkbox" checked={chosen.includes(volume.id)} onChange={() => toggle(volume.id)} />
            <bdi>{volume.name}</bdi> <span className="muted">{formatGib(volume.size)}</span>
          </label>
        ))}
        {data && found.length === 0 && <span className="muted">No volume</span>}
        {found.length > SHOWN && <span className="muted">and {found.length - SHOWN} more; filter to see them</span>}
      </div>
      <FieldErrors id={`${id}-error`} errors={form.errorsAt('volume_ids')} />
    </fieldset>
  );
}
