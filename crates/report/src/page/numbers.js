// Numbers as people read them; the same rules as in numbers.rs.
const digits = (v) => {
  const a = Math.abs(v);
  const n = a >= 99.95 || a === 0 ? 0 : a >= 9.995 ? 1 : a >= 0.1 ? 2 : Math.min(9, 2 - Math.floor(Math.log10(a)));
  const text = v.toFixed(n);
  return text.includes('.') ? text.replace(/0+$/, '').replace(/\.$/, '') : text;
};
const scaled = (v, base, units) => {
  let at = 0;
  while (Math.abs(v) >= base * 0.9995 && at + 1 < units.length) { v /= base; at += 1; }
  return digits(v) + units[at];
};
const count = (v) => scaled(v, 1000, ['', ' k', ' M', ' G', ' T', ' P']);
const bytes = (v) => scaled(v, 1024, [' B', ' KiB', ' MiB', ' GiB', ' TiB', ' PiB']);
const whole = (v) => Math.round(v).toLocaleString('en-US');
const seconds = (v) => {
  if (v === 0) return '0 s';
  if (Math.abs(v) >= 7200) return digits(v / 3600) + ' h';
  if (Math.abs(v) >= 120) return digits(v / 60) + ' min';
  for (const [size, name] of [[1, 's'], [1e-3, 'ms'], [1e-6, 'µs']]) {
    if (Math.abs(v) >= size * 0.999) return digits(v / size) + ' ' + name;
  }
  return digits(v * 1e9) + ' ns';
};
const timeShort = (v, unit) => (unit === 'nanoseconds' ? seconds(v / 1e9) : count(v));
const timeLong = (v, unit) => (unit === 'nanoseconds' ? seconds(v / 1e9) : `${count(v)} ${unit}`);
const escaped = (text) => String(text).replace(/[&<>"']/g, (c) => `&#${c.charCodeAt(0)};`);
// Round steps for axes: powers of two for memory, 1-2-2.5-5 for everything else.
const stepsOfTwo = Array.from({ length: 60 }, (_, at) => 2 ** at);
const stepsOfTen = [];
for (let p = -6; p < 16; p += 1) for (const f of [1, 2, 2.5, 5]) stepsOfTen.push(f * 10 ** p);
