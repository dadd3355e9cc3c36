// Places of the nodes of a small graph, between -1 and 1.

export interface Point {
  x: number;
  y: number;
}

/** On a circle, the first one on top. */
export function circle(n: number): Point[] {
  return Array.from({ length: n }, (_, i) => {
    const angle = (2 * Math.PI * i) / n - Math.PI / 2;
    return n === 1 ? { x: 0, y: 0 } : { x: Math.cos(angle), y: Math.sin(angle) };
  });
}

/**
 * As far apart as they are in the graph, as well as that can be: the stress of the places falls with every step (Gansner,
 * Koren, North: Graph drawing by stress majorization, 2004). Neighbours of the same ones start on the circle, so that the
 * answer is the same every time.
 */
export function springs(n: number, pairs: [number, number][]): Point[] {
  let at = circle(n);
  if (n < 3) return at;
  const apart = distances(n, pairs);
  for (let step = 0; step < 150; step++) {
    at = at.map((p, i) => {
      let x = 0, y = 0, sum = 0;
      at.forEach((q, j) => {
        if (i === j) return;
        const want = apart[i][j], weight = 1 / (want * want), now = Math.hypot(p.x - q.x, p.y - q.y) || 1e-9;
        x += weight * (q.x + (want * (p.x - q.x)) / now);
        y += weight * (q.y + (want * (p.y - q.y)) / now);
        sum += weight;
      });
      return { x: x / sum, y: y / sum };
    });
  }
  return fitted(at);
}

/** The number of edges between nodes; one more than the longest such path where there is none. */
function distances(n: number, pairs: [number, number][]): number[][] {
  const next: Set<number>[] = Array.from({ length: n }, () => new Set());
  for (const [a, b] of pairs) {
    next[a].add(b);
    next[b].add(a);
  }
  let longest = 1;
  const all = next.map((_, from) => {
    const far = new Array<number>(n).fill(Infinity);
    far[from] = 0;
    for (let front = [from]; front.length > 0; ) {
      const further: number[] = [];
      for (const a of front) for (const b of next[a]) {
        if (far[b] !== Infinity) continue;
        longest = Math.max(longest, (far[b] = far[a] + 1));
        further.push(b);
      }
      front = further;
    }
    return far;
  });
  return all.map((far) => far.map((d) => (d === Infinity ? longest + 1 : d)));
}

/** Moved and scaled, so that they fill the picture. */
function fitted(at: Point[]): Point[] {
  const range = (of: (p: Point) => number): [number, number] => {
    const all = at.map(of);
    return [Math.min(...all), Math.max(...all)];
  };
  const [left, right] = range((p) => p.x), [top, bottom] = range((p) => p.y);
  const scale = (v: number, low: number, high: number) => (high - low > 1e-6 ? (2 * (v - low)) / (high - low) - 1 : 0);
  return at.map((p) => ({ x: scale(p.x, left, right), y: scale(p.y, top, bottom) }));
}
