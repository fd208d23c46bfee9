// Judge values by AG-UI's published schemas: a list of [schema name, value] in, a list of
// complaints out.
//
// The schemas let unknown keys pass, as a client must. A server has no business sending any, so
// here every key, at every depth, must be one that the schema describes, and null is no value.
import { readFileSync } from "node:fs";
import { isDeepStrictEqual } from "node:util";
import * as schemas from "@ag-ui/core/schemas";

function* strangers(value, schema, path) {
  if (value === null) yield `${path} is null`;
  const { type, innerType, element, shape, options } = schema._zod.def;
  if (type === "optional") yield* strangers(value, innerType, path);
  else if (type === "array")
    for (const [index, item] of value.entries()) yield* strangers(item, element, `${path}[${index}]`);
  else if (type === "union") {
    const fits = options.find((option) => option.safeParse(value).success);
    yield* strangers(value, fits, path);
  } else if (type === "object")
    for (const [key, item] of Object.entries(value))
      if (Object.hasOwn(shape, key)) yield* strangers(item, shape[key], `${path}.${key}`);
      else yield `${path}.${key} is unknown`;
  else if (!["string", "literal", "enum"].includes(type)) yield `${path} is of an open type, ${type}`;
}

const complaints = JSON.parse(readFileSync(0, "utf-8")).flatMap(([name, value], index) => {
  const parsed = schemas[name].safeParse(value);
  const path = `[${index}] ${name}`;
  if (!parsed.success) return [`${path} ${parsed.error.message}`];
  if (!isDeepStrictEqual(parsed.data, value)) return [`${path} is changed by its schema`];
  return [...strangers(value, schemas[name], path)];
});
process.stdout.write(JSON.stringify(complaints));
