import type { Tree } from './data.ts';
import { BOX, layoutOf } from './flow-layout.ts';

/** A picture of how a request flows from the client to a member. The list of statuses below it says the same as text. */
export function Flow({ tree }: { tree: Tree }) {
  const { boxes, lines, width, height } = layoutOf(tree);
  return (
    <div className="flow card-body" role="region" aria-label="Picture of the flow" tabIndex={0}>
      <svg
        viewBox={`-1 -1 ${width + 2} ${height + 2}`}
        style={{ minWidth: width, maxWidth: width * 1.2 }}
        role="img"
        aria-label="From clients to listeners, policies, pools and members"
      >
        {lines.map(({ key, path, tone }) => (
          <path key={key} d={path} className={tone} />
        ))}
        {boxes.map((box) => (
          <foreignObject key={box.key} x={box.x} y={box.y} width={BOX.width} height={BOX.height}>
            <div className={`flow-box ${box.tone}`} title={[box.title, box.detail].filter(Boolean).join(', ')}>
              <bdi>{box.title}</bdi>
              {box.detail !== '' && <bdi className="detail">{box.detail}</bdi>}
            </div>
          </foreignObject>
        ))}
      </svg>
    </div>
  );
}
