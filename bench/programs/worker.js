// A process with some hundred megabytes that works when it is told to and sleeps in between.
//
// Usage: node worker.js MEGABYTES PASSES
// Holds about so many megabytes of small objects, beside what node itself takes. For each line of input it goes through all of them so
// many times, changes some, and prints a sum.
'use strict';
const [megabytes, passes] = process.argv.slice(2).map(Number);
// An object with a short string and its place in the array take about 100 bytes.
const all = [];
for (let at = 0; at < megabytes * 10500; at += 1)
  all.push({ key: `k${(at * 7919) % 1000003}`, value: at, next: null });
const lines = require('node:readline').createInterface({ input: process.stdin });
console.log('ready');
lines.on('line', () => {
  let sum = 0;
  for (let pass = 0; pass < passes; pass += 1)
    for (let at = 0; at < all.length; at += 1) {
      const it = all[(at * 31) % all.length];
      sum = (sum + it.value * it.key.length) % 1000003;
      if (at % 16 === pass % 16) it.value += 1;
    }
  console.log(sum);
});
