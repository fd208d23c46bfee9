// The digest of `agui_runs` in JavaScript: SHA-256 over RFC 8785 text, which JavaScript all but
// writes by itself, for the RFC was made after it. In a browser use `crypto.subtle.digest`.
import { createHash } from "node:crypto";

// Object keys are sorted by UTF-16 units, as `sort` does; JSON.stringify does the rest.
export function canonical(value) {
  if (Array.isArray(value)) return `[${value.map(canonical).join(",")}]`;
  if (value === null || typeof value !== "object") return JSON.stringify(value);
  const members = Object.keys(value).sort().map((key) => `${JSON.stringify(key)}:${canonical(value[key])}`);
  return `{${members.join(",")}}`;
}

export const digest = (value) => createHash("sha256").update(canonical(value)).digest("hex");
