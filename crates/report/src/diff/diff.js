// The chart of a comparison: misses by memory, of both sides.
const diffChart = (record) => {
  const state = { across: 'log', up: 'log' };
  const describe = () => ({
    series: record.curves.map((curve) => ({
      name: curve.name, ink: curve.ink, dashed: curve.dashed, x: curve.memory, y: curve.misses, curve,
    })),
    x: { log: state.across === 'log' ? 2 : 0, label: bytes, steps: stepsOfTwo, name: 'memory' },
    y: { log: state.up === 'log' ? 10 : 0, label: count, steps: stepsOfTen, name: 'misses' },
    tip: (memory, shown) => {
      const lines = shown.map((s) => {
        let at = s.x.findIndex((x) => x > memory);
        at = (at < 0 ? s.x.length : at) - 1;
        if (at < 0) return '';
        return `<br><i style="background:${colour(s.ink)}"></i>${escaped(s.name)}: <b>${whole(s.y[at])}</b> misses`;
      });
      return `<b>${bytes(memory)}</b> (${whole(memory / record.page_bytes)} pages)${lines.join('')}`;
    },
  });
  const tools = document.querySelector('[data-for="curves"]');
  const it = chart(document.getElementById('curve-plot'), describe);
  record.curves.forEach((curve) => chip(tools, curve.name, curve.ink, curve.dashed, (isOn) => it.toggle(curve.name, isOn)));
  const set = (key) => (name) => { state[key] = name.split(' ').pop(); it.build(); };
  choice(tools, ['x axis: log', 'linear'], 'x axis: log', set('across')).classList.add('push');
  choice(tools, ['y axis: log', 'linear'], 'y axis: log', set('up'));
  zoomTools(tools, it);
  return it;
};

const start = async () => {
  const { record } = await unpack();
  const parts = {};
  if (record.curves.length) parts.curves = diffChart(record);
  settle(parts);
};
start().catch(complain);
