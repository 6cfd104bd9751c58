// A Map from names to records, read and changed at random: node map.js COUNT ACCESSES
"use strict";
const [count, accesses] = process.argv.slice(2).map(Number);
const records = new Map();
for (let number = 0; number < count; number++) {
  records.set(`key-${number}`, { number, name: `name-${(number * 7919) % 1000003}`, uses: 0 });
}
let state = 1;
let total = 0;
for (let access = 0; access < accesses; access++) {
  state = (Math.imul(state, 1664525) + 1013904223) >>> 0;
  const record = records.get(`key-${state % count}`);
  record.uses++;
  total += record.uses + record.name.length;
}
console.log(total);
