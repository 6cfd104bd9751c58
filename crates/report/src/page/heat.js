// The map: a texture of levels, drawn by WebGL2 where there is one and by a plain canvas where not.
// Every pixel shows the hottest cell under it, so thin scans stay visible at any zoom.
const heatStops = [
  [58, 22, 92], [66, 50, 126], [56, 84, 142], [43, 114, 142], [32, 142, 140],
  [42, 170, 124], [98, 196, 92], [170, 216, 54], [250, 230, 36],
];
const heatColour = (level) => {
  const place = (level / 255) * (heatStops.length - 1);
  const at = Math.min(Math.floor(place), heatStops.length - 2);
  return heatStops[at].map((a, c) => Math.round(a + (heatStops[at + 1][c] - a) * (place - at)));
};

const shaders = [`#version 300 es
in vec2 corner; out vec2 place;
void main() { place = corner * 0.5 + 0.5; gl_Position = vec4(corner, 0.0, 1.0); }`,
`#version 300 es
precision highp float; precision highp usampler2D;
uniform usampler2D levels; uniform sampler2D colours;
uniform vec4 view; uniform vec2 size; uniform vec3 cold; uniform vec3 ground;
in vec2 place; out vec4 ink;
void main() {
  // The cells under this pixel: from the one at its edge to the one before the next pixel's.
  vec2 at = vec2(mix(view.x, view.y, place.x), mix(view.w, view.z, place.y));
  vec2 step = abs(vec2(dFdx(at.x), dFdy(at.y)));
  ivec2 from = ivec2(floor(at - step * 0.5)); ivec2 to = ivec2(ceil(at + step * 0.5));
  to = min(max(to, from + 1), from + 12);
  uint hottest = 0u; bool inside = false;
  for (int y = from.y; y < to.y; y++) for (int x = from.x; x < to.x; x++) {
    if (x < 0 || y < 0 || x >= int(size.x) || y >= int(size.y)) continue;
    uint level = texelFetch(levels, ivec2(x, y), 0).r;
    hottest = max(hottest, level);
    inside = true;
  }
  vec3 cell = hottest == 0u ? cold : texelFetch(colours, ivec2(int(hottest), 0), 0).rgb;
  ink = vec4(inside ? cell : ground, 1.0);
}`];

const rgb = (text) => {
  const hex = text.replace('#', '');
  return [0, 2, 4].map((at) => parseInt(hex.slice(at, at + 2), 16));
};

const webgl = (canvas, map) => {
  const gl = canvas.getContext('webgl2', { antialias: false, preserveDrawingBuffer: true });
  if (!gl || gl.getParameter(gl.MAX_TEXTURE_SIZE) < Math.max(map.width, map.height)) return null;
  const program = gl.createProgram();
  [gl.VERTEX_SHADER, gl.FRAGMENT_SHADER].forEach((kind, at) => {
    const shader = gl.createShader(kind);
    gl.shaderSource(shader, shaders[at]);
    gl.compileShader(shader);
    gl.attachShader(program, shader);
  });
  gl.linkProgram(program);
  if (!gl.getProgramParameter(program, gl.LINK_STATUS)) return null;
  gl.useProgram(program);
  gl.bindBuffer(gl.ARRAY_BUFFER, gl.createBuffer());
  gl.bufferData(gl.ARRAY_BUFFER, new Float32Array([-1, -1, 3, -1, -1, 3]), gl.STATIC_DRAW);
  const corner = gl.getAttribLocation(program, 'corner');
  gl.enableVertexAttribArray(corner);
  gl.vertexAttribPointer(corner, 2, gl.FLOAT, false, 0, 0);
  const texture = (unit, inner, width, height, format, bytesOf) => {
    gl.activeTexture(gl.TEXTURE0 + unit);
    gl.bindTexture(gl.TEXTURE_2D, gl.createTexture());
    for (const key of [gl.TEXTURE_MIN_FILTER, gl.TEXTURE_MAG_FILTER]) gl.texParameteri(gl.TEXTURE_2D, key, gl.NEAREST);
    gl.pixelStorei(gl.UNPACK_ALIGNMENT, 1);
    gl.texImage2D(gl.TEXTURE_2D, 0, inner, width, height, 0, format, gl.UNSIGNED_BYTE, bytesOf);
  };
  texture(0, gl.R8UI, map.width, map.height, gl.RED_INTEGER, map.levels);
  const table = new Uint8Array(256 * 4);
  for (let at = 0; at < 256; at += 1) table.set([...heatColour(at), 255], at * 4);
  texture(1, gl.RGBA8, 256, 1, gl.RGBA, table);
  const place = (name) => gl.getUniformLocation(program, name);
  gl.uniform1i(place('levels'), 0);
  gl.uniform1i(place('colours'), 1);
  gl.uniform2f(place('size'), map.width, map.height);
  return (view) => {
    gl.viewport(0, 0, canvas.width, canvas.height);
    gl.uniform4f(place('view'), view.x0, view.x1, view.y0, view.y1);
    gl.uniform3fv(place('cold'), rgb(colour('--cold')).map((v) => v / 255));
    gl.uniform3fv(place('ground'), rgb(colour('--ground')).map((v) => v / 255));
    gl.drawArrays(gl.TRIANGLES, 0, 3);
  };
};

const plain = (canvas, map) => {
  const context = canvas.getContext('2d');
  const table = Array.from({ length: 256 }, (_, at) => heatColour(at));
  return (view) => {
    const { width, height } = canvas;
    if (!width || !height) return;
    const image = context.createImageData(width, height);
    const cold = rgb(colour('--cold'));
    const step = { x: (view.x1 - view.x0) / width, y: (view.y1 - view.y0) / height };
    for (let y = 0; y < height; y += 1) {
      const top = Math.max(0, Math.floor(view.y0 + y * step.y));
      const bottom = Math.min(map.height, Math.max(top + 1, Math.ceil(view.y0 + (y + 1) * step.y)));
      for (let x = 0; x < width; x += 1) {
        const left = Math.max(0, Math.floor(view.x0 + x * step.x));
        const right = Math.min(map.width, Math.max(left + 1, Math.ceil(view.x0 + (x + 1) * step.x)));
        let hottest = 0;
        for (let r = top; r < bottom; r += 1) {
          for (let c = left; c < right; c += 1) hottest = Math.max(hottest, map.levels[r * map.width + c]);
        }
        image.data.set(hottest ? table[hottest] : cold, (y * width + x) * 4);
        image.data[(y * width + x) * 4 + 3] = 255;
      }
    }
    context.putImageData(image, 0, 0);
  };
};

// The map with names, axis, reading and zoom. `onRange(from, to)` hears of times that are chosen.
const heatMap = (host, map, unit, pageBytes, onRange) => {
  const it = { map };
  const canvas = document.createElement('canvas');
  const over = document.createElement('canvas');
  over.className = 'over';
  over.style.touchAction = 'pan-y';
  over.tabIndex = 0;
  over.setAttribute('aria-label', 'Map of addresses over time. Plus and minus zoom, arrows move, 0 resets.');
  host.append(canvas, over);
  const isPlain = new URLSearchParams(location.hash.slice(1)).has('no-webgl');
  let draw = isPlain ? null : webgl(canvas, map);
  it.engine = draw ? 'webgl2' : '2d';
  if (!draw) draw = plain(canvas, map);
  const view = { x0: 0, x1: map.width, y0: 0, y1: map.height };
  it.view = view;
  const time = (x) => (x / map.width) * map.time;
  let box = { left: 0, width: 1, height: 1 };

  const layout = () => {
    const isNarrow = host.clientWidth < 620;
    const left = isNarrow ? 0 : 150;
    const height = Math.round(Math.min(560, Math.max(300, host.clientWidth * 0.55)));
    box = { left, width: Math.max(40, host.clientWidth - left - 14), height, isNarrow };
    host.style.height = height + 44 + 'px';
    const ratio = devicePixelRatio || 1;
    Object.assign(canvas.style, { position: 'absolute', left: left + 'px', top: '0px', width: box.width + 'px', height: height + 'px' });
    canvas.width = Math.round(box.width * ratio);
    canvas.height = Math.round(height * ratio);
    over.style.width = host.clientWidth + 'px';
    over.style.height = height + 44 + 'px';
    over.width = Math.round(host.clientWidth * ratio);
    over.height = Math.round((height + 44) * ratio);
  };
  // Names are links, laid over the map: to the row of the region in the table, where it has one.
  const labels = document.createElement('div');
  labels.className = 'labels';
  host.append(labels);
  const label = (region, middle) => {
    const it = document.createElement(region.place === null ? 'span' : 'a');
    it.textContent = region.name;
    it.title = region.name;
    if (region.place !== null) {
      it.href = `#region-${region.place}`;
      it.dataset.region = region.place;
    }
    it.style.top = `${middle - 9}px`;
    it.style.maxWidth = `${box.isNarrow ? box.width * 0.6 : box.left - 8}px`;
    labels.append(it);
  };
  const bandTop = (y) => ((y - view.y0) / (view.y1 - view.y0)) * box.height;
  const names = (ctx) => {
    labels.replaceChildren();
    labels.className = box.isNarrow ? 'labels narrow' : 'labels';
    Object.assign(labels.style, { width: `${box.isNarrow ? box.width : box.left - 6}px`, height: `${box.height}px` });
    let free = -99;
    for (const band of map.bands) {
      const top = Math.max(0, bandTop(band.top));
      const bottom = Math.min(box.height, bandTop(band.top + band.height));
      if (bottom <= 0 || top >= box.height) continue;
      ctx.fillStyle = colour('--ground');
      const edge = bandTop(band.top);
      if (edge > 0.5) ctx.fillRect(box.left, Math.round(edge) - 1, box.width, 1.5);
      const middle = (top + bottom) / 2;
      if (middle - 9 < free) continue;
      free = middle + 9;
      label(map.regions[band.region], middle);
    }
  };
  const timeAxis = (ctx) => {
    ctx.font = '12px system-ui, sans-serif';
    ctx.textBaseline = 'middle';
    const [from, to] = [time(view.x0), time(view.x1)];
    const step = stepsOfTen.find((s) => (to - from) / s <= box.width / (box.isNarrow ? 60 : 84)) || to - from;
    ctx.textAlign = 'center';
    ctx.fillStyle = colour('--text');
    ctx.strokeStyle = colour('--line');
    for (let at = Math.ceil(from / step) * step; at <= to; at += step) {
      const x = box.left + ((at - from) / (to - from)) * box.width;
      ctx.beginPath();
      ctx.moveTo(x, box.height);
      ctx.lineTo(x, box.height + 5);
      ctx.stroke();
      const text = timeShort(at, unit);
      const half = ctx.measureText(text).width / 2;
      ctx.fillText(text, Math.min(Math.max(x, half), host.clientWidth - half), box.height + 15);
    }
    ctx.fillStyle = colour('--faint');
    ctx.fillText(`virtual time (${unit})`, box.left + box.width / 2, box.height + 34);
  };
  const marks = (ctx) => {
    for (const mark of map.marks) {
      const x = box.left + ((mark.time / map.time) * map.width - view.x0) / (view.x1 - view.x0) * box.width;
      if (x < box.left || x > box.left + box.width) continue;
      ctx.strokeStyle = colour('--text');
      ctx.setLineDash([4, 4]);
      ctx.beginPath();
      ctx.moveTo(x, 0);
      ctx.lineTo(x, box.height);
      ctx.stroke();
      ctx.setLineDash([]);
    }
  };
  it.redraw = () => {
    draw(view);
    const ctx = over.getContext('2d');
    const ratio = devicePixelRatio || 1;
    ctx.setTransform(ratio, 0, 0, ratio, 0, 0);
    ctx.clearRect(0, 0, over.width, over.height);
    marks(ctx);
    names(ctx);
    timeAxis(ctx);
  };
  it.resize = () => { layout(); it.redraw(); };
  it.setView = (next) => {
    Object.assign(view, next);
    it.redraw();
  };
  it.setTimes = (from, to) => {
    it.setView({ x0: (from / map.time) * map.width, x1: (to / map.time) * map.width });
  };
  const tell = () => onRange && onRange(time(view.x0), time(view.x1));
  it.zoom = (factor, at) => {
    const x = at === undefined ? 0.5 : (at - box.left) / box.width;
    const middle = view.x0 + x * (view.x1 - view.x0);
    const [x0, x1] = zoomed(view.x0, view.x1, middle, factor, 0, map.width);
    const [y0, y1] = zoomed(view.y0, view.y1, (view.y0 + view.y1) / 2, factor, 0, map.height);
    it.setView({ x0, x1, y0, y1 });
    tell();
  };
  it.reset = () => {
    it.setView({ x0: 0, x1: map.width, y0: 0, y1: map.height });
    tell();
  };
  // Zooms to the region of a row of the table, with a margin.
  it.showRegion = (place) => {
    const band = map.bands.find((it) => map.regions[it.region].place === place);
    if (!band) return;
    // Less than any other band is high.
    const margin = Math.min(12, Math.max(2, band.height * 0.1));
    it.setView({ y0: Math.max(0, band.top - margin), y1: Math.min(map.height, band.top + band.height + margin) });
  };
  // What is under a place of the element: a region, an address, a time, a heat.
  it.at = (x, y) => {
    const column = Math.floor(view.x0 + ((x - box.left) / box.width) * (view.x1 - view.x0));
    const row = Math.floor(view.y0 + (y / box.height) * (view.y1 - view.y0));
    if (x < box.left || column < 0 || column >= map.width || row < 0 || row >= map.height) return null;
    const band = map.bands.find((b) => row >= b.top && row < b.top + b.height);
    if (!band) return null;
    const region = map.regions[band.region];
    // Rows of pixels that stand for no row of cells take the next one's address.
    const part = 1 - (row - band.top + 0.5) / band.height;
    const rows = region.starts;
    const page = rows[Math.min(rows.length - 1, Math.floor(part * rows.length))];
    const level = map.levels[row * map.width + column];
    const records = level ? Math.exp(((level - 1) / 254) * Math.log(map.most + 1)) - 1 : 0;
    return { region, page, time: ((column + 0.5) / map.width) * map.time, records: Math.max(level ? 1 : 0, records) };
  };
  const read = (e) => {
    const place = over.getBoundingClientRect();
    const found = it.at(e.clientX - place.left, e.clientY - place.top);
    if (!found) { hideTip(); return; }
    const address = (BigInt(found.page) * BigInt(pageBytes)).toString(16);
    const told = found.records ? `about ${count(found.records)} references` : 'not used';
    showTip(`<b>${escaped(found.region.name)}</b><br>at ${address}<br>${timeLong(found.time, unit)}<br>${told}`, e.clientX, e.clientY);
  };
  // A rectangle that is drawn with the mouse is zoomed to.
  let drag = null;
  const rectangle = document.createElement('div');
  rectangle.className = 'select';
  rectangle.hidden = true;
  host.append(rectangle);
  const local = (e) => {
    const place = over.getBoundingClientRect();
    const clamp = (v, a, b) => Math.min(Math.max(v, a), b);
    return { x: clamp(e.clientX - place.left, box.left, box.left + box.width), y: clamp(e.clientY - place.top, 0, box.height) };
  };
  over.addEventListener('pointerdown', (e) => {
    if (e.pointerType === 'touch' || e.button !== 0) return;
    drag = local(e);
    over.setPointerCapture(e.pointerId);
  });
  over.addEventListener('pointermove', (e) => {
    if (e.pointerType === 'touch') return;
    read(e);
    if (!drag) return;
    const now = local(e);
    const isRectangle = Math.abs(now.x - drag.x) > 4 || Math.abs(now.y - drag.y) > 4;
    rectangle.hidden = !isRectangle;
    Object.assign(rectangle.style, {
      left: Math.min(drag.x, now.x) + 'px', top: Math.min(drag.y, now.y) + 'px',
      width: Math.abs(now.x - drag.x) + 'px', height: Math.abs(now.y - drag.y) + 'px',
    });
  });
  over.addEventListener('pointerup', (e) => {
    if (!drag) return;
    const [a, b] = [drag, local(e)];
    drag = null;
    rectangle.hidden = true;
    if (Math.abs(a.x - b.x) < 5 && Math.abs(a.y - b.y) < 5) return;
    const xs = [a.x, b.x].sort((p, q) => p - q).map((x) => view.x0 + ((x - box.left) / box.width) * (view.x1 - view.x0));
    const ys = [a.y, b.y].sort((p, q) => p - q).map((y) => view.y0 + (y / box.height) * (view.y1 - view.y0));
    // A drag along one axis keeps the other.
    const next = {};
    if (Math.abs(a.x - b.x) >= 5) Object.assign(next, { x0: xs[0], x1: Math.max(xs[1], xs[0] + 2) });
    if (Math.abs(a.y - b.y) >= 12) Object.assign(next, { y0: ys[0], y1: Math.max(ys[1], ys[0] + 2) });
    it.setView(next);
    tell();
  });
  over.addEventListener('pointerleave', hideTip);
  over.addEventListener('dblclick', () => it.reset());
  over.addEventListener('keydown', (e) => {
    const move = (part) => {
      const by = Math.min(Math.max((view.x1 - view.x0) * part, -view.x0), map.width - view.x1);
      it.setView({ x0: view.x0 + by, x1: view.x1 + by });
      tell();
    };
    const keys = { '+': () => it.zoom(0.5), '-': () => it.zoom(2), 0: () => it.reset(), ArrowLeft: () => move(-0.2), ArrowRight: () => move(0.2) };
    if (keys[e.key]) { e.preventDefault(); keys[e.key](); }
  });
  fingers(over, (factor, x) => it.zoom(factor, x), read);
  layout();
  it.redraw();
  return it;
};
