// Colours: those of Okabe and Ito for kinds of calls, which people with any colour blindness tell apart, and viridis
// for amounts. The pictures of commq query --plot and of reports have the same, which tests hold: kinds in the order of
// timelineKinds in queries/drawing.go, colours in that of the themes in queries/plot/theme.go.

export type RGB = readonly [number, number, number];

const hex = (text: string): RGB => [1, 3, 5].map((i) => parseInt(text.slice(i, i + 2), 16)) as unknown as RGB;

const kindColours: Record<string, RGB> = {
  send: hex("#0072b2"),
  wait: hex("#e69f00"),
  "send and receive": hex("#009e73"),
  collective: hex("#d55e00"),
  receive: hex("#56b4e9"),
  "one-sided": hex("#cc79a7"),
  "I/O": hex("#f0e442"),
  "other MPI": hex("#7a7a7a"),
};

/** On dark pages two blues change places: what is most often there is the lighter one. */
const inDark: Record<string, string> = { send: "receive", receive: "send" };

export const kinds = Object.keys(kindColours);

/** Time outside MPI: quiet, so that communication stands out. */
export const outside = (dark: boolean): RGB => (dark ? [44, 48, 53] : [228, 232, 236]);

export function kindColour(kind: string, dark: boolean): RGB {
  return kindColours[(dark && inDark[kind]) || kind] ?? outside(dark);
}

/** What a rank waits for, in words, by the kind of wait of the query wait-states; all kinds at collectives are one. */
export function waitName(state: string): string {
  return state === "late-sender" ? "late sender" : state === "late-receiver" ? "late receiver" : "last rank of a collective";
}

export const waitNames = ["late sender", "late receiver", "last rank of a collective"];

export function waitColour(state: string): RGB {
  return kindColours[{ "late sender": "wait", "late receiver": "send" }[waitName(state)] ?? "collective"];
}

/** The colour of a kind of call beside waits: quiet, and the same for all calls. */
export function quietColour(kind: string, dark: boolean): RGB {
  return kind === "outside MPI" ? outside(dark) : dark ? [98, 104, 112] : [168, 175, 183];
}

/** The kind of a call by its class in the table events. */
export function kindOfClass(klass: string): string {
  const names: Record<string, string> = { recv: "receive", sendrecv: "send and receive", complete: "wait", probe: "wait",
    send: "send", collective: "collective", rma: "one-sided", io: "I/O" };
  return names[klass] ?? "other MPI";
}

const viridis = ["#440154", "#46327e", "#365c8d", "#277f8e", "#1fa187", "#4ac16d", "#a0da39", "#fde725"].map(hex);

/** The colour of a share from 0 to 1. */
export function amountColour(share: number): RGB {
  const at = Math.min(Math.max(share, 0), 1) * (viridis.length - 1);
  const i = Math.min(Math.floor(at), viridis.length - 2);
  const part = at - i;
  return viridis[i].map((c, k) => Math.round(c + part * (viridis[i + 1][k] - c))) as unknown as RGB;
}

export const css = (c: RGB): string => `rgb(${c.join(" ")})`;

/** True if the reader prefers dark pages. */
export const dark = (): boolean => matchMedia("(prefers-color-scheme: dark)").matches;
