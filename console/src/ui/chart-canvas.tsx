import { useEffect, useRef, useState } from 'react';
import UPlot from 'uplot';
import 'uplot/dist/uPlot.min.css';
import type { ChartProps } from './chart.tsx';
import { formatDate } from './time.tsx';
import './chart.css';

const HEIGHT = 180;
/** The time axis shows at least a minute. */
const MIN_SECONDS = 60;

export default function ChartCanvas({ times, series, format }: ChartProps) {
  const host = useRef<HTMLDivElement>(null);
  const plot = useRef<UPlot | null>(null);
  const [hovered, setHovered] = useState<number | null>(null);
  const data = [times, ...series.map(({ values }) => values)] as unknown as UPlot.AlignedData;
  const shape = series.map(({ label, color }) => `${label} ${color}`).join('|');
  useEffect(() => {
    const element = host.current!;
    function draw(): void {
      plot.current?.destroy();
      plot.current = new UPlot(optionsOf(element.clientWidth, series, format, setHovered), data, element);
    }
    draw();
    const resized = new ResizeObserver(() => plot.current?.setSize({ width: element.clientWidth, height: HEIGHT }));
    resized.observe(element);
    // Colours are computed once, so another theme draws again.
    const theme = matchMedia('(prefers-color-scheme: dark)');
    const chosen = new MutationObserver(draw);
    theme.addEventListener('change', draw);
    chosen.observe(document.documentElement, { attributeFilter: ['data-theme'] });
    return () => {
      resized.disconnect();
      chosen.disconnect();
      theme.removeEventListener('change', draw);
      plot.current?.destroy();
      plot.current = null;
    };
    // The data changes below; a new plot is only needed for other series.
  }, [shape]);
  useEffect(() => plot.current?.setData(data));
  const shown = hovered ?? times.length - 1;
  return (
    <>
      <div ref={host} />
      <ul className="chart-legend">
        {series.map(({ label, color, values }) => (
          <li key={label}>
            <i style={{ background: `var(${color})` }} /> {label}: {formatOrDash(values[shown], format)}
          </li>
        ))}
        <li className="muted">{times[shown] === undefined ? '' : formatDate(new Date(times[shown] * 1000))}</li>
      </ul>
    </>
  );
}

function formatOrDash(value: number | null | undefined, format: ChartProps['format']): string {
  return value === null || value === undefined ? '–' : format(value);
}

function optionsOf(
  width: number,
  series: ChartProps['series'],
  format: ChartProps['format'],
  setHovered: (index: number | null) => void,
): UPlot.Options {
  const [muted, line] = [colorOf('--muted'), colorOf('--line')];
  const axis = { stroke: muted, grid: { stroke: line, width: 1 }, ticks: { stroke: line, width: 1 } };
  return {
    width,
    height: HEIGHT,
    scales: {
      x: { range: (_plot, low, high) => [Math.min(low, high - MIN_SECONDS), high] },
      y: { range: (_plot, _low, high) => [0, Math.max(high * 1.1, 1)] },
    },
    axes: [axis, { ...axis, size: 80, values: (_plot, values) => values.map(format) }],
    // The legend is text of the page, with its colours.
    legend: { show: false },
    hooks: { setCursor: [(plot) => setHovered(plot.cursor.idx ?? null)] },
    series: [{}, ...series.map(({ label, color }) => ({ label, stroke: colorOf(color), width: 1.5 }))],
  };
}

/** The computed colour of a custom property: canvases do not know `light-dark()`. */
function colorOf(property: string): string {
  const probe = document.createElement('i');
  probe.style.color = `var(${property})`;
  document.body.append(probe);
  const { color } = getComputedStyle(probe);
  probe.remove();
  return color;
}
