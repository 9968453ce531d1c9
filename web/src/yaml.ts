// A job, or a price book, as YAML: maps, lists and scalars, as `stint submit -f` reads them. What could be read as something else is quoted.
type Value = string | number | boolean | null | Value[] | { [key: string]: Value };

function scalar(v: string | number | boolean | null): string {
  if (typeof v !== "string") return String(v);
  if (/^[A-Za-z_./][\w./:=@%+-]*$/.test(v) && !/^(true|false|yes|no|on|off|null|y|n|~)$/i.test(v) && !v.endsWith(":")) return v;
  if (/^\d+(s|m|h|d)$|^\d+(\.\d+)?%$/.test(v)) return v;
  return JSON.stringify(v);
}

const word = (key: string) => (/^[A-Za-z_][\w.-]*$/.test(key) ? key : /^\d+[smhd]$/.test(key) ? key : JSON.stringify(key));

export function yaml(value: { [key: string]: Value | undefined }, indent = ""): string {
  let out = "";
  for (const [key, v] of Object.entries(value)) {
    if (v === undefined || v === "" || (v !== null && typeof v === "object" && Object.keys(v).length === 0)) continue;
    if (Array.isArray(v)) out += `${indent}${word(key)}: [${v.map((x) => scalar(x as string)).join(", ")}]\n`;
    else if (typeof v === "string" && v.includes("\n")) out += `${indent}${word(key)}: |\n${v.trimEnd().split("\n").map((l) => `${indent}  ${l}\n`).join("")}`;
    else if (v !== null && typeof v === "object") out += `${indent}${word(key)}:\n${yaml(v, `${indent}  `)}`;
    else out += `${indent}${word(key)}: ${scalar(v)}\n`;
  }
  return out;
}
