// What pages have in common: unpacking what they carry, the theme, the width, and complaints.
const unpack = async () => {
  const text = atob(document.getElementById('payload').textContent.trim());
  const packed = Uint8Array.from(text, (c) => c.charCodeAt(0));
  const stream = new Blob([packed]).stream().pipeThrough(new DecompressionStream('gzip'));
  const all = new Uint8Array(await new Response(stream).arrayBuffer());
  const length = new DataView(all.buffer).getUint32(0, true);
  const record = JSON.parse(new TextDecoder().decode(all.subarray(4, 4 + length)));
  return { record, rest: all.subarray(4 + length) };
};

const themes = (redraw) => {
  const names = ['auto', 'light', 'dark'];
  const it = document.getElementById('theme');
  let at = 0;
  it.onclick = () => {
    at = (at + 1) % names.length;
    it.textContent = `${['◐', '☀', '☾'][at]} ${names[at]}`;
    it.setAttribute('aria-label', `Colours: ${at ? names[at] : 'as the system'}`);
    if (at) document.documentElement.dataset.theme = names[at]; else delete document.documentElement.dataset.theme;
    redraw();
  };
  matchMedia('(prefers-color-scheme: dark)').addEventListener('change', redraw);
};

// Keeps the parts of a page in the colours and the width it has.
const settle = (parts) => {
  themes(() => Object.values(parts).forEach((part) => part.redraw()));
  let width = innerWidth;
  addEventListener('resize', () => {
    if (innerWidth === width) return;
    width = innerWidth;
    Object.values(parts).forEach((part) => part.resize());
  });
  window.tidemark = parts;
  document.documentElement.dataset.ready = 'yes';
};

const complain = (error) => {
  const note = document.createElement('p');
  note.className = 'note';
  note.textContent = `The pictures can't be drawn: ${error.message}`;
  document.querySelector('main').prepend(note);
  console.error(error);
};
