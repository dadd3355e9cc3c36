// Builds the page into ../assets: node build.mjs. The files are committed, so that building commq needs no Node.
import { build } from "esbuild";
import { cp, readdir, readFile, writeFile } from "node:fs/promises";

const out = new URL("../assets/", import.meta.url).pathname;

await build({
  entryPoints: ["src/main.tsx"],
  outfile: out + "app.js",
  bundle: true,
  minify: true,
  format: "esm",
  target: "es2022",
  jsx: "automatic",
  jsxImportSource: "preact",
  legalComments: "none",
});
await build({ entryPoints: ["src/style.css"], outfile: out + "app.css", bundle: true, minify: true });
await cp("src/index.html", out + "index.html");

// The licences of what the bundle contains, as they ask for.
const lock = JSON.parse(await readFile("package-lock.json", "utf8"));
const texts = [];
for (const [path, p] of Object.entries(lock.packages).sort()) {
  if (path === "" || p.dev || p.optional || path.includes("@types/") || path.endsWith("undici-types")) continue;
  const files = (await readdir(path)).filter((f) => /^(licen[cs]e|notice)/i.test(f)).sort();
  const text = await Promise.all(files.map((f) => readFile(path + "/" + f, "utf8")));
  texts.push(`${path.replace("node_modules/", "")} ${p.version} (${p.license})\n\n${text.join("\n").trim()}\n`);
}
await writeFile(out + "licenses.txt", texts.join("\n" + "=".repeat(80) + "\n\n"));
