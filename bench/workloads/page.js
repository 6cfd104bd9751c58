// What a browser does with a page: reads text, builds a tree, styles it, lays it out, and does so
// again after each of a number of changes.
const rounds = Number(process.argv[2] || 4);
const words = 'memory page frame fault cluster policy working set knee curve trace'.split(' ');
let seed = 1;
const chance = (below) => {
  seed = (seed * 1103515245 + 12345) & 0x7fffffff;
  return seed % below;
};
const text = (length) => Array.from({ length }, () => words[chance(words.length)]).join(' ');
const source = (depth) => {
  if (depth === 0) return `<p class="c${chance(9)}">${text(12)}</p>`;
  return `<div class="c${chance(9)}">${Array.from({ length: 5 }, () => source(depth - 1)).join('')}</div>`;
};
const parse = (html) => {
  const root = { kind: 'root', children: [], style: {} };
  const open = [root];
  for (const [, closing, kind, name, words] of html.matchAll(/<(\/?)(\w+)(?: class="(\w+)")?>|([^<]+)/g)) {
    const top = open[open.length - 1];
    if (words) top.children.push({ kind: 'text', words, children: [], style: {} });
    else if (closing) open.pop();
    else { const node = { kind, name, children: [], style: {} }; top.children.push(node); open.push(node); }
  }
  return root;
};
const rules = Array.from({ length: 9 }, (_, at) => ({ name: `c${at}`, size: 10 + at, pad: at }));
const styled = (node, above) => {
  const rule = rules.find((known) => known.name === node.name);
  node.style = { ...above, ...(rule ? { size: rule.size, pad: rule.pad } : {}) };
  node.children.forEach((child) => styled(child, node.style));
};
const laid = (node, width) => {
  const inner = Math.max(40, width - 2 * (node.style.pad || 0));
  if (node.kind === 'text') {
    const perLine = Math.max(1, Math.floor(inner / (node.style.size || 10)));
    node.height = Math.ceil(node.words.length / perLine) * 14;
  } else node.height = node.children.reduce((sum, child) => sum + laid(child, inner), 2 * (node.style.pad || 0));
  return node.height;
};
let height = 0;
for (let round = 0; round < rounds; round++) {
  const tree = parse(source(4 + (round % 2)));
  for (const width of [1200, 800, 360]) { styled(tree, { size: 12, pad: 0 }); height += laid(tree, width); }
  height += JSON.stringify(tree).length % 7;
}
if (height === 0) process.exit(1);
