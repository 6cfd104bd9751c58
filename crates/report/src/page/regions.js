// Names of regions lead from the map to the table, from there to the map, and sizes to the curve.
const regionLinks = (record, parts) => {
  document.addEventListener('click', (e) => {
    const link = e.target.closest('a[data-region]');
    if (!link) return;
    const place = Number(link.dataset.region);
    const part = link.getAttribute('href').slice(1);
    if (part === 'map' && parts.map) parts.map.showRegion(place);
    if (part === 'curves' && parts.curves) parts.curves.mark(record.regions[place]);
  });
};
