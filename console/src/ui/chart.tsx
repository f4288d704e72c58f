import { type PointerEvent, useState } from 'react';
import { Table } from './table.tsx';
import { formatDate } from './time.tsx';
import './chart.css';

interface Series {
  readonly label: string;
  /** A custom property of tokens.css, such as `--accent`. */
  readonly color: string;
  /** One value a time; null is a gap. */
  readonly values: readonly (number | null)[];
}

interface ChartProps {
  /** The title of the chart. */
  readonly label: string;
  /** In seconds since 1970, ascending. */
  readonly times: readonly number[];
  readonly series: readonly Series[];
  readonly format: (value: number) => string;
  /** Bytes are divided by powers of 1024. */
  readonly base?: 1000 | 1024;
}

/** Size of the coordinate system of lines, which the browser stretches to the plot. */
const [WIDTH, HEIGHT] = [1000, 100];

/** Lines over time, with the values below the pointer, or the last ones, in the legend. */
export function Chart({ label, times, series, format, base = 1000 }: ChartProps) {
  const [hovered, setHovered] = useState<number | null>(null);
  const known = series.map(({ values }) => values.filter((value) => value !== null));
  const top = roundedUp(Math.max(0, ...known.flat()), base);
  const texts = series.map((each, at) => {
    const values = known[at]!;
    return `${each.label}: last ${format(values.at(-1) ?? 0)}, highest ${format(Math.max(0, ...values))}`;
  });
  const [first, last] = [times[0] ?? 0, times.at(-1) ?? 0];
  const x = (index: number) => (last === first ? WIDTH : ((times[index]! - first) / (last - first)) * WIDTH);
  const shown = hovered !== null && hovered < times.length ? hovered : times.length - 1;
  const point = (event: PointerEvent) => {
    const { left, width } = event.currentTarget.getBoundingClientRect();
    setHovered(nearest(times, first + ((event.clientX - left) / width) * (last - first)));
  };
  return (
    <div className="chart">
      <div role="img" aria-label={`${label}. ${texts.join('; ')}`}>
        <p className="chart-title">{label}</p>
        <div className="chart-plot">
          <div className="chart-scale">
            {[top, top / 2, 0].map((value) => (
              <span key={value}>{format(value)}</span>
            ))}
          </div>
          <svg
            viewBox={`0 0 ${WIDTH} ${HEIGHT}`}
            preserveAspectRatio="none"
            onPointerMove={point}
            onPointerLeave={() => setHovered(null)}
          >
            {[0, HEIGHT / 2, HEIGHT].map((y) => (
              <path key={y} className="chart-grid" d={`M0 ${y}H${WIDTH}`} />
            ))}
            {hovered !== null && <path className="chart-grid" d={`M${x(shown)} 0V${HEIGHT}`} />}
            {series.map(({ label: name, color, values }) => (
              <path key={name} className="chart-line" stroke={`var(${color})`} d={lineOf(values, x, top)} />
            ))}
          </svg>
          <div className="chart-times">
            {endsOfAxis(first, last).map((text, at) => (
              <span key={at}>{text}</span>
            ))}
          </div>
        </div>
        <ul className="chart-legend">
          {series.map(({ label: name, color, values }) => (
            <li key={name}>
              <i style={{ background: `var(${color})` }} /> {name}: {formatOrDash(values[shown], format)}
            </li>
          ))}
          <li className="muted">{times[shown] === undefined ? '' : formatDate(new Date(times[shown] * 1000))}</li>
        </ul>
      </div>
      <Values label={label} times={times} series={series} format={format} />
    </div>
  );
}

/** Every value as text, newest first, for screen readers and for copying. Rendered when it is opened. */
function Values({ label, times, series, format }: Omit<ChartProps, 'base'>) {
  const [isOpen, setOpen] = useState(false);
  const newestFirst = [...times.keys()].toReversed();
  return (
    <details className="chart-values" onToggle={(event) => setOpen(event.currentTarget.open)}>
      <summary>
        Table of values<span className="visually-hidden">: {label}</span>
      </summary>
      {isOpen && (
        <Table
          label={label}
          rows={newestFirst}
          rowKey={(index) => times[index]!}
          columns={[
            { key: 'time', title: 'Time', render: (index) => formatDate(new Date(times[index]! * 1000)) },
            ...series.map(({ label: name, values }) => ({
              key: name,
              title: name,
              kind: 'number' as const,
              render: (index: number) => formatOrDash(values[index], format),
            })),
          ]}
        />
      )}
    </details>
  );
}

/** The first and the last time, with the date only if the days differ. */
function endsOfAxis(first: number, last: number): readonly string[] {
  const dates = [new Date(first * 1000), new Date(last * 1000)] as const;
  const isOneDay = dates[0].toDateString() === dates[1].toDateString();
  const format = new Intl.DateTimeFormat(undefined, {
    ...(isOneDay ? {} : { month: 'short', day: 'numeric' }),
    hour: 'numeric',
    minute: '2-digit',
  });
  return dates.map((date) => format.format(date));
}

function formatOrDash(value: number | null | undefined, format: ChartProps['format']): string {
  return value === null || value === undefined ? '–' : format(value);
}

/** A gap starts another line. A line of one point is a dot, because its ends are round. */
function lineOf(values: Series['values'], x: (index: number) => number, top: number): string {
  let isOpen = false;
  return values
    .map((value, index) => {
      if (value === null) {
        isOpen = false;
        return '';
      }
      const at = `${x(index).toFixed(1)} ${(HEIGHT - (value / top) * HEIGHT).toFixed(2)}`;
      const part = isOpen ? `L${at}` : `M${at}h0`;
      isOpen = true;
      return part;
    })
    .join('');
}

const STEPS = [1, 2, 5, 10, 20, 50, 100, 200, 500, 1000];

/** The upper end of the scale: 1, 2 or 5 times a power of ten, in the unit of the value. */
function roundedUp(value: number, base: 1000 | 1024): number {
  if (value <= 0) return 1;
  const unit = base ** Math.floor(Math.log(value) / Math.log(base));
  return unit * (STEPS.find((step) => step >= value / unit) ?? base);
}

function nearest(times: readonly number[], time: number): number {
  let best = 0;
  for (const [index, each] of times.entries()) if (Math.abs(each - time) < Math.abs(times[best]! - time)) best = index;
  return best;
}
