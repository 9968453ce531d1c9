// Bundles src/ into dist/, byte for byte the same from the same sources: what is committed there is what stintd carries.
import { copyFileSync, mkdirSync, writeFileSync } from "node:fs";
import { build } from "esbuild";

const out = process.argv[2] ?? "dist";
const common = { bundle: true, minify: true, target: "es2022", legalComments: "none", logLevel: "warning", write: false };

mkdirSync(out, { recursive: true });
for (const [entry, name] of [["src/main.tsx", "app.js"], ["src/stream.ts", "stream.js"], ["src/style.css", "app.css"]]) {
  const result = await build({ ...common, entryPoints: [entry], jsx: "automatic", jsxImportSource: "preact" });
  writeFileSync(`${out}/${name}`, result.outputFiles[0].contents);
}
copyFileSync("src/index.html", `${out}/index.html`);
