// Sets up the parts of a report.
const curveChart = (record) => {
  const { trace, curves } = record;
  const state = { shows: 'Misses', across: 'log', up: 'log', marked: null };
  const value = (curve, at) => (state.shows === 'Misses' ? curve.misses[at] : trace.time / Math.max(1, curve.misses[at]));
  const describe = () => ({
    series: curves.map((curve) => {
      const y = curve.misses.map((_, at) => value(curve, at));
      const life = curve.knee && (state.shows === 'Misses' ? trace.time / curve.knee.lifetime : curve.knee.lifetime);
      return {
        name: curve.name, ink: curve.ink, dashed: curve.dashed, x: curve.memory, y, curve,
        dot: curve.knee ? [curve.knee.memory, life] : null,
      };
    }),
    x: { log: state.across === 'log' ? 2 : 0, label: bytes, steps: stepsOfTwo, name: 'memory' },
    y: {
      log: state.up === 'log' ? 10 : 0, steps: stepsOfTen,
      label: state.shows === 'Misses' ? count : (v) => timeShort(v, trace.time_unit),
      name: state.shows === 'Misses' ? 'misses' : `${trace.time_unit} between misses`,
    },
    under: (u) => {
      const { marked } = state;
      if (marked) upright(u, marked.memory, `${marked.name}: ${bytes(marked.memory)}`);
    },
    tip: (memory, shown) => {
      const lines = shown.map((s) => {
        let at = s.x.findIndex((x) => x > memory);
        at = (at < 0 ? s.x.length : at) - 1;
        if (at < 0) return '';
        const misses = s.curve.misses[at];
        const window = s.curve.window ? `, window ${timeShort(s.curve.window[at], trace.time_unit)}` : '';
        return `<br><i style="background:${colour(s.ink)}"></i>${escaped(s.name)}: <b>${whole(misses)}</b> misses, one in ${timeLong(trace.time / Math.max(1, misses), trace.time_unit)}${window}`;
      });
      return `<b>${bytes(memory)}</b> (${whole(memory / trace.page_bytes)} pages)${lines.join('')}`;
    },
  });
  const tools = document.querySelector('[data-for="curves"]');
  const it = chart(document.getElementById('curve-plot'), describe);
  curves.forEach((curve) => chip(tools, curve.name, curve.ink, curve.dashed, (isOn) => it.toggle(curve.name, isOn)));
  const set = (key) => (name) => { state[key] = name.split(' ').pop(); it.build(); };
  choice(tools, ['Misses', 'Lifetime'], 'Misses', set('shows')).classList.add('push');
  choice(tools, ['x axis: log', 'linear'], 'x axis: log', set('across'));
  choice(tools, ['y axis: log', 'linear'], 'y axis: log', set('up'));
  zoomTools(tools, it);
  // Marks the size of a region, or, of the one that is marked, no more.
  it.mark = (region) => { state.marked = state.marked === region ? null : region; it.redraw(); };
  return it;
};

const sizeChart = (record, onRange) => {
  const { trace, sizes, phases } = record;
  const main = phases.levels[phases.main];
  const describe = () => ({
    series: sizes.map((line) => ({ name: line.name, ink: line.ink, x: line.times, y: line.mean, low: line.min, high: line.max, line })),
    range: [0, Math.max(1, trace.time)],
    x: { log: 0, label: (v) => timeShort(v, trace.time_unit), steps: stepsOfTen, name: `virtual time (${trace.time_unit})` },
    y: { log: 0, label: bytes, steps: stepsOfTwo, name: 'memory' },
    under: (u) => {
      const { ctx, bbox } = u;
      ctx.save();
      ctx.beginPath();
      ctx.rect(bbox.left, bbox.top, bbox.width, bbox.height);
      ctx.clip();
      (main ? main.phases : []).forEach((phase, at) => {
        const [a, b] = [u.valToPos(phase.from, 'x', true), u.valToPos(phase.until, 'x', true)];
        ctx.fillStyle = colour(at % 2 ? '--band-b' : '--band-a');
        ctx.globalAlpha = 0.6;
        ctx.fillRect(a, bbox.top, Math.max(1, b - a), bbox.height);
      });
      ctx.restore();
      let free = -1;
      for (const mark of record.map.marks) free = upright(u, mark.time, mark.name, free);
    },
    tip: (time, shown) => {
      const lines = shown.map((s) => {
        let at = s.x.findIndex((x) => x > time);
        at = Math.max(0, (at < 0 ? s.x.length : at) - 1);
        return `<br><i style="background:${colour(s.ink)}"></i>${escaped(s.name)}: <b>${bytes(s.y[at])}</b> (${bytes(s.low[at])} to ${bytes(s.high[at])})`;
      });
      return `at ${timeLong(Math.max(0, time), trace.time_unit)}${lines.join('')}`;
    },
  });
  const tools = document.querySelector('[data-for="sizes"]');
  const it = chart(document.getElementById('size-plot'), describe, onRange);
  sizes.forEach((line) => chip(tools, line.name, line.ink, false, (isOn) => it.toggle(line.name, isOn)));
  zoomTools(tools, it);
  return it;
};

const legend = (map) => {
  const canvas = document.getElementById('heat-legend');
  const context = canvas.getContext('2d');
  for (let at = 0; at < 256; at += 1) {
    context.fillStyle = `rgb(${heatColour(at).join(' ')})`;
    context.fillRect(at, 0, 1, 1);
  }
  document.getElementById('heat-most').textContent = count(map.most);
};

const start = async () => {
  const { record, rest } = await unpack();
  const { trace, map } = record;
  map.levels = rest;
  const parts = {};
  // Working set, phases and map show one span of time. Whoever moved tells the others.
  let isTelling = false;
  const follow = (who) => (from, to) => {
    if (isTelling) return;
    isTelling = true;
    if (who !== 'sizes' && parts.sizes) parts.sizes.setRange(from, to);
    if (parts.phases) parts.phases.setTimes(from, to);
    if (who !== 'map' && parts.map) parts.map.setTimes(from, to);
    isTelling = false;
  };
  const draw = (name, id, has, make) => {
    if (has) parts[name] = make();
    else document.getElementById(id).innerHTML = '<p class="note">Nothing recorded.</p>';
  };
  draw('curves', 'curve-plot', record.curves.length, () => curveChart(record));
  draw('sizes', 'size-plot', record.sizes.length, () => sizeChart(record, follow('sizes')));
  if (record.footprint) draw('footprint', 'footprint-plot', record.footprint.times.length, () => footprintChart(record));
  draw('phases', 'phase-plot', record.phases.levels.length, () => (
    phaseChart(document.getElementById('phase-plot'), record.phases, trace.time_unit, trace.page_bytes)));
  draw('map', 'map-plot', map.bands.length, () => {
    const it = heatMap(document.getElementById('map-plot'), map, trace.time_unit, trace.page_bytes, follow('map'));
    zoomTools(document.querySelector('[data-for="map"]'), it);
    legend(map);
    return it;
  });
  regionLinks(record, parts);
  settle(parts);
};
start().catch(complain);
