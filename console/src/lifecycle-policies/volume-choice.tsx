import './lifecycle-policies.css';
import { useQuery } from '@tanstack/react-query';
import { useEffect, useId, useState } from 'react';
import { FieldErrors } from '../ui/form/field.tsx';
import type { Form } from '../ui/form/use-form.ts';
import { formatGib } from '../ui/numbers.ts';
import { useScope } from '../ui/scope.tsx';
import { volumesQuery } from '../volumes/data.ts';

const SHOWN = 100;

/** Checkboxes for `volume_ids`, with a filter. `excluded`: volumes that are not offered. A chosen one is, also once it was deleted. */
export function VolumeChoice({ form, excluded = [] }: { form: Form; excluded?: readonly string[] }) {
  const id = useId();
  const { data } = useQuery(volumesQuery(useScope()));
  const [text, setText] = useState('');
  useEffect(() => form.register('volume_ids'));
  const chosen = (form.get('volume_ids') as readonly string[] | undefined) ?? [];
  const volumes = data?.results ?? [];
  const offered = volumes.filter((volume) => !excluded.includes(volume.id) || chosen.includes(volume.id));
  const unlisted = data ? chosen.filter((each) => !volumes.some((volume) => volume.id === each)) : [];
  // A long list is cut.
  const areDeleted = data?.count === volumes.length;
  const found = offered.filter((volume) =>
    `${volume.name} ${volume.id}`.toLowerCase().includes(text.trim().toLowerCase()),
  );
  const isFaulty = (volume: string) => form.errorsAt(`volume_ids.${chosen.indexOf(volume)}`).length > 0;
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
        {unlisted.map((each) => (
          <label key={each}>
            <input type="checkbox" checked aria-invalid={isFaulty(each)} onChange={() => toggle(each)} />
            {each} {areDeleted && <span className="muted">deleted</span>}
          </label>
        ))}
        {found.slice(0, SHOWN).map((volume) => (
          <label key={volume.id}>
            <input
              type="checkbox"
              checked={chosen.includes(volume.id)}
              aria-invalid={isFaulty(volume.id)}
              onChange={() => toggle(volume.id)}
            />
            <bdi>{volume.name}</bdi> <span className="muted">{formatGib(volume.size)}</span>
          </label>
        ))}
        {data && found.length + unlisted.length === 0 && <span className="muted">No volume</span>}
        {found.length > SHOWN && <span className="muted">and {found.length - SHOWN} more; filter to see them</span>}
      </div>
      <FieldErrors id={`${id}-error`} errors={form.errorsAt('volume_ids')} />
    </fieldset>
  );
}
