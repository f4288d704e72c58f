import { useEffect, useRef } from 'react';
import UPlot from 'uplot';
import 'uplot/dist/uPlot.min.css';
import type { ChartProps } from './chart.tsx';

const HEIGHT = 180;

export default function ChartCanvas({ times, series, format }: ChartProps) {
  const host = useRef<HTMLDivElement>(null);
  const plot = useRef<UPlot | null>(null);
  const data = [times, ...series.map(({ values }) => values)] as unknown as UPlot.AlignedData;
  const shape = series.map(({ label, color }) => `${label} ${color}`).join('|');
  useEffect(() => {
    const element = host.current!;
    function draw(): void {
      plot.current?.destroy();
      plot.current = new UPlot(optionsOf(element.clientWidth, series, format), data, element);
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
  return <div ref={host} />;
}

function optionsOf(width: number, series: ChartProps['series'], format: ChartProps['format']): UPlot.Options {
  const [muted, line] = [colorOf('--muted'), colorOf('--line')];
  const axis = { stroke: muted, grid: { stroke: line, width: 1 }, ticks: { stroke: line, width: 1 } };
  return {
    width,
    height: HEIGHT,
    scales: { y: { range: (_plot, _low, high) => [0, Math.max(high * 1.1, 1)] } },
    axes: [axis, { ...axis, size: 80, values: (_plot, values) => values.map(format) }],
    series: [
      {},
      ...series.map(({ label, color }) => ({
        label,
        stroke: colorOf(color),
        width: 1.5,
        value: (_plot: UPlot, value: number | null) => (value === null ? '–' : format(value)),
      })),
    ],
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
