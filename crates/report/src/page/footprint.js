// The footprint over time: memory touched, beside what is allocated and mapped.
const footprintChart = (record) => {
  const { trace, footprint } = record;
  const describe = () => ({
    series: footprint.lines.map((line, at) => ({ name: line.name, ink: `--s${at % 7}`, x: footprint.times, y: line.bytes })),
    range: [0, Math.max(1, trace.time)],
    x: { log: 0, label: (v) => timeShort(v, trace.time_unit), steps: stepsOfTen, name: `virtual time (${trace.time_unit})` },
    y: { log: 0, label: bytes, steps: stepsOfTwo, name: 'memory' },
    tip: (time, shown) => {
      const lines = shown.map((s) => {
        let at = s.x.findIndex((x) => x > time);
        at = Math.max(0, (at < 0 ? s.x.length : at) - 1);
        return `<br><i style="background:${colour(s.ink)}"></i>${escaped(s.name)}: <b>${bytes(s.y[at])}</b>`;
      });
      return `at ${timeLong(Math.max(0, time), trace.time_unit)}${lines.join('')}`;
    },
  });
  const tools = document.querySelector('[data-for="footprint"]');
  const it = chart(document.getElementById('footprint-plot'), describe);
  footprint.lines.forEach((line, at) => chip(tools, line.name, `--s${at % 7}`, false, (isOn) => it.toggle(line.name, isOn)));
  zoomTools(tools, it);
  return it;
};
