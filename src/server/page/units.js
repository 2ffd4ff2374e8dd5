// Figures as text.

export const seconds = (value) => (value === null ? "–" : value < 1 ? `${(value * 1000).toFixed(0)} ms` : `${value.toFixed(2)} s`);
export const share = (value) => `${(100 * value).toFixed(value < 0.1 ? 1 : 0)} %`;

/** In decimal units, as networks and memory are sold: "1.25 GB". */
export function bytes(value) {
  const units = ["B", "kB", "MB", "GB", "TB"];
  let i = 0;
  while (value >= 999.5 && i + 1 < units.length) {
    value /= 1000;
    i += 1;
  }
  return `${value.toFixed(i === 0 || value >= 99.5 ? 0 : value >= 9.95 ? 1 : 2)} ${units[i]}`;
}
