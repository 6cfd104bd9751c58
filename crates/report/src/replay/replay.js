// Sets up the parts of a page of replays.
const label = (run) => `${run.system}, ${bytes(run.memory_bytes)}`;

const sweepChart = ({ runs }) => {
  const values = {
    Elapsed: { of: (run) => run.elapsed_s, text: seconds, steps: stepsOfTen, name: 'elapsed' },
    'Page-ins': { of: (run) => run.page_ins, text: count, steps: stepsOfTen, name: 'page-ins' },
    'Over the optimum': { of: (run) => run.over_optimal, text: digits, steps: stepsOfTen, name: 'page-ins over the optimum' },
  };
  const state = { shows: 'Elapsed', across: 'log', up: 'log' };
  const systems = [...new Set(runs.map((run) => run.system))];
  const describe = () => {
    const shown = values[state.shows];
    return {
      series: systems.map((system, at) => {
        // A logarithmic axis has no place for none.
        const some = runs.filter((run) => run.system === system && shown.of(run) !== null && (state.up !== 'log' || shown.of(run) > 0));
        return { name: system, ink: `--s${at % 7}`, dashed: at >= 7, x: some.map((run) => run.memory_bytes), y: some.map(shown.of) };
      }),
      x: { log: state.across === 'log' ? 2 : 0, label: bytes, steps: stepsOfTwo, name: 'memory' },
      y: { log: state.up === 'log' ? 10 : 0, label: shown.text, steps: shown.steps, name: shown.name },
      tip: (memory, series) => {
        const lines = series.map((s) => {
          const near = s.x.map((x) => Math.abs(Math.log(x / memory)));
          const at = near.indexOf(Math.min(...near));
          if (at < 0) return '';
          return `<br><i style="background:${colour(s.ink)}"></i>${escaped(s.name)}: <b>${shown.text(s.y[at])}</b> in ${bytes(s.x[at])}`;
        });
        return `<b>${bytes(memory)}</b>${lines.join('')}`;
      },
    };
  };
  const tools = document.querySelector('[data-for="sweep"]');
  const it = chart(document.getElementById('sweep-plot'), describe);
  systems.forEach((system, at) => chip(tools, system, `--s${at % 7}`, at >= 7, (isOn) => it.toggle(system, isOn)));
  const set = (key) => (name) => { state[key] = key === 'shows' ? name : name.split(' ').pop(); it.build(); };
  choice(tools, Object.keys(values), 'Elapsed', set('shows')).classList.add('push');
  choice(tools, ['x axis: log', 'linear'], 'x axis: log', set('across'));
  choice(tools, ['y axis: log', 'linear'], 'y axis: log', set('up'));
  zoomTools(tools, it);
  return it;
};

const timeChart = ({ runs, page_bytes: pageBytes }) => {
  const some = runs.filter((run) => run.time_line && run.time_line.time_s.length);
  const state = { run: some[0], shows: 'Resident' };
  const memory = (pages) => pages.map((count) => count * pageBytes);
  const lines = {
    Resident: ({ programs, time_line: line }) => line.resident.map((pages, at) => [programs[at].name, memory(pages)]),
    Memory: ({ time_line: line }) => [['free', memory(line.free)], ['on its way out', memory(line.laundry)], ['of files', memory(line.files)]],
    Disks: ({ disks, time_line: line }) => line.queues.map((queue, at) => [disks[at].name, queue]),
    Ready: ({ time_line: line }) => [['ready', line.ready]],
  };
  const isMemory = () => state.shows === 'Resident' || state.shows === 'Memory';
  const describe = () => ({
    series: lines[state.shows](state.run).map(([name, y], at) => ({
      name, ink: `--s${at % 7}`, dashed: at >= 7, x: state.run.time_line.time_s, y,
    })),
    range: [0, Math.max(state.run.elapsed_s, 1e-9)],
    x: { log: 0, label: seconds, steps: stepsOfTen, name: 'time' },
    y: isMemory()
      ? { log: 0, label: bytes, steps: stepsOfTwo, name: 'memory' }
      : { log: 0, label: count, steps: stepsOfTen, name: state.shows === 'Disks' ? 'requests' : 'processes' },
    tip: (time, series) => {
      const told = series.map((s) => {
        let at = s.x.findIndex((x) => x > time);
        at = Math.max(0, (at < 0 ? s.x.length : at) - 1);
        return `<br><i style="background:${colour(s.ink)}"></i>${escaped(s.name)}: <b>${isMemory() ? bytes(s.y[at]) : whole(s.y[at])}</b>`;
      });
      return `at ${seconds(Math.max(0, time))}${told.join('')}`;
    },
  });
  const tools = document.querySelector('[data-for="time"]');
  const chosen = document.createElement('select');
  chosen.setAttribute('aria-label', 'Run');
  some.forEach((run, at) => chosen.add(new Option(label(run), at)));
  tools.append(chosen);
  const it = chart(document.getElementById('time-plot'), describe);
  const names = document.createElement('span');
  tools.append(names);
  names.className = 'tools';
  const legend = () => {
    names.replaceChildren();
    it.hidden.clear();
    it.now.series.forEach((s) => chip(names, s.name, s.ink, s.dashed, (isOn) => it.toggle(s.name, isOn)));
  };
  const show = () => { it.hidden.clear(); it.build(); legend(); };
  chosen.onchange = () => { state.run = some[Number(chosen.value)]; it.range = null; show(); };
  choice(tools, Object.keys(lines), 'Resident', (name) => { state.shows = name; show(); }).classList.add('push');
  zoomTools(tools, it);
  legend();
  return it;
};

const start = async () => {
  const { record } = await unpack();
  const parts = {};
  const draw = (name, id, has, make) => {
    if (has) parts[name] = make();
    else document.getElementById(id).innerHTML = '<p class="note">Nothing recorded.</p>';
  };
  // Of one size of memory there are bars, and no curve.
  if (document.getElementById('sweep-plot')) draw('sweep', 'sweep-plot', record.runs.length, () => sweepChart(record));
  const hasTime = record.runs.some((run) => run.time_line && run.time_line.time_s.length);
  draw('time', 'time-plot', hasTime, () => timeChart(record));
  settle(parts);
};
start().catch(complain);
