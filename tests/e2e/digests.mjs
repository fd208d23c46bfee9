// A list of values in, the list of their digests out.
import { readFileSync } from "node:fs";
import { digest } from "../../docs/examples/digest.mjs";

process.stdout.write(JSON.stringify(JSON.parse(readFileSync(0, "utf-8")).map(digest)));
