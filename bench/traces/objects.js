// Builds maps and trees of objects, drops some of them, and walks what is left.
const people = new Map();
let state = 1;
function next(most) {
  state = (Math.imul(state, 1103515245) + 12345) >>> 0;
  return (state >>> 8) % most;
}
for (let i = 0; i < 60000; i++) {
  const id = next(30000);
  people.set(id, { id, name: "name " + id, friends: [next(30000), next(30000)], seen: i });
}
let sum = 0;
for (let round = 0; round < 3; round++) {
  for (const person of people.values()) {
    for (const id of person.friends) sum += people.has(id) ? people.get(id).seen % 7 : 1;
  }
  for (let i = round; i < 30000; i += 5) people.delete(i);
}
console.log(people.size, sum, JSON.stringify([...people.values()]).length);
