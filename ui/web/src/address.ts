// Writes the state of the page into the address. Browsers refuse more than a few hundred changes in some seconds, which
// a wheel or a slider makes, so what replaces the last step is written when it has rested.

/** ms that an address rests before it is written, and until one that the browser refused is tried again. */
const rest = 250, retry = 5000;

let pending: string | undefined;
let timer: ReturnType<typeof setTimeout> | undefined;

/** Shows a state in the address: as a new step of the browser's history, or in place of the last one. */
export function showAddress(address: string, replace: boolean) {
  if (replace) return later(address, rest);
  writePending(); // it belongs to the step before
  if (address !== location.hash) write("pushState", address);
}

/** Forgets what is not written yet: the browser went to another step. */
export function dropPending() {
  clearTimeout(timer);
  pending = undefined;
}

function writePending() {
  const address = pending;
  dropPending();
  if (address !== undefined && address !== location.hash) write("replaceState", address);
}

function later(address: string, ms: number) {
  clearTimeout(timer);
  pending = address;
  timer = setTimeout(writePending, ms);
}

function write(how: "pushState" | "replaceState", address: string) {
  try {
    history[how](null, "", address);
    if (how === "pushState") dropPending(); // what the browser refused for the step before
  } catch {
    later(address, retry);
  }
}

addEventListener("pagehide", writePending);
