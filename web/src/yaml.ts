// A job as YAML: maps, lists and scalars, as `stint submit -f` reads them. What could be read as something else is quoted.
type Value = string | number | boolean | null | Value[] | { [key: string]: Value };

function scalar(v: string | number | boolean | null): string {
  if (typeof v !== "string") return String(v);
  if (/^[A-Za-z_./][\w./:=@%+-]*$/.test(v) && !/^(true|false|yes|no|on|off|null|y|n|~)$/i.test(v) && !v.endsWith(":")) return v;
  if (/^\d+(s|m|h|d)$/.test(v)) return v;
  return JSON.stringify(v);
}

export function yaml(value: { [key: string]: Value | undefined }, indent = ""): string {
  let out = "";
  for (const [key, v] of Object.entries(value)) {
    if (v === undefined || v === "" || (Array.isArray(v) && v.length === 0)) continue;
    if (Array.isArray(v)) out += `${indent}${key}: [${v.map((x) => scalar(x as string)).join(", ")}]\n`;
    else if (typeof v === "string" && v.includes("\n")) out += `${indent}${key}: |\n${v.trimEnd().split("\n").map((l) => `${indent}  ${l}\n`).join("")}`;
    else if (v !== null && typeof v === "object") out += `${indent}${key}:\n${yaml(v, `${indent}  `)}`;
    else out += `${indent}${key}: ${scalar(v)}\n`;
  }
  return out;
}
