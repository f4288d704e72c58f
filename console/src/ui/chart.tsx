import { lazy, Suspense } from 'react';

export interface Series {
  readonly label: string;
  /** A custom property of tokens.css, such as `--accent`. */
  readonly color: string;
  /** One value a time; null is a gap. */
  readonly values: readonly (number | null)[];
}

export interface ChartProps {
  /** The title of the chart. */
  readonly label: string;
  /** In seconds since 1970, ascending. */
  readonly times: readonly number[];
  readonly series: readonly Series[];
  readonly format: (value: number) => string;
}

const Canvas = lazy(() => import('./chart-canvas.tsx'));

/** Lines over time. uPlot is loaded when the first chart is shown. */
export function Chart(props: ChartProps) {
  const { label, series, format } = props;
  const text = series.map((each) => {
    const known = each.values.filter((value) => value !== null);
    const [last, highest] = [known.at(-1) ?? 0, Math.max(0, ...known)];
    return `${each.label}: last ${format(last)}, highest ${format(highest)}`;
  });
  return (
    <div className="chart" role="img" aria-label={`${label}. ${text.join('; ')}`}>
      <p className="chart-title">{label}</p>
      <Suspense fallback={<span className="skeleton" />}>
        <Canvas {...props} />
      </Suspense>
    </div>
  );
}
