/** Draws all series of a soak as one SVG: a small chart for each. */
import type { Measurements, Series } from './measurements.ts';
import { trendOf } from './trend.ts';

const [width, height, columns] = [360, 130, 2];
const margin = { left: 46, top: 26, right: 12, bottom: 18 };

export function plot(measurements: Measurements): string {
  const all = Object.values(measurements).filter(({ points }) => points.length > 1);
  const rows = Math.ceil(all.length / columns);
  const charts = all.map((each, i) => {
    const [x, y] = [(i % columns) * width, Math.floor(i / columns) * height];
    return `<g transform="translate(${x} ${y})">${chart(each)}</g>`;
  });
  const size = `width="${columns * width}" height="${rows * height}"`;
  return `<svg xmlns="http://www.w3.org/2000/svg" ${size} font-family="sans-serif" font-size="11">
<rect ${size} fill="#fff"/>
${charts.join('\n')}
</svg>
`;
}

function chart({ title, unit, points }: Series): string {
  const values = points.map(({ value }) => value);
  const most = Math.max(...values) * 1.15 || 1;
  const last = points.at(-1)!.seconds || 1;
  const x = (seconds: number) => margin.left + (seconds / last) * (width - margin.left - margin.right);
  const y = (value: number) => height - margin.bottom - (value / most) * (height - margin.top - margin.bottom);
  const line = points.map(({ seconds, value }) => `${x(seconds).toFixed(1)},${y(value).toFixed(1)}`).join(' ');
  const { level, growth } = trendOf(points);
  const middle = (points[0]!.seconds + last) / 2;
  const [start, end] = [
    level - growth * ((middle - points[0]!.seconds) / last),
    level + growth * ((last - middle) / last),
  ];
  const minutes = (last / 60).toFixed(0);
  return [
    `<text x="${margin.left}" y="16" font-weight="bold">${title}</text>`,
    `<line x1="${margin.left}" y1="${y(0)}" x2="${width - margin.right}" y2="${y(0)}" stroke="#999"/>`,
    `<text x="4" y="${y(most / 1.15) + 4}">${short(most / 1.15)} ${unit}</text><text x="4" y="${y(0)}">0</text>`,
    `<text x="${width - margin.right}" y="${height - 4}" text-anchor="end">${minutes} min</text>`,
    `<polyline points="${line}" fill="none" stroke="#2563eb"/>`,
    `<line x1="${x(points[0]!.seconds)}" y1="${y(start)}" x2="${x(last)}" y2="${y(end)}" stroke="#dc2626" stroke-dasharray="4 3"/>`,
  ].join('');
}

const short = (value: number) => (value >= 100 ? value.toFixed(0) : value.toFixed(1));
