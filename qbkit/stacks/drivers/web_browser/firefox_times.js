// In the page: its own times, in ms since its origin. Firefox has no entry "first-paint".

const [done] = arguments;
let largest = null;
new PerformanceObserver((list) => {
  for (const entry of list.getEntries()) largest = [entry.startTime, entry.url];
}).observe({ type: "largest-contentful-paint", buffered: true });
// The observer gets the entries before in a task of its own.
setTimeout(() =>
  done({
    origin: performance.timeOrigin,
    load: performance.getEntriesByType("navigation")[0].loadEventStart,
    paint: Object.fromEntries(
      performance.getEntriesByType("paint").map((entry) => [entry.name, entry.startTime])
    ),
    largest,
  }), 50
);
