// Phases: a row for each class of sizes, a bar for each stay.
const phaseChart = (host, phases, unit, pageBytes) => {
  const it = { from: 0, to: phases.time };
  const canvas = document.createElement('canvas');
  host.append(canvas);
  const row = 22;
  const levels = [...phases.levels].reverse();
  const name = (level) => `${bytes(level.pages_from * pageBytes)}–${bytes((level.pages_to + 1) * pageBytes)}`;
  const left = () => (host.clientWidth < 620 ? 0 : 150);
  const width = () => Math.max(40, host.clientWidth - left() - 14);
  const x = (time) => left() + ((time - it.from) / (it.to - it.from)) * width();
  const isNarrow = () => left() === 0;
  it.redraw = () => {
    const ratio = devicePixelRatio || 1;
    const height = levels.length * row + 4;
    canvas.style.width = host.clientWidth + 'px';
    canvas.style.height = height + 'px';
    canvas.width = Math.round(host.clientWidth * ratio);
    canvas.height = Math.round(height * ratio);
    const ctx = canvas.getContext('2d');
    ctx.setTransform(ratio, 0, 0, ratio, 0, 0);
    ctx.font = '12px system-ui, sans-serif';
    ctx.textBaseline = 'middle';
    levels.forEach((level, at) => {
      const top = at * row + 2;
      ctx.fillStyle = colour('--cold');
      ctx.fillRect(left(), top, width(), row - 3);
      level.phases.forEach((phase, n) => {
        const a = Math.max(left(), x(phase.from));
        const b = Math.min(left() + width(), x(phase.until));
        if (b <= left() || a >= left() + width()) return;
        ctx.fillStyle = colour(n % 2 ? '--s5' : '--s0');
        ctx.fillRect(a, top, Math.max(1, b - a - 0.5), row - 3);
      });
      const text = name(level);
      const middle = top + (row - 3) / 2;
      if (isNarrow()) {
        ctx.fillStyle = colour('--ground');
        ctx.globalAlpha = 0.82;
        ctx.fillRect(2, middle - 8, ctx.measureText(text).width + 8, 16);
        ctx.globalAlpha = 1;
      }
      ctx.fillStyle = colour('--text');
      ctx.textAlign = isNarrow() ? 'left' : 'right';
      ctx.fillText(text, isNarrow() ? 6 : left() - 8, middle);
    });
  };
  it.resize = it.redraw;
  it.setTimes = (from, to) => {
    Object.assign(it, { from, to });
    it.redraw();
  };
  canvas.addEventListener('pointermove', (e) => {
    const box = canvas.getBoundingClientRect();
    const level = levels[Math.floor((e.clientY - box.top - 2) / row)];
    const time = it.from + ((e.clientX - box.left - left()) / width()) * (it.to - it.from);
    const phase = level && level.phases.find((p) => p.from <= time && time < p.until);
    if (!phase) { hideTip(); return; }
    const lasts = timeLong(phase.until - phase.from, unit);
    showTip(`<b>${bytes(phase.pages * pageBytes)}</b> (${whole(phase.pages)} pages, ${whole(phase.pages_new)} new)<br>for ${lasts}<br>from ${timeShort(phase.from, unit)} to ${timeShort(phase.until, unit)}`, e.clientX, e.clientY);
  });
  canvas.addEventListener('pointerleave', hideTip);
  it.redraw();
  return it;
};
