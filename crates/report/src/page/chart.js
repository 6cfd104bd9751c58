// Charts on uPlot: colours of the theme, a floating reading, zoom by mouse, keys and fingers.
const colour = (name) => getComputedStyle(document.documentElement).getPropertyValue(name).trim();
const tip = document.getElementById('tip');
const showTip = (html, x, y) => {
  tip.innerHTML = html;
  tip.hidden = false;
  const box = tip.getBoundingClientRect();
  const left = x + 16 + box.width > innerWidth - 8 ? x - 16 - box.width : x + 16;
  const top = y + 16 + box.height > innerHeight - 8 ? y - 16 - box.height : y + 16;
  tip.style.left = Math.min(Math.max(8, left), Math.max(8, innerWidth - box.width - 8)) + 'px';
  tip.style.top = Math.max(8, top) + 'px';
};
const hideTip = () => { tip.hidden = true; };

const button = (host, text, press) => {
  const it = document.createElement('button');
  it.type = 'button';
  it.textContent = text;
  it.onclick = () => press(it);
  host.append(it);
  return it;
};
const choice = (host, names, chosen, choose) => {
  const group = document.createElement('span');
  group.className = 'choice';
  host.append(group);
  const all = names.map((name) => button(group, name, () => {
    all.forEach((other) => other.setAttribute('aria-pressed', String(other.textContent === name)));
    choose(name);
  }));
  all.forEach((it) => it.setAttribute('aria-pressed', String(it.textContent === chosen)));
  return group;
};
const chip = (host, name, ink, isDashed, toggle) => {
  const it = button(host, name, () => {
    const isOn = it.getAttribute('aria-pressed') !== 'true';
    it.setAttribute('aria-pressed', String(isOn));
    toggle(isOn);
  });
  it.className = isDashed ? 'chip dashed' : 'chip';
  it.style.setProperty('--ink', `var(${ink})`);
  it.setAttribute('aria-pressed', 'true');
  return it;
};

// The range that is left of `from`..`to` when it is zoomed by `factor` around `middle`, within
// `least`..`most`; places are logarithms where the scale is.
const zoomed = (from, to, middle, factor, least, most) => {
  const span = Math.min((to - from) * factor, most - least);
  let start = middle - (middle - from) * (span / (to - from || 1));
  start = Math.min(Math.max(start, least), most - span);
  return [start, start + span];
};

// Two fingers zoom, one finger reads; a wheel zooms while Ctrl is held.
const fingers = (element, zoom, read) => {
  const down = new Map();
  let before = 0;
  const spread = () => {
    const [a, b] = [...down.values()];
    return { width: Math.max(12, Math.abs(a.x - b.x)), middle: (a.x + b.x) / 2 };
  };
  element.addEventListener('pointerdown', (e) => {
    if (e.pointerType !== 'touch') return;
    down.set(e.pointerId, { x: e.clientX, y: e.clientY });
    if (down.size === 2) before = spread().width;
    if (down.size === 1) read(e);
  });
  element.addEventListener('pointermove', (e) => {
    if (!down.has(e.pointerId)) return;
    down.set(e.pointerId, { x: e.clientX, y: e.clientY });
    if (down.size === 1) read(e);
    if (down.size === 2) {
      const now = spread();
      zoom(before / now.width, now.middle - element.getBoundingClientRect().left);
      before = now.width;
    }
  });
  const up = (e) => { down.delete(e.pointerId); };
  element.addEventListener('pointerup', up);
  element.addEventListener('pointercancel', up);
  element.addEventListener('wheel', (e) => {
    if (!e.ctrlKey && !e.metaKey) return;
    e.preventDefault();
    zoom(e.deltaY > 0 ? 1.25 : 0.8, e.clientX - element.getBoundingClientRect().left);
  }, { passive: false });
};

// A dashed line across the chart `u` at `value`, with a name from `free` on; where that ends.
const upright = (u, value, name, free = -1) => {
  const { ctx, bbox } = u;
  const x = u.valToPos(value, 'x', true);
  const right = bbox.left + bbox.width;
  if (x < bbox.left || x > right) return free;
  ctx.save();
  ctx.fillStyle = colour('--text');
  ctx.strokeStyle = colour('--faint');
  ctx.font = `${12 * devicePixelRatio}px system-ui, sans-serif`;
  ctx.textAlign = 'left';
  ctx.textBaseline = 'alphabetic';
  ctx.setLineDash([4, 4]);
  ctx.beginPath();
  ctx.moveTo(x, bbox.top);
  ctx.lineTo(x, bbox.top + bbox.height);
  ctx.stroke();
  if (x > free) {
    const width = ctx.measureText(name).width;
    // A name that would end beyond the chart stands on the other side.
    const isLeft = x + 5 + width > right && x - 5 - width > Math.max(free, bbox.left);
    ctx.fillText(name, isLeft ? x - 5 - width : x + 5, bbox.top + 14 * devicePixelRatio);
    free = isLeft ? x : x + width + 10;
  }
  ctx.restore();
  return free;
};

// A chart in `host`. `describe()` gives, each time it is drawn anew:
//   series: [{ name, ink, dashed, x, y, low, high, dot }]   x rising
//   x, y: { log, label(v), steps, name }    tip(x, series) -> html    under(u)    range [from, to]
const chart = (host, describe, onRange) => {
  const it = { host, hidden: new Set(), plot: null, range: null };
  const height = () => Math.round(Math.min(430, Math.max(260, host.clientWidth * 0.42)));
  const axis = (scale, side) => ({
    scale: side === 'x' ? 'x' : 'y',
    stroke: () => colour('--text'),
    grid: { stroke: () => colour('--grid'), width: 1 },
    ticks: { stroke: () => colour('--line'), width: 1, size: 5 },
    font: '12px system-ui, sans-serif',
    labelFont: '12px system-ui, sans-serif',
    label: scale.name,
    labelSize: scale.name ? 22 : 0,
    labelGap: 2,
    size: side === 'x' ? 34 : 66,
    space: side === 'x' ? (host.clientWidth < 620 ? 56 : 72) : 34,
    incrs: scale.steps,
    values: (u, splits) => splits.map((v) => (v === null ? null : scale.label(v))),
    splits: scale.log ? (u, at, min, max) => powers(scale.log, min, max, side) : undefined,
    // Every split is written: those there are, there is room for.
    filter: (u, splits) => splits,
  });
  // On a logarithmic axis only as many powers are written as there is room for.
  const powers = (base, min, max, side) => {
    const room = side === 'x' ? (host.clientWidth - 80) / (host.clientWidth < 620 ? 60 : 76) : (height() - 66) / 30;
    const [from, to] = [min, max].map((v) => Math.log(v) / Math.log(base));
    const all = [];
    const every = Math.max(1, Math.ceil((to - from) / Math.max(2, room)));
    for (let p = Math.ceil(from / every - 1e-9) * every; p <= to + 1e-9; p += every) all.push(base ** p);
    if (all.length > 2 || !(min > 0)) return all;
    if (base === 10 && to - from > 1) {
      const parts = room > 3 * (to - from) ? [1, 2, 5] : [1, 3];
      const some = [];
      for (let p = Math.floor(from); p <= to; p++) some.push(...parts.map((part) => part * base ** p));
      return some.filter((at) => at >= min && at <= max);
    }
    // Within less than two powers round numbers say more.
    const step = (base === 2 ? stepsOfTwo : stepsOfTen).find((s) => (max - min) / s <= Math.max(3, room / 2));
    const round = [];
    for (let at = Math.ceil(min / step) * step; at <= max; at += step) round.push(at);
    return round;
  };
  it.build = () => {
    const now = describe();
    it.now = now;
    const joined = uPlot.join(now.series.map((s) => [s.x, s.y, ...(s.low ? [s.low, s.high] : [])]));
    const bands = [];
    const series = [{}];
    it.places = [];
    now.series.forEach((s, at) => {
      const show = !it.hidden.has(s.name);
      it.places.push(series.length);
      series.push({
        label: s.name, show, spanGaps: true, width: 2, pxAlign: 0, stroke: () => colour(s.ink),
        dash: s.dashed ? [7, 4] : undefined, points: { show: s.x.length === 1 },
      });
      if (s.low) {
        const low = series.length;
        const edge = { show, spanGaps: true, width: 0, stroke: 'transparent', points: { show: false } };
        series.push({ label: '', ...edge }, { label: '', ...edge });
        bands.push({ series: [low + 1, low], fill: () => colour(s.ink) + '44' });
      }
    });
    const all = now.series.flatMap((s) => [s.x[0], s.x[s.x.length - 1]]).filter((v) => v !== undefined);
    it.whole = now.range || [Math.min(...all), Math.max(...all)];
    if (it.plot) it.plot.destroy();
    it.plot = new uPlot({
      width: host.clientWidth, height: height(), series, bands,
      legend: { show: false },
      padding: [10, 14, 0, 0],
      cursor: { drag: { x: true, y: false, setScale: true }, points: { show: false }, y: false },
      scales: {
        x: { time: false, distr: now.x.log ? 3 : 1, log: now.x.log || 10, range: (u, min, max) => [min, max] },
        y: {
          distr: now.y.log ? 3 : 1, log: now.y.log || 10,
          range: (u, min, max) => {
            if (min === null || max === null) return now.y.log ? [1, 10] : [0, 1];
            return now.y.log ? [min / 1.25, Math.max(max * 1.25, min * 2)] : [0, (max || 1) * 1.06];
          },
        },
      },
      axes: [axis(now.x, 'x'), axis(now.y, 'y')],
      hooks: {
        drawClear: [(u) => now.under && now.under(u)],
        draw: [(u) => it.drawDots(u)],
        setCursor: [(u) => it.read(u)],
        setScale: [(u, key) => { if (key === 'x' && it.plot === u && onRange) onRange(u.scales.x.min, u.scales.x.max); }],
      },
    }, joined, host);
    const over = it.plot.over;
    over.addEventListener('mouseleave', hideTip);
    over.addEventListener('dblclick', () => it.reset());
    fingers(over, (factor, x) => it.zoom(factor, x), (e) => {
      const box = over.getBoundingClientRect();
      it.plot.setCursor({ left: e.clientX - box.left, top: e.clientY - box.top });
    });
    it.setRange(...(it.range || it.whole));
  };
  it.drawDots = (u) => {
    const ctx = u.ctx;
    const r = 5 * devicePixelRatio;
    ctx.setLineDash([]);
    it.now.series.forEach((s) => {
      if (!s.dot || it.hidden.has(s.name)) return;
      const [x, y] = [u.valToPos(s.dot[0], 'x', true), u.valToPos(s.dot[1], 'y', true)];
      if (x < u.bbox.left || x > u.bbox.left + u.bbox.width || y < u.bbox.top) return;
      ctx.beginPath();
      ctx.arc(x, y, r, 0, 2 * Math.PI);
      ctx.fillStyle = colour(s.ink);
      ctx.strokeStyle = colour('--ground');
      ctx.lineWidth = 2 * devicePixelRatio;
      ctx.fill();
      ctx.stroke();
    });
  };
  it.read = (u) => {
    const { left, top } = u.cursor;
    if (left === undefined || left < 0) { hideTip(); return; }
    const box = u.over.getBoundingClientRect();
    const shown = it.now.series.filter((s) => !it.hidden.has(s.name));
    showTip(it.now.tip(u.posToVal(left, 'x'), shown), box.left + left, box.top + top);
  };
  it.setRange = (from, to) => {
    if (!(to > from)) return;
    it.range = [from, to];
    it.plot.setScale('x', { min: from, max: to });
  };
  it.zoom = (factor, at) => {
    const u = it.plot;
    const isLog = it.now.x.log;
    const f = isLog ? Math.log : (v) => v;
    const g = isLog ? Math.exp : (v) => v;
    const middle = f(u.posToVal(at === undefined ? u.over.clientWidth / 2 : at, 'x'));
    const [from, to] = zoomed(f(u.scales.x.min), f(u.scales.x.max), middle, factor, f(it.whole[0]), f(it.whole[1]));
    it.setRange(g(from), g(to));
  };
  it.reset = () => it.setRange(...it.whole);
  it.toggle = (name, isOn) => {
    if (isOn) it.hidden.delete(name); else it.hidden.add(name);
    const at = it.now.series.findIndex((s) => s.name === name);
    const parts = it.now.series[at].low ? 3 : 1;
    for (let p = 0; p < parts; p += 1) it.plot.setSeries(it.places[at] + p, { show: isOn });
  };
  it.resize = () => it.plot.setSize({ width: host.clientWidth, height: height() });
  it.redraw = () => it.plot.redraw(false);
  it.build();
  return it;
};

const zoomTools = (host, what) => {
  const group = document.createElement('span');
  group.className = 'choice push';
  host.append(group);
  button(group, '−', () => what.zoom(2)).setAttribute('aria-label', 'Zoom out');
  button(group, '+', () => what.zoom(0.5)).setAttribute('aria-label', 'Zoom in');
  button(group, 'Reset', () => what.reset());
};
